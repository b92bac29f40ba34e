import {
  compilePolicy,
  type PolicyInput,
  type PolicySubnet,
} from "../../../../../../core/controller/network/policy.ts";
import type { Forwarded } from "../../../../../../core/documents/network/policy.ts";
import type { ActualLocation, CellPolicy, DesiredInterface } from "../../../../../../core/documents/vocabulary.ts";
import type { NetworkRuleElement, RuleEnd } from "../../../../../../model/cell/cell.ts";
import {
  type Cidr,
  cellName,
  cidr,
  type ElementPath,
  elementPath,
  hostName,
  type Ipv4,
  ipv4,
  type Mac,
  mac,
  uid,
} from "../../../../../../model/cell/identifiers.ts";
import {
  type Cell,
  type End,
  hostMacs,
  type Interface,
  type Range,
  type Rule,
  type RuleSet,
  type Told,
  type World,
} from "../world.testing.ts";

/** What the world is in the documents that controllers and hosts publish: rules are compiled as a controller does it. */
export const addressText = (number: number): Ipv4 =>
  ipv4([24, 16, 8, 0].map((shift) => (number >>> shift) & 255).join("."));
export const macText = (number: number): Mac =>
  mac(
    number
      .toString(16)
      .padStart(12, "0")
      .replace(/..(?=.)/g, "$&:"),
  );
export const cidrText = ({ first, prefixLength }: Range): Cidr => cidr(`${addressText(first)}/${prefixLength}`);
const foreignNumber = 2 ** 32 - 1;

const pathOf = (cell: number, name: string): ElementPath => elementPath(`c${cell}/${name}`);
const typeOf = { interface: "VirtualInterface", vm: "VM", subnet: "Subnet" } as const;
function endOf(cell: number, end: End): RuleEnd {
  switch (end.kind) {
    case "internet":
    case "controller":
      return { kind: end.kind };
    case "cidr":
      return { kind: "cidr", cidr: cidrText(end.range) };
    case "foreign":
      return { kind: "foreign", domain: `c${end.cell}.cells`, path: `${end.of}:${end.name}` };
    default:
      return { kind: "element", path: pathOf(cell, end.name), type: typeOf[end.kind] };
  }
}
const elementOf = (cell: number, rule: Rule): NetworkRuleElement =>
  ({
    type: "NetworkRule",
    path: pathOf(cell, rule.name),
    address1: endOf(cell, rule.ends[0]),
    address2: endOf(cell, rule.ends[1]),
    protocol: rule.protocol,
    direction: rule.direction,
    ...(rule.ports[0] === null ? {} : { port1: rule.ports[0] }),
    ...(rule.ports[1] === null ? {} : { port2: rule.ports[1] }),
  }) as NetworkRuleElement;

const controllerIdentity = 1;
/** The part of a controller that gives numbers to networks and rules, and never the same one twice. */
export class Compiler {
  readonly #world: World;
  readonly #numbers = new Map<string, number>();
  readonly #compiled = new WeakMap<RuleSet, CellPolicy>();

  constructor(world: World) {
    this.#world = world;
  }
  #number(key: string, first: number): number {
    const known = this.#numbers.get(key) ?? first + this.#numbers.size;
    this.#numbers.set(key, known);
    return known;
  }
  policy(cell: Cell, set: RuleSet): CellPolicy {
    const known = this.#compiled.get(set) ?? compilePolicy(this.#input(cell, set));
    this.#compiled.set(set, known);
    return known;
  }
  #input(cell: Cell, set: RuleSet): PolicyInput {
    const { version, rules, subnetConnectivity } = set;
    const { number, subnets, interfaces, controller } = cell;
    const forwardsOf = (at: number): readonly Forwarded[] =>
      set.forwards
        .filter((each) => each.interface === at)
        .flatMap(({ networks }) => networks.map((each) => (each === null ? "internet" : cidrText(each))));
    const routerOf = (subnet: string): Pick<PolicySubnet, "router"> => {
      const at = set.routers.get(subnet);
      const found = interfaces.find((each) => each.at === at);
      if (found === undefined) return {};
      const { identity, address } = found;
      return { router: { identity, address: addressText(address), forwards: forwardsOf(found.at) } };
    };
    const identities = new Map<string, number>([
      ...subnets.map(({ name, identity }) => [name, identity] as const),
      ...interfaces.flatMap(({ name, identity, vm, vmIdentity }) => [
        [name, identity] as const,
        [vm, vmIdentity] as const,
      ]),
    ]);
    return {
      cell: cellName(`c${number}`),
      cellNumber: number,
      version,
      openness: { subnetConnectivity, internet: "none", broadcast: set.broadcast },
      controller: {
        address: addressText(controller.address),
        mac: macText(controller.mac),
        identity: controllerIdentity,
      },
      interfaces: interfaces.map((each) => ({
        path: pathOf(number, each.name),
        address: addressText(each.address),
        identity: each.identity,
        vmIdentity: each.vmIdentity,
        subnetIdentity: each.subnet.identity,
        forwards: forwardsOf(each.at),
        groups: (set.groups.get(each.at) ?? []).map(addressText),
      })),
      subnets: subnets.map(({ name, range, identity }) => ({ cidr: cidrText(range), identity, ...routerOf(name) })),
      rules: rules.map((rule) => ({ uid: uid(`r-${rule.name}`), element: elementOf(number, rule) })),
      hosts: [hostName("a"), hostName("b"), hostName("c")],
      foreignNetworks: ({ domain, path }) => ({
        networks: this.#shown(domain, path),
        isSubnet: path.startsWith("subnet:"),
      }),
      identityOf: (path) => identities.get(path.slice(path.indexOf("/") + 1)),
      networkIdentity: (text) => this.#number(`${number} ${text}`, 1000),
      ruleId: (key, of) => this.#number(`${number} rule ${of} ${key}`, 1),
    };
  }
  /** What another cell's directory entry says of an element of it. */
  #shown(domain: string, path: string): readonly Cidr[] {
    const cell = this.#world.cells.find(({ number }) => domain === `c${number}.cells`);
    const [kind = "", name = ""] = path.split(":");
    if (kind === "subnet")
      return (cell?.subnets ?? []).filter((each) => each.name === name).map((each) => cidrText(each.range));
    return (cell?.interfaces ?? [])
      .filter((each) => (kind === "vm" ? each.vm : each.name) === name)
      .map((each) => cidr(`${addressText(each.address)}/32`));
  }
}

export const uidOf = ({ at }: Interface) => uid(`fuzz-${at}`);
const identitiesOf = ({ identity, vmIdentity, subnet }: Interface) => ({
  identity,
  vmIdentity,
  subnetIdentity: subnet.identity,
});
export const desiredOf = (each: Interface, cell: Cell): DesiredInterface => ({
  uid: uidOf(each),
  path: pathOf(each.cell, each.name),
  mac: macText(each.mac),
  address: addressText(each.address),
  prefixLength: each.subnet.range.prefixLength,
  gateway: addressText(each.subnet.range.first + 1),
  nameServer: addressText(cell.controller.address),
  hostName: each.name,
  domain: `c${each.cell}.cells`,
  ...identitiesOf(each),
  audience: [],
});
export const locationOf = (each: Interface, { place, isOwn }: Told): ActualLocation => ({
  address: addressText(each.address),
  host: hostName(place),
  hostMac: macText(hostMacs[place]),
  cellNumber: isOwn ? each.cell : foreignNumber,
  ...identitiesOf(each),
});
