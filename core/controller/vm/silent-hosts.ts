import type { PeerName } from "../../../model/cell/identifiers.ts";
import type { ControllerState } from "../state.ts";

/**
 * Hosts of which nothing is heard. Their machines wait for them, and say so once a host has been silent for longer than a Host
 * Manager takes to start again.
 */
const lostAfterMs = 15_000;
export const lostTimer = "lost/";

/** A host's Host Manager was reached, or is not any more. */
export function watchHost(state: ControllerState, host: PeerName, reachable: boolean): void {
  if (reachable) state.lost.delete(host);
  if (reachable && state.reachable.get(host) !== false) return;
  const afterMs = reachable ? null : lostAfterMs;
  state.outbox.effects.push({ kind: "timer", name: `${lostTimer}${host}`, afterMs });
}

export const hostIsLost = (state: ControllerState, host: PeerName): void => void state.lost.add(host);
