import assert from "node:assert/strict";
import { test } from "node:test";
import type { CellEvent } from "../../../model/api.ts";
import type { CellEvents } from "../events.ts";
import { Veils } from "./veiled.ts";

const event = (id: number): CellEvent => ({
  id,
  time: "2020-01-01T00:00:00.000Z",
  cell: "shop",
  path: "shop/web",
  type: "VM",
  event: "state",
  phase: "waiting",
});

test("a burst of events waits for one look at the names of machines, whoever hears it, and each follower hears all in order", async () => {
  let looks = 0;
  const waiting: (() => void)[] = [];
  const veils = new Veils(async () => {
    looks += 1;
    await new Promise<void>((done) => waiting.push(done));
    return { body: [`h${looks}`] };
  });
  const listeners = new Set<(event: CellEvent) => void>();
  const subscribe: CellEvents["subscribe"] = (listener) => {
    listeners.add(listener);
    return () => listeners.delete(listener);
  };
  const tell = (from: number, to: number): void => {
    for (let id = from; id <= to; id += 1) for (const listener of listeners) listener(event(id));
  };
  const response = { destroy: () => assert.fail("nobody is cut") };
  const heard: number[][] = [[], [], []];
  for (const list of heard) veils.lookedAtFirst(response as never, subscribe)(({ id }) => list.push(id));
  const turn = () => new Promise((done) => setImmediate(done));

  tell(1, 500);
  await turn();
  assert.equal(looks, 1);
  tell(501, 1_500);
  await turn();
  assert.deepEqual([looks, heard[0]?.length], [1, 0], "what comes meanwhile waits for the look that is under way");
  waiting.shift()?.();
  await turn();
  assert.deepEqual([looks, heard[0]?.length], [2, 500], "and then for one that began later");
  waiting.shift()?.();
  await turn();
  const all = Array.from({ length: 1_500 }, (_, at) => at + 1);
  assert.deepEqual(heard, [all, all, all]);
  assert.ok(veils.veil.machines.has("h2"));
  assert.equal(looks, 2);
});

test("a look that fails is none: who waited for it hears nothing, and the next one looks anew", async () => {
  let fails = true;
  const veils = new Veils(async () => {
    if (fails) throw new Error("it is stopping");
    return { body: ["h1"] };
  });
  await assert.rejects(veils.look(), /stopping/);
  fails = false;
  await veils.look();
  assert.ok(veils.veil.machines.has("h1"));
});
