import assert from "node:assert/strict";
import { test } from "node:test";
import type { Effect } from "../../core/env.ts";
import { type PeerName, peerName, uid } from "../../model/cell/identifiers.ts";
import type { Json } from "../../model/json/json.ts";
import { isOver, noteOver, restoreOver } from "./over.ts";

const shop = peerName("controller.shop");
const room = () => {
  const records = new Map<string, Json>();
  let over = restoreOver(records);
  return {
    records,
    end: (name: string, incarnation: number, client: PeerName = shop): void => {
      const effects: Effect[] = [];
      noteOver(over, { client, vm: { uid: uid(name), incarnation } }, effects);
      for (const effect of effects)
        if (effect.kind === "write" && effect.value !== null) records.set(effect.key, effect.value);
        else if (effect.kind === "write") records.delete(effect.key);
    },
    isOver: (name: string, incarnation: number, client: PeerName = shop): boolean =>
      isOver(over, client, uid(name), incarnation),
    restart: (): void => {
      over = restoreOver(records);
    },
  };
};

test("the newest incarnation that went counts, of each client's VMs for itself, over restarts", () => {
  const one = room();
  one.end("a", 3);
  one.end("a", 2);
  one.restart();
  assert.deepEqual(
    [2, 3, 4].map((incarnation) => one.isOver("a", incarnation)),
    [true, true, false],
  );
  assert.equal(one.isOver("a", 1, peerName("controller.bank")), false, "nobody ends another cell's");
  assert.equal(one.isOver("b", 1), false);
});

test("of those that went first nothing is kept any more", () => {
  const one = room();
  for (let n = 0; n < 2050; n += 1) one.end(`v${n}`, 1);
  assert.equal(one.records.size, 2048);
  assert.deepEqual([one.isOver("v0", 1), one.isOver("v2049", 1)], [false, true]);
});
