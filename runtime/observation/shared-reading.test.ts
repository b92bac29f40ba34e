import assert from "node:assert/strict";
import { test } from "node:test";
import { sharedReading } from "./shared-reading.ts";

test("who asks while something is read shares what is read next, and one that fails fails for those alone who asked for it", async () => {
  const ends: PromiseWithResolvers<string>[] = [];
  let under = 0;
  const ask = sharedReading(async () => {
    under += 1;
    assert.equal(under, 1, "one at a time");
    const end = Promise.withResolvers<string>();
    ends.push(end);
    try {
      return await end.promise;
    } finally {
      under -= 1;
    }
  });
  const soon = () => new Promise<void>((resolve) => setImmediate(resolve));
  const first = ask();
  await soon();
  const meanwhile = Array.from({ length: 50 }, ask);
  assert.equal(ends.length, 1);
  ends[0]?.reject(new Error("a tool is gone"));
  await assert.rejects(first, /a tool is gone/);
  await soon();
  assert.equal(ends.length, 2, "all of them by one reading");
  const third = ask();
  ends[1]?.resolve("second");
  assert.deepEqual(new Set(await Promise.all(meanwhile)), new Set(["second"]));
  await soon();
  ends[2]?.resolve("third");
  assert.equal(await third, "third", "what was read before it asked is not its answer");
  const alone = ask();
  await soon();
  ends[3]?.resolve("fourth");
  assert.equal(await alone, "fourth");
});
