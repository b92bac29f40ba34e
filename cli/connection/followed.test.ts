import assert from "node:assert/strict";
import { test } from "node:test";
import type { FollowEvent } from "../../model/contract/follow/follow.ts";
import { CommandFailure } from "../terminal/failure.ts";
import type { Client } from "./client.ts";
import { followed } from "./followed.ts";

const event = (kind: FollowEvent["kind"], n: number, rows: FollowEvent["rows"] = {}): FollowEvent => ({
  kind,
  n,
  rows,
  run: "r1",
  topic: "status",
  time: "2026-11-27T10:00:00.000Z",
});
/** Streams one after the other, each with what it gives before it ends; an error is thrown. */
function clientOf(streams: (readonly (FollowEvent | Error)[])[]) {
  const asked: string[] = [];
  const stream = async function* (_name: string, asking: { readonly headers?: Record<string, string> }) {
    asked.push(asking.headers?.["last-event-id"] ?? "");
    for (const each of streams.shift() ?? []) {
      if (each instanceof Error) throw each;
      yield each;
    }
  };
  return { client: { stream } as unknown as Pick<Client, "stream">, asked };
}

test("a stream that breaks is asked for again from where it was, and one with a gap anew", async () => {
  const { client, asked } = clientOf([
    [event("snapshot", 4, { a: 1 }), event("delta", 5, { a: 2 }), new Error("it broke")],
    [event("delta", 5, { a: 2 }), event("delta", 7, { a: 9 })],
    [event("snapshot", 8, { a: 10 })],
  ]);
  const seen: unknown[] = [];
  for await (const { topics } of followed(client, ["status"])) {
    seen.push(topics.get("status")?.rows.a);
    if (seen.at(-1) === 10) break;
  }
  assert.deepEqual(seen, [1, 2, undefined, 10]);
  assert.deepEqual(asked, ["", "status=r1.5", ""]);
});

test("what cannot be followed is told: at first, and when it ends", async () => {
  const all = async (streams: (readonly (FollowEvent | Error)[])[]) => {
    for await (const _each of followed(clientOf(streams).client, ["status"]));
  };
  await assert.rejects(all([[new Error("nobody is there")]]), /nobody is there/);
  const ended: FollowEvent = {
    kind: "ended",
    time: "2026-11-27T10:00:00.000Z",
    topic: "status",
    why: "the session is over",
  };
  await assert.rejects(
    all([[ended]]),
    (error) => error instanceof CommandFailure && /session is over/.test(error.message),
  );
});
