/** The gateway has said that nobody is in: whatever else goes wrong leaves whoever is in where he is. */
export const isOut = (error: unknown): boolean => (error as { readonly status?: unknown } | null)?.status === 401;

/** Well below the hour after which a sign-in is idle (`model/contract/tenancy/sign-in.ts`). */
const touchEveryMs = 5 * 60_000;
export const isTouchDue = (touchedMs: number, nowMs: number): boolean => nowMs - touchedMs >= touchEveryMs;
