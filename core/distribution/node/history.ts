import { type History, type Mark, mostStarts, type OwnHistory } from "../marks.ts";
import { storeKey } from "./stored.ts";
import type { Distribution, Target, Turn } from "./types.ts";

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

/** The record of what is known of a receiver's history. */
export const writeTarget = (turn: Turn, { peer, at, instance, forked, itForked, seenLater }: Target): void => {
  const record = {
    ...(at === null ? {} : { at: { start: at.start, count: at.count } }),
    ...(instance === null ? {} : { instance }),
    ...(forked ? { forked } : {}),
    ...(itForked ? { itForked } : {}),
    ...(seenLater ? { seenLater } : {}),
  };
  turn.writes.push({ key: storeKey.peerMark(peer), value: Object.keys(record).length === 0 ? null : record });
};
