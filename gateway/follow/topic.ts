import { setTimeout as sleep } from "node:timers/promises";
import type { FollowEvent, Position, Rows } from "../../model/contract/follow/follow.ts";
import { RefusedError } from "../requests/refused.ts";
import { type Reading, Ring } from "./ring.ts";

/** Where the rows of a topic come from. */
export interface TopicSource {
  /** All of them now. Rejects with a refusal (401, 403, 404) where whoever follows may not see them, or there is no such thing any more. */
  read(signal: AbortSignal): Promise<Reading>;
  /** Tells when they may have changed. */
  watch(changed: () => void, signal: AbortSignal): void;
  /** Some of it changes without being told: it is read again after so many ms at the latest. */
  readonly everyMs: number;
}
export interface Follower {
  /** There is more to be taken: `since` and `why` say what. */
  changed(): void;
}

/** Between two deltas. */
const deltaMs = 250;
/** A reading of a large cell takes a while: three times as long it is left alone. */
const restFactor = 3;
const longestRestMs = 2_000;
const retryMs = 2_000;
export interface TopicTimes {
  /** For so long the first reading may say nothing before who follows is told that it does not. */
  readonly firstMs: number;
  /** A later one. */
  readonly laterMs: number;
  /** Then a reading is given up, and another one begun. */
  readonly givenUpMs: number;
  /** Somebody who was cut off comes back, and gets what he missed; who asked and left before he followed never does. */
  readonly lingerMs: number;
}
export const topicTimes: TopicTimes = { firstMs: 1_500, laterMs: 10_000, givenUpMs: 60_000, lingerMs: 30_000 };

/** One topic as one person may see it, read once for all of his streams for as long as he has any. */
export class FollowedTopic {
  readonly #sourceOf: () => Promise<TopicSource>;
  readonly #ring: Ring;
  readonly #followers = new Set<Follower>();
  readonly #over: () => void;
  readonly #times: TopicTimes;
  readonly #stopping = new AbortController();
  #isDirty = true;
  #isRead = false;
  #wake: (() => void) | null = null;
  #linger: NodeJS.Timeout | null = null;
  #refusal: RefusedError | null = null;
  #why: string | null = null;
  #unheard: string | null = null;
  readonly #first: Promise<void>;

  /** @param over called once when nothing more comes of it */
  constructor(
    { topic, run, times }: { readonly topic: string; readonly run: string; readonly times: TopicTimes },
    sourceOf: () => Promise<TopicSource>,
    over: () => void,
  ) {
    this.#sourceOf = sourceOf;
    this.#ring = new Ring(topic, run);
    this.#over = over;
    this.#times = times;
    this.#leave();
    this.#first = new Promise((resolve) => void this.#work(resolve));
  }

  /** Nobody follows it now. */
  get isIdle(): boolean {
    return this.#followers.size === 0;
  }
  /** Why nothing more comes of it, a sentence; null: it goes on. */
  get why(): string | null {
    return this.#why;
  }

  /** Until it was read once, or said nothing for a while. Rejects with the refusal if it may not be seen. */
  async ready(): Promise<void> {
    await this.#first;
    if (this.#refusal !== null) throw this.#refusal;
  }

  /** Why nothing was heard of it so far, a sentence; null: something was, or it was only just asked for. */
  get unheard(): string | null {
    return this.#unheard;
  }
  /** All of it as it was read last; null: it was not yet. */
  get rows(): Rows | null {
    return this.#isRead ? this.#ring.rows : null;
  }
  /** What brings somebody up to now: nothing while it was not read. */
  since(position: Position | undefined): readonly FollowEvent[] {
    return this.#isRead ? this.#ring.since(position, now()) : [];
  }

  /** Tells the follower when there is more to take. Returns how to end that. */
  follow(follower: Follower): () => void {
    this.#followers.add(follower);
    if (this.#linger !== null) clearTimeout(this.#linger);
    this.#linger = null;
    return () => {
      if (this.#followers.delete(follower) && this.#followers.size === 0) this.#leave();
    };
  }

  /** @param why a sentence, for who still follows it */
  stop(why: string): void {
    if (this.#stopping.signal.aborted) return;
    this.#why = why;
    if (this.#linger !== null) clearTimeout(this.#linger);
    this.#stopping.abort();
    this.#wake?.();
    this.#tell();
    this.#over();
  }
  #leave(): void {
    if (!this.#stopping.signal.aborted)
      this.#linger = setTimeout(() => this.stop("nobody has followed it for a while"), this.#times.lingerMs).unref();
  }

  async #work(started: () => void): Promise<void> {
    const { signal } = this.#stopping;
    let source: TopicSource | null = null;
    while (!signal.aborted) {
      this.#isDirty = false;
      const beganMs = performance.now();
      let waitMs = retryMs;
      const silence = this.#tellSilence(started);
      try {
        source ??= await this.#begin();
        waitMs = source.everyMs;
        const read = await this.#readOf(source);
        if (signal.aborted) break;
        this.#isRead = true;
        this.#unheard = null;
        this.#take(read, undefined);
      } catch (error) {
        if (signal.aborted) break;
        if (error instanceof RefusedError && [400, 401, 403, 404].includes(error.statusCode)) {
          this.#refusal = error;
          this.stop(error.refusal.message);
          break;
        }
        waitMs = retryMs;
        this.#take(null, (error as Error).message);
      } finally {
        clearTimeout(silence);
      }
      started();
      const restMs = Math.max(deltaMs, Math.min(longestRestMs, restFactor * (performance.now() - beganMs)));
      await this.#pause(restMs, false);
      await this.#pause(Math.max(0, waitMs - restMs), true);
    }
    started();
  }
  async #begin(): Promise<TopicSource> {
    const source = await this.#sourceOf();
    source.watch(() => {
      this.#isDirty = true;
      this.#wake?.();
    }, this.#stopping.signal);
    return source;
  }
  /** One that never answers is given up: whoever is asked then may be another one. */
  async #readOf(source: TopicSource): Promise<Reading> {
    const over = new AbortController();
    const signal = AbortSignal.any([over.signal, this.#stopping.signal]);
    // Who stops the topic waits for nobody.
    const givenUp = sleep(this.#times.givenUpMs, undefined, { signal, ref: false }).then(() => {
      throw new Error(this.#silent());
    });
    givenUp.catch(() => undefined);
    try {
      return await Promise.race([source.read(signal), givenUp]);
    } finally {
      over.abort();
    }
  }
  #tellSilence(started: () => void): NodeJS.Timeout {
    const ms = this.#isRead ? this.#times.laterMs : this.#times.firstMs;
    return setTimeout(() => {
      this.#take(null, this.#silent());
      started();
    }, ms).unref();
  }
  #silent(): string {
    const { topic } = this.#ring;
    const cell = /^cell:(.*)$/.exec(topic)?.[1];
    const whose = cell === undefined ? `the topic ${topic}` : `the cell "${cell}"`;
    return this.#isRead ? `nothing was heard of ${whose} for a while` : `nothing was heard of ${whose} yet`;
  }
  #take(read: Reading | null, stale: string | undefined): void {
    if (read === null && !this.#isRead) {
      this.#unheard = stale ?? null;
      this.#tell();
    } else if (this.#ring.take(read, stale, now()) !== null) this.#tell();
  }
  #tell(): void {
    for (const follower of [...this.#followers]) follower.changed();
  }
  /** @param untilChanged it ends as soon as something may have changed */
  #pause(ms: number, untilChanged: boolean): Promise<void> {
    if (this.#stopping.signal.aborted || (untilChanged && this.#isDirty)) return Promise.resolve();
    return new Promise((resolve) => {
      const done = (): void => {
        clearTimeout(timer);
        this.#wake = null;
        resolve();
      };
      const timer = setTimeout(done, ms);
      this.#wake = () => {
        if (untilChanged || this.#stopping.signal.aborted) done();
      };
    });
  }
}

const now = (): string => new Date().toISOString();
