import assert from "node:assert/strict";
import { test } from "node:test";
import { longestOpenMs, mostOpen, Once } from "./once.ts";

const failing = (status: number) => (key: string) => Promise.reject(Object.assign(new Error(key), { status }));
const keyOf = (key: string): Promise<string> => Promise.resolve(key);

test("a change whose answer was lost is asked for again under its key, and one that was answered is another one the next time", async () => {
  let made = 0;
  const once = new Once(() => `k${++made}`);
  for (const status of [0, 502, 503]) await assert.rejects(once.ask("a", "a", failing(status)), /^Error: k1$/);
  assert.equal(await once.ask("b", "b", keyOf), "k2", "what is otherwise is another one");
  assert.equal(await once.ask("a", "a", keyOf), "k1");
  assert.equal(await once.ask("a", "a", keyOf), "k3", "a second one like it, meant as such");
  await assert.rejects(once.ask("a", "a", failing(409)), /^Error: k4$/);
  assert.equal(await once.ask("a", "a", keyOf), "k5", "what was refused is looked at anew");
});

test("so many are kept that were not answered", async () => {
  let made = 0;
  const once = new Once(() => `k${++made}`);
  for (let n = 0; n <= mostOpen; n += 1) await assert.rejects(once.ask(`c${n}`, `c${n}`, failing(0)));
  assert.equal(await once.ask("c1", "c1", keyOf), "k2");
  assert.equal(await once.ask("c0", "c0", keyOf), `k${mostOpen + 2}`, "the oldest is forgotten");
});

test("what became of a change was seen where another one of the same thing was answered since, or after some minutes", async () => {
  let made = 0;
  let nowMs = 0;
  const once = new Once(
    () => `k${++made}`,
    () => nowMs,
  );
  const lost = failing(0);
  await assert.rejects(once.ask("vm", "vm there", lost), /^Error: k1$/);
  assert.equal(await once.ask("other", "other there", keyOf), "k2");
  assert.equal(await once.ask("vm", "vm back", keyOf), "k3");
  assert.equal(await once.ask("vm", "vm there", keyOf), "k4", "it is there no more, and is to go there once more");
  await assert.rejects(once.ask("vm", "vm there", lost), /^Error: k5$/);
  nowMs += longestOpenMs - 1;
  await assert.rejects(once.ask("vm", "vm there", lost), /^Error: k5$/, "the same click");
  nowMs += 1;
  assert.equal(await once.ask("vm", "vm there", keyOf), "k6");
  const late = Promise.withResolvers<never>();
  const sent = once.ask("vm", "vm there", () => late.promise);
  assert.equal(await once.ask("vm", "vm back", keyOf), "k8");
  late.reject(new Error("lost"));
  await assert.rejects(sent);
  assert.equal(await once.ask("vm", "vm there", keyOf), "k7", "it was lost after that");
});
