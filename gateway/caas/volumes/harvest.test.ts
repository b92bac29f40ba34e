import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import type { JsonObject } from "../../../model/json/json.ts";
import { RefusedError, refused } from "../../requests/refused.ts";
import { type Answer, CaasWorld } from "./caas.testing.ts";
import { usersIn } from "./harvest.ts";
import { createWaiting, type Waiting } from "./waiting.ts";

const people = {
  ann: { account: "ROOT/acme/dev", cells: ["shop"] },
  amy: { account: "ROOT/acme/dev", role: "reader", cells: ["shop"] },
  bob: { account: "ROOT/bank/core", cells: ["bank"] },
} as const;
const disk = { "x.type": "Volume", "x.size": 64 };
const shop = {
  shop: { "x.type": "Cell", "x.name": "shop", db: { disk, log: disk, vm: { "x.type": "VM", "x.memory": 64 } } },
};
const withWorld = async (work: (world: CaasWorld) => Promise<void>): Promise<void> => {
  const world = new CaasWorld(people, "shop", "bank");
  world.cell("shop").put(shop);
  try {
    await work(world);
  } finally {
    await world.end();
  }
};
const said = ({ status, json }: Answer): string =>
  `${status} ${String(((json.error ?? {}) as JsonObject).message ?? "")}`;
const from = (path = "shop/db/disk", cell = "shop") => ({ name: "golden", from: { cell, path } });
const grants = (world: CaasWorld): JsonObject => {
  const { body } = world.cell("shop").ask({ method: "GET", path: "shop" });
  return Object.fromEntries(Object.entries(body as JsonObject).filter(([name]) => name.startsWith("harvest-")));
};

test("a volume of a cell is harvested: a copy in the primary cell, and a grant that holds it until that is made", () =>
  withWorld(async (world) => {
    const key = { "idempotency-key": "once" };
    const made = await world.ask("ann", "POST /volumes", from(), key);
    assert.equal(made.status, 201, said(made));
    const { uid } = made.json;
    const group = world.volumes()[String(uid)] as JsonObject;
    assert.deepEqual(group.v1, {
      "x.type": "VolumeCopy",
      "x.image": "<ref://shop.cells.internal/shop/db/disk>",
      "x.public": true,
    });
    assert.deepEqual(grants(world), {
      [`harvest-${uid}-v1`]: {
        "x.type": "VolumeGrant",
        "x.volume": "<ref:/shop/db/disk>",
        "x.grant": "copy",
        "x.cell": "<ref://primary.cells.internal/>",
        "x.hold": `primary/volumes/${uid}/v1`,
      },
    });
    assert.deepEqual(
      world.asked,
      ["PATCH shop dry", "PATCH primary", "PATCH primary", "PATCH shop", "PATCH primary"],
      "planned, then the copy first, and that all is done at last",
    );
    // The cell may go at once, with nothing named: what is held is not lost.
    const gone = world.cell("shop").ask({ method: "DELETE", path: "" });
    assert.equal(gone.status, 200, JSON.stringify(gone.body));
    const another = await world.ask("ann", `POST /volumes/${uid}/versions`, {
      from: { cell: "shop", path: "shop/db/log" },
    });
    assert.equal(another.status, 404, "what is not there is not harvested");
    const again = await world.ask("ann", "POST /volumes", from(), key);
    assert.deepEqual([again.status, again.json.uid], [201, uid], "and what was made before is there");
  }));

test("it is harvested by who may change its cell, from where it is, and nothing is left of what is refused", () =>
  withWorld(async (world) => {
    for (const [who, body, why] of [
      ["bob", from(), /^404 there is no cell "shop"/],
      ["amy", from(), /^403/],
      ["ann", from("shop/db/none"), /^404/],
      ["ann", from("shop/db/vm"), /^400 shop\/db\/vm is no volume of the cell shop/],
      ["ann", from("shop/db"), /^400 shop\/db is no volume/],
      ["ann", from("shop/../primary/volumes"), /^400 from names a cell/],
      ["ann", from("shop/db/disk>", "shop"), /^400 from names a cell/],
      ["ann", from("shop/db/disk", "primary/volumes"), /^400 from names a cell/],
      ["ann", { ...from(), from: { cell: "shop" } }, /^400 from names a persistent volume/],
      ["ann", { ...from(), from: { cell: "shop", path: "shop/db/disk", version: 1 } }, /^400 from names/],
      ["ann", { ...from(), image: "debian" }, /^400 a volume is of an image or from another one/],
      ["ann", { ...from(), access: "ro" }, /^400 a copy is writable/],
      ["ann", { name: "empty" }, /^400 an empty volume, or one of an image, needs a sizeMiB/],
    ] as const) {
      assert.match(said(await world.ask(who, "POST /volumes", body)), why);
      assert.deepEqual([world.volumes(), grants(world)], [{}, {}]);
    }
    // A right that ends in between: what was made is taken back.
    const { ann } = world.people;
    let isOut = false;
    world.behind = (what) => {
      if (what === "PATCH primary" && !isOut && Object.keys(world.volumes()).length === 1) {
        isOut = true;
        world.people.ann = { account: "ROOT/acme/dev", cells: [] };
      }
    };
    assert.match(said(await world.ask("ann", "POST /volumes", from())), /^404 there is no cell "shop"/);
    assert.deepEqual([world.volumes(), grants(world)], [{}, {}]);
    const whole = ann ?? assert.fail();
    world.people.ann = whole;
    const { json } = await world.ask("ann", "POST /volumes", from());
    isOut = false;
    assert.equal((await world.ask("ann", `POST /volumes/${json.uid}/versions`, { from: from().from })).status, 404);
    world.people.ann = whole;
    const { json: now } = await world.ask("ann", `GET /volumes/${json.uid}`);
    assert.deepEqual([now.version, (now.versions as JsonObject[]).length], [1, 1], "a version as well");
  }));

/** Before or behind a step: either the process ends, or the gateway says that it had no answer. */
const [ended, unanswered] = [new Error("killed"), refused(502, "unreachable", "its controller does not answer")];
const breaks = [
  ["before", ended],
  ["behind", ended],
  ["behind", unanswered],
] as const;

test("whatever breaks at whichever step: asked for again it is whole, and the cell's volume was never lost", async () => {
  for (const [when, lost] of breaks)
    for (let step = 1; step <= 11; step += 1)
      await withWorld(async (world) => {
        const key = { "idempotency-key": "k" };
        let at = 0;
        world[when] = () => {
          at += 1;
          // From here on nobody is reached.
          if (at >= step) throw lost;
        };
        await world.ask("ann", "POST /volumes", from(), key);
        world[when] = () => undefined;
        await world.restart();
        const held = Object.keys(grants(world)).length;
        const copies = Object.keys(world.volumes()).length;
        assert.ok(held <= copies, `${when} ${step}: a grant holds for a copy that is there`);
        const again = await world.ask("ann", "POST /volumes", from(), key);
        assert.equal(again.status, 201, `${when} ${step}: ${said(again)}`);
        assert.deepEqual([Object.keys(world.volumes()).length, Object.keys(grants(world)).length], [1, 1]);
      });
});

test("who uses a volume is found by what elements name", () => {
  const uid = "pv-00000000-0000-4000-8000-000000000000";
  const named = (version: string) => `<ref://primary.cells.internal/primary/volumes/${uid}/${version}>`;
  const model = {
    shop: {
      web: { disk: { "x.type": "VolumeConnection", "x.volume": named("v2"), "x.vm": "<ref:../vm>" } },
      copy: { "x.type": "VolumeCopy", "x.image": named("v1") },
      other: { "x.type": "VolumeCopy", "x.image": "<ref://primary.cells.internal/primary/volumes/pv-1/v1>" },
      note: named("v1"),
    },
  };
  assert.deepEqual(usersIn(new Map([["shop", model]]), uid), ["shop: shop/copy", "shop: shop/web/disk"]);
});

test("a cell that is harvested and does not answer holds up nobody else", async () => {
  for (const silent of ["GET shop", "PATCH shop dry", "PATCH shop"])
    await withWorld(async (world) => {
      const { promise, resolve } = Promise.withResolvers<void>();
      let asked = false;
      world.before = (what) => {
        if (what !== silent) return;
        asked = true;
        return promise;
      };
      const his = world.ask("ann", "POST /volumes", from());
      while (!asked) await sleep(1);
      const other = await Promise.race([
        world.ask("bob", "POST /volumes", { name: "data", sizeMiB: 1 }),
        sleep(2000, null, { ref: false }),
      ]);
      resolve();
      assert.equal(other?.status, 201, silent);
      assert.equal((await his).status, 201, silent);
    });
});

test("the grant of a harvest is taken back once the copy is there, whatever breaks meanwhile, and by who may", async () => {
  const at = "shop.cells.internal/shop/db/disk";
  const harvested = async (world: CaasWorld): Promise<string> => {
    const { json } = await world.ask("ann", "POST /volumes", from());
    return String(json.uid);
  };
  const there = (world: CaasWorld): void => {
    const shows = { kind: "volume", type: "Volume", sizeMiB: 64, server: "s1" };
    world.cell("primary").shown.set(at, { uid: "b-7", shows } as never);
    world.cell("primary").settle();
  };
  const marked = (world: CaasWorld, uid: string): boolean => "v1-held" in (world.volumes()[uid] as JsonObject);
  await withWorld(async (world) => {
    const uid = await harvested(world);
    const read = (who: string) => world.ask(who, `GET /volumes/${uid}`);
    const { json } = await read("ann");
    assert.notEqual((json.versions as JsonObject[])[0]?.phase, "ready");
    assert.deepEqual(
      [Object.keys(grants(world)), marked(world, uid)],
      [[`harvest-${uid}-v1`], true],
      "it is not there",
    );
    there(world);
    world.before = (what) => {
      if (what === "PATCH shop") throw new Error("silent");
    };
    assert.equal((await read("ann")).status, 200, "a cell that is silent is asked another time");
    world.before = () => undefined;
    assert.equal(marked(world, uid), true);
    assert.equal((await read("amy")).status, 200);
    assert.equal(Object.keys(grants(world)).length, 1, "who only reads takes nothing back");
    assert.equal(((await read("ann")).json.versions as JsonObject[])[0]?.phase, "ready");
    assert.deepEqual([grants(world), marked(world, uid)], [{}, false]);
    const { body } = world.cell("shop").ask({ method: "GET", path: "shop/db/disk" });
    assert.deepEqual(body, disk, "its origin stays as it is");
    const asked = world.asked.length;
    assert.equal((await read("ann")).status, 200);
    assert.equal(world.asked.length, asked, "and once");
  });
  // What somebody wrote under that name holds for another copy, and is his.
  await withWorld(async (world) => {
    const uid = await harvested(world);
    const path = `/shop/harvest-${uid}-v1/x.hold`;
    const patch = [{ op: "add", path, value: "primary/other" }];
    assert.equal(world.cell("shop").ask({ method: "PATCH", path: "", patch }).status, 200);
    there(world);
    assert.equal((await world.ask("ann", `GET /volumes/${uid}`)).status, 200);
    assert.deepEqual([Object.keys(grants(world)).length, marked(world, uid)], [1, false]);
  });
  for (const [when, lost] of breaks)
    for (let step = 1; step <= 4; step += 1)
      await withWorld(async (world) => {
        const uid = await harvested(world);
        there(world);
        let steps = 0;
        world[when] = () => {
          steps += 1;
          if (steps >= step) throw lost;
        };
        await world.ask("ann", `GET /volumes/${uid}`);
        world[when] = () => undefined;
        await world.restart();
        assert.equal((await world.ask("ann", `GET /volumes/${uid}`)).status, 200);
        assert.deepEqual([grants(world), marked(world, uid)], [{}, false], `${when} ${step}`);
      });
});

test("what was done under a key is answered as it is, whatever has become of the cell it is from", () =>
  withWorld(async (world) => {
    const key = { "idempotency-key": "k" };
    const first = await world.ask("ann", "POST /volumes", from(), key);
    assert.equal(first.status, 201, said(first));
    world.before = (what) => {
      if (what.endsWith("shop") || what.endsWith("dry")) throw refused(502, "unreachable", "silent");
    };
    const asked = world.asked.length;
    const again = await world.ask("ann", "POST /volumes", from(), key);
    assert.deepEqual([again.status, again.json], [201, first.json], said(again));
    assert.equal(world.asked.length, asked, "and nothing is changed");
    const other = await world.ask("ann", "POST /volumes", from("shop/db/log"), key);
    assert.match(said(other), /^422 this Idempotency-Key was used for another request/);
    // A clone as well, whose origin is gone.
    const { uid } = first.json;
    const clone = { name: "clone", from: { volume: uid } };
    const made = await world.ask("ann", "POST /volumes", clone, { "idempotency-key": "c" });
    assert.equal(made.status, 201, said(made));
    world.people.ann = { account: "ROOT/acme/dev", cells: [] };
    const cloned = await world.ask("ann", "POST /volumes", clone, { "idempotency-key": "c" });
    assert.deepEqual([cloned.status, cloned.json.uid], [201, made.json.uid]);
    assert.equal((await world.ask("ann", "POST /volumes", from(), key)).status, 201, "a cell that is his no more");
  }));

test("so many requests of one person wait for cells that do not answer, and nobody else is held up", () =>
  withWorld(async (world) => {
    const { promise, resolve } = Promise.withResolvers<void>();
    let waiting = 0;
    world.before = (what) => {
      if (what !== "GET shop") return;
      waiting += 1;
      return promise;
    };
    const add = (at: number) => world.ask("ann", "POST /volumes", { ...from(), name: `golden-${at}` });
    const his = Array.from({ length: 4 }, (_, at) => add(at));
    while (waiting < 4) await sleep(1);
    const one = await Promise.race([add(5), sleep(2000, null, { ref: false })]);
    assert.match(one === null ? "it waits as well" : said(one), /^429 4 requests of yours wait for cells already/);
    assert.equal(one?.headers["retry-after"], "1");
    const gone = await world.ask("ann", "POST /volumes", { name: "data", sizeMiB: 1 });
    assert.equal(gone.status, 201, "what asks no cell is done");
    assert.equal((await world.ask("ann", `GET /volumes/${gone.json.uid}`)).status, 200);
    const bank = { "x.type": "Cell", "x.name": "bank", db: { disk } };
    world.cell("bank").put({ bank });
    const others = await world.ask("bob", "POST /volumes", from("bank/db/disk", "bank"));
    assert.equal(others.status, 201, said(others));
    resolve();
    for (const each of await Promise.all(his)) assert.equal(each.status, 201, said(each));
    assert.equal((await add(6)).status, 201, "the places are free again");
  }));

test("of all together so many wait for cells, and a request gives its place back once", () => {
  const waitingOf = createWaiting({ inAll: 3, ofOne: 2 });
  const takes = (waiting: Waiting): string => {
    try {
      waiting.take();
      return "taken";
    } catch (error) {
      return error instanceof RefusedError ? String(error.statusCode) : "?";
    }
  };
  const [one, two, three] = ["ann", "ann", "ann"].map(waitingOf) as [Waiting, Waiting, Waiting];
  const [bob, eve] = [waitingOf("bob"), waitingOf("eve")];
  assert.deepEqual([one, one, two, three, bob, eve].map(takes), ["taken", "taken", "taken", "429", "taken", "503"]);
  one.leave();
  one.leave();
  assert.deepEqual([three, eve].map(takes), ["taken", "503"]);
  bob.leave();
  assert.equal(takes(eve), "taken");
});
