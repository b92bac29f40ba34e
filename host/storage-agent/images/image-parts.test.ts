import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { ImageParts, type Part, type PartLimits } from "./image-parts.ts";

/** What is kept of uploads that broke off: of whom, how many, and how long. Their bytes: `image-store.test.ts`. */
const nameOf = (account: number, number: number): string =>
  `upload-${account.toString(16).padStart(16, "0")}-${number.toString(16).padStart(32, "0")}`;
const partOf = (id: string): Part => ({
  id,
  format: "raw",
  length: 100,
  received: 10,
  hash: createHash("sha256").update("0123456789"),
  begunMs: performance.now(),
});
function partsWith(limits: Partial<PartLimits>): { readonly parts: ImageParts; readonly removed: string[] } {
  const removed: string[] = [];
  const all = { keptMs: 60_000, wholeMs: 600_000, ofAccount: 2, inAll: 3, ...limits };
  const parts = new ImageParts(all, async (id) => void removed.push(id));
  return { parts, removed };
}

test("who goes on has what is kept for himself, and its hash goes on; what does not fit leaves it where it is", async () => {
  const { parts, removed } = partsWith({});
  const name = nameOf(1, 1);
  await parts.keep(name, partOf("a"));
  const rest = { format: "raw", length: 100, received: 10 } as const;
  for (const other of [{ ...rest, received: 9 }, { ...rest, length: 101 }, { ...rest, format: "qcow2" } as const])
    assert.equal(parts.take(name, other), null);
  assert.equal(parts.shown(name)?.digest, createHash("sha256").update("0123456789").digest("hex"));
  const taken = parts.take(name, rest);
  assert.equal(taken?.hash.update("x").digest("hex"), createHash("sha256").update("0123456789x").digest("hex"));
  assert.deepEqual([parts.take(name, rest), parts.shown(name), removed], [null, null, []]);
});

test("the older of an account gives way to its third, and where there are too many one of whoever has most", async () => {
  const { parts, removed } = partsWith({});
  for (const [account, number] of [
    [1, 1],
    [2, 2],
    [2, 3],
    [2, 4],
  ] as const)
    await parts.keep(nameOf(account, number), partOf(`${number}`));
  assert.deepEqual(removed.splice(0), ["2"], "the older of an account that has three");
  const roomy = partsWith({ inAll: 8 });
  for (const number of [1, 2, 3]) await roomy.parts.keep(nameOf(1, number), partOf(`${number}`));
  assert.deepEqual(roomy.removed, ["1"], "though there is room for more");
  await parts.keep(nameOf(3, 5), partOf("5"));
  assert.deepEqual(removed.splice(0), ["3"], "though another's broke off before");
  assert.notEqual(parts.shown(nameOf(1, 1)), null);
  await parts.keep(nameOf(1, 1), partOf("6"));
  assert.deepEqual(removed.splice(0), ["1"], "of the same name there is one");
  assert.equal(parts.octets(nameOf(1, 1)), 20);
  assert.deepEqual([await parts.giveWay(nameOf(1, 1)), removed.splice(0)], [true, ["4"]], "where its room is needed");
  assert.deepEqual([await parts.giveWay(nameOf(1, 1)), await parts.giveWay(nameOf(1, 1))], [true, false]);
  assert.deepEqual(removed.splice(0), ["5"]);
  assert.notEqual(parts.shown(nameOf(1, 1)), null);
});

test("of two of one name that break off at once one is kept, and nothing of the other stays", async () => {
  const { parts, removed } = partsWith({});
  const name = nameOf(1, 1);
  for (const both of [
    ["a", "b"],
    ["c", "d"],
  ])
    await Promise.all(both.map((id) => parts.keep(name, partOf(id))));
  assert.equal(removed.length, 3);
  assert.deepEqual([await parts.end(name), removed.sort()], [true, ["a", "b", "c", "d"]]);
});

test("what nobody goes on with is gone after its time, and what somebody goes on with is not", async () => {
  const { parts, removed } = partsWith({ keptMs: 30 });
  await parts.keep(nameOf(1, 1), partOf("a"));
  await parts.keep(nameOf(1, 2), partOf("b"));
  assert.notEqual(parts.take(nameOf(1, 2), { format: "raw", length: 100, received: 10 }), null);
  while (removed.length === 0) await sleep(5);
  await sleep(60);
  assert.deepEqual(removed, ["a"]);
  assert.equal(parts.shown(nameOf(1, 1)), null);
});

test("who breaks off again and again has nothing kept for longer than from when it began", async () => {
  const { parts, removed } = partsWith({ wholeMs: 100 });
  const name = nameOf(1, 1);
  const part = partOf("a");
  await parts.keep(name, part);
  const rest = { format: "raw", length: 100, received: 10 } as const;
  while (performance.now() < part.begunMs + 90) {
    await parts.keep(name, parts.take(name, rest) ?? part);
    await sleep(5);
  }
  await sleep(60);
  assert.deepEqual([parts.shown(name), removed], [null, ["a"]]);
  await parts.keep(name, part);
  assert.deepEqual([parts.shown(name), removed], [null, ["a", "a"]]);
});
