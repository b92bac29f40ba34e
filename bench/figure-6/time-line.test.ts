import assert from "node:assert/strict";
import { test } from "node:test";
import type { ServiceEvent } from "../../model/api.ts";
import { TimeLine } from "./time-line.ts";

const event = (id: string): ServiceEvent => {
  const time = new Date(1000).toISOString();
  return { id, time, service: "host.h1", event: "machine/stage", cell: null, path: null, fields: {} };
};
/** Gives one list after the other, each as a stream that breaks after it; the last one stays open. */
const clientOf = (...streams: readonly (readonly ServiceEvent[])[]) => {
  const left = [...streams];
  return {
    async *stream<E>(_path: string, { signal }: { readonly signal?: AbortSignal } = {}): AsyncGenerator<E> {
      for (const each of left.shift() ?? []) yield each as E;
      if (left.length > 0) throw new Error("broken");
      await new Promise((_resolve, reject) => signal?.addEventListener("abort", () => reject(signal.reason)));
    },
  };
};

test("a time line follows on after a break, and takes each event once", async () => {
  const line = new TimeLine(clientOf([event("1"), event("2")], [event("2"), event("3")]));
  const third = await line.event("the third", 1000, ({ id }) => id === "3", 10_000);
  assert.equal(third.id, "3");
  assert.deepEqual(
    line.events().map(({ id }) => id),
    ["1", "2", "3"],
  );
  await assert.rejects(
    line.event("a later one", 1001, ({ id }) => id === "3", 20),
    /still not so after 0 s: a later one/,
  );
  await line.stop();
});
