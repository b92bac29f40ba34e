import type { Uid } from "../../../model/cell/identifiers.ts";
import { desiredVolume } from "../../documents/readers/storage.ts";
import { type ControllerState, desiredNow, storageManagerOf } from "../state.ts";

/** Does some incarnation have it now, or is it kept for the return of one? Of connections, volumes and interfaces. */
export function isInUse(state: ControllerState, uid: Uid): boolean {
  if (state.indexes.used.has(uid)) return true;
  for (const vm of state.indexes.upgrades.keys()) {
    const from = state.vms.get(vm)?.upgrade?.from;
    if (from === undefined) continue;
    if (from.connection === uid || withOrigins(state, from.volume).includes(uid)) return true;
  }
  return false;
}

/** A volume and what it is a copy of, as the Storage Manager was asked for them. */
function withOrigins(state: ControllerState, volume: Uid): readonly Uid[] {
  const chain: Uid[] = [];
  for (let at: Uid | null = volume; at !== null && !chain.includes(at); ) {
    chain.push(at);
    const document = desiredVolume.of(desiredNow(state, storageManagerOf(state), `volume/${at}`));
    at = document?.origin.kind === "copy" ? document.origin.volume : null;
  }
  return chain;
}
