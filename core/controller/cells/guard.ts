import type { PeerName } from "../../../model/cell/identifiers.ts";
import { type DesiredGuard, type DesiredUnguarded, guardKey, unguardedKey } from "../../documents/ha.ts";
import { kindOf } from "../../documents/permissions.ts";
import { servicePeer } from "../../documents/service-roles.ts";
import type { Restored } from "../../env.ts";
import { desire, log, write } from "../../outbox.ts";
import type { Desires } from "../changes/desires.ts";
import type { GuardRecord } from "../records.ts";
import { isGuardKnown, whyUnguarded } from "../services/guard.ts";
import {
  addDesire,
  type ControllerOptions,
  type ControllerState,
  haManager,
  haManagerOf,
  storageManagerOf,
} from "../state.ts";
import { nothingLeft } from "./life.ts";

/*
 * Which HA Manager looks after the cell. It has the one that it was made with until the Cell Manager says another, since that one is gone
 * (core/cells/guard.ts). From the step on that hears it, and durably, nothing of the former one counts here: no word of it that something is over,
 * and by the `guard` that is said to the Storage Manager no fence. What was desired of it is taken back, and nobody waits
 * until it has heard that: the cell could never end. An incarnation of which the former one had said nothing yet is asked about and fenced anew.
 */

export function restoredGuard(options: ControllerOptions, restored: Restored): Pick<ControllerState, "ha" | "guard"> {
  const guard = (restored.records.get("guard") ?? null) as unknown as GuardRecord | null;
  // One that is not in the book for a while is not taken back what it was asked for.
  const hasDesired = (restored.desiredAt.get(haManagerOf({ options, guard }))?.size ?? 0) > 0;
  return { ha: options.ha === true || guard !== null || hasDesired, guard };
}

export function settleGuard(state: ControllerState): void {
  const { guard: number, guardMoves: moves } = state.life ?? {};
  if (number === undefined) return;
  const [guard, former] = [servicePeer("ha-manager", number === 1 ? undefined : number), haManagerOf(state)];
  // A Cell Manager whose store is older says what was so before: it hears from here what is.
  if (moves !== undefined && moves < (state.guard?.moves ?? 0)) return;
  const noted = moves === undefined ? {} : { moves };
  if (guard === former) {
    if (state.guard === null || moves === undefined || state.guard.moves === moves) return;
    state.guard = { ...state.guard, ...noted };
    write(state.outbox, "guard", state.guard);
    return;
  }
  state.guard = { haManager: guard, at: state.now.wallMs, ...noted };
  write(state.outbox, "guard", state.guard);
  state.ha = true;
  log(state.outbox, "ha/guard", { cell: state.options.cell, former, guard });
  forget(state, former);
}

/** It hears that nothing is wanted of it, should it run somewhere all the same; and nothing waits for that. */
function forget(state: ControllerState, former: PeerName): void {
  const { outbox } = state;
  for (const key of [...(outbox.desired.get(former)?.keys() ?? [])]) desire(outbox, former, key, null);
  leaveFormer(state);
  for (const about of [state.actual, state.forgotten, state.reachable]) about.delete(former);
  for (const among of [state.forkedAt, state.olderPeers]) among.delete(former);
  if (!state.subscribed.delete(former)) return;
  outbox.effects.push({ kind: "unsubscribe", to: former, prefix: `${state.options.self}/` });
}

/** Also after a start: what was taken back at a former one is waited for by nobody. */
export function leaveFormer(state: ControllerState): void {
  const { releasing } = state.outbox;
  if (state.guard === null) return;
  for (const peer of [...releasing.keys()])
    if (kindOf(peer) === "ha-manager" && peer !== haManagerOf(state)) releasing.delete(peer);
}

/** The first HA Manager opens an alert: of a cell that is not its own it hears nothing else. */
export function desireAlert(state: ControllerState, desires: Desires): void {
  const alone = whyUnguarded(state);
  if (alone === null || nothingLeft(state)) return;
  const { cell } = state.options;
  addDesire(desires, haManager, unguardedKey, { cell, haManager: alone.service } satisfies DesiredUnguarded);
}

/** Said where its volumes' leases are, until nothing of it is left; of the first one only where another was before it. */
export function desireGuard(state: ControllerState, desires: Desires): void {
  const [guard, { cell }] = [haManagerOf(state), state.options];
  const isFirst = guard === haManager && state.guard === null;
  if (!state.ha || isFirst || !isGuardKnown(state) || nothingLeft(state)) return;
  const bound = state.guard === null ? {} : { boundAt: state.guard.at };
  addDesire(desires, storageManagerOf(state), guardKey, { cell, haManager: guard, ...bound } satisfies DesiredGuard);
}
