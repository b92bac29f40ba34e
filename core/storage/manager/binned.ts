import type { CellName, ElementPath, Uid } from "../../../model/cell/identifiers.ts";
import type { AgentBinned } from "../../documents/bin.ts";
import { log, write } from "../../outbox.ts";
import { type AgentView, forgetVolume, type ManagerState, mark, placesOf } from "./state.ts";

/** What the bins of storage servers have of a volume. */

/** Files in bins that were this volume's, and those that are to become one of this cell at this path. */
export function binnedOf(
  { agents }: ManagerState,
  volume: Uid,
  cell: CellName,
  path: ElementPath,
): readonly { readonly agent: AgentView; readonly binned: AgentBinned }[] {
  return [...agents.values()].flatMap((agent) =>
    [...agent.bin.values()]
      .filter(
        (binned) =>
          binned.volume === volume || (binned.offered && binned.about?.cell === cell && binned.about.path === path),
      )
      .map((binned) => ({ agent, binned })),
  );
}

/**
 * The server knows the volume and has nothing of it but what is in its bin: it was deleted, and what desires it, this store or the
 * server's, is from before that. So it is nowhere, and an operator says what becomes of it.
 */
export function hasOnlyBinned({ inStep, older, volumes, bin }: AgentView, volume: Uid): boolean {
  const actual = volumes.get(volume);
  const isThere = actual === undefined || actual.sizeMiB !== null || actual.phase === "working";
  return inStep && !older && !isThere && [...bin.values()].some((binned) => binned.volume === volume);
}

/** A server has said all that it has. */
export function lookAtBin(state: ManagerState, { volumes, bin }: AgentView): void {
  for (const { volume } of bin.values()) if (volumes.has(volume)) mark(state, volume);
}

/**
 * Takes the volume back where only a bin has something of it, and forgets that it was there. One that nobody desires as well: as
 * long as such a server speaks of a copy its origin would wait for the copy's end.
 */
export function leaveToBin(state: ManagerState, volume: Uid): void {
  const record = state.volumes.get(volume);
  // It is being deleted anyway; or it begins with that file.
  if (record !== undefined && !state.wantedVolumes.has(volume)) return;
  if (record?.from !== undefined && record.made !== true) return;
  for (const agent of placesOf(state, volume)) {
    if (!hasOnlyBinned(agent, volume)) continue;
    takeBackAll(state, agent, volume);
    if (record?.agent !== agent.name) continue;
    write(state.outbox, `volume/${volume}`, null);
    write(state.outbox, `lease/${volume}`, null);
    state.leases.delete(volume);
    forgetVolume(state, volume, record);
    log(state.outbox, "volume/left-to-bin", { volume, path: record.path, agent: agent.name });
  }
}

/** Also documents of which this store does not know. */
function takeBackAll({ outbox }: ManagerState, { name }: AgentView, volume: Uid): void {
  const releasing = outbox.releasing.get(name) ?? new Set<string>();
  outbox.releasing.set(name, releasing);
  for (const key of [`lease/${volume}`, `readers/${volume}`, `volume/${volume}`]) {
    if (releasing.has(key)) continue;
    releasing.add(key);
    outbox.desired.get(name)?.delete(key);
    outbox.effects.push({ kind: "desire", to: name, key, value: null });
  }
}
