import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { hostName } from "../../../model/cell/identifiers.ts";
import { parts, Rivals, type Room } from "../histories/rivals.testing.ts";
import { shop, World } from "../world.testing.ts";
import { holdMs, restMs } from "./all-or-none.ts";

/** Room for two parts of each kind, and for plenty of the others. */
const plenty: Room = { hosts: [5000, 5000], servers: [2000, 2000], pool: "10.64.0.0/20" };
const rooms: Readonly<Record<string, Room>> = {
  hosts: { ...plenty, hosts: [600, 600] },
  storage: { ...plenty, servers: [64, 64] },
  addresses: { ...plenty, pool: "10.64.0.0/28" },
  everything: { hosts: [600, 600], servers: [64, 64], pool: "10.64.0.0/28" },
};
const put = (name: string, deploy = "all-or-none") => ({ method: "PUT", path: "", json: parts(name, 2, deploy) });
/** Repeatable choices from one seed (Lehmer's generator). */
function chooser(seed: number): (many: number) => number {
  let at = (seed % 2_147_483_646) + 1;
  return (many) => {
    at = (at * 48_271) % 2_147_483_647;
    return at % many;
  };
}
const isPartial = (rivals: Rivals, cell: string): boolean => {
  const stages = [...rivals.state(cell).vms.values()].map(({ run }) => run?.stage ?? "none");
  const beyond = stages.filter((stage) => stage !== "none" && stage !== "placing").length;
  return beyond > 0 && beyond < stages.length;
};

/** Lets them race until one of the two has everything; how many timers that took. */
function race(rivals: Rivals, names: readonly string[]): number {
  const never = (): void => {
    for (const name of names) assert.equal(isPartial(rivals, name), false, `${name} runs in part`);
  };
  for (let ticks = 0; ticks < 200; ticks += 1) {
    rivals.settle(never);
    if (names.some((name) => rivals.isComplete(name))) return ticks;
    assert.equal(rivals.tick(), true, "somebody still waits for something");
  }
  throw new Error(`nobody won: ${rivals.events.slice(-20).join("; ")}`);
}

for (const [what, room] of Object.entries(rooms)) {
  test(`property: of two cells that race for the last of ${what}, one gets all of it and the other holds nothing`, () => {
    let raced = 0;
    const numbers = fc.uniqueArray(fc.integer({ min: 1, max: 2 ** 20 }), { minLength: 2, maxLength: 2 });
    fc.assert(
      fc.property(fc.nat(), numbers, (seed, [one = 1, two = 2]) => {
        const rivals = new Rivals(room, { one, two }, chooser(seed));
        for (const name of ["one", "two"]) rivals.ask(name, put(name));
        raced += Number(race(rivals, ["one", "two"]) > 0);
        const [winner = "", loser = ""] = rivals.isComplete("one") ? ["one", "two"] : ["two", "one"];
        // It may be asking just now; it never holds on for longer than its time.
        while (rivals.state(loser).reservation.stage === "asking") {
          assert.equal(rivals.tick(), true);
          rivals.settle();
        }
        assert.deepEqual(rivals.held(loser), []);
        assert.equal(rivals.isComplete(winner), true);
        // What the winner gives up is had by the other, by itself.
        rivals.ask(winner, { method: "DELETE", path: "", allowDestroy: [`${winner}/disk0,${winner}/disk1`] });
        rivals.settle();
        race(rivals, [loser]);
      }),
      { numRuns: 40 },
    );
    assert.ok(raced > 0, "in some of the races each had a part");
  });
}

test("cells whose numbers differ in the last digit alone, or only in a higher one, come apart too", () => {
  for (const [one, two] of [
    [1, 2],
    [16, 32],
    [5, 5 + 16 ** 4],
    [3, 3 + 16],
  ] as const) {
    for (let seed = 0; seed < 5; seed += 1) {
      const rivals = new Rivals(rooms.storage ?? plenty, { one, two }, chooser(seed));
      for (const name of ["one", "two"]) rivals.ask(name, put(name));
      race(rivals, ["one", "two"]);
    }
  }
});

test("also where messages always come in the worst order, which keeps cells that hold out equally long apart for ever", () => {
  const orders = [() => (many: number) => many - 1, () => (many: number) => many >> 1, () => counting()];
  const counting = (): ((many: number) => number) => {
    let at = 0;
    return (many) => at++ % many;
  };
  let raced = 0;
  for (const order of orders) {
    for (const [one, two] of [
      [1, 2],
      [2, 1],
      [1, 17],
      [16 ** 3, 2 * 16 ** 3],
    ] as const) {
      for (const room of Object.values(rooms)) {
        const rivals = new Rivals(room, { one, two }, order());
        for (const name of ["one", "two"]) rivals.ask(name, put(name));
        raced = Math.max(raced, race(rivals, ["one", "two"]));
      }
    }
  }
  assert.ok(raced > 3, "some of them met again and again until their numbers differed");
});

test("five cells race for room for two of them: two get all, three hold nothing half", () => {
  const names = { a: 1, b: 2, c: 3, d: 17, e: 18 };
  const room = { hosts: [600, 600, 600, 600], servers: [64, 64, 64, 64], pool: "10.64.0.0/27" };
  for (let seed = 0; seed < 10; seed += 1) {
    const rivals = new Rivals(room, names, chooser(seed));
    for (const name of Object.keys(names)) rivals.ask(name, put(name));
    const complete = (): number => Object.keys(names).filter((name) => rivals.isComplete(name)).length;
    for (let ticks = 0; complete() < 2; ticks += 1) {
      assert.ok(ticks < 300, "two of them get all");
      rivals.settle(() => {
        for (const name of Object.keys(names)) assert.equal(isPartial(rivals, name), false);
      });
      rivals.tick();
    }
    assert.equal(complete(), 2);
  }
});

test("as-possible is not held back by anything: the control that the room is scarce and that a race leaves halves", () => {
  const rivals = new Rivals(rooms.hosts ?? plenty, { one: 1, two: 2 }, chooser(1));
  for (const name of ["one", "two"]) rivals.ask(name, put(name, "as-possible"));
  rivals.settle();
  assert.equal(
    isPartial(rivals, "one") || isPartial(rivals, "two") || rivals.isComplete("one") !== rivals.isComplete("two"),
    true,
  );
  assert.equal(rivals.isComplete("one") && rivals.isComplete("two"), false);
});

test("the lower digit holds out longer, and cells in step differ at some attempt", () => {
  assert.ok(holdMs(1, 0) > holdMs(2, 0));
  assert.equal(holdMs(1, 0), holdMs(17, 0));
  assert.ok(holdMs(1, 1) > holdMs(17, 1));
  const number = fc.integer({ min: 1, max: 2 ** 32 - 1 });
  fc.assert(
    fc.property(number, number, (a, b) => {
      const differs = Array.from({ length: 8 }, (_, attempt) => holdMs(a, attempt) !== holdMs(b, attempt));
      assert.equal(differs.includes(true), a !== b);
    }),
  );
  assert.deepEqual([0, 1, 2, 3, 9].map(restMs), [10_000, 20_000, 40_000, 60_000, 60_000]);
});

const small = (): World => {
  const world = new World();
  world.hosts.set(hostName("h1"), 1200);
  world.hosts.delete(hostName("h2"));
  world.put(shop({ "x.policy.deploy": "all-or-none" }));
  return world;
};
const held = (world: World): readonly string[] =>
  ["storage-manager", "address-manager", "placer"].flatMap((peer) =>
    ["volume", "subnet", "placement"].flatMap((kind) =>
      world.documents<{ path: string }>(peer, kind).map(({ path }) => path),
    ),
  );

test("what does not fit is given back, said, and asked for again", () => {
  const world = small();
  assert.equal(world.timers.get("all-or-none"), holdMs(7, 0));
  assert.equal(held(world).length, 7);
  world.fire("all-or-none");
  assert.deepEqual(held(world), []);
  assert.equal(world.standing("shop/web"), "waiting: all-or-none resting shop/db seconds=10");
  assert.equal(world.standing("shop/front"), "waiting: all-or-none resting shop/db seconds=10");
  const why = world.ask({ method: "WHY-ELEMENT", path: "shop/web" });
  assert.match(JSON.stringify(why.body), /held up at \\"all or none\\".*make room for shop\/db/);
  assert.equal(world.timers.get("all-or-none"), restMs(0));
  world.fire("all-or-none");
  assert.equal(held(world).length, 7);
  assert.equal(world.timers.get("all-or-none"), holdMs(7, 1));
  world.hosts.set(hostName("h1"), 4096);
  world.settle();
  assert.deepEqual(new Set(Object.values(world.phases())), new Set(["ready"]));
  assert.equal(world.timers.has("all-or-none"), false);
});

test("room that comes while nothing is held is taken at the next attempt", () => {
  const world = small().fire("all-or-none");
  world.hosts.set(hostName("h1"), 4096);
  world.settle();
  assert.equal(world.vm("shop/web"), null);
  world.fire("all-or-none");
  assert.deepEqual(new Set(Object.values(world.phases())), new Set(["ready"]));
});

test("a change that adds to a cell that runs gives back only what it added", () => {
  const world = new World();
  world.put(shop({ "x.policy.deploy": "all-or-none" }));
  const before = held(world).length;
  const extra = { "x.type": "VM", "x.memory": 9000 };
  const disk = { "x.type": "Volume", "x.size": 10 };
  world.put(shop({ "x.policy.deploy": "all-or-none", extra, disk }));
  assert.equal(held(world).length, before + 2);
  assert.equal(world.phase("shop/web"), "ready");
  world.fire("all-or-none");
  assert.equal(held(world).length, before);
  assert.equal(world.phase("shop/web"), "ready");
  assert.equal(world.standing("shop/disk"), "waiting: all-or-none resting shop/extra seconds=10");
  world.put(shop({ "x.policy.deploy": "as-possible", extra, disk }));
  assert.equal(world.phase("shop/disk"), "ready");
  assert.equal(world.timers.has("all-or-none"), false);
});

test("a volume that a running VM got is not given back", () => {
  const world = new World();
  world.put(shop({ "x.policy.deploy": "all-or-none" }));
  const disk = { "x.type": "Volume", "x.size": 10 };
  const link = { "x.type": "VolumeConnection", "x.vm": "<ref:/shop/web>", "x.volume": "<ref:/shop/disk>" };
  const extra = { "x.type": "VM", "x.memory": 9000 };
  world.put(shop({ "x.policy.deploy": "all-or-none", web: { "x.type": "VM", "x.memory": 1000 }, disk, link, extra }));
  assert.equal(world.phase("shop/link"), "ready");
  world.fire("all-or-none");
  assert.equal(world.phase("shop/disk"), "ready");
  assert.equal(world.phase("shop/web"), "ready");
  assert.equal(world.standing("shop/extra"), "waiting: all-or-none resting shop/extra seconds=10");
});

test("a crash anywhere, also after everything was given back, changes nothing of the end", () => {
  const world = small();
  world.crashing = true;
  world.crash();
  world.settle();
  world.fire("all-or-none");
  assert.deepEqual(held(world), []);
  world.crash();
  world.settle();
  assert.deepEqual(held(world), [], "it rests, since it cannot know for how long it did");
  assert.equal(world.timers.get("all-or-none"), restMs(0));
  world.hosts.set(hostName("h1"), 4096);
  world.fire("all-or-none");
  assert.deepEqual(new Set(Object.values(world.phases())), new Set(["ready"]));
});

test("deleting a cell whose deployment waits leaves nothing, at any stage", () => {
  for (const fires of [0, 1]) {
    const world = small();
    for (let count = 0; count < fires; count += 1) world.fire("all-or-none");
    assert.equal(world.ask({ method: "DELETE", path: "" }).status, 200);
    world.settle();
    assert.equal(world.state.elements.size, 0);
    assert.equal(world.timers.has("all-or-none"), false);
  }
});

test("property: whatever crashes, timers, changes of policy and of room come before, a cell has everything once there is room", () => {
  const commands = fc.array(fc.constantFrom("crash", "room", "no room", "possible", "all", "timer"), { maxLength: 14 });
  let resting = 0;
  fc.assert(
    fc.property(fc.boolean(), commands, (crashing, list) => {
      const world = small();
      world.crashing = crashing;
      for (const command of list) {
        if (command === "crash") world.crash();
        else if (command === "room" || command === "no room")
          world.hosts.set(hostName("h1"), command === "room" ? 4096 : 1200);
        else if (command === "timer") {
          if (world.timers.has("all-or-none")) world.fire("all-or-none");
        } else world.put(shop({ "x.policy.deploy": command === "all" ? "all-or-none" : "as-possible" }));
        world.settle();
        resting += Number(world.state.reservation.stage === "resting");
      }
      world.hosts.set(hostName("h1"), 4096);
      world.settle();
      for (let tries = 0; tries < 3 && world.timers.has("all-or-none"); tries += 1) world.fire("all-or-none");
      assert.deepEqual(new Set(Object.values(world.phases())), new Set(["ready"]));
      assert.equal(world.timers.has("all-or-none"), false);
    }),
    { numRuns: 60 },
  );
  assert.ok(resting > 0, "in some runs everything was given back");
});
