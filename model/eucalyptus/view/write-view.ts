import { formatIpv4 } from "../../addresses/addresses.ts";
import { formatRange } from "../addresses/ranges.ts";
import type { Subnet } from "../configuration/effective.ts";
import { escaped } from "../xml/read-xml.ts";
import type { Cluster, IngressRule, NetworkView, SecurityGroup } from "./network-view.ts";

/** Elements by lines, each two spaces further in than what it stands in. */
type Lines = readonly string[];
const within = (name: string, lines: Lines, attribute?: string): Lines => {
  const opened = attribute === undefined ? name : `${name} name="${escaped(attribute)}"`;
  return lines.length === 0 ? [`<${opened}/>`] : [`<${opened}>`, ...lines.map((line) => `  ${line}`), `</${name}>`];
};
const element = (name: string, text: string): string => `<${name}>${escaped(text)}</${name}>`;
const property = (name: string, values: readonly string[]): Lines =>
  within(
    "property",
    values.map((value) => element("value", value)),
    name,
  );
const optional = (name: string, value: number | undefined): Lines =>
  value === undefined ? [] : property(name, [formatIpv4(value)]);

const subnetLines = ({ name, subnet, netmask, gateway }: Subnet): Lines =>
  within(
    "subnet",
    [
      ...property("subnet", [formatIpv4(subnet)]),
      ...property("netmask", [formatIpv4(netmask)]),
      ...property("gateway", [formatIpv4(gateway)]),
    ],
    name,
  );

const clusterLines = ({ name, subnet, enabledCcIp, macPrefix, privateIps, nodes }: Cluster): Lines =>
  within(
    "cluster",
    [
      ...(subnet === undefined ? [] : subnetLines(subnet)),
      ...property("enabledCCIp", [formatIpv4(enabledCcIp)]),
      ...property("macPrefix", [macPrefix]),
      ...property("privateIps", privateIps.map(formatRange)),
      ...within(
        "property",
        nodes.flatMap((node) =>
          within(
            "node",
            within(
              "instanceIds",
              node.instances.map((id) => element("value", id)),
            ),
            node.name,
          ),
        ),
        "nodes",
      ),
    ],
    name,
  );

function ruleLines({ protocol, fromPort, toPort, icmpType, icmpCode, cidr, group, groupOwner }: IngressRule): Lines {
  const isIcmp = protocol === 1;
  const hasPorts = protocol === 6 || protocol === 17;
  return within("rule", [
    element("protocol", String(protocol)),
    ...(hasPorts ? [element("fromPort", String(fromPort)), element("toPort", String(toPort))] : []),
    ...(isIcmp ? [element("icmpType", String(icmpType)), element("icmpCode", String(icmpCode))] : []),
    ...(group === undefined ? [] : [element("groupId", group)]),
    ...(groupOwner === undefined ? [] : [element("groupOwnerId", groupOwner)]),
    ...(cidr === undefined ? [] : [element("cidr", cidr)]),
  ]);
}
const groupLines = ({ id, owner, ingress, egress }: SecurityGroup): Lines =>
  within(
    "securityGroup",
    [
      element("ownerId", owner),
      ...within("ingressRules", ingress.flatMap(ruleLines)),
      ...within("egressRules", egress.flatMap(ruleLines)),
    ],
    id,
  );

/** The XML of a view, as the paper has it; `readView` reads the same view from it. */
export function writeView(view: NetworkView): string {
  const { managedSubnet: managed, version, appliedVersion } = view;
  const configuration = [
    ...property("mode", [view.mode]),
    ...property("publicIps", view.publicIps.map(formatRange)),
    ...property("enabledCLCIp", [formatIpv4(view.enabledClcIp)]),
    ...property("instanceDNSDomain", [view.instanceDnsDomain]),
    ...property("instanceDNSServers", view.instanceDnsServers.map(formatIpv4)),
    ...optional("publicGateway", view.publicGateway),
    ...(view.subnets.length === 0 ? [] : within("property", view.subnets.flatMap(subnetLines), "subnets")),
    ...(managed === undefined
      ? []
      : within(
          "property",
          within(
            "managedSubnet",
            [
              ...property("subnet", [formatIpv4(managed.subnet)]),
              ...property("netmask", [formatIpv4(managed.netmask)]),
              ...property("minVlan", [String(managed.minVlan)]),
              ...property("maxVlan", [String(managed.maxVlan)]),
              ...property("segmentSize", [String(managed.segmentSize)]),
            ],
            formatIpv4(managed.subnet),
          ),
          "managedSubnet",
        )),
    ...within("property", view.clusters.flatMap(clusterLines), "clusters"),
  ];
  const instances = view.instances.flatMap(({ id, owner, mac, publicIp, privateIp, securityGroups }) =>
    within(
      "instance",
      [
        ...(owner === undefined ? [] : [element("ownerId", owner)]),
        ...(mac === undefined ? [] : [element("macAddress", mac.toLowerCase())]),
        element("publicIp", formatIpv4(publicIp ?? 0)),
        element("privateIp", formatIpv4(privateIp ?? 0)),
        "<networkInterfaces/>",
        ...within(
          "securityGroups",
          securityGroups.map((group) => element("value", group)),
        ),
      ],
      id,
    ),
  );
  const lines = [
    ...within("configuration", configuration),
    "<vpcs/>",
    ...within("instances", instances),
    "<dhcpOptionSets/>",
    "<internetGateways/>",
    ...within("securityGroups", view.securityGroups.flatMap(groupLines)),
  ];
  const versions = [
    ...(version === undefined ? [] : [` version="${escaped(version)}"`]),
    ...(appliedVersion === undefined ? [] : [` applied-version="${escaped(appliedVersion)}"`]),
  ].join("");
  return [
    '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>',
    `<network-data${versions}>`,
    ...lines.map((line) => `  ${line}`),
    "</network-data>",
    "",
  ].join("\n");
}
