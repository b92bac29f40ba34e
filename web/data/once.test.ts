import assert from "node:assert/strict";
import { test } from "node:test";
import { mostOpen, Once } from "./once.ts";

const failing = (status: number) => (key: string) => Promise.reject(Object.assign(new Error(key), { status }));
const keyOf = (key: string): Promise<string> => Promise.resolve(key);

test("a change whose answer was lost is asked for again under its key, and one that was answered is another one the next time", async () => {
  let made = 0;
  const once = new Once(() => `k${++made}`);
  for (const status of [0, 502, 503]) await assert.rejects(once.ask("a", failing(status)), /^Error: k1$/);
  assert.equal(await once.ask("b", keyOf), "k2", "what is otherwise is another one");
  assert.equal(await once.ask("a", keyOf), "k1");
  assert.equal(await once.ask("a", keyOf), "k3", "a second one like it, meant as such");
  await assert.rejects(once.ask("a", failing(409)), /^Error: k4$/);
  assert.equal(await once.ask("a", keyOf), "k5", "what was refused is looked at anew");
});

test("so many are kept that were not answered", async () => {
  let made = 0;
  const once = new Once(() => `k${++made}`);
  for (let n = 0; n <= mostOpen; n += 1) await assert.rejects(once.ask(`c${n}`, failing(0)));
  assert.equal(await once.ask("c1", keyOf), "k2");
  assert.equal(await once.ask("c0", keyOf), `k${mostOpen + 2}`, "the oldest is forgotten");
});
