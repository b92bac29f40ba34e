import { randomBytes } from "node:crypto";
import type { Rows, Topic } from "../../../model/contract/follow/follow.ts";
import type { CellNews, NoticeKind } from "../../../model/contract/tenancy/subscriptions.ts";
import { FollowedTopic, type TopicSource, topicTimes } from "../topic.ts";
import { began, gone, happened } from "./happened.ts";

/*
 * One cell as it is watched for one subscription. It is followed as anybody follows it who looks at it, by a session of the subscriber that reads
 * his cells, and what has become of it since the last notice is told at most once in a while.
 */
export interface WatchMeans {
  /** Bearer of a session that reads it. Rejects where there is none now. */
  session(): Promise<string>;
  /** That session opens nothing any more: another one is to be begun. */
  ended(): void;
  sourceOf(topic: Topic, authorization: string): Promise<TopicSource>;
  /** Rejects where it was not taken: it is told again later. */
  tell(news: CellNews): Promise<void>;
}
export interface WatchTimes {
  /** Between two notices. */
  readonly leastMs: number;
  /** What does not answer, or is not there, is looked at again. */
  readonly againMs: number;
}
const watchTimes: WatchTimes = { leastMs: 1_000, againMs: 10_000 };

/** @returns what ends it */
export function watchCell(
  cell: string,
  kinds: readonly NoticeKind[],
  means: WatchMeans,
  times: WatchTimes = watchTimes,
): () => void {
  /** As it was told last; null: nothing was. */
  let told: Rows | null = null;
  let now: Rows | null = null;
  let isGone = false;
  let isOver = false;
  let isTelling = false;
  let topic: FollowedTopic | null = null;
  const timers = new Set<NodeJS.Timeout>();
  const later = (ms: number, what: () => void): void => {
    const timer = setTimeout(() => {
      timers.delete(timer);
      if (!isOver) what();
    }, ms).unref();
    timers.add(timer);
  };

  const newsNow = (): CellNews | null => {
    if (isGone) return told === null ? null : gone(cell);
    if (now === null) return null;
    return told === null ? began(cell, now) : happened(cell, told, now, kinds);
  };
  /** One after the other: what changes meanwhile is in the next one. */
  const tell = async (): Promise<void> => {
    if (isTelling || isOver) return;
    const news = newsNow();
    const rows = isGone ? null : now;
    if (news === null) return;
    isTelling = true;
    let waitMs = times.leastMs;
    try {
      await means.tell(news);
      told = rows;
    } catch {
      waitMs = times.againMs;
    }
    later(waitMs, () => {
      isTelling = false;
      void tell();
    });
  };

  const begin = async (): Promise<void> => {
    let authorization: string;
    try {
      authorization = await means.session();
    } catch {
      again();
      return;
    }
    if (isOver) return;
    const run = randomBytes(6).toString("hex");
    const begun: FollowedTopic = new FollowedTopic(
      { topic: `cell:${cell}`, run, times: topicTimes },
      () => means.sourceOf({ kind: "cell", cell }, authorization),
      () => over(begun),
    );
    topic = begun;
    begun.follow({
      changed: () => {
        const { rows } = begun;
        if (rows === null || begun.why !== null) return;
        [now, isGone] = [rows, false];
        void tell();
      },
    });
    await begun.ready().catch((error: { readonly statusCode?: number }) => {
      if (error.statusCode === 401) means.ended();
      if (error.statusCode !== 404 || isOver) return;
      isGone = true;
      void tell();
    });
  };
  const over = (ended: FollowedTopic): void => {
    if (topic !== ended) return;
    topic = null;
    again();
  };
  const again = (): void => later(times.againMs, () => void begin());
  void begin();
  return () => {
    isOver = true;
    for (const timer of timers) clearTimeout(timer);
    topic?.stop("it is not watched any more");
  };
}
