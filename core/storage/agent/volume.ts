import type { Uid } from "../../../model/cell/identifiers.ts";
import type { VolumeAbout } from "../../documents/bin.ts";
import type { AgentVolume, AgentVolumeActual, Progress } from "../../documents/vocabulary.ts";
import { progress, sameJson, toJson } from "../../outbox.ts";
import { labelOf, whyInBin, whyNotAnew } from "./bin.ts";
import { newVolume } from "./owners.ts";
import type { AgentState } from "./records.ts";
import { lostVolume, sizeRemark } from "./sentences.ts";
import type { VolumeRecord, VolumeWork } from "./work.ts";

/*
 * Which file a volume is to have. One that was made is never made anew here: where a store was put back and adopted, the file of
 * each volume is looked for first, also of those that the store knows. It may have been deleted since, and lie in the bin; then the
 * volume waits for an operator as every other one whose former file is there.
 */

/** The record as what is desired makes it; null: as it is. */
export function nextVolume(state: AgentState, uid: Uid, isInUse: () => boolean): VolumeRecord | null {
  const before = state.volumes.get(uid);
  const desired = state.desired.volume.get(uid);
  if (desired === undefined)
    return before === undefined || before.removing || isInUse() ? null : { ...before, removing: true };
  if (before === undefined || isBroughtBack(state, uid, before, desired))
    return mayMake(state, uid, desired) ? newVolume(state.owners, uid, desired) : null;
  const { about } = desired;
  return about === undefined || sameAbout(about, before.about) ? null : { ...before, about };
}

const mayMake = (state: AgentState, uid: Uid, desired: AgentVolume): boolean =>
  desired.made === true ? state.marks.finds : whyNotAnew(state, uid, desired) === null;
/** Nothing was found of it, and it is to begin with a file of the bin. */
const isBroughtBack = (state: AgentState, uid: Uid, { removing }: VolumeRecord, desired: AgentVolume): boolean =>
  state.missing.has(uid) && !removing && desired.made !== true && desired.from !== undefined;

const sameAbout = (one: VolumeAbout, other: VolumeAbout | undefined): boolean =>
  other !== undefined && sameJson(toJson(one), toJson(other));

export function fileWork(state: AgentState, uid: Uid): VolumeWork["file"] {
  const volume = state.volumes.get(uid);
  const desired = state.desired.volume.get(uid);
  if (volume?.removing) return { action: "remove", label: labelOf(volume, state.leases.has(uid)) };
  if (volume === undefined || desired === undefined) return null;
  if (volume.doubted === true) return { action: "find" };
  if (volume.sizeMiB !== null) return null;
  return {
    action: "create",
    source: volume.source,
    sizeMiB: desired.sizeMiB,
    ...(volume.from === undefined ? {} : { from: volume.from }),
    ...(volume.found === true ? { found: true as const } : {}),
  };
}

/** Volumes of an adopted store that has files: each is to be seen before it counts. */
export const doubted = ({ volumes }: AgentState): readonly (readonly [Uid, VolumeRecord])[] =>
  [...volumes].flatMap(([uid, { fresh: _, ...volume }]) =>
    // Who has written since that store was copied, it does not know.
    volume.sizeMiB === null || volume.removing ? [] : [[uid, { ...volume, doubted: true as const }] as const],
  );

/** There is no file of it. The record goes on looking for one; null: that is no news, or it is not looked for. */
export function withoutFile(state: AgentState, uid: Uid): VolumeRecord | null {
  const volume = state.volumes.get(uid);
  if (volume === undefined || volume.removing) return null;
  const isSought = volume.doubted === true || (volume.found === true && volume.sizeMiB === null);
  if (!isSought) return null;
  state.missing.add(uid);
  const { doubted: isDoubted, roomMiB: _, ...rest } = volume;
  return isDoubted === true ? { ...rest, sizeMiB: null, found: true } : null;
}

/** What is said of a volume of which nothing is there; null: it is there, or may be. */
function whyMissing(state: AgentState, uid: Uid, desired: AgentVolume): Progress | null {
  if (state.volumes.has(uid) && !state.missing.has(uid)) return null;
  const waits = desired.from === undefined ? whyInBin(state, uid) : whyNotAnew(state, uid, desired);
  return waits === null ? progress("failed", lostVolume(state.options.server)) : progress("waiting", waits);
}

/** What is said of a volume, key `volume/<uid>`; null: nobody wants one, and there is none. @param use why its file cannot go yet */
export function volumeActual(state: AgentState, uid: Uid, use: string | null): AgentVolumeActual | null {
  const volume = state.volumes.get(uid);
  const desired = state.desired.volume.get(uid);
  if (volume === undefined && desired === undefined) return null;
  const missing = desired === undefined || volume?.removing === true ? null : whyMissing(state, uid, desired);
  if (missing !== null || volume === undefined) {
    const { phase, reason } = missing ?? { phase: "failed", reason: lostVolume(state.options.server) };
    const about = desired?.about ?? volume?.about;
    const nothing = { sizeMiB: null, usedMiB: null, boot: null };
    return { phase, reason, ...nothing, ...(about === undefined ? {} : { about }) };
  }
  const failure = state.failures.get(`${uid}/file`) ?? null;
  const { sizeMiB, roomMiB, boot, image, about } = volume;
  const room = roomMiB === undefined ? {} : { roomMiB };
  const told = {
    sizeMiB,
    ...room,
    usedMiB: state.usedMiB.get(uid) ?? null,
    boot,
    ...(image === undefined ? {} : { image }),
    ...(about === undefined ? {} : { about }),
  };
  if (desired === undefined || volume.removing) return { phase: "deleting", reason: failure ?? use, ...told };
  if (sizeMiB === null || volume.doubted === true)
    return {
      phase: failure === null ? "working" : "waiting",
      reason: failure,
      ...told,
      ...(failure !== null && state.badImages.has(uid) ? { badImage: true as const } : {}),
    };
  return { phase: "ready", reason: failure ?? sizeRemark(sizeMiB, desired.sizeMiB), ...told };
}
