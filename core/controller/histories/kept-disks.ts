import { type HostName, hostPeer } from "../../../model/cell/identifiers.ts";
import type { DesiredConnection } from "../../documents/vocabulary.ts";
import { isOff } from "../../presence/group/deaths.ts";
import type { VmRecord } from "../records.ts";
import type { ControllerState } from "../state.ts";

/*
 * A store that is let count though it is older knows less than the Storage Manager of where its machines have their disks. Of a host
 * that is not heard, the Storage Manager alone tells: to take the connection back would cut off the disks of a machine that runs.
 * So the connection stays as it was told last, until that host has said what it runs and has ended it, or its power is off.
 */

/** It may run what this store knows nothing of, and has not said so. */
export const isSilent = ({ reachable, deaths }: ControllerState, host: HostName): boolean =>
  reachable.get(hostPeer(host)) !== true && !isOff(deaths, host);

/** Those that this store knows nothing of, of hosts that are not heard. */
export function unknownOfSilent(state: ControllerState, { uid: vm, run }: VmRecord): readonly DesiredConnection[] {
  const said = [...(state.kept.connections.get(vm)?.values() ?? [])];
  return said.filter(
    (each) => isSilent(state, each.host) && !(run?.host === each.host && run.incarnation === each.incarnation),
  );
}

/** Those that stay as they are. `strays`: hosts that have yet to end it. */
export const keptDisks = (
  state: ControllerState,
  { keptDisks: kept = [] }: VmRecord,
  strays: VmRecord["strays"] = [],
): readonly DesiredConnection[] =>
  kept.filter(
    (each) => isSilent(state, each.host) || state.forkedAt.has(hostPeer(each.host)) || strays.includes(each.host),
  );
