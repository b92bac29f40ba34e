import type { Cell, NetworkRuleElement, RuleEnd } from "../../../model/cell/cell.ts";
import { cidr, type ElementPath, type Uid } from "../../../model/cell/identifiers.ts";
import { type Opening, openings } from "../../../model/check/network/rule-openings.ts";
import type { DesiredGroupRule } from "../../documents/network/eucalyptus.ts";

/*
 * A cell's NetworkRules as rules of security groups, for a cell on a mode of Eucalyptus (decision 161). Each opening of a rule lets something into the
 * group where it arrives, and lets something out of the group from which it comes. Ends that are no group are networks.
 */

export interface GroupRules {
  readonly ingress: readonly DesiredGroupRule[];
  readonly egress: readonly DesiredGroupRule[];
}
export const noRules: GroupRules = { ingress: [], egress: [] };

/** By the paths of subnets that a rule names. A rule with an end that a mode does not have lets nothing pass. */
export function groupRules(
  cell: Cell,
  uidOf: (path: ElementPath) => Uid | undefined,
): ReadonlyMap<ElementPath, GroupRules> {
  const found = new Map<ElementPath, { ingress: DesiredGroupRule[]; egress: DesiredGroupRule[] }>();
  const rulesOf = (end: RuleEnd) => {
    if (!isGroup(end)) return null;
    const rules = found.get(end.path) ?? { ingress: [], egress: [] };
    found.set(end.path, rules);
    return rules;
  };
  const otherOf = (end: RuleEnd): Pick<DesiredGroupRule, "cidr" | "group"> | null => {
    if (end.kind === "internet") return { cidr: cidr("0.0.0.0/0") };
    if (end.kind === "cidr") return { cidr: end.cidr };
    const group = isGroup(end) ? uidOf(end.path) : undefined;
    return group === undefined ? null : { group };
  };
  for (const rule of cell.elements.values()) {
    if (rule.type !== "NetworkRule") continue;
    for (const opening of openings(rule)) {
      const [from, to] = opening.direction === "1to2" ? [rule.address1, rule.address2] : [rule.address2, rule.address1];
      const [source, target] = [otherOf(from), otherOf(to)];
      if (source === null || target === null) continue;
      const what = whatOf(rule, opening);
      rulesOf(to)?.ingress.push({ ...what, ...source });
      rulesOf(from)?.egress.push({ ...what, ...target });
    }
  }
  return found;
}

const isGroup = (end: RuleEnd): end is Extract<RuleEnd, { kind: "element" }> & { readonly type: "Subnet" } =>
  end.kind === "element" && end.type === "Subnet";

const protocols: Readonly<Record<NetworkRuleElement["protocol"], number>> = { any: -1, icmp: 1, tcp: 6, udp: 17 };
function whatOf({ protocol }: NetworkRuleElement, { ports }: Opening): Omit<DesiredGroupRule, "cidr" | "group"> {
  const isPorted = protocol === "tcp" || protocol === "udp";
  return {
    protocol: protocols[protocol],
    ...(isPorted ? { fromPort: ports.from, toPort: ports.to } : { fromPort: 0, toPort: 0 }),
    ...(protocol === "icmp" ? { icmpType: -1, icmpCode: -1 } : { icmpType: 0, icmpCode: 0 }),
  };
}
