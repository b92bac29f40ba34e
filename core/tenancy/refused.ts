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
