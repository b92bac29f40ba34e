import type { Rows } from "../../../model/contract/follow/follow.ts";
import type { CellNews } from "../../../model/contract/tenancy/subscriptions.ts";
import type { PersistentVolume, VolumeDetails } from "../../../model/contract/tenancy/volumes/volumes.ts";
import type { InTurn } from "../../../runtime/process/one-at-a-time.ts";
import { happened } from "./happened.ts";
import type { WatchMeans } from "./watch.ts";

/*
 * Persistent volumes as they are watched for one subscription. They stand in the primary cell, which is not the subscriber's to read, so CaaS is
 * asked which he may see, by a session of his that says who he is and opens nothing else. No stream tells of them: they are looked at now and then,
 * one subscription after the other, and two looks are compared.
 */
export interface VolumesWatchMeans extends Pick<WatchMeans, "session" | "ended" | "tell"> {
  /** All that the bearer may see. Rejects with the status where CaaS does not say it. */
  all(authorization: string): Promise<readonly PersistentVolume[]>;
  one(authorization: string, uid: string): Promise<VolumeDetails>;
}
/** Between two looks of a subscription. */
export const looksEveryMs = 10_000;
/** Looked into at one look, each in its turn: what is being made is looked at again anyway. */
const mostLookedInto = 16;
/** In which they stand, as their references say. */
const cell = "primary";

const pathOf = ({ uid, version }: Pick<PersistentVolume, "uid" | "version">): string =>
  `${cell}/volumes/${uid}/v${version}`;

/** @returns what ends it */
export function watchVolumes(
  means: VolumesWatchMeans,
  { everyMs, inTurn }: { readonly everyMs: number; readonly inTurn: InTurn },
): () => void {
  /** As they were told last; null: nothing was. */
  let told: Rows | null = null;
  let isOver = false;
  let timer: NodeJS.Timeout | undefined;
  /** That were there from the beginning, and have not been looked into yet: what is so of them is no news. */
  const unseen = new Set<string>();
  /** UID of the last one that was looked into: the next look goes on behind it. */
  let behind = "";

  const rowOf = async (volume: PersistentVolume, bearer: string, mayLook: () => boolean): Promise<Rows[string]> => {
    const path = pathOf(volume);
    const before = told?.[path];
    const size = volume.sizeMiB === null ? {} : { sizeMiB: volume.sizeMiB };
    const was = (before as { readonly state?: { readonly phase?: string } } | undefined)?.state?.phase;
    if (was === "ready" || !mayLook()) {
      if (told === null) unseen.add(path);
      return { type: "Volume", state: { phase: was ?? "waiting", ...size } };
    }
    behind = volume.uid;
    const { versions } = await means.one(bearer, volume.uid);
    const its = versions.find(({ number }) => number === volume.version);
    const reason = typeof its?.reason === "string" ? { reason: its.reason } : {};
    return { type: "Volume", state: { phase: its?.phase ?? "waiting", ...size, ...reason } };
  };
  const look = async (): Promise<void> => {
    const bearer = await means.session();
    const volumes = await means.all(bearer);
    const looked = new Set<string>();
    const now: Record<string, Rows[string]> = {};
    const last = behind;
    for (const volume of [...volumes.filter(({ uid }) => uid > last), ...volumes.filter(({ uid }) => uid <= last)]) {
      const path = pathOf(volume);
      const mayLook = (): boolean => {
        if (looked.size < mostLookedInto) looked.add(path);
        return looked.has(path);
      };
      now[path] = await rowOf(volume, bearer, mayLook);
    }
    if (isOver) return;
    const began: CellNews = { kind: "began", cell, events: [], more: 0 };
    const first = Object.fromEntries(
      [...looked].flatMap((path) => (unseen.has(path) ? [[path, now[path] ?? null]] : [])),
    );
    const news = told === null ? began : happened(cell, { ...told, ...first }, now, ["volume"]);
    if (news !== null) await means.tell(news);
    if (told !== null) for (const path of unseen) if (looked.has(path) || !(path in now)) unseen.delete(path);
    told = now;
  };
  const next = async (): Promise<void> => {
    try {
      await inTurn(async () => (isOver ? undefined : look()));
    } catch (error) {
      // What was not taken, or not said, is compared with the next look.
      if ((error as { readonly statusCode?: number }).statusCode === 401) means.ended();
    }
    if (!isOver) timer = setTimeout(() => void next(), everyMs).unref();
  };
  void next();
  return () => {
    isOver = true;
    clearTimeout(timer);
  };
}
