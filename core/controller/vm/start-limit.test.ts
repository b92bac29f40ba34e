import assert from "node:assert/strict";
import { test } from "node:test";
import { array, constant, integer, oneof, option, property as prop, assert as property, record } from "fast-check";
import { peerName, type Uid } from "../../../model/cell/identifiers.ts";
import type { JsonObject } from "../../../model/json/json.ts";
import type { DesiredCell } from "../../documents/cells.ts";
import type { Effect } from "../../env.ts";
import { toJson } from "../../outbox.ts";
import { World } from "../world.testing.ts";
import { defaultStartsPerMinute, shareOut } from "./start-limit.ts";

/** A cell of machines that need nothing but a place. */
const machines = (count: number, rate: number | null, more: JsonObject = {}): JsonObject => {
  const names = Array.from({ length: count }, (_, index) => `m${index + 1}`);
  const machine = { "x.type": "VM", "x.memory": 16, "x.desiredState": "on", "x.restartOnFailure": true };
  const limit = rate === null ? {} : { "x.limits.vmStartsPerMinute": rate };
  return {
    shop: { "x.type": "Cell", ...limit, ...more, ...Object.fromEntries(names.map((name) => [name, machine])) },
  };
};
const path = (number: number): string => `shop/m${number}`;
const isReady = (world: World, number: number): boolean => world.phase(path(number)) === "ready";
const ready = (world: World, count: number): number =>
  Array.from({ length: count }, (_, index) => isReady(world, index + 1)).filter(Boolean).length;
const ask = (world: World, number: number): string =>
  JSON.stringify(world.ask({ method: "WHY-ELEMENT", path: path(number) }).body);
const minutes = (world: World, many: number): void => {
  world.wait(many * 60_000);
  if (world.timers.has("starts")) world.fire("starts");
};

test("ten minutes' worth start at once, the others in their turn, each minute as many as may", () => {
  const world = new World();
  world.put(machines(14, 1));
  assert.equal(ready(world, 14), 10);
  for (const number of [11, 12, 13, 14])
    assert.equal(world.standing(path(number)), "waiting: waits-its-turn perMinute=1 atOnce=10");
  assert.match(ask(world, 11), /number 1 of 4 in the queue.*within about 60 s/);
  assert.match(ask(world, 14), /number 4 of 4 in the queue.*within about 240 s; raise x\.limits\.vmStartsPerMinute/);
  const due = world.timers.get("starts") ?? 0;
  assert.ok(due > 59_000 && due <= 60_000, `${due} ms`);
  minutes(world, 1);
  assert.deepEqual([ready(world, 14), isReady(world, 11)], [11, true]);
  minutes(world, 3);
  assert.equal(ready(world, 14), 14);
  assert.equal(world.timers.has("starts"), false, "nobody waits any more");
});

test("who came first starts first, whoever fails meanwhile", () => {
  const world = new World();
  world.put(machines(12, 1));
  world.ended.set(`${world.uidOf(path(1))}@1`, { power: "off", ended: "crashed", phase: "failed" });
  world.settle();
  // After a first failure nothing is waited for; there is just no start left for it.
  assert.equal(world.standing(path(1)), "waiting: waits-its-turn perMinute=1 atOnce=10, before (ended crashed)");
  assert.match(ask(world, 1), /number 3 of 3/);
  minutes(world, 1);
  assert.deepEqual([isReady(world, 11), isReady(world, 12), isReady(world, 1)], [true, false, false]);
  minutes(world, 2);
  assert.deepEqual([isReady(world, 12), isReady(world, 1)], [true, true]);
});

test("who is switched off or deleted leaves the queue to the others", () => {
  const world = new World();
  world.put(machines(13, 1));
  const { shop } = machines(13, 1);
  const { m11: _gone, m12, ...rest } = shop as Record<string, JsonObject>;
  world.put({ shop: { ...rest, m12: { ...m12, "x.desiredState": "off" } } });
  assert.match(ask(world, 13), /number 1 of 1/);
  minutes(world, 1);
  assert.ok(isReady(world, 13));
  assert.equal(world.phase(path(12)), "ready", "as declared: off");
  assert.equal(world.vm(path(12)), null);
});

test("a controller that starts again has not forgotten what was started", () => {
  const world = new World();
  world.crashing = true;
  world.put(machines(13, 1));
  assert.equal(ready(world, 13), 10);
  world.crash();
  world.settle();
  assert.equal(ready(world, 13), 10);
  world.wait(120_000);
  world.crash();
  world.settle();
  assert.equal(ready(world, 13), 12, "what came in meanwhile counts");
});

test("a limit that is raised holds at once; the provider's is no less than the cell's own", () => {
  const world = new World();
  world.put(machines(13, 1));
  world.put(machines(13, 2));
  assert.equal(ready(world, 13), 13);
  const bounded = new World({ startsPerMinute: 1 });
  bounded.put(machines(13, 500));
  assert.equal(ready(bounded, 13), 10);
  assert.match(ask(bounded, 13), /whoever made the cell can raise x\.limits\.vmStartsPerMinute/);
});

test("a limit that is lowered is waited for as at any time, and no start is won by lowering and raising it", () => {
  const world = new World();
  world.put(machines(60, 120));
  assert.equal(ready(world, 60), 60);
  world.put(machines(62, 1));
  assert.equal(ready(world, 62), 60, "60 were taken, and ten are what there is now");
  assert.match(ask(world, 61), /number 1 of 2 in the queue.*within about 60 s/);
  world.crash();
  world.settle();
  minutes(world, 1);
  assert.deepEqual([isReady(world, 61), isReady(world, 62)], [true, false]);
  minutes(world, 1);
  assert.ok(isReady(world, 62));

  const other = new World();
  other.put(machines(25, 3));
  assert.equal(ready(other, 25), 25);
  other.put(machines(26, 1));
  assert.equal(ready(other, 26), 25);
  other.put(machines(40, 3));
  assert.equal(ready(other, 40), 30, "30 at once, as without");
});

test("a child cell hears its rate from its parent, and the root cell's services wait for nothing", () => {
  const grant = { amount: { vms: 99, memoryMiB: 9999, cpus: 99 }, serial: 1, answered: 0, refusal: null };
  const life = { uid: "c1", model: machines(12, null), grant, startsPerMinute: 1, ending: false };
  const child = new World({ child: true });
  const hears = (value: object): void => {
    child.step({ kind: "desired", from: peerName("cell-manager"), key: "life", value: toJson(value) });
    child.settle();
  };
  hears(life);
  assert.equal(ready(child, 12), 10);
  hears({ ...life, startsPerMinute: 2 });
  assert.equal(ready(child, 12), 12);
  const many = 10 * defaultStartsPerMinute;
  assert.ok(many >= 1_000, "a cell of a thousand machines is deployed as a whole");
});

const seed = Number(process.env.CELLS_SEED ?? Math.floor(Math.random() * 2 ** 31));
test("a cell shares its rate with its child cells; one that has no limit gives each what all have", () => {
  const child = (limit: number | null): JsonObject => ({
    "x.type": "CellController",
    "x.cell": { web: { "x.type": "Cell", ...(limit === null ? {} : { "x.limits.vmStartsPerMinute": limit }) } },
  });
  const rates = (options: ConstructorParameters<typeof World>[0], rate: number | null): readonly unknown[] => {
    const world = new World({ cellManager: true, ...options });
    const named = (name: string, limit: number | null): JsonObject => ({ ...child(limit), "x.name": name });
    world.put(machines(0, rate, { a: named("a", 30), b: named("b", null), c: named("c", null) }));
    const told = () =>
      world.documents<DesiredCell>("cell-manager", "cell").map(({ startsPerMinute }) => startsPerMinute);
    const before = told();
    world.put(machines(0, rate, { a: named("a", 1), b: named("b", null), c: named("c", null) }));
    assert.equal(told()[0], 1, "what is changed in x.cell holds from then on");
    return before;
  };
  assert.deepEqual(rates({}, 90), [30, 20, 20], "and 20 are its own");
  assert.deepEqual(rates({ startsPerMinute: 12 }, 90), [12, 1, 1]);
  const half = defaultStartsPerMinute - 30;
  assert.deepEqual(rates({}, null), [30, half / 3, half / 3]);
});

test("property: shares are within the rate, as far as there is one for each", () => {
  const limits = array(option(integer({ min: 1, max: 200 })), { maxLength: 12 });
  property(
    prop(integer({ min: 1, max: 500 }), limits, (rate, all) => {
      const { own, children } = shareOut(rate, all);
      assert.equal(children.length, all.length);
      const sum = children.reduce((total, each) => total + each, own);
      assert.ok(sum <= rate + all.length + 1, `${sum} of ${rate}`);
      all.forEach((limit, index) => {
        const share = children[index] ?? 0;
        assert.ok(share >= 1 && share <= Math.max(1, limit ?? rate));
      });
    }),
    { seed },
  );
});

type Deed = { readonly what: "crash" | "restart" | "wait"; readonly of: number; readonly ms: number };
const deeds = array(
  record<Deed>({
    what: oneof(constant("crash" as const), constant("restart" as const), constant("wait" as const)),
    of: integer({ min: 1, max: 8 }),
    ms: integer({ min: 1, max: 90_000 }),
  }),
  { minLength: 10, maxLength: 60 },
);

test("property: in no stretch of time do more start than the limit allows, and nobody waits for ever", (context) => {
  const rate = 1;
  context.diagnostic(`CELLS_SEED=${seed}`);
  let mostQueued = 0;
  property(
    prop(deeds, (all) => {
      const world = new World();
      const starts: number[] = [];
      const seen = new Map<Uid, number>();
      let ms = 0;
      const note = (): void => {
        for (const { uid, incarnation } of world.state.vms.values()) {
          for (let n = seen.get(uid) ?? 0; n < incarnation; n += 1) starts.push(ms);
          seen.set(uid, incarnation);
        }
        mostQueued = Math.max(mostQueued, world.state.starts.queue.size);
      };
      const pass = (by: number): void => {
        ms += by;
        world.wait(by);
        for (const name of [...world.timers.keys()]) world.fire(name);
        note();
      };
      world.put(machines(8, rate));
      note();
      for (const { what, of, ms: by } of all) {
        const vm = [...world.state.vms.values()][of - 1];
        if (what === "crash" && vm !== undefined && vm.run !== null) {
          world.ended.set(`${vm.uid}@${vm.incarnation}`, { power: "off", ended: "crashed", phase: "failed" });
          world.settle();
        } else if (what === "restart") world.crash();
        else pass(by);
        world.settle();
        note();
      }
      starts.forEach((from, first) => {
        for (let last = first; last < starts.length; last += 1) {
          // The world's own clock goes on by a millisecond with each step.
          const stretchMs = (starts[last] ?? 0) - from + 30_000;
          assert.ok(last - first + 1 <= rate * (10 + stretchMs / 60_000) + 1, `${last - first + 1} in ${stretchMs} ms`);
        }
      });
      for (let each = 0; each < 12; each += 1) pass(60_000);
      assert.equal(ready(world, 8), 8, JSON.stringify(world.phases()));
    }),
    { seed, numRuns: 30 },
  );
  assert.ok(mostQueued > 0, `seed ${seed}: the limit was never met`);
});

const isTimer = (effect: Effect): boolean => effect.kind === "timer" && effect.name === "starts";
test("where the limit is not met, nothing is timed", () => {
  const world = new World();
  world.put(machines(8, null));
  assert.equal(ready(world, 8), 8);
  assert.equal(world.effects.some(isTimer), false);
});
