/*
 * How long a VM that failed waits for its next start (exponential back-off). How many VMs of a cell may start in a minute is
 * in `start-limit.ts`.
 */

/** After the second failure in a row. After the first one it starts again at once: a VM that ran well is back soonest. */
const firstRetryMs = 1_000;
const longestRetryMs = 60_000;
/** After an incarnation that ran for this long, failures are counted from the beginning. */
export const stableMs = 300_000;

/** @param failures in a row */
export const retryDelayMs = (failures: number): number =>
  failures <= 1 ? 0 : Math.min(longestRetryMs, firstRetryMs * 2 ** (failures - 2));
