/**
 * Counts what is refused, and lets it be logged at the first and then at most once a minute for each thing that it is about,
 * so that whoever repeats itself cannot fill the disk. What it is about is bounded too: beyond that, all the rest counts as
 * one.
 */
export interface RefusalLog {
  /** @param tell gets how many of that kind there have been in all; called now or not at all */
  refused(about: string, tell: (count: number) => void): void;
  /** Of all kinds, since the start. */
  total(): number;
}

const everyMs = 60_000;
const mostSubjects = 256;

/** @param nowMs a monotonic clock */
export const createRefusalLog = (nowMs: () => number = () => performance.now()): RefusalLog => {
  const counts = new Map<string, { count: number; toldAt: number }>();
  return {
    refused: (about, tell) => {
      const key = counts.has(about) || counts.size < mostSubjects ? about : "";
      const entry = counts.get(key) ?? { count: 0, toldAt: Number.NEGATIVE_INFINITY };
      counts.set(key, entry);
      entry.count += 1;
      if (nowMs() - entry.toldAt < everyMs) return;
      entry.toldAt = nowMs();
      tell(entry.count);
    },
    total: () => [...counts.values()].reduce((sum, { count }) => sum + count, 0),
  };
};
