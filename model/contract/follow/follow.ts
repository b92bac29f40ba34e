import type { Json } from "../../json/json.ts";
import { fail, ok, type Result } from "../../result.ts";
import { dictionary, integer, json, list, oneOf, optional, record, text, time } from "../schema.ts";

/**
 * `GET /follow`: one stream for all that a person looks at. Each topic is a table of rows with a key each; whoever follows gets all of it
 * once, and then what becomes of it. What these events come to is in `reduce.ts`.
 *
 * - `status`: hosts (`host/h1`), storage servers (`server/s1`), services (`service/placer`) and the whole (`installation`), for the operator;
 * - `ha`: what the HA Manager works on (`item/VM/INCARNATION`), alerts (`alert/KIND/SUBJECT`) and the `summary`, for the operator; nothing where there is none;
 * - `cells`: cells by their names, as in their list;
 * - `cell:shop`: elements of a cell by their paths, each with its type and state;
 * - `counters:shop`: what its rules (`rule/PATH`), interfaces and machines count, and how many hosts did not say (`summary`).
 */
export type Rows = { readonly [key: string]: Json };
export interface FollowEvent {
  /** `snapshot`: these are all rows; `delta`: these are new or others, and `gone` are no more; `ended`: nothing more comes of the topic, and why; `beat`: the stream lives. */
  readonly kind: "snapshot" | "delta" | "ended" | "beat";
  /** ISO 8601. */
  readonly time: string;
  /** Absent in a `beat`, unless nothing was heard of this topic yet: `stale` says so. */
  readonly topic?: string;
  /** Whose count `n` is: after the gateway began anew it is another one's. */
  readonly run?: string;
  /** Of a delta: one more than that of the event before, in its run and topic. */
  readonly n?: number;
  readonly rows?: Rows;
  /** Of which version of the cell's model they are; absent: nobody has said. */
  readonly version?: number;
  readonly gone?: readonly string[];
  /** What is shown may be old, since somebody does not answer, a sentence. Absent: it is of now. */
  readonly stale?: string;
  /** Of `ended`, a sentence. */
  readonly why?: string;
}
export const followEvent = record<FollowEvent>(
  {
    kind: oneOf("snapshot", "delta", "ended", "beat"),
    time,
    topic: optional(text()),
    run: optional(text()),
    n: optional(integer(0)),
    rows: optional(dictionary(json)),
    version: optional(integer(0)),
    gone: optional(list(text())),
    stale: optional(text()),
    why: optional(text()),
  },
  "FollowEvent",
);

/** Topics of one stream. */
export const mostTopics = 16;
export type Topic =
  | { readonly kind: "status" }
  | { readonly kind: "ha" }
  | { readonly kind: "cells" }
  | { readonly kind: "cell" | "counters"; readonly cell: string };

export function topicOf(written: string): Result<Topic, string> {
  if (written === "status" || written === "cells" || written === "ha") return ok({ kind: written });
  const [, kind, cell] = /^(cell|counters):([a-z0-9][a-z0-9.-]{0,253})$/.exec(written) ?? [];
  if (cell !== undefined) return ok({ kind: kind === "cell" ? "cell" : "counters", cell });
  const shown = written.length > 60 ? `${written.slice(0, 60)}…` : written;
  return fail(`there is no topic "${shown}": a topic is status, ha, cells, cell:NAME, or counters:NAME`);
}

/** Where somebody is in a topic. */
export interface Position {
  readonly run: string;
  readonly n: number;
}
/** The id of an event: where who has seen it is in all of his topics. */
export const positionsText = (positions: Iterable<readonly [topic: string, Position]>): string =>
  Array.from(positions, ([topic, { run, n }]) => `${topic}=${run}.${n}`).join(",");
/** What cannot be read is no position: its topic begins with a snapshot. */
export function positionsIn(written: string): ReadonlyMap<string, Position> {
  const positions = new Map<string, Position>();
  for (const part of written.slice(0, 8192).split(",")) {
    const [, topic, run, n] = /^([^=]+)=([a-z0-9-]{1,40})\.(\d{1,15})$/.exec(part) ?? [];
    if (topic !== undefined && run !== undefined) positions.set(topic, { run, n: Number(n) });
  }
  return positions;
}
