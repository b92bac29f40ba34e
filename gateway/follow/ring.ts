import type { FollowEvent, Position, Rows } from "../../model/contract/follow/follow.ts";
import { deltaOf } from "../../model/contract/follow/reduce.ts";

/** All rows of a topic, as they were read at once. */
export interface Reading {
  readonly rows: Rows;
  /** Of the cell's model that they are of. */
  readonly version?: number;
}

/** Of one topic: what who was away for a moment may get instead of all rows. */
export const keptDeltas = { most: 64, characters: 1024 * 1024 } as const;

/**
 * One topic as it is now, and how it came to be so. Whoever says up to where he has seen it gets the deltas since, or, where they are not kept
 * any more or his count is another run's, all rows.
 */
export class Ring {
  readonly topic: string;
  readonly run: string;
  #n = 0;
  #rows: Rows = {};
  #stale: string | undefined;
  #version: number | undefined;
  #deltas: { readonly event: FollowEvent; readonly characters: number }[] = [];
  #characters = 0;

  /** @param run nobody else's, also not of a gateway before */
  constructor(topic: string, run: string) {
    this.topic = topic;
    this.run = run;
  }

  get rows(): Rows {
    return this.#rows;
  }
  get position(): Position {
    return { run: this.run, n: this.#n };
  }

  /**
   * What is so now. @param read null: as before, but nobody has said so. @param stale why it may be old
   * @returns what is to be told; null: nothing has changed
   */
  take(read: Reading | null, stale: string | undefined, time: string): FollowEvent | null {
    const { rows, version } = read ?? { rows: null, version: this.#version };
    const delta = rows === null ? null : deltaOf(this.#rows, rows);
    if (delta === null && stale === this.#stale && version === this.#version) return null;
    this.#rows = rows ?? this.#rows;
    this.#version = version;
    this.#stale = stale;
    this.#n += 1;
    const event: FollowEvent = {
      kind: "delta",
      time,
      topic: this.topic,
      ...this.position,
      rows: delta?.rows ?? {},
      gone: delta?.gone ?? [],
      ...(version === undefined ? {} : { version }),
      ...(stale === undefined ? {} : { stale }),
    };
    const characters = JSON.stringify(event).length;
    this.#deltas.push({ event, characters });
    this.#characters += characters;
    while (this.#deltas.length > keptDeltas.most || this.#characters > keptDeltas.characters)
      this.#characters -= this.#deltas.shift()?.characters ?? 0;
    return event;
  }

  /** What brings somebody up to now. */
  since(position: Position | undefined, time: string): readonly FollowEvent[] {
    const isOwn = position?.run === this.run && position.n <= this.#n;
    const missed = isOwn ? this.#n - position.n : Number.POSITIVE_INFINITY;
    if (missed <= this.#deltas.length)
      return this.#deltas.slice(this.#deltas.length - missed).map(({ event }) => event);
    const stale = this.#stale === undefined ? {} : { stale: this.#stale };
    const version = this.#version === undefined ? {} : { version: this.#version };
    return [{ kind: "snapshot", time, topic: this.topic, ...this.position, rows: this.#rows, ...version, ...stale }];
  }
}
