import type { FollowEvent } from "../../model/contract/follow/follow.ts";
import { type Followed, narrowed, nothingFollowed, reduced } from "../../model/contract/follow/reduce.ts";

/**
 * One stream for all tabs of a browser, which gives an origin six connections only. Each tab says which topics it shows; the stream
 * has all of them. A tab that comes later gets what is known as a snapshot, and is then told what the others are told.
 *
 * A browser lets the clock of a hidden tab stand still, so a tab that was not heard for a while may be there all the same: it is told nothing
 * until it is heard again, and then gets what it missed.
 */
export type FromTab =
  /** These are shown. `anew`: what is known of them is wanted although it was told before. */
  | { readonly kind: "follow"; readonly topics: readonly string[]; readonly anew?: true }
  | { readonly kind: "alive" }
  | { readonly kind: "leave" };
export type ToTab =
  | { readonly kind: "event"; readonly event: FollowEvent }
  /** Nobody is signed in any more. */
  | { readonly kind: "signed-out" };

export const aliveMs = 10_000;
export const goneMs = 35_000;
export const sweepMs = 5_000;
/** A topic that was refused is asked for again after so long, or as soon as a tab wants it anew. */
export const refusedMs = 30_000;
const retryMs = 2_000;
/** Two beats of the gateway missed: what is shown may be old, and the stream is asked for anew. */
export const silentMs = 25_000;
/** Where nothing comes of that, the next one has more time: a gateway that has too much to do is not given more. */
const mostPatience = 4;

export interface Surroundings {
  nowMs(): number;
  /** Calls `after` once. Returns how to have it not called. */
  later(ms: number, after: () => void): () => void;
  /** @returns how to end it */
  open(topics: readonly string[], heard: (event: FollowEvent) => void, over: () => void): () => void;
  /** After the stream was refused: who is in, and which of its topics are the reason, each with a sentence. */
  whyRefused(topics: readonly string[]): Promise<"signed-out" | ReadonlyMap<string, string>>;
}
interface Tab {
  readonly tell: (said: ToTab) => void;
  topics: readonly string[];
  heardMs: number;
}

export class Tabs {
  readonly #with: Surroundings;
  /** Those that are told what happens. */
  readonly #tabs = new Set<Tab>();
  readonly #refused = new Map<string, { readonly why: string; readonly untilMs: number }>();
  #followed: Followed = nothingFollowed;
  #open: { readonly topics: string; readonly end: () => void } | null = null;
  #noRetry: () => void = () => undefined;
  /** Since when the stream that is open says nothing, and how often in a row one was given up for that. */
  #quietSinceMs = 0;
  #givenUp = 0;

  constructor(surroundings: Surroundings) {
    this.#with = surroundings;
  }

  /** @returns what the tab says is to be told here */
  add(tell: (said: ToTab) => void): (said: FromTab) => void {
    const tab: Tab = { tell, topics: [], heardMs: this.#with.nowMs() };
    this.#tabs.add(tab);
    return (said) => this.#hear(tab, said);
  }

  /**
   * To be called now and then: who was not heard for long is told nothing. A stream whose other end is gone without a word (a machine that slept, a
   * gateway that lost its power) breaks for nobody, so one that says nothing is asked for anew.
   */
  sweep(): void {
    const nowMs = this.#with.nowMs();
    for (const tab of this.#tabs) if (nowMs - tab.heardMs > goneMs) this.#tabs.delete(tab);
    for (const [topic, { untilMs }] of this.#refused) if (nowMs >= untilMs) this.#refused.delete(topic);
    const patienceMs = silentMs * Math.min(2 ** this.#givenUp, mostPatience);
    const isSilent = this.#open !== null && nowMs - this.#quietSinceMs > patienceMs;
    if (isSilent) this.#givenUp += 1;
    this.#look(isSilent);
  }

  #hear(tab: Tab, said: FromTab): void {
    const wasThere = this.#tabs.has(tab);
    tab.heardMs = this.#with.nowMs();
    if (said.kind === "leave") this.#tabs.delete(tab);
    else this.#tabs.add(tab);
    const before = new Set(wasThere ? tab.topics : []);
    if (said.kind === "follow") {
      tab.topics = said.topics;
      if (said.anew === true) before.clear();
      for (const topic of said.topics) if (!before.has(topic)) this.#refused.delete(topic);
    }
    this.#look();
    if (said.kind === "leave") return;
    for (const topic of tab.topics) {
      const known = before.has(topic) ? null : snapshotOf(this.#followed, topic, this.#with.nowMs());
      if (known !== null) tab.tell({ kind: "event", event: known });
    }
  }

  /** Follows what the tabs show, and nothing else. */
  #look(anew = false): void {
    const shown = new Set([...this.#tabs].flatMap(({ topics }) => topics));
    const topics = [...shown].filter((topic) => !this.#refused.has(topic)).sort();
    const written = topics.join(" ");
    if (written === (this.#open?.topics ?? "") && !anew) return;
    this.#open?.end();
    this.#open = null;
    this.#noRetry();
    this.#followed = narrowed(this.#followed, shown);
    if (topics.length === 0) return;
    const end = this.#with.open(
      topics,
      (event) => this.#take(event),
      () => void this.#over(topics),
    );
    this.#open = { topics: written, end };
    this.#quietSinceMs = this.#with.nowMs();
  }

  #take(event: FollowEvent): void {
    this.#quietSinceMs = this.#with.nowMs();
    this.#givenUp = 0;
    const next = reduced(this.#followed, event);
    this.#followed = next.followed;
    if (next.isGap) this.#look(true);
    else this.#tell(event);
  }
  #tell(event: FollowEvent): void {
    const { topic } = event;
    for (const { tell, topics } of this.#tabs)
      if (topic === undefined || topics.includes(topic)) tell({ kind: "event", event });
  }

  /** The stream was refused: without the topics that are the reason the others go on. */
  async #over(topics: readonly string[]): Promise<void> {
    const open = this.#open;
    const why = await this.#with.whyRefused(topics).catch((): ReadonlyMap<string, string> => new Map());
    if (this.#open !== open) return;
    if (why === "signed-out") {
      // Until a tab says anew what it shows, nothing is asked for: the answer would be the same.
      for (const tab of this.#tabs) {
        tab.topics = [];
        tab.tell({ kind: "signed-out" });
      }
      this.#look();
      return;
    }
    const nowMs = this.#with.nowMs();
    for (const [topic, sentence] of why) {
      this.#refused.set(topic, { why: sentence, untilMs: nowMs + refusedMs });
      const ended = { kind: "ended", time: new Date(nowMs).toISOString(), topic, why: sentence } as const;
      this.#followed = reduced(this.#followed, ended).followed;
      this.#tell(ended);
    }
    if (why.size > 0) this.#look();
    else this.#noRetry = this.#with.later(retryMs, () => this.#look(true));
  }
}

/** What is known of a topic, as an event. */
function snapshotOf(followed: Followed, topic: string, nowMs: number): FollowEvent | null {
  const known = followed.topics.get(topic);
  if (known === undefined) return null;
  const { run, n, rows, version, stale } = known;
  const time = new Date(nowMs).toISOString();
  const of = version === null ? {} : { version };
  return { kind: "snapshot", time, topic, run, n, rows, ...of, ...(stale === null ? {} : { stale }) };
}

/** What a tab knows after an event, and whether it has to ask for its topics anew. */
export function heardBy(
  followed: Followed,
  event: FollowEvent,
  shown: readonly string[],
): { readonly followed: Followed; readonly isGap: boolean } {
  // It was on its way when the tab turned to something else.
  if (event.topic !== undefined && !shown.includes(event.topic)) return { followed, isGap: false };
  return reduced(followed, event);
}

/** One stream has so many topics (`model/contract/follow/follow.ts`). */
const mostTopics = 16;
/** Which cells' elements are followed, the one that somebody has chosen first; of the others one stream has no room. */
export function followedCells(
  cells: readonly string[],
  chosen: string | null,
  always: number,
): { readonly shown: readonly string[]; readonly left: readonly string[] } {
  const first = cells.filter((cell) => cell === chosen);
  const ordered = [...first, ...cells.filter((cell) => cell !== chosen)];
  const most = mostTopics - always;
  return { shown: ordered.slice(0, most), left: ordered.slice(most) };
}
