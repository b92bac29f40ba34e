import { storeKey } from "./stored.ts";
import type { Distribution, Target, Turn } from "./types.ts";

/**
 * A store has a history. Each start of a service that changes its store draws an id, and counts its commits; the list of
 * these marks is the history of the store, and its last mark says how far it is. Who takes something from a service keeps
 * its last mark. A store that is blank, lost, or put back from an older copy does not contain that mark: it has *forked*, and
 * what it says of former documents is no wish of anybody.
 *
 * Generations cannot tell that: a store that was put back is started at a later time, and so in a later generation, than
 * the one that it is a copy of.
 */
export interface Mark {
  /** Drawn by a start of the store's owner, at its first commit. */
  readonly start: string;
  /** Commits since then; 1 or more. */
  readonly count: number;
}

/** Oldest first. The last one is the present. */
export type History = readonly Mark[];

/**
 * Starts that a history keeps. Whoever was not reached during so many starts that each changed something takes the store
 * for another one, and keeps what it has until somebody looks.
 */
export const mostStarts = 256;
/** Of an id, in characters. */
export const startLength = 64;

export const contains = (history: History, { start, count }: Mark): boolean =>
  history.some((mark) => mark.start === start && mark.count >= count);

/** Of a node: what is stored, and what its next start is called. */
export interface OwnHistory {
  /** With the number of its record. */
  readonly marks: { readonly number: number; readonly start: string; count: number }[];
  /** The id of this start. */
  readonly draw: string;
  drawn: boolean;
}

export const createOwnHistory = (stored: ReadonlyMap<number, Mark>, draw: string): OwnHistory => ({
  marks: [...stored].sort(([a], [b]) => a - b).map(([number, { start, count }]) => ({ number, start, count })),
  draw,
  drawn: false,
});

export const historyOf = ({ history }: Distribution): History =>
  history.marks.map(({ start, count }) => ({ start, count }));

/** How far this store is; null before its first commit. */
export const markOf = ({ history }: Distribution): Mark | null => {
  const last = history.marks.at(-1);
  return last === undefined ? null : { start: last.start, count: last.count };
};

/**
 * A step has writes, which are one commit more. The first one of a start begins a new mark, so that starts which change
 * nothing cost no place in the history.
 */
export const countCommit = (node: Distribution, turn: Turn): void => {
  const { history } = node;
  if (!history.drawn) {
    history.drawn = true;
    history.marks.push({ number: (history.marks.at(-1)?.number ?? 0) + 1, start: history.draw, count: 0 });
    const oldest = history.marks.length > mostStarts ? history.marks.shift() : undefined;
    if (oldest !== undefined) turn.writes.push({ key: storeKey.start(oldest.number), value: null });
  }
  const last = history.marks.at(-1);
  if (last === undefined) return;
  last.count += 1;
  turn.writes.push({ key: storeKey.start(last.number), value: { start: last.start, count: last.count } });
};

/** What is kept of a receiver: how far its store was, and which side of the two has forked. Absent: nothing worth a record. */
export interface StoredPeer {
  readonly at?: Mark;
  /** Of what the receiver is, as its hello said. */
  readonly instance?: string;
  readonly forked?: true;
  readonly itForked?: true;
}

/** The record of what is known of a receiver's history. */
export const writeTarget = (turn: Turn, { peer, at, instance, forked, itForked }: Target): void => {
  const record = {
    ...(at === null ? {} : { at: { start: at.start, count: at.count } }),
    ...(instance === null ? {} : { instance }),
    ...(forked ? { forked } : {}),
    ...(itForked ? { itForked } : {}),
  };
  turn.writes.push({ key: storeKey.peerMark(peer), value: Object.keys(record).length === 0 ? null : record });
};
