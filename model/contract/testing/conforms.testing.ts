import assert from "node:assert/strict";
import type { Json } from "../../json/json.ts";
import { match } from "../match.ts";
import { faultIn } from "../schema.ts";
import { refusal } from "../values.ts";

export interface Answered {
  readonly status: number;
  readonly type: string | undefined;
  readonly text: string;
}

/** An answer that a test got is as the table of routes says: a refusal, or what its route gives. */
export function assertConforms(method: string, url: string, { status, type = "", text }: Answered): void {
  const asked = `${method} ${url}: ${status}`;
  if (status >= 400) {
    assert.equal(faultIn(refusal, JSON.parse(text) as Json)?.toString(), undefined, `${asked}: ${text}`);
    return;
  }
  const found = match(method, url);
  assert.ok(found !== null, `${asked}: the table has no such route`);
  const { answer } = found.route;
  assert.deepEqual([status, type.split(";")[0]], [answer.status, answer.type], asked);
  const { schema } = answer;
  if (schema === null) return;
  for (const value of answer.type === "text/event-stream" ? eventsIn(text) : [text])
    assert.equal(faultIn(schema, JSON.parse(value) as Json)?.toString(), undefined, `${asked}: ${value}`);
}

const eventsIn = (stream: string): readonly string[] =>
  stream.split("\n").flatMap((line) => (line.startsWith("data: ") ? [line.slice("data: ".length)] : []));
