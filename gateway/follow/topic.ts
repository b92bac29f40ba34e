import type { FollowEvent, Position, Rows } from "../../model/contract/follow/follow.ts";
import { RefusedError } from "../requests/refused.ts";
import { Ring } from "./ring.ts";

/** Where the rows of a topic come from. */
export interface TopicSource {
  /** All of them now. Rejects with a refusal (401, 403, 404) where whoever follows may not see them, or there is no such thing any more. */
  read(signal: AbortSignal): Promise<Rows>;
  /** Tells when they may have changed. */
  watch(changed: () => void, signal: AbortSignal): void;
  /** Some of it changes without being told: it is read again after so many ms at the latest. */
  readonly everyMs: number;
}
export interface Follower {
  tell(event: FollowEvent): void;
}

/** Between two deltas. */
const deltaMs = 250;
/** A reading of a large cell takes a while: three times as long it is left alone. */
const restFactor = 3;
const longestRestMs = 2_000;
const retryMs = 2_000;
/** Somebody who was cut off comes back, and gets what he missed. */
export const lingerMs = 30_000;

/** One topic as one person may see it, read once for all of his streams for as long as he has any. */
export class FollowedTopic {
  readonly #source: TopicSource;
  readonly #ring: Ring;
  readonly #followers = new Set<Follower>();
  readonly #over: () => void;
  readonly #stopping = new AbortController();
  #isDirty = true;
  #wake: (() => void) | null = null;
  #linger: NodeJS.Timeout | null = null;
  #refusal: RefusedError | null = null;
  readonly #first: Promise<void>;

  /** @param over called once when nothing more comes of it */
  constructor(topic: string, run: string, source: TopicSource, over: () => void) {
    this.#source = source;
    this.#ring = new Ring(topic, run);
    this.#over = over;
    this.#first = new Promise((resolve) => void this.#work(resolve));
  }

  get position(): Position {
    return this.#ring.position;
  }
  /** Nobody follows it now. */
  get isIdle(): boolean {
    return this.#followers.size === 0;
  }

  /** Until it was read once. Rejects with the refusal if it may not be seen. */
  async ready(): Promise<void> {
    await this.#first;
    if (this.#refusal !== null) throw this.#refusal;
  }

  /** Brings the follower up to now, and tells it what comes. Returns how to end that. */
  follow(follower: Follower, position: Position | undefined): () => void {
    for (const event of this.#ring.since(position, now())) follower.tell(event);
    this.#followers.add(follower);
    if (this.#linger !== null) clearTimeout(this.#linger);
    this.#linger = null;
    return () => {
      if (!this.#followers.delete(follower) || this.#followers.size > 0 || this.#stopping.signal.aborted) return;
      this.#linger = setTimeout(() => this.stop(), lingerMs).unref();
    };
  }

  stop(): void {
    if (this.#stopping.signal.aborted) return;
    if (this.#linger !== null) clearTimeout(this.#linger);
    this.#stopping.abort();
    this.#wake?.();
    this.#over();
  }

  async #work(started: () => void): Promise<void> {
    const { signal } = this.#stopping;
    this.#source.watch(() => {
      this.#isDirty = true;
      this.#wake?.();
    }, signal);
    while (!signal.aborted) {
      this.#isDirty = false;
      const beganMs = performance.now();
      let waitMs = this.#source.everyMs;
      try {
        const rows = await this.#source.read(signal);
        if (!signal.aborted) this.#take(rows, undefined);
      } catch (error) {
        if (signal.aborted) break;
        if (error instanceof RefusedError && [401, 403, 404].includes(error.statusCode)) {
          this.#end(error);
          break;
        }
        waitMs = retryMs;
        this.#take(null, (error as Error).message);
      }
      started();
      const restMs = Math.max(deltaMs, Math.min(longestRestMs, restFactor * (performance.now() - beganMs)));
      await this.#pause(restMs, false);
      await this.#pause(Math.max(0, waitMs - restMs), true);
    }
    started();
  }
  #take(rows: Rows | null, stale: string | undefined): void {
    const event = this.#ring.take(rows, stale, now());
    if (event !== null) for (const follower of this.#followers) follower.tell(event);
  }
  #end(refusal: RefusedError): void {
    this.#refusal = refusal;
    const { topic } = this.#ring;
    for (const follower of this.#followers)
      follower.tell({ kind: "ended", time: now(), topic, why: refusal.refusal.message });
    this.stop();
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
