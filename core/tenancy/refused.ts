import { type Limits, limitKeys } from "../../model/contract/tenancy/quotas.ts";

/** `status` is that of HTTP. */
export interface Refused {
  readonly status: number;
  readonly code: string;
  /** What is wrong, and what would be right. */
  readonly message: string;
  /** Seconds. */
  readonly retryAfter?: number;
}
export const refused = (status: number, code: string, message: string): Refused => ({ status, code, message });

/** What is not within the reach of who asks is told in the same words. */
export const noSuch = (what: string, name: string, how: string): Refused =>
  refused(404, "not-found", `there is no ${what} "${name}": ${how}`);

export const beyondShare = (what: string): Refused =>
  refused(
    409,
    "conflict",
    `your domain has as many ${what} as it may have now, so that others find some: delete some, or ask the operator`,
  );

/** A limit of what nothing counts would hold nobody to anything. Null: all of these are counted. */
export function whyNotCounted(limits: Limits): Refused | null {
  const unknown = Object.keys(limits).find((key) => !(limitKeys as readonly string[]).includes(key));
  if (unknown === undefined) return null;
  const message = `the body is not as it must be: at limits.${unknown.slice(0, 100)}: nothing counts that; it must be one of ${limitKeys.join(", ")}`;
  return refused(400, "bad-request", message);
}
