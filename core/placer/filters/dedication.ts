import { reservedGroupName } from "../../../model/cell/tenants/affinity/affinity.ts";
import {
  groupOf,
  mayStand,
  mayUse,
  type Owner,
  ownerOfGroup,
  ownerText,
} from "../../../model/cell/tenants/dedication/dedication.ts";
import { areStrangers } from "../../../model/cell/tenants/together.ts";
import type { DesiredPlacement } from "../../documents/vocabulary.ts";
import { type Asker, type Candidate, type Filter, groupsOf, implicitOf } from "../candidate.ts";
import { neighboursOf } from "./implicit.ts";

/** Whose hosts a VM asks for by a group of its account; null: it is in none, or in one that cannot be its. */
export function dedicationGroup({ placement }: DesiredPlacement, { account }: Asker): Owner | null {
  if (account === null) return null;
  for (const name of groupsOf(placement)) {
    const owner = ownerOfGroup(name, account);
    if (owner !== null) return owner;
  }
  return null;
}

/** A group that is asked for and that cannot be its account's, as a sentence; null: there is none. */
export function whyNoGroup({ placement }: DesiredPlacement, { account, isSystem, groupNamed }: Asker): string | null {
  if (isSystem) return null;
  if (account === null && implicitOf(placement) !== null)
    return "x.placement.dedication asks for hosts of its account, and nothing is known of an account of its cell";
  for (const name of groupsOf(placement)) {
    if (account !== null && ownerOfGroup(name, account) !== null) continue;
    const group = reservedGroupName.test(name) ? null : groupNamed(name);
    if (typeof group === "string") continue;
    if (group !== null) return group.why;
    if (account === null)
      return `x.placement.groups asks for ${JSON.stringify(name)}, and nothing is known of an account of its cell`;
    return `${account} has no group ${JSON.stringify(name)}, which x.placement.groups asks for`;
  }
  return null;
}

/** Whether the host is somebody's of whom this asker is not to learn: nothing is said of it, not even its name. */
export const isHidden = ({ rule }: Pick<Candidate, "rule">, { account, isSystem }: Asker): boolean =>
  rule !== undefined && !isSystem && (account === null || !mayUse(rule.to, account));

/** A host that is dedicated takes VMs of its owner that ask for it, and a VM that asks for such hosts stands at no other. */
export const dedication: Filter = ({ rule = null }, request, _ratios, asker) => {
  if (asker.isSystem) return null;
  const group = dedicationGroup(request, asker);
  if (mayStand(rule, asker.account, group)) return null;
  const kind = "dedicated";
  if (group !== null) {
    const why = `x.placement.groups asks for what is dedicated to ${ownerText(group)}, and it is not`;
    return { kind, why, lifts: `take ${groupOf(group)} out of x.placement.groups, or have the operator dedicate it` };
  }
  if (rule === null || isHidden({ rule }, asker))
    return { kind, why: "it is dedicated to others", lifts: "the operator releases it" };
  const lifts = `ask for it with x.placement.groups ${JSON.stringify(groupOf(rule.to))}`;
  return { kind, why: `it is dedicated to ${ownerText(rule.to)}, whose group the VM is not in`, lifts };
};

/** VMs that were there before it was dedicated, or that came at the same moment. */
export const strangers: Filter = ({ rule, use }, request, _ratios, asker) => {
  if (asker.isSystem || rule === undefined || !areStrangers(rule.to, neighboursOf(use, request.vm, asker))) return null;
  return {
    kind: "dedicated",
    why: `it is dedicated to ${ownerText(rule.to)}, and VMs of others are still there`,
    lifts: "the operator lets these go elsewhere, or they end",
  };
};
