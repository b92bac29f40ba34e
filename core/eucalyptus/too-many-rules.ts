import type { CellName, Uid } from "../../model/cell/identifiers.ts";
import { mostRulesOfModeCell } from "../../model/cell/network/modes.ts";
import type { DesiredSecurityGroup } from "../documents/network/eucalyptus.ts";

/**
 * Groups that are in no view with their rules, since their cell has too many in all. How many: `mostRulesOfModeCell` in
 * `model/cell/network/modes.ts`. Its model is refused before (`model/check/network/check-mode.ts`); a
 * controller that says more all the same has that for itself alone: one view is for all cells, and one that is too long no host could read.
 */
export function groupsBeyond(
  groups: Iterable<readonly [Uid, { readonly document: DesiredSecurityGroup }]>,
): ReadonlySet<Uid> {
  const counts = new Map<CellName, number>();
  const beyond = new Set<Uid>();
  for (const [uid, { document }] of [...groups].sort(([one], [other]) => (one < other ? -1 : 1))) {
    const count = (counts.get(document.cell) ?? 0) + document.ingress.length + document.egress.length;
    if (count > mostRulesOfModeCell) beyond.add(uid);
    else counts.set(document.cell, count);
  }
  return beyond;
}
