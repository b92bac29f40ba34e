import { formatNetwork, type Network, parseNetwork } from "../../addresses/addresses.ts";
import type { Cell, NetworkRuleElement, RuleEnd, SubnetElement } from "../../cell/cell.ts";
import type { ElementPath } from "../../cell/identifiers.ts";
import { NetworkIndex } from "../../cell/network/network-index.ts";
import { limits } from "../../limits.ts";
import type { ReportFault } from "../fault.ts";
import { openings } from "./rule-openings.ts";

/**
 * How large the rules of a cell are once they are compiled. A rule with a network at an end is repeated for each narrower
 * network that any rule names, so a few hundred elements can come to millions of compiled rules. A host's maps hold
 * so many; what does not fit is refused while somebody is there to read why.
 */
export interface RulesSize {
  readonly rules: number;
  readonly characters: number;
  /** The element of which most comes. */
  readonly largest: { readonly path: ElementPath; readonly rules: number } | null;
}
/** What a specification does not show, and its controller may know. */
export interface KnownNetworks {
  readonly rangeOf: (subnet: SubnetElement) => Network | null;
  readonly addressOf: (path: ElementPath) => Network | null;
  /** What an element of another cell shows. */
  readonly foreign: (end: Extract<RuleEnd, { kind: "foreign" }>) => readonly string[];
}

const networkOf = (text: string | undefined): Network | null => (text === undefined ? null : parseNetwork(text));
/** What a specification shows by itself: fixed ranges and addresses, and nothing of other cells. */
const shown = (cell: Cell): KnownNetworks => ({
  rangeOf: ({ cidr }) => networkOf(cidr),
  addressOf: (path) => {
    const element = cell.elements.get(path);
    return element?.type === "VirtualInterface" ? networkOf(element.address) : null;
  },
  foreign: () => [],
});

const everything = { first: 0, last: 2 ** 32 - 1, prefixLength: 0, hostBits: false };

function networksOf(end: RuleEnd, { foreign }: KnownNetworks): readonly Network[] {
  if (end.kind === "internet") return [everything];
  if (end.kind === "cidr") return [networkOf(end.cidr)].filter((network) => network !== null);
  return end.kind === "foreign" ? foreign(end).flatMap((text) => networkOf(text) ?? []) : [];
}

/** Numbers of rules and identities are counted up for good, so they are taken to be this long. */
const widest = 99_999_999;

function characters(rule: NetworkRuleElement, count: number): number {
  const { path, protocol } = rule;
  const length = openings(rule).reduce((sum, { sourcePorts, ports }) => {
    const compiled = { id: widest, path, from: widest, to: widest, protocol, sourcePorts, ports };
    return sum + JSON.stringify(compiled).length + 1;
  }, 0);
  return length * count;
}
/** Of what each subnet has without being asked for: names over UDP and TCP, and traffic inside it. */
const builtIn = JSON.stringify({
  id: widest,
  path: "[subnet connectivity]",
  from: widest,
  to: widest,
  protocol: "any",
  sourcePorts: { from: 0, to: 65535 },
  ports: { from: 0, to: 65535 },
}).length;
const network = JSON.stringify({ cidr: "255.255.255.255/32", identity: widest }).length + 1;

/** Linear in rules, subnets and interfaces, however much comes of them. */
export function sizeOfRules(cell: Cell, known: KnownNetworks = shown(cell)): RulesSize {
  const elements = [...cell.elements.values()];
  const rules = elements.filter((element) => element.type === "NetworkRule");
  const named = new Map<string, { readonly range: Network }>();
  for (const { address1, address2 } of rules)
    for (const range of [...networksOf(address1, known), ...networksOf(address2, known)])
      named.set(formatNetwork(range), { range });
  const networks = new NetworkIndex(named.values());
  const subnets = elements.filter((element) => element.type === "Subnet");
  const ranges = new NetworkIndex(subnets.flatMap((subnet) => ({ range: known.rangeOf(subnet) })).filter(hasRange));
  const interfaces = new NetworkIndex(
    elements
      .flatMap(({ type, path }) => (type === "VirtualInterface" ? { range: known.addressOf(path) } : []))
      .filter(hasRange),
  );
  const identities = (end: RuleEnd): number => {
    if (end.kind === "element" || end.kind === "controller") return 1;
    return networksOf(end, known).reduce((sum, block) => {
      const own = sum + networks.countInside(block);
      if (end.kind !== "cidr") return own;
      // Whole subnets count once; of one that is only a part, each interface does.
      const around = ranges.around(block);
      const isPart = around !== undefined && around.range.prefixLength < block.prefixLength;
      return own + (isPart ? interfaces.countInside(block) : ranges.countInside(block));
    }, 0);
  };
  const eachSubnet = cell.policy.subnetConnectivity ? 3 : 2;
  let [count, length] = [subnets.length * eachSubnet, subnets.length * eachSubnet * (builtIn + 1)];
  let largest: RulesSize["largest"] = null;
  for (const rule of rules) {
    const pairs = identities(rule.address1) * identities(rule.address2);
    const own = pairs * openings(rule).length;
    count += own;
    length += characters(rule, pairs);
    if (own > (largest?.rules ?? 0)) largest = { path: rule.path, rules: own };
  }
  return { rules: count, characters: length + named.size * network, largest };
}
const hasRange = (entry: { readonly range: Network | null }): entry is { readonly range: Network } =>
  entry.range !== null;

/** Refuses rules of which a host could not be told, with how much they come to and where most of it comes from. */
export function checkRules(cell: Cell, fault: ReportFault, known?: KnownNetworks): void {
  const { rules, characters, largest } = sizeOfRules(cell, known);
  if (rules <= limits.compiledRules && characters <= limits.compiledCharacters) return;
  const most = largest === null ? "" : ` Most of it comes of \`${largest.path}\`: ${largest.rules} rules.`;
  fault(
    "limit/rules",
    `The rules of \`${cell.name}\` come to ${rules} between single networks, subnets, VMs and interfaces, ${characters} characters, and a host takes ${limits.compiledRules} rules of ${limits.compiledCharacters} characters`,
    largest?.path ?? cell.path,
    {
      hint: `A network that a rule names is repeated for each narrower one that any rule names: name fewer and wider networks, or subnets in place of interfaces, or make several cells.${most}`,
    },
  );
}
