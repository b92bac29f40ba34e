import { below, nextRandom, seedOf } from "../../../core/random.ts";
import type { Arrival } from "./arrival.ts";

/*
 * VMs as they might have come, where no trace is at hand: in periods of five minutes, in groups of one tenant that are mostly small and sometimes hundreds, of
 * sizes of which small ones are the most, and that stay for minutes mostly, for days seldom (Cortez et al., "Resource Central", 2017, figures 1 to 5). The
 * same seed, the same VMs.
 */
const periodSeconds = 300;
const sizes = [
  [1, 0.75],
  [1, 1.75],
  [1, 1.75],
  [1, 2],
  [2, 3.5],
  [2, 3.5],
  [4, 7],
  [4, 14],
  [8, 14],
  [8, 56],
  [16, 112],
] as const;
const [tenants, groupsOfPeriod] = [200, 60];

/** @returns so many, in order of time */
export function* seededArrivals(count: number, seed: number): Generator<Arrival> {
  const chance = { random: seedOf(seed) };
  // From 1 to `most`, each power of two of it as often as any other.
  const skewed = (most: number): number => Math.floor(most ** nextRandom(chance));
  let [given, group] = [0, 0];
  for (let second = 0; given < count; second += periodSeconds) {
    for (let of = below(chance, groupsOfPeriod); of > 0; of -= 1) {
      const [cpus, gigabytes] = sizes[below(chance, sizes.length)] ?? [1, 1];
      const account = below(chance, tenants);
      for (let more = skewed(skewed(skewed(400))); more > 0 && given < count; more -= 1) {
        const endsAt = second + periodSeconds * skewed(skewed(8000));
        yield { second, account, group, cpus, memoryMiB: gigabytes * 1024, endsAt };
        given += 1;
      }
      group += 1;
    }
  }
}
