import { hostName, hostPeer, type PeerName } from "../../../model/cell/identifiers.ts";
import type { Json } from "../../../model/json/json.ts";
import { write } from "../../outbox.ts";
import type { Hearing } from "../records.ts";
import { offersOf } from "../services/hosts.ts";
import { type ControllerState, directory, placerOf } from "../state.ts";
import { isForked } from "./fork.ts";
import { restoredMachines } from "./machines.ts";

/**
 * Whom a controller asks whose store was lost or is older. A receiver names what it holds of a client only when that one greets
 * it, and a controller greets whom it knows to have something of its cell. One with a blank store knows no host: a machine
 * ran on where nobody asked, stood in no `cells orphans list`, and could not be ended.
 *
 * So it greets every host that the Placer names, and the directory, from when it is
 * known that its store is older until all have been in step for a minute and hold nothing that it does not know. That is
 * durable. The places that the Placer keeps do not tell enough: they may be lost or ended, while their host is away.
 */
const record = "lost";

export const restoredHearing = (records: ReadonlyMap<string, Json>): Hearing => {
  const stored = records.get(record) as { readonly heard?: true } | undefined;
  const machines = restoredMachines(records.get("machines"));
  return { hasLost: stored !== undefined, hasHeardAll: stored?.heard === true, machines };
};

/** An operator has let a store count that had forked. */
export function noteLost(state: ControllerState): void {
  state.hasLost = true;
  state.hasHeardAll = false;
  write(state.outbox, record, { lost: true });
  watchHearing(state);
}

const isHearing = (state: ControllerState): boolean => isForked(state) || (state.hasLost && !state.hasHeardAll);

/** None: the store is whole, or all were heard. */
export function peersToHear(state: ControllerState): readonly PeerName[] {
  if (!isHearing(state)) return [];
  const { options } = state;
  return [
    ...(offersOf(state)?.hosts ?? []).map(({ host }) => hostPeer(hostName(host))),
    ...(options.directory === true ? [directory] : []),
  ];
}

const heardAfterMs = 60_000;
export const hearingTimer = "hearing";
/** Whoever comes to be in step may have something to say yet. */
export function watchHearing(state: ControllerState): void {
  if (!state.hasLost || state.hasHeardAll) return;
  state.outbox.effects.push({ kind: "timer", name: hearingTimer, afterMs: heardAfterMs });
}
export function hearingDue(state: ControllerState): void {
  const isHeard = (peer: PeerName): boolean =>
    state.reachable.get(peer) === true && (state.forgotten.get(peer)?.size ?? 0) === 0;
  const knowsAll = state.reachable.get(placerOf(state)) === true && offersOf(state)?.complete === true;
  if (isForked(state) || !knowsAll || !peersToHear(state).every(isHeard)) {
    watchHearing(state);
    return;
  }
  state.hasHeardAll = true;
  write(state.outbox, record, { lost: true, heard: true });
}
