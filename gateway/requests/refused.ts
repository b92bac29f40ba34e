import type { Refusal } from "../../model/api.ts";
import { parseJson } from "../../runtime/http/http.ts";

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

/** What a service has refused, as it said it; `code` and `message` are of one that has said nothing that can be read. */
export function refusalIn(status: number, text: string, code: string, message: string): RefusedError {
  const read = parseJson(text);
  const { error } = ((read.ok ? read.value : null) ?? {}) as { readonly error?: Refusal["error"] };
  return new RefusedError(status, error ?? { code, message });
}
