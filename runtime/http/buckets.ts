/**
 * Token buckets by asker: `perSecond` sustained, `atOnce` at once.
 *
 * @param now monotonic ms
 */
export function createBuckets(
  perSecond: number,
  atOnce = 2 * perSecond,
  now: () => number = () => performance.now(),
): { take(asker: string): boolean } {
  const buckets = new Map<string, { tokens: number; at: number }>();
  return {
    take: (asker) => {
      const at = now();
      if (buckets.size >= mostAskers && !buckets.has(asker)) buckets.clear();
      const bucket = buckets.get(asker) ?? { tokens: atOnce, at };
      bucket.tokens = Math.min(atOnce, bucket.tokens + ((at - bucket.at) / 1_000) * perSecond);
      bucket.at = at;
      buckets.set(asker, bucket);
      if (bucket.tokens < 1) return false;
      bucket.tokens -= 1;
      return true;
    },
  };
}
const mostAskers = 4_096;
