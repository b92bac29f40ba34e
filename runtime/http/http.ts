import { isUtf8 } from "node:buffer";
import type { ServerResponse } from "node:http";
import type { Readable } from "node:stream";
import type { Refusal } from "../../model/api.ts";
import type { Json } from "../../model/json/json.ts";
import { fail, ok, type Result } from "../../model/result.ts";

export const bodyLimitBytes = 16 * 1024 * 1024;

/** What becomes of an answer before it is sent; `status` null: one event of a stream. */
export type Through = (body: Json, status: number | null) => Json;
const through = new WeakMap<ServerResponse, Through>();
/** All that is sent as JSON, or as events, goes through this from now on. */
export const answerThrough = (response: ServerResponse, change: Through): void => void through.set(response, change);
export const sentThrough = (response: ServerResponse, body: object | Json, status: number | null): object | Json =>
  through.get(response)?.(body as Json, status) ?? body;

export function sendJson(response: ServerResponse, status: number, body: object | Json, headers = {}): void {
  response.writeHead(status, { "content-type": "application/json; charset=utf-8", ...headers });
  response.end(JSON.stringify(sentThrough(response, body, status)));
}
export function sendRefusal(response: ServerResponse, status: number, code: string, message: string): void {
  sendJson(response, status, { error: { code, message } } satisfies Refusal);
}

/**
 * Reads a whole body; null when it is larger than the limit, of which no more is then kept. Bytes that are no UTF-8 are
 * refused rather than replaced: a name or a password would silently become another.
 */
export async function readBody(
  body: Readable,
  limit = bodyLimitBytes,
): Promise<Result<string, "too-large" | "not-utf8">> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of body as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > limit) return fail("too-large");
    chunks.push(chunk);
  }
  const bytes = Buffer.concat(chunks);
  return isUtf8(bytes) ? ok(bytes.toString("utf8")) : fail("not-utf8");
}

export function parseJson(text: string): Result<Json, string> {
  try {
    return ok(JSON.parse(text) as Json);
  } catch (error) {
    return fail(`the body is not JSON: ${(error as Error).message}`);
  }
}

/** In how many seconds whoever is told that a service is away is to ask again. A place is free again in a moment, a service comes back later than that. */
export const retryAfterOf = (code?: string): string => (code === "busy" ? "1" : "5");
