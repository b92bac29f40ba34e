import type { Limits } from "./quotas.ts";

/*
 * What the cells of an account have had, and for how long, day by day (UTC).
 */
export const dayPattern = /^\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])$/;
export const dayRule = "a day, as 2026-11-26";

export interface UsageDay {
  /** `2026-11-26`. */
  readonly day: string;
  /** Path, as it was on that day. */
  readonly account: string;
  /** Twelve digits: another account that has the path later has another. */
  readonly number: string;
  /** Of each quantity of a quota, how much was held times how many hours; absent: none. */
  readonly hours: Limits;
  /**
   * The same of what was in use: machines that ran, and volumes, whatever a cell keeps for itself beside them. Absent: a service of the previous
   * version, which does not count it.
   */
  readonly used?: Limits;
}
export const mostDays = 10_000;
/** Days are looked at from so many before `until`, where nobody says from when. */
export const usualDays = 31;
