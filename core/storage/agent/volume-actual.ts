import type { Uid } from "../../../model/cell/identifiers.ts";
import type { AgentVolumeActual } from "../../documents/vocabulary.ts";
import { whyNotAnew } from "./bin.ts";
import type { AgentState } from "./records.ts";
import { lostVolume, sizeRemark } from "./remarks.ts";

/** What is said of a volume, key `volume/<uid>`; null: nobody wants one, and there is none. @param use why its file cannot go yet */
export function volumeActual(state: AgentState, uid: Uid, use: string | null): AgentVolumeActual | null {
  const volume = state.volumes.get(uid);
  const desired = state.desired.volume.get(uid);
  if (volume === undefined) {
    const binned = desired === undefined || desired.made === true ? null : whyNotAnew(state, uid, desired);
    const lost = {
      phase: binned === null ? "failed" : "waiting",
      reason: binned ?? lostVolume(state.options.server),
      sizeMiB: null,
      usedMiB: null,
      boot: null,
      ...(desired?.about === undefined ? {} : { about: desired.about }),
    } as const;
    return desired === undefined ? null : (lost satisfies AgentVolumeActual);
  }
  const failure = state.failures.get(`${uid}/file`) ?? null;
  const { sizeMiB, roomMiB, boot } = volume;
  const { about } = volume;
  const room = roomMiB === undefined ? {} : { roomMiB };
  const told = {
    sizeMiB,
    ...room,
    usedMiB: state.usedMiB.get(uid) ?? null,
    boot,
    ...(about === undefined ? {} : { about }),
  };
  if (desired === undefined || volume.removing) return { phase: "deleting", reason: failure ?? use, ...told };
  if (sizeMiB === null) return { phase: failure === null ? "working" : "waiting", reason: failure, ...told };
  return { phase: "ready", reason: failure ?? sizeRemark(sizeMiB, desired.sizeMiB), ...told };
}
