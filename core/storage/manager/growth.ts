import type { Uid } from "../../../model/cell/identifiers.ts";
import type { DesiredVolume } from "../../documents/vocabulary.ts";
import type { VolumeSize } from "../../documents/volumes.ts";
import { log, write } from "../../outbox.ts";
import { overcommit } from "../offers.ts";
import { keepVolume, type ManagerState, promisedMiB, serverOf, type VolumeRecord } from "./state.ts";

/*
 * A volume of which more is wanted than it has gets it where it lies, as far as its server may promise more. It is usable
 * meanwhile, and so is one that can never get it: what it owes is said beside its phase.
 */

/** The volume with the size that is wanted, once that is promised; as it is where it cannot be. */
export function grow(state: ManagerState, volume: Uid, record: VolumeRecord, { sizeMiB }: DesiredVolume): VolumeRecord {
  if (sizeMiB === null || sizeMiB <= record.sizeMiB || record.frozen || !hasRoom(state, record, sizeMiB)) return record;
  const larger: VolumeRecord = { ...record, sizeMiB };
  write(state.outbox, `volume/${volume}`, larger);
  keepVolume(state, volume, larger);
  log(state.outbox, "volume/grows", { volume, path: record.path, agent: record.agent, sizeMiB });
  return larger;
}

function hasRoom(state: ManagerState, record: VolumeRecord, sizeMiB: number): boolean {
  const agent = state.agents.get(record.agent);
  if (agent?.server == null) return false;
  return promisedMiB(state, agent) + sizeMiB - record.sizeMiB <= overcommit * agent.server.totalMiB;
}

/** What is said of a volume's size. @param hasMiB as its server says; null: it has not */
export function sizes(
  state: ManagerState,
  record: VolumeRecord,
  { sizeMiB: wantedMiB }: DesiredVolume,
  { sizeMiB: hasMiB, roomMiB }: { readonly sizeMiB: number | null; readonly roomMiB?: number },
): VolumeSize {
  const owes = hasMiB === null || wantedMiB === null ? undefined : owed(state, record, wantedMiB, hasMiB);
  return {
    ...(hasMiB !== null && hasMiB < record.sizeMiB ? { smallerMiB: hasMiB } : {}),
    ...(roomMiB === undefined || record.frozen ? {} : { roomMiB }),
    ...(record.frozen ? { frozen: true as const } : {}),
    ...(owes === undefined ? {} : { owes }),
  };
}

function owed(state: ManagerState, record: VolumeRecord, wantedMiB: number, hasMiB: number): VolumeSize["owes"] {
  const trueMiB = record.frozen ? hasMiB : record.sizeMiB;
  if (wantedMiB === trueMiB) return undefined;
  const back = `write \`x.size ${trueMiB}\` back`;
  if (wantedMiB < trueMiB)
    return { phase: "failed", reason: `it has ${trueMiB} MiB, and a volume cannot be made smaller: ${back}` };
  if (record.frozen)
    return {
      phase: "failed",
      reason: `it stays at ${trueMiB} MiB, since what others have copied or read never changes: ${back}, and raise \`x.size\` of the copies`,
    };
  return { phase: "waiting", reason: `it stays at ${trueMiB} MiB: ${lacks(state, record)}` };
}

function lacks(state: ManagerState, record: VolumeRecord): string {
  const agent = state.agents.get(record.agent);
  const server = `storage server ${serverOf(record.agent)}`;
  if (agent?.server == null) return `${server} has not said what room it has`;
  const { freeMiB, totalMiB } = agent.server;
  return `${server}, where it lies, has ${promisedMiB(state, agent)} of at most ${overcommit * totalMiB} MiB promised, and ${freeMiB} MiB free`;
}
