import type { Refusal } from "../../model/api.ts";

/** An answer that is not a success, on its way to the client. */
export class RefusedError extends Error {
  readonly statusCode: number;
  readonly refusal: Refusal["error"];
  constructor(statusCode: number, refusal: Refusal["error"]) {
    super(refusal.message);
    this.statusCode = statusCode;
    this.refusal = refusal;
  }
}
export const refused = (statusCode: number, code: string, message: string): RefusedError =>
  new RefusedError(statusCode, { code, message });
