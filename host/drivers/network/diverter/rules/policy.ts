import type { Forwarded, PolicyRouter } from "../../../../../core/documents/network/policy.ts";
import type { CellPolicy, CompiledRule } from "../../../../../core/documents/vocabulary.ts";
import { fail, ok, type Result } from "../../../../../model/result.ts";
import { octets, policyEntry, policyKey, sourceRange, sourceRanges } from "../program/layout.ts";
import { protocolNumbers } from "../program/protocol-numbers.ts";

/**
 * A cell's policy as entries of one longest-prefix trie. The trie answers with its longest match only, so ranges of ports
 * that overlap must not become prefixes of different length side by side: per (from, to, protocol) the ranges are first cut
 * into disjoint pieces, each with every rule that covers it, and then each piece into prefixes. Sizes follow the rules, not
 * the endpoints.
 */
export interface PolicyEntry {
  readonly key: Buffer;
  readonly value: Buffer;
}
/** What of a policy becomes entries. */
export type PolicyPart = Pick<CellPolicy, "cell" | "rules" | "networks" | "routers" | "traits">;
interface Ports {
  readonly from: number;
  readonly to: number;
}
interface Source extends Ports {
  readonly rule: number;
}

export const kinds = { network: 1, rule: 2, router: 3, forwards: 4 } as const;
/** Bits of a rule's key before its port. */
const exactBits = 96;
const allPorts: Ports = { from: 0, to: 65535 };
const isAll = (ports: Ports): boolean => ports.from === 0 && ports.to === 65535;

/** The fewest prefixes that make up a range of ports. */
export function prefixesOf(range: Ports): readonly { readonly port: number; readonly bits: number }[] {
  const prefixes: { port: number; bits: number }[] = [];
  let port = range.from;
  while (port <= range.to) {
    let bits = 16;
    while (bits > 0) {
      const size = 2 ** (17 - bits);
      if (port % size !== 0 || port + size - 1 > range.to) break;
      bits -= 1;
    }
    prefixes.push({ port, bits });
    port += 2 ** (16 - bits);
  }
  return prefixes;
}

/** What a rule says in the terms of the trie: `any` with ports means TCP and UDP, ICMP has no ports. */
function normalise(rule: CompiledRule): readonly { protocol: number; ports: Ports; source: Source }[] {
  const source = { ...rule.sourcePorts, rule: rule.id };
  const anySource = { ...allPorts, rule: rule.id };
  if (rule.protocol === "icmp") return [{ protocol: protocolNumbers.icmp, ports: allPorts, source: anySource }];
  if (rule.protocol !== "any") return [{ protocol: protocolNumbers[rule.protocol], ports: rule.ports, source }];
  if (isAll(rule.ports) && isAll(rule.sourcePorts))
    return [{ protocol: protocolNumbers.any, ports: allPorts, source: anySource }];
  return [protocolNumbers.tcp, protocolNumbers.udp].map((protocol) => ({ protocol, ports: rule.ports, source }));
}

/** Disjoint pieces of overlapping ranges, each with the sources of all ranges that cover it. */
function disjoint(ranges: readonly { ports: Ports; source: Source }[]): readonly { ports: Ports; sources: Source[] }[] {
  if (ranges.length === 1) return ranges.map(({ ports, source }) => ({ ports, sources: [source] }));
  const starts = new Set<number>();
  for (const { ports } of ranges) starts.add(ports.from).add(ports.to + 1);
  const cuts = [...starts].sort((a, b) => a - b);
  return cuts.slice(0, -1).flatMap((from, index) => {
    const to = cuts[index + 1]! - 1;
    const covering = ranges.filter(({ ports }) => ports.from <= from && ports.to >= to).map(({ source }) => source);
    return covering.length === 0 ? [] : [{ ports: { from, to }, sources: simplest(covering) }];
  });
}

/** Drops sources that an earlier one contains; one for all ports makes every other needless. */
function simplest(sources: readonly Source[]): Source[] {
  const all = sources.find(isAll);
  if (all !== undefined) return [all];
  const kept: Source[] = [];
  for (const source of sources)
    if (!kept.some((other) => other.from <= source.from && other.to >= source.to)) kept.push(source);
  return kept;
}

function encodeSources(sources: readonly Source[]): Buffer {
  const entry = policyEntry.encode({ count: sources.length });
  for (const [index, source] of sources.entries())
    sourceRange
      .encode({ rule: source.rule, first: source.from, last: source.to })
      .copy(entry, policyEntry.offsets.ranges + index * sourceRange.size);
  return entry;
}

/** An address as a number of the machine, in the order that it has in packets. */
const inOrderOfPackets = (address: string): number => Buffer.from(octets(address)).readUInt32LE();
const partsOf = (cidr: string): { readonly address: number; readonly bits: number } => {
  const [address = "", length = "32"] = cidr.split("/");
  return { address: inOrderOfPackets(address), bits: Number(length) };
};
function networkEntry({ cidr, identity }: CellPolicy["networks"][number]): PolicyEntry {
  const { address, bits } = partsOf(cidr);
  return {
    key: policyKey.encode({ prefix_length: 32 + bits, kind: kinds.network, from: address }),
    value: encodeSources([{ ...allPorts, rule: identity }]),
  };
}
const routerEntry = ({ subnet, identity, address }: PolicyRouter): PolicyEntry => ({
  key: policyKey.encode({ prefix_length: 64, kind: kinds.router, from: subnet }),
  value: encodeSources([
    { ...allPorts, rule: inOrderOfPackets(address) },
    { ...allPorts, rule: identity },
  ]),
});
function forwardsEntry(identity: number, network: Forwarded): PolicyEntry {
  const { address, bits } = partsOf(network === "internet" ? "0.0.0.0/0" : network);
  return {
    key: policyKey.encode({ prefix_length: 64 + bits, kind: kinds.forwards, from: identity, to: address }),
    value: encodeSources([{ ...allPorts, rule: identity }]),
  };
}
/** Who routes for which subnet, and in whose name: what a router's own traits say again is one entry. */
function routing({ routers = [], traits = [] }: PolicyPart): readonly PolicyEntry[] {
  const forwards = new Map<string, PolicyEntry>();
  for (const { identity, forwards: networks } of [...routers, ...traits])
    for (const network of networks) forwards.set(`${identity} ${network}`, forwardsEntry(identity, network));
  return [...routers.map(routerEntry), ...forwards.values()];
}

/** Of rules that may stand for each other the older one is named, in whatever order a document has them. */
const bySource = ({ source: a }: { source: Source }, { source: b }: { source: Source }): number =>
  a.rule - b.rule || a.from - b.from || a.to - b.to;

/**
 * Compiles a policy, or rules and networks of one: no entry depends on rules of another pair of identities. Fails if for one
 * pair and one port more than eight different ranges of source ports are declared, which the dataplane cannot hold: better
 * the old policy in force than a new one with a hole.
 */
export function compilePolicy(policy: PolicyPart): Result<readonly PolicyEntry[], string> {
  const groups = new Map<
    string,
    { from: number; to: number; protocol: number; ranges: { ports: Ports; source: Source }[] }
  >();
  for (const rule of policy.rules)
    for (const { protocol, ports, source } of normalise(rule)) {
      const name = `${rule.from} ${rule.to} ${protocol}`;
      const group = groups.get(name) ?? { from: rule.from, to: rule.to, protocol, ranges: [] };
      group.ranges.push({ ports, source });
      groups.set(name, group);
    }
  const entries = [...policy.networks.map(networkEntry), ...routing(policy)];
  for (const { from, to, protocol, ranges } of groups.values())
    for (const { ports, sources } of disjoint(ranges.sort(bySource))) {
      if (sources.length > sourceRanges)
        return fail(
          `cell ${policy.cell}: ${sources.length} different ranges of source ports for ports ${ports.from}-${ports.to} ` +
            `between identities ${from} and ${to}; at most ${sourceRanges} are possible, join some of them`,
        );
      const value = encodeSources(sources);
      for (const { port, bits } of prefixesOf(ports))
        entries.push({
          key: policyKey.encode({ prefix_length: exactBits + bits, kind: kinds.rule, protocol, from, to, port }),
          value,
        });
    }
  return ok(entries);
}
