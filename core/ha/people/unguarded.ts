import type { CellName, PeerName } from "../../../model/cell/identifiers.ts";
import type { Json } from "../../../model/json/json.ts";
import { unguardedKey } from "../../documents/ha.ts";
import { desiredUnguarded } from "../../documents/readers/ha.ts";
import { cellOfController, log } from "../../outbox.ts";
import type { HaState } from "../state.ts";
import { type Alert, some } from "./alert.ts";
import { leaveTold } from "./told.ts";

/*
 * Cells whose own HA Manager is gone. Only their controllers hear that, from the Cell Manager, and no HA Manager looks after them: so they say it to
 * the first one, which has the operator's webhook and mail. It does nothing else about it: another one comes by the parent's word.
 */

/** A controller speaks for its own cell; what is malformed changes nothing. */
export function takeUnguarded(state: HaState, client: PeerName, value: Json): void {
  const own = cellOfController(client) as CellName | null;
  const said = value === null ? null : desiredUnguarded.of(value);
  if (own === null || (value !== null && said?.cell !== own)) {
    const why = "it is malformed, or about another cell than its controller's";
    log(state.outbox, "document/refused", { from: client, key: unguardedKey, why });
    // Stored by another version: an alert that is open stays.
    if (own !== null && !state.started) state.unguarded.set(own, null);
    return;
  }
  if (said === null) state.unguarded.delete(own);
  else {
    state.unguarded.set(own, said.haManager);
    leaveTold(state, said.haManager);
  }
}

type Due = Omit<Alert, "since" | "acknowledged">;
/** One for each HA Manager that is gone, however many cells had it. */
export function unguardedAlerts({ unguarded, alerts }: HaState): readonly Due[] {
  const cellsOf = new Map<PeerName, CellName[]>();
  let isUnread = false;
  for (const [cell, manager] of unguarded) {
    if (manager === null) isUnread = true;
    else cellsOf.set(manager, [...(cellsOf.get(manager) ?? []), cell]);
  }
  const due = [...cellsOf].map(([manager, cells]): Due => {
    const sentence = `${manager}, which looks after the VMs of ${some(cells)}, is gone, so none of them starts elsewhere: whoever has declared such a cell gives its CellController another x.services.haManager, or the root cell has ${manager} again`;
    return { kind: "unguarded", subject: manager, sentence };
  });
  // Whom a cell means whose word cannot be read is not known: none ends.
  const open = isUnread ? [...alerts.values()].filter(({ kind }) => kind === "unguarded") : [];
  const kept = open.filter(({ subject }) => !due.some((each) => each.subject === subject));
  return [...due, ...kept.map(({ kind, subject, sentence }): Due => ({ kind, subject, sentence }))];
}
