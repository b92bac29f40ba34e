import assert from "node:assert/strict";
import { assertConforms } from "../../model/contract/testing/conforms.testing.ts";
import type { Json, JsonObject } from "../../model/json/json.ts";

export interface Answered {
  readonly status: number;
  readonly text: string;
  readonly json: JsonObject;
  readonly retryAfter: string | null;
}

/** Asks a gateway, whose answer is as the table of routes says. @param credential null: none */
export async function askGateway(
  url: string,
  [method, path]: readonly [method: string, path: string],
  credential: string | null,
  body?: Json | object,
): Promise<Answered> {
  const response = await fetch(url + path, {
    method,
    headers: {
      ...(credential === null ? {} : { authorization: `Bearer ${credential}` }),
      ...(body === undefined ? {} : { "content-type": "application/json" }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  assertConforms(method, path, {
    status: response.status,
    type: response.headers.get("content-type") ?? undefined,
    text,
  });
  const retryAfter = response.headers.get("retry-after");
  return { status: response.status, text, json: JSON.parse(text) as JsonObject, retryAfter };
}

/** What it gave. */
export function given(
  answer: Answered,
  [method, path]: readonly [method: string, path: string, ...unknown[]],
): JsonObject {
  assert.ok(answer.status < 300, `${method} ${path}: ${answer.status} ${answer.text}`);
  return answer.json;
}
