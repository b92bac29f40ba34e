import { formatIpv4, parseIpv4, parseNetwork } from "../../addresses/addresses.ts";
import { isManaged, isMode, type Mode, modes } from "../../cell/network/modes.ts";
import { fail, ok, type Result } from "../../result.ts";
import { type AddressRange, formatRange, prefixOfNetmask, readRange, sizeOf } from "../addresses/ranges.ts";
import type { ManagedSubnet } from "../addresses/segments.ts";
import type { Subnet } from "../configuration/effective.ts";
import { readXml, type XmlElement } from "../xml/read-xml.ts";
import {
  type Cluster,
  type IngressRule,
  type Instance,
  membersOf,
  type NetworkView,
  type Node,
  type SecurityGroup,
} from "./network-view.ts";

/** A view that is refused has faults and nothing else: the last good one stays in force. */
export interface ViewFault {
  /** In the text, from 1. */
  readonly line: number;
  readonly message: string;
}
export interface ReadView {
  readonly view: NetworkView;
  /** What is left out, as sentences. */
  readonly warnings: readonly string[];
}

/** Members that a set of addresses can have. */
export const mostMembers = 65_536;
const mostFaults = 100;
const mostNames = 10_000;
/** Characters of an interface's name, of which `vn_` are the first three of an instance's. */
const interfaceName = 15;
const prefixOfTap = "vn_";
/** Of a chain (28) and of a set (31): the smaller one. */
const chainName = 28;
const identifier = /^[A-Za-z0-9][A-Za-z0-9._-]*$/;
/** Text of others in a sentence: short, and without what a terminal would obey. */
const shown = (text: string): string => JSON.stringify(text.length <= 60 ? text : `${text.slice(0, 60)}…`);

/** Reads a view from its XML. */
export function readView(text: string): Result<ReadView, readonly ViewFault[]> {
  const read = readXml(text);
  if (!read.ok)
    return fail([{ line: read.error.line, message: `${read.error.message} (column ${read.error.column})` }]);
  const root = read.value;
  if (root.name !== "network-data")
    return fail([{ line: root.line, message: `the root element is ${root.name}, and a network view is network-data` }]);
  return new ViewReader(root).view();
}

class ViewReader {
  readonly #root: XmlElement;
  readonly #faults: ViewFault[] = [];
  readonly #warnings: string[] = [];

  constructor(root: XmlElement) {
    this.#root = root;
  }

  view(): Result<ReadView, readonly ViewFault[]> {
    const root = this.#root;
    const configuration = child(root, "configuration") ?? root;
    const mode = this.#mode(configuration);
    const clcIp = this.#oneAddress(configuration, "enabledCLCIp");
    if (clcIp === undefined) this.#refuse(configuration, "enabledCLCIp is missing: who answers for metadata");
    const domain = valuesOf(configuration, "instanceDNSDomain").at(-1);
    if (domain === undefined) this.#refuse(configuration, "instanceDNSDomain is missing");
    else if (!/^[A-Za-z0-9](?:[A-Za-z0-9.-]{0,251}[A-Za-z0-9])?$/.test(domain.text))
      this.#refuse(domain, `${shown(domain.text)} is no domain name`);
    const servers = valuesOf(configuration, "instanceDNSServers").map((value) => this.#listed(value));
    if (servers.length === 0) this.#refuse(configuration, "instanceDNSServers is missing: at least one name server");
    const managedSubnets = property(configuration, "managedSubnet").flatMap((each) => children(each, "managedSubnet"));
    const managedSubnet = isManaged(mode) ? this.#managed(configuration, managedSubnets) : undefined;
    const version = root.attributes.get("version");
    const appliedVersion = root.attributes.get("applied-version");
    const publicGateway = this.#oneAddress(configuration, "publicGateway");
    const view: NetworkView = {
      ...(version === undefined ? {} : { version: version.slice(0, 64) }),
      ...(appliedVersion === undefined ? {} : { appliedVersion: appliedVersion.slice(0, 64) }),
      mode,
      publicIps: this.#ranges(valuesOf(configuration, "publicIps"), "publicIps"),
      ...(publicGateway === undefined ? {} : { publicGateway }),
      enabledClcIp: clcIp ?? 0,
      instanceDnsDomain: domain?.text ?? "",
      instanceDnsServers: servers,
      subnets: isManaged(mode)
        ? []
        : property(configuration, "subnets").flatMap((each) =>
            children(each, "subnet").map((one) => this.#subnet(one)),
          ),
      ...(managedSubnet === undefined ? {} : { managedSubnet }),
      clusters: property(configuration, "clusters").flatMap((each) =>
        children(each, "cluster").map((cluster) => this.#cluster(cluster, mode)),
      ),
      instances: section(root, "instances", "instance").map((each) => this.#instance(each)),
      securityGroups: section(root, "securityGroups", "securityGroup").map((each) => this.#group(each, mode)),
    };
    this.#once(view);
    this.#members(view);
    return this.#faults.length > 0 ? fail(this.#faults) : ok({ view, warnings: this.#warnings });
  }

  #refuse({ line }: XmlElement, message: string): void {
    if (this.#faults.length < mostFaults) this.#faults.push({ line, message });
  }
  #warn(message: string): void {
    if (this.#warnings.length < mostFaults) this.#warnings.push(message);
  }

  #mode(configuration: XmlElement): Mode {
    const found = valuesOf(configuration, "mode").at(-1);
    if (found === undefined) this.#refuse(configuration, "the mode is missing");
    else if (!isMode(found.text))
      this.#refuse(found, `the mode ${shown(found.text)} does not exist here: ${modes.join(", ")} do`);
    return found !== undefined && isMode(found.text) ? found.text : "EDGE";
  }

  /** Absent where it is missing or 0.0.0.0. */
  #address(element: XmlElement): number | undefined {
    const address = parseIpv4(element.text);
    if (address === null) this.#refuse(element, `${shown(element.text)} is no address (${element.name})`);
    return address === null || address === 0 ? undefined : address;
  }
  #oneAddress(element: XmlElement, name: string): number | undefined {
    const value = valuesOf(element, name).at(-1);
    return value === undefined ? undefined : this.#address(value);
  }
  /** Of a list, in which there is no empty one. */
  #listed(element: XmlElement): number {
    const address = parseIpv4(element.text);
    if (address === null) this.#refuse(element, `${shown(element.text)} is no address`);
    else if (address === 0) this.#refuse(element, "an address in a list is 0.0.0.0");
    return address ?? 0;
  }
  #ranges(values: readonly XmlElement[], what: string): readonly AddressRange[] {
    return values.flatMap((value) => {
      const read = readRange(value.text);
      if (!read.ok) {
        // What ends before it begins names nobody; what is no address at all was not written by who writes views.
        if (value.text.split("-").every((part) => parseIpv4(part.trim()) !== null))
          this.#warn(`${what}: ${read.error}; it is left out`);
        else this.#refuse(value, `${what}: ${read.error}`);
        return [];
      }
      if (read.value.first === 0) this.#refuse(value, `${what}: an address in the list is 0.0.0.0`);
      return [read.value];
    });
  }

  #subnet(element: XmlElement): Subnet {
    const name = element.attributes.get("name") ?? "";
    const subnet = this.#oneAddress(element, "subnet") ?? parseIpv4(name) ?? 0;
    const netmask = this.#oneAddress(element, "netmask") ?? 0;
    const gateway = this.#oneAddress(element, "gateway") ?? 0;
    if (subnet === 0 || netmask === 0 || gateway === 0)
      this.#refuse(element, `the subnet ${shown(name)} lacks its address, netmask or gateway`);
    else if (prefixOfNetmask(netmask) === null)
      this.#refuse(element, `${formatIpv4(netmask)} is no netmask: ones and then zeros`);
    return { name: formatIpv4(subnet), subnet, netmask, gateway };
  }

  #managed(configuration: XmlElement, elements: readonly XmlElement[]): ManagedSubnet | undefined {
    const [element] = elements;
    if (element === undefined || elements.length !== 1) {
      this.#refuse(configuration, `there are ${elements.length} managed subnets, and a MANAGED mode has one`);
      return undefined;
    }
    const name = parseIpv4(element.attributes.get("name") ?? "");
    const subnet = this.#oneAddress(element, "subnet") ?? name ?? 0;
    const netmask = this.#oneAddress(element, "netmask") ?? 0;
    const number = (field: string): number => {
      const value = valuesOf(element, field).at(-1);
      return value !== undefined && /^\d{1,5}$/.test(value.text) ? Number(value.text) : 0;
    };
    const [minVlan, maxVlan, segmentSize] = [number("minVlan"), number("maxVlan"), number("segmentSize")];
    if (subnet === 0 || netmask === 0 || prefixOfNetmask(netmask) === null)
      this.#refuse(element, "the managed subnet lacks its address, or its netmask is none");
    if (segmentSize < 16 || !Number.isInteger(Math.log2(segmentSize)))
      this.#refuse(element, `segments of ${segmentSize} addresses: the size is a power of two, at least 16`);
    for (const tag of [minVlan, maxVlan])
      if (tag < 2 || tag > 4095) this.#refuse(element, `the tag ${tag} of the managed subnet is not from 2 to 4095`);
    if (minVlan > maxVlan) this.#refuse(element, `minVlan ${minVlan} is above maxVlan ${maxVlan}`);
    return { subnet, netmask, minVlan, maxVlan, segmentSize };
  }

  #cluster(element: XmlElement, mode: Mode): Cluster {
    const name = element.attributes.get("name") ?? "";
    if (!identifier.test(name) || name.length > 255) this.#refuse(element, `${shown(name)} is no name of a cluster`);
    const enabledCcIp = this.#oneAddress(element, "enabledCCIp");
    if (enabledCcIp === undefined) this.#refuse(element, `the cluster ${shown(name)} lacks enabledCCIp`);
    const macPrefix = valuesOf(element, "macPrefix").at(-1)?.text ?? "";
    if (!/^[0-9a-fA-F]{2}:[0-9a-fA-F]{2}$/.test(macPrefix))
      this.#refuse(element, `the cluster ${shown(name)} has no MAC prefix`);
    const subnetElement = children(element, "subnet").at(-1);
    const needsSubnet = mode === "EDGE" || mode === "STATIC";
    if (needsSubnet && subnetElement === undefined) this.#refuse(element, `the cluster ${shown(name)} has no subnet`);
    const privateIps = this.#ranges(valuesOf(element, "privateIps"), "privateIps");
    if (needsSubnet && privateIps.length === 0)
      this.#refuse(element, `the cluster ${shown(name)} has no private addresses`);
    const nodes = property(element, "nodes").flatMap((each) => children(each, "node").map((node) => this.#node(node)));
    return {
      name,
      ...(subnetElement === undefined || isManaged(mode) ? {} : { subnet: this.#subnet(subnetElement) }),
      enabledCcIp: enabledCcIp ?? 0,
      macPrefix,
      privateIps,
      nodes,
    };
  }
  #node(element: XmlElement): Node {
    const name = element.attributes.get("name") ?? "";
    if (!identifier.test(name) || name.length > 255) this.#refuse(element, `${shown(name)} is no name of a node`);
    const ids = children(element, "instanceIds").flatMap((each) => children(each, "value"));
    return {
      name,
      instances: ids.map((id) => this.#id(id, id.text, "an instance", interfaceName - prefixOfTap.length)),
    };
  }

  /** An identifier that names interfaces, chains or sets. */
  #id(element: XmlElement, id: string, what: string, most: number): string {
    if (!identifier.test(id)) this.#refuse(element, `${shown(id)} is no identifier of ${what}`);
    else if (id.length > most)
      this.#refuse(
        element,
        `${shown(id)} is too long for ${what}: ${most} characters have room in what is named after it`,
      );
    return id;
  }

  #instance(element: XmlElement): Instance {
    const id = this.#id(
      element,
      element.attributes.get("name") ?? "",
      "an instance",
      interfaceName - prefixOfTap.length,
    );
    const owner = textOf(element, "ownerId");
    const mac = textOf(element, "macAddress");
    const isMac = mac !== undefined && /^[0-9a-fA-F]{2}(?::[0-9a-fA-F]{2}){5}$/.test(mac);
    if (mac !== undefined && !isMac) this.#refuse(element, `${shown(mac)} of ${shown(id)} is no MAC address`);
    const known = isMac && mac !== "00:00:00:00:00:00";
    const [publicElement, privateElement] = [child(element, "publicIp"), child(element, "privateIp")];
    const publicIp =
      publicElement === undefined || publicElement.text === "" ? undefined : this.#address(publicElement);
    const privateIp =
      privateElement === undefined || privateElement.text === "" ? undefined : this.#address(privateElement);
    const groups = children(element, "securityGroups").flatMap((each) => children(each, "value"));
    const securityGroups = groups.map((group) => this.#id(group, group.text, "a security group", chainName));
    for (const [lacks, what] of [
      [owner === undefined, "owner"],
      [!known, "MAC address"],
      [privateIp === undefined, "private address"],
      [securityGroups.length === 0, "security group"],
    ] as const)
      if (lacks) this.#warn(`the instance ${shown(id)} has no ${what}; what needs one is left out`);
    return {
      id,
      ...(owner === undefined ? {} : { owner: owner.slice(0, 128) }),
      ...(known ? { mac: mac.toUpperCase() } : {}),
      ...(publicIp === undefined ? {} : { publicIp }),
      ...(privateIp === undefined ? {} : { privateIp }),
      securityGroups,
    };
  }

  #group(element: XmlElement, mode: Mode): SecurityGroup {
    // In the MANAGED modes a bridge has its name, too.
    const most = isManaged(mode) ? interfaceName : chainName;
    const id = this.#id(element, element.attributes.get("name") ?? "", "a security group", most);
    const owner = textOf(element, "ownerId");
    if (owner === undefined) this.#refuse(element, `the security group ${shown(id)} has no owner`);
    const rules = (name: string): readonly IngressRule[] =>
      children(element, name).flatMap((each) => children(each, "rule").flatMap((rule) => this.#rule(rule, id)));
    return { id, owner: (owner ?? "").slice(0, 128), ingress: rules("ingressRules"), egress: rules("egressRules") };
  }

  #rule(element: XmlElement, id: string): readonly IngressRule[] {
    const number = (name: string, least: number, most: number, absent: number): number => {
      const text = textOf(element, name);
      if (text === undefined) return absent;
      const value = /^-?\d{1,5}$/.test(text) ? Number(text) : Number.NaN;
      if (value >= least && value <= most) return value;
      this.#refuse(element, `${name} ${shown(text)} of a rule of ${id} is not from ${least} to ${most}`);
      return absent;
    };
    if (textOf(element, "protocol") === undefined) return [];
    const cidr = textOf(element, "cidr");
    if (cidr !== undefined && parseNetwork(cidr) === null)
      this.#refuse(element, `${shown(cidr)} of a rule of ${id} is no network`);
    const group = child(element, "groupId");
    const source =
      group === undefined || group.text === "" ? undefined : this.#id(group, group.text, "a security group", chainName);
    const groupOwner = textOf(element, "groupOwnerId");
    if (cidr === undefined && source === undefined) {
      this.#warn(`a rule of ${id} says neither a network nor a group; it is left out`);
      return [];
    }
    return [
      {
        protocol: number("protocol", -1, 255, -1),
        fromPort: number("fromPort", 0, 65_535, 0),
        toPort: number("toPort", 0, 65_535, 0),
        icmpType: number("icmpType", -1, 255, 0),
        icmpCode: number("icmpCode", -1, 255, 0),
        ...(cidr === undefined ? {} : { cidr }),
        ...(source === undefined ? {} : { group: source }),
        ...(groupOwner === undefined ? {} : { groupOwner: groupOwner.slice(0, 128) }),
      },
    ];
  }

  /** Each name and each address is one's alone. */
  #once(view: NetworkView): void {
    const twice = (what: string, names: readonly string[]): void => {
      const seen = new Set<string>();
      for (const name of names) {
        if (seen.has(name)) this.#refuse(this.#root, `${what} ${shown(name)} is there twice`);
        seen.add(name);
      }
    };
    const { clusters, instances, securityGroups } = view;
    if (clusters.length > mostNames) this.#refuse(this.#root, `there are more than ${mostNames} clusters`);
    twice(
      "the cluster",
      clusters.map(({ name }) => name),
    );
    twice(
      "the node",
      clusters.flatMap(({ nodes }) => nodes.map(({ name }) => name)),
    );
    twice(
      "on nodes, the instance",
      clusters.flatMap(({ nodes }) => nodes.flatMap((node) => node.instances)),
    );
    twice(
      "the instance",
      instances.map(({ id }) => id),
    );
    twice(
      "the security group",
      securityGroups.map(({ id }) => id),
    );
  }

  #members({ securityGroups, publicIps, clusters, ...rest }: NetworkView): void {
    const members = membersOf({ securityGroups, publicIps, clusters, ...rest });
    for (const { id } of securityGroups) {
      const count = members.get(id)?.length ?? 0;
      if (count === 0) this.#refuse(this.#root, `no instance is in the security group ${id}`);
      // Each has up to two addresses; two more are in every set.
      if (2 * count + 2 > mostMembers)
        this.#refuse(
          this.#root,
          `the security group ${id} has ${count} members, more than a set of ${mostMembers} holds`,
        );
    }
    if (rest.instances.length + 1 > mostMembers)
      this.#refuse(this.#root, `there are ${rest.instances.length} instances, more than a set of ${mostMembers} holds`);
    for (const range of publicIps)
      if (sizeOf(range) > mostMembers)
        this.#refuse(this.#root, `publicIps: ${formatRange(range)} has more than ${mostMembers} addresses`);
  }
}

const children = ({ children: all }: XmlElement, name: string): readonly XmlElement[] =>
  all.filter((each) => each.name === name);
const child = (element: XmlElement, name: string): XmlElement | undefined => children(element, name)[0];
const textOf = (element: XmlElement, name: string): string | undefined => {
  const text = child(element, name)?.text;
  return text === undefined || text === "" ? undefined : text;
};
const section = (root: XmlElement, outer: string, inner: string): readonly XmlElement[] =>
  children(root, outer).flatMap((each) => children(each, inner));
const property = (element: XmlElement, name: string): readonly XmlElement[] =>
  children(element, "property").filter((each) => each.attributes.get("name") === name);
/** Values of a property; one without text is none. */
const valuesOf = (element: XmlElement, name: string): readonly XmlElement[] =>
  property(element, name).flatMap((each) => children(each, "value").filter(({ text }) => text !== ""));
