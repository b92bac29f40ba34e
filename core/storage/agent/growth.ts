import type { Uid } from "../../../model/cell/identifiers.ts";
import type { AgentVolume } from "../../documents/vocabulary.ts";
import type { AgentState } from "./records.ts";
import type { AgentReport, VolumeRecord, VolumeWork, WantedExport } from "./work.ts";

/*
 * A volume's file becomes larger in one of three ways. While nobody has it open, its server does it. While a host has it
 * exported, that host does it under the same lease, as far as the file has room: an export is as long as its file was at its start.
 * What has no room gets it with the next export.
 */

/** The size that its file is to have and has not; nothing: it is large enough, or not there. */
export const growth = (
  volume: VolumeRecord | undefined,
  desired: AgentVolume | undefined,
): Pick<WantedExport, "growsToMiB"> =>
  volume?.sizeMiB != null && desired?.sizeMiB != null && !volume.removing && desired.sizeMiB > volume.sizeMiB
    ? { growsToMiB: desired.sizeMiB }
    : {};

/** What is to be done to a file that nobody has open and that nobody reads: an origin never changes. */
export function growthAlone(state: AgentState, uid: Uid): VolumeWork["file"] {
  const { growsToMiB } = growth(state.volumes.get(uid), state.desired.volume.get(uid));
  const isOpen = state.leases.get(uid)?.holder != null || state.origins.has(uid) || state.desired.readers.has(uid);
  return growsToMiB === undefined || isOpen ? null : { action: "grow", sizeMiB: growsToMiB };
}

type SizeReport = AgentReport & { kind: "created" | "exported" | "found" | "grown" };

/** The record of a volume with what is said of its file's size; null: that is nothing new, or late. */
export function withSize(state: AgentState, report: SizeReport): VolumeRecord | null {
  const volume = state.volumes.get(report.volume);
  if (volume === undefined || volume.removing || (report.kind === "created") !== (volume.sizeMiB === null)) return null;
  const { roomMiB: _, ...rest } = volume;
  const room = report.roomMiB === undefined ? {} : { roomMiB: report.roomMiB };
  if (report.kind === "created") {
    const image = report.image === undefined ? {} : { image: report.image };
    const fresh = report.fresh === true && volume.from === undefined ? { fresh: true as const } : {};
    return { ...rest, sizeMiB: report.sizeMiB, ...room, boot: report.boot, ...image, ...fresh };
  }
  // A host writes the file's header while it is exported: it is believed up to what was asked for, also at the next export.
  const hadMiB = volume.sizeMiB ?? 0;
  const hasMiB = Math.min(report.sizeMiB, Math.max(hadMiB, state.desired.volume.get(report.volume)?.sizeMiB ?? 0));
  if (report.kind === "found") {
    const { doubted, ...seen } = rest;
    return doubted === true ? { ...seen, sizeMiB: Math.max(hadMiB, hasMiB), ...room } : null;
  }
  const sizeMiB = report.kind === "exported" ? hasMiB : Math.max(hadMiB, hasMiB);
  return sizeMiB === volume.sizeMiB && report.roomMiB === volume.roomMiB ? null : { ...rest, sizeMiB, ...room };
}
