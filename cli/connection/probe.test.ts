import assert from "node:assert/strict";
import { test } from "node:test";
import { listenersOf, shopProbes, tryAll } from "./probe.ts";

test("all are tried, a guest's passing ones before and one at a time, and answered in their order", async () => {
  const begun: string[] = [];
  const passing = new Map<string, number>();
  const answers = await tryAll(shopProbes, async (probe) => {
    const { from, to, protocol, port, expected } = probe;
    const before = begun.filter((line) => line === `${from} blocked`).length;
    begun.push(`${from} ${expected}`);
    if (expected === "passes") {
      assert.equal(before, 0);
      passing.set(from, (passing.get(from) ?? 0) + 1);
      assert.equal(passing.get(from), 1, "alone in its guest");
    }
    await new Promise(setImmediate);
    if (expected === "passes") passing.set(from, 0);
    return `${from} ${to} ${protocol} ${port}`;
  });
  assert.deepEqual(
    answers,
    shopProbes.map(({ from, to, protocol, port }) => `${from} ${to} ${protocol} ${port}`),
  );
  assert.deepEqual(new Set(begun.slice(0, 2)), new Set(["shop/web/vm passes", "shop/app/vm passes"]), "side by side");
});

test("a probe that cannot be made is a failure of all", async () => {
  await assert.rejects(
    tryAll(shopProbes, async ({ from }) => {
      if (from === "shop/db/vm") throw new Error("no agent");
    }),
    /no agent/,
  );
});

test("something listens wherever a probe goes, once", () => {
  const listeners = listenersOf(shopProbes).map(({ vm, protocol, port }) => `${vm} ${protocol} ${port}`);
  assert.deepEqual(listeners.sort(), [
    "shop/app/vm tcp 22",
    "shop/app/vm tcp 8080",
    "shop/db/vm tcp 5432",
    "shop/db/vm udp 5353",
    "shop/web/vm tcp 80",
  ]);
});
