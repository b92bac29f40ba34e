import type { Cell, NetworkRuleElement, PortRange, RuleEnd } from "../../cell/cell.ts";
import type { ReportFault } from "../fault.ts";
import { anyPort, type Opening, openings } from "./rule-openings.ts";

/** Of rules between two ends that let the same port be reached: so many ranges of the opener's ports hold the tables of a host. */
export const mostSourceRanges = 8;

interface Part {
  readonly rule: NetworkRuleElement;
  readonly opening: Opening;
}
const nameOf = (end: RuleEnd): string => JSON.stringify(end);
/** Ranges that are looked at in a cell; what would take more is left to the hosts, too. */
const mostLooks = 200_000;

/**
 * Refuses what no host could put in force: a cell's whole policy would stay the former one. Rules whose ends are told apart here and meet in
 * the same machines, as by networks, are left to the hosts, which say it of the rule.
 */
export function checkSourcePorts(cell: Cell, fault: ReportFault): void {
  const parts = new Map<string, Part[]>();
  const open = new Set<string>();
  const looks = { left: mostLooks };
  for (const element of cell.elements.values()) {
    if (element.type !== "NetworkRule") continue;
    const { address1, address2, protocol } = element;
    for (const opening of openings(element)) {
      const [from, to] = opening.direction === "1to2" ? [address1, address2] : [address2, address1];
      const ends = `${nameOf(from)} ${nameOf(to)}`;
      // Whatever port it comes from.
      if (protocol === "any") open.add(ends);
      const key = `${protocol} ${ends}`;
      const known = parts.get(key);
      if (known === undefined) parts.set(key, [{ rule: element, opening }]);
      else known.push({ rule: element, opening });
    }
  }
  for (const [key, group] of parts) {
    if (group.length <= mostSourceRanges || open.has(key.slice(key.indexOf(" ") + 1))) continue;
    const beyond = tooMany(group, looks);
    if (beyond === null) continue;
    const { rule, port, count } = beyond;
    fault(
      "cell/rule",
      `\`${rule.path}\` is one of ${count} rules between the same ends that name different source ports for ${rule.protocol} port ${port}, and a host holds ${mostSourceRanges}`,
      rule.path,
      { attribute: "x.port1", hint: "Join some of their `x.port1` into wider ranges, or leave it out." },
    );
  }
}

/** The first port for which more ranges stand beside each other than there may be, and the rule that brings the last one of these. */
function tooMany(
  group: readonly Part[],
  looks: { left: number },
): { rule: NetworkRuleElement; port: number; count: number } | null {
  const events = group
    .flatMap((part) => [
      { port: part.opening.ports.from, part, opens: true },
      { port: part.opening.ports.to + 1, part, opens: false },
    ])
    .sort((one, other) => one.port - other.port || Number(one.opens) - Number(other.opens));
  const open = new Map<string, { range: PortRange; times: number }>();
  for (const { port, part, opens } of events) {
    const range = part.opening.sourcePorts;
    const key = `${range.from}-${range.to}`;
    const times = (open.get(key)?.times ?? 0) + (opens ? 1 : -1);
    if (times === 0) open.delete(key);
    else open.set(key, { range, times });
    if (!opens || times > 1 || open.size <= mostSourceRanges || looks.left <= 0) continue;
    looks.left -= open.size;
    const count = apart([...open.values()].map((each) => each.range));
    if (count > mostSourceRanges) return { rule: part.rule, port, count };
  }
  return null;
}
/** Ranges that no other one holds. */
function apart(ranges: readonly PortRange[]): number {
  if (ranges.some(({ from, to }) => from === anyPort.from && to === anyPort.to)) return 1;
  let [count, end] = [0, -1];
  for (const { to } of [...ranges].sort((one, other) => one.from - other.from || other.to - one.to)) {
    if (to <= end) continue;
    [count, end] = [count + 1, to];
  }
  return count;
}
