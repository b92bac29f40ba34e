import { sameJson } from "../../json/same.ts";
import type { FollowEvent, Position, Rows } from "./follow.ts";

/**
 * What the events of `GET /follow` come to. A delta counts only behind the one before it: one that was seen already is passed over, and where one is
 * missing the topic is dropped (`isGap`), so that who follows asks anew without a position for it and gets a snapshot. So whatever was repeated or
 * cut off, what is shown is a state that was.
 */
export interface FollowedTopic extends Position {
  readonly rows: Rows;
  /** Of the cell's model that they are of; null: nobody has said. */
  readonly version: number | null;
  /** What is shown may be old, and why; null: it is of now. */
  readonly stale: string | null;
}
export interface Followed {
  readonly topics: ReadonlyMap<string, FollowedTopic>;
  /** Nothing more comes of these, and why. */
  readonly ended: ReadonlyMap<string, string>;
  /** Nothing was heard of these so far, and why. */
  readonly unheard: ReadonlyMap<string, string>;
}
export const nothingFollowed: Followed = { topics: new Map(), ended: new Map(), unheard: new Map() };

export function reduced(
  followed: Followed,
  event: FollowEvent,
): { readonly followed: Followed; readonly isGap: boolean } {
  const { kind, topic, run, n, rows = {}, gone = [], stale = null, why = "", version = null } = event;
  if (topic === undefined) return { followed, isGap: false };
  const topics = new Map(followed.topics);
  const unheard = new Map(followed.unheard);
  unheard.delete(topic);
  if (kind === "ended") {
    topics.delete(topic);
    return { followed: { topics, unheard, ended: new Map([...followed.ended, [topic, why]]) }, isGap: false };
  }
  if (kind === "beat") {
    if (stale === null || topics.has(topic)) return { followed, isGap: false };
    return { followed: { ...followed, unheard: unheard.set(topic, stale) }, isGap: false };
  }
  if (run === undefined || n === undefined) return { followed, isGap: false };
  const before = topics.get(topic);
  if (kind === "snapshot") topics.set(topic, { run, n, rows, version, stale });
  else if (before?.run === run && n <= before.n) return { followed, isGap: false };
  else if (before?.run === run && n === before.n + 1)
    topics.set(topic, { run, n, stale, version, rows: patched(before.rows, rows, gone) });
  else topics.delete(topic);
  const ended = new Map(followed.ended);
  ended.delete(topic);
  return { followed: { topics, ended, unheard }, isGap: !topics.has(topic) };
}
/** What is followed no more is forgotten. */
export function narrowed({ topics, ended, unheard }: Followed, wanted: ReadonlySet<string>): Followed {
  const within = <T>(all: ReadonlyMap<string, T>): ReadonlyMap<string, T> =>
    new Map([...all].filter(([topic]) => wanted.has(topic)));
  return { topics: within(topics), ended: within(ended), unheard: within(unheard) };
}
function patched(before: Rows, rows: Rows, gone: readonly string[]): Rows {
  const after = { ...before, ...rows };
  for (const key of gone) delete after[key];
  return after;
}

/** What makes one table of another; null: they are the same. */
export function deltaOf(before: Rows, after: Rows): { readonly rows: Rows; readonly gone: readonly string[] } | null {
  const rows = Object.entries(after).filter(
    ([key, value]) => !Object.hasOwn(before, key) || !sameJson(before[key], value),
  );
  const gone = Object.keys(before).filter((key) => !Object.hasOwn(after, key));
  return rows.length === 0 && gone.length === 0 ? null : { rows: Object.fromEntries(rows), gone };
}
