import { type Cell, type End, holds, type Interface, lastOf, type Rule, type Subnet } from "../world.testing.ts";
import type { Knowledge } from "./knowledge.testing.ts";
import { icmp, type Packet, udp } from "./packet.testing.ts";
import { isOpenedTowards, type Opening, opens } from "./rules.testing.ts";

/**
 * Who should get a copy of what is sent to many: those of a subnet, of a cell or of another subnet whom the rules of the sender's
 * cell admit the same packet.
 */
const everyone = 0xffffffff;
const isGroup = (address: number): boolean => address >>> 28 === 14;
const isOfSubnet = (group: number): boolean => group >>> 8 === 0xe00000 || group >>> 16 === 0xefff;

export const isCopied = ({ part, about, protocol, icmpType }: Packet): boolean =>
  part === "whole" && about === null && (protocol === udp || (protocol === icmp && icmpType === 8));

/** Subnets of other cells that a cell's rules name. */
function named({ world, view }: Knowledge, cell: number): readonly Subnet[] {
  const ends = (view.rules.get(cell)?.rules ?? []).flatMap((rule: Rule) => rule.ends);
  return ends.flatMap((end: End) =>
    end.kind === "foreign" && end.of === "subnet"
      ? (world.cells.find(({ number }) => number === end.cell)?.subnets ?? []).filter(({ name }) => name === end.name)
      : [],
  );
}
/** The subnet whose broadcast address that is, as far as a cell's rules tell. */
export function directedAt(knowledge: Knowledge, cell: Cell, address: number): Subnet | null {
  if (knowledge.view.rules.get(cell.number)?.broadcast !== "on") return null;
  const known = [...cell.subnets, ...named(knowledge, cell.number)];
  return known.find(({ range }) => lastOf(range) === address) ?? null;
}

export interface Many {
  readonly members: readonly Interface[];
  /** Of another subnet than the sender's: a rule has to name it. */
  readonly directed: Subnet | null;
}
/** Everybody who might get a copy; null: nobody is known there. */
export function membersOf(knowledge: Knowledge, sender: Interface, destination: number): Many | null {
  const cell = knowledge.cell(sender.cell);
  const set = knowledge.view.rules.get(cell.number);
  if (set?.broadcast !== "on") return null;
  const all = knowledge.world.interfaces.filter(({ address }) => knowledge.isSomewhere(address));
  const own = all.filter(({ address }) => knowledge.interfaceOf(cell.number, address) !== null);
  const inSubnet = own.filter(({ subnet }) => subnet === sender.subnet);
  const many = (members: readonly Interface[], directed: Subnet | null = null): Many | null =>
    members.length === 0 ? null : { members, directed };
  if (isGroup(destination)) {
    const scope = isOfSubnet(destination) ? inSubnet : own;
    return many(scope.filter(({ at }) => set.groups.get(at)?.includes(destination)));
  }
  if (destination === everyone || destination === lastOf(sender.subnet.range)) return many(inSubnet);
  const subnet = directedAt(knowledge, cell, destination);
  if (subnet === null) return null;
  const isOwn = subnet.cell === cell.number;
  return many(
    isOwn
      ? own.filter((each) => each.subnet === subnet)
      : all.filter((each) => holds(subnet.range, each.address) && each.cell !== cell.number),
    subnet,
  );
}

const openingOf = ({ source, protocol, sourcePort, port }: Packet, to: number): Opening => ({
  from: source,
  to,
  protocol,
  ...(protocol === icmp ? { sourcePort: 0, port: 0 } : { sourcePort, port }),
});
/** May a packet be copied to a member, by the rules of that cell? */
export function mayHaveCopy(
  knowledge: Knowledge,
  cell: Cell,
  packet: Packet,
  to: Interface,
  by: Subnet | null,
): boolean {
  const opening = openingOf(packet, to.address);
  return by === null ? opens(knowledge, cell, opening) : isOpenedTowards(knowledge, cell, opening, by);
}
