import { isWithin } from "../../../model/addresses/pools.ts";
import type { NetworkRuleElement, RuleEnd } from "../../../model/cell/cell.ts";
import type { ElementPath, Ipv4 } from "../../../model/cell/identifiers.ts";
import { openings } from "../../../model/check/network/rule-openings.ts";
import { actualSecurityGroup } from "../../documents/readers/eucalyptus.ts";
import { actualOf, type ControllerState, elementOf } from "../state.ts";
import { addressOf, groupKey, networkViewManager } from "./instances.ts";

/** What a cell on a mode says of a connection: chains of hosts know groups by their ids alone. */
export interface ConnectionGroups {
  /** Subnet of each end; null: it is a network. */
  readonly from: ElementPath | null;
  readonly to: ElementPath | null;
  /** Path of each group of the cell, by its id. */
  readonly names: { readonly [id: string]: ElementPath };
  /** Rules of the model by which something passes from one end to the other. */
  readonly openings: readonly {
    readonly rule: ElementPath;
    readonly protocol: NetworkRuleElement["protocol"];
    readonly from: number;
    readonly to: number;
  }[];
}

export function connectionGroups(state: ControllerState, from: Ipv4, to: Ipv4): ConnectionGroups {
  const ends = { from: groupOf(state, from), to: groupOf(state, to) };
  const isEnd = (end: RuleEnd, which: "from" | "to"): boolean => {
    const address = which === "from" ? from : to;
    if (end.kind === "internet") return true;
    if (end.kind === "cidr") return isWithin(address, [end.cidr]);
    return end.kind === "element" && end.path === ends[which];
  };
  const found: ConnectionGroups["openings"][number][] = [];
  for (const record of state.elements.values()) {
    const rule = record.type === "NetworkRule" ? elementOf(state, record) : undefined;
    if (rule?.type !== "NetworkRule") continue;
    for (const { direction, ports } of openings(rule)) {
      const [source, target] = direction === "1to2" ? [rule.address1, rule.address2] : [rule.address2, rule.address1];
      if (!isEnd(source, "from") || !isEnd(target, "to")) continue;
      found.push({ rule: rule.path, protocol: rule.protocol, from: ports.from, to: ports.to });
    }
  }
  return { ...ends, names: namesOf(state), openings: found };
}

function groupOf(state: ControllerState, address: Ipv4): ElementPath | null {
  for (const record of state.elements.values()) {
    if (addressOf(state, record) !== address) continue;
    const element = elementOf(state, record);
    return element?.type === "VirtualInterface" ? element.subnet : null;
  }
  return null;
}

function namesOf(state: ControllerState): ConnectionGroups["names"] {
  const names: Record<string, ElementPath> = {};
  for (const { type, uid, path } of state.elements.values()) {
    const id =
      type === "Subnet" ? actualOf(actualSecurityGroup, state, networkViewManager, groupKey(uid))?.id : undefined;
    if (id !== undefined) names[id] = path;
  }
  return names;
}
