import type { Rows } from "../../../model/contract/follow/follow.ts";
import type { CellNews, NoticeKind } from "../../../model/contract/tenancy/subscriptions.ts";
import type { PersistentVolume, VolumeDetails } from "../../../model/contract/tenancy/volumes/volumes.ts";
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
/** Looked into at one look: what is being made is looked at again anyway. */
const mostLookedInto = 16;
/** In which they stand, as their references say. */
const cell = "primary";

/** One look after the other, whosever they are. */
export function createLooks(): <T>(look: () => Promise<T>) => Promise<T> {
  let last: Promise<unknown> = Promise.resolve();
  return (look) => {
    const mine = last.then(look, look);
    last = mine.catch(() => undefined);
    return mine;
  };
}

const pathOf = ({ uid, version }: Pick<PersistentVolume, "uid" | "version">): string =>
  `${cell}/volumes/${uid}/v${version}`;

/** @returns what ends it */
export function watchVolumes(
  kinds: readonly NoticeKind[],
  means: VolumesWatchMeans,
  { everyMs, inTurn }: { readonly everyMs: number; readonly inTurn: ReturnType<typeof createLooks> },
): () => void {
  /** As they were told last; null: nothing was. */
  let told: Rows | null = null;
  let isOver = false;
  let timer: NodeJS.Timeout | undefined;

  const rowOf = async (volume: PersistentVolume, bearer: string, mayLook: () => boolean): Promise<Rows[string]> => {
    const before = told?.[pathOf(volume)];
    const { sizeMiB } = volume;
    const was = (before as { readonly state?: { readonly phase?: string } } | undefined)?.state?.phase;
    if (was === "ready" || !mayLook())
      return { type: "Volume", state: { phase: was ?? "waiting", ...(sizeMiB === null ? {} : { sizeMiB }) } };
    const { versions } = await means.one(bearer, volume.uid);
    const its = versions.find(({ number }) => number === volume.version);
    return {
      type: "Volume",
      state: {
        phase: its?.phase ?? "waiting",
        ...(sizeMiB === null ? {} : { sizeMiB }),
        ...(typeof its?.reason === "string" ? { reason: its.reason } : {}),
      },
    };
  };
  const look = async (): Promise<void> => {
    const bearer = await means.session();
    const volumes = await means.all(bearer);
    let left = mostLookedInto;
    const mayLook = (): boolean => {
      left -= 1;
      return left >= 0;
    };
    const now: Record<string, Rows[string]> = {};
    for (const volume of volumes) now[pathOf(volume)] = await rowOf(volume, bearer, mayLook);
    if (isOver) return;
    const began: CellNews = { kind: "began", cell, events: [], more: 0 };
    const news =
      told === null
        ? began
        : happened(
            cell,
            told,
            now,
            kinds.filter((kind) => kind === "volume"),
          );
    if (news !== null) await means.tell(news);
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
