import { keepNewest } from "../../../model/limits.ts";
import { type Refused, refused } from "../refused.ts";
import type { Failures, TenancyState } from "../state.ts";

/** So many may fail before the next one waits: a second, two, four, … a minute. Never for good. */
const freeFailures = 3;
const longestWaitMs = 60_000;
const mostFailures = 10_000;

/**
 * Of one user from one address: whoever tries passwords of somebody slows down nobody but himself. From many addresses at once
 * each has its own; the work of all is bounded where it is done.
 */
export interface Attempt {
  readonly domain: string;
  readonly user: string;
  /** Address of the client. */
  readonly source: string;
}
const failureKey = ({ domain, user, source }: Attempt): string => JSON.stringify([domain, user, source]);

/** It counts from now on, and not only when the work is done: else many could be tried at once. */
export function noteFailure(state: TenancyState, attempt: Attempt): void {
  const key = failureKey(attempt);
  const count = (state.failures.get(key)?.count ?? 0) + 1;
  const waitMs = count < freeFailures ? 0 : Math.min(longestWaitMs, 1000 * 2 ** (count - freeFailures));
  const noted: Failures = { count, untilMs: state.now.ms + waitMs };
  state.failures.delete(key);
  state.failures.set(key, noted);
  keepNewest(state.failures, mostFailures);
}

export const noteSuccess = (state: TenancyState, attempt: Attempt): void =>
  void state.failures.delete(failureKey(attempt));

/** Null: it may be tried now. */
export function tooOften(state: TenancyState, attempt: Attempt): Refused | null {
  const untilMs = state.failures.get(failureKey(attempt))?.untilMs ?? 0;
  if (untilMs <= state.now.ms) return null;
  const seconds = Math.ceil((untilMs - state.now.ms) / 1000);
  const message = `too many logins of this user have failed from your address: try again in ${seconds} s`;
  return { ...refused(429, "busy", message), retryAfter: seconds };
}
