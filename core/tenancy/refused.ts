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
