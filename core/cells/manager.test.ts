import assert from "node:assert/strict";
import { test } from "node:test";
import { cellName, ipv4, peerName, uid } from "../../model/cell/identifiers.ts";
import type { Json } from "../../model/json/json.ts";
import { type DesiredLife, lifeKey } from "../documents/cells.ts";
import { toJson } from "../outbox.ts";
import { instancesIn } from "./binding.ts";
import { controllerElements, controllersIn } from "./controller-vm.ts";
import { service, shop, World, web } from "./manager.testing.ts";
import type { FoundController } from "./work.ts";

test("a child cell is made, told its first model, and taken away only when its controller says that nothing is left", () => {
  const world = new World().want("s-1", "web.shop");
  assert.deepEqual(
    world.work().map(({ controller, cellNumber, state }) => [controller, cellNumber, state]),
    [[web, 100, "run"]],
  );
  assert.equal(world.cell("s-1")?.phase, "working");
  world.report({ kind: "made", uid: uid("s-1"), address: ipv4("10.0.4.1") }).says({});
  assert.equal(world.cell("s-1")?.phase, "ready");
  assert.equal(world.cell("s-1")?.address, "10.0.4.1");
  assert.equal(world.life()?.ending, false);
  // It is empty, and nobody has told it to end yet: that is no word that counts.
  world.says({ empty: false }).want("s-1", null);
  assert.equal(world.life()?.ending, true);
  assert.equal(world.cell("s-1")?.phase, "deleting");
  world.restart();
  assert.equal(world.life()?.ending, true);
  assert.equal(world.work()[0]?.state, "run");
  world.says({ phase: "deleting", empty: true });
  assert.equal(world.life(), undefined);
  assert.equal(world.work()[0]?.state, "run", "its tombstone is still on its way");
  world.restart();
  world.step({ kind: "released", peer: web, key: lifeKey });
  assert.equal(world.work()[0]?.state, "end");
  world.restart().report({ kind: "ended", uid: uid("s-1") });
  assert.equal(world.cell("s-1"), undefined);
  assert.deepEqual(world.work(), []);
  assert.deepEqual([...world.records.keys()], ["numbers"]);
  // No number is given twice.
  world.report({ kind: "found", controllers: [] });
  world.want("s-2", "web.shop");
  assert.equal(world.work()[0]?.cellNumber, 101);
});

test("a name is that of the cell that had it first, until it is gone; a child is below its parent", () => {
  const world = new World().want("s-1", "web.shop").want("s-2", "web.shop");
  assert.match(world.cell("s-2")?.reason ?? "", /the name web\.shop is that of another child cell \(s-1\)/);
  world.want("s-1", null);
  assert.match(world.cell("s-2")?.reason ?? "", /waits until the former cell web\.shop is gone/);
  world.report({ kind: "made", uid: uid("s-1"), address: ipv4("10.0.4.1") }).says({ empty: true });
  world.step({ kind: "released", peer: web, key: lifeKey });
  world.report({ kind: "ended", uid: uid("s-1") });
  assert.deepEqual(
    world.work().map((each) => each.uid),
    ["s-2"],
  );
  world
    .want("s-3", "web.bank")
    .want("s-4", "shop")
    .want("s-5", "x.y.shop")
    .want("s-2", "web.bank", peerName("controller.bank"));
  assert.deepEqual(
    world.work().map((each) => each.uid),
    ["s-2"],
  );
  assert.ok(!service.accepts(peerName("host.h1"), "cell/s-1"));
});

test("the root cell's children are named by their label alone, and none like itself", () => {
  const root = peerName("controller.root");
  const world = new World().want("r-1", "shop", root).want("r-2", "root", root).want("r-3", "x.root", root);
  world.want("s-1", "root.shop").want("s-2", "shop");
  assert.deepEqual(
    world.work().map(({ controller, answers }) => [controller, answers]),
    [
      ["controller.shop", false],
      ["controller.root.shop", false],
    ],
  );
  world.step({ kind: "reachable", peer: shop, reachable: true });
  assert.equal(world.work()[0]?.answers, true);
  world.step({ kind: "reachable", peer: shop, reachable: false });
  assert.equal(world.work()[0]?.answers, false);
});

test("a controller that cannot be made, or does not answer, is told to its parent", () => {
  const world = new World().want("s-1", "web.shop");
  world.report({ kind: "failed", uid: uid("s-1"), reason: "no host has room" });
  assert.equal(world.cell("s-1")?.reason, "its controller could not be made: no host has room");
  world.report({ kind: "making", uid: uid("s-1") });
  assert.equal(world.cell("s-1")?.reason, "its controller is being made");
  world.report({ kind: "made", uid: uid("s-1"), address: ipv4("10.0.4.1") }).says({});
  world.step({ kind: "reachable", peer: web, reachable: false });
  assert.equal(world.cell("s-1")?.reason, "its controller does not answer");
});

test("a cell is bound once: to whom it asks for, to its parent's, or to those with the fewest cells", () => {
  const root = peerName("controller.root");
  const world = new World();
  const bound = () => Object.fromEntries(world.work().map(({ cell, services }) => [cell, services]));
  world.want("r-1", "one", root);
  assert.deepEqual(bound(), { one: { placer: 1, storageManager: 1 } });
  const instances = instancesIn(["placer", "placer.2", "placer.x", "storage-manager", "storage-manager.2", "host.h1"]);
  assert.deepEqual(instances, { placer: [1, 2], storageManager: [1, 2], haManager: [] });
  world.report({ kind: "instances", instances });
  world
    .want("r-2", "two", root)
    .want("r-3", "three", root, { services: { placer: 1 } })
    .want("r-4", "four", root);
  // A child goes with its parent, unless it says otherwise; nothing that is bound follows a change.
  const two = peerName("controller.two");
  world
    .want("t-1", "a.two", two)
    .want("t-2", "b.two", two, { services: { storageManager: 1 } })
    .want("r-2", "two", root, { services: { placer: 1 } });
  const all = {
    one: { placer: 1, storageManager: 1 },
    two: { placer: 2, storageManager: 2 },
    three: { placer: 1, storageManager: 2 },
    four: { placer: 2, storageManager: 1 },
    "a.two": { placer: 2, storageManager: 2 },
    "b.two": { placer: 2, storageManager: 1 },
  };
  assert.deepEqual(bound(), all);
  world.restart();
  assert.deepEqual(bound(), all);
  assert.deepEqual(world.cell("t-2", two)?.services, all["b.two"]);
});

test("whoever asks for a service that is not there is told which there are, and is made once it is", () => {
  const root = peerName("controller.root");
  const world = new World().report({
    kind: "instances",
    instances: { placer: [1, 2], storageManager: [1], haManager: [1] },
  });
  world.want("r-1", "one", root, { services: { placer: 3 } });
  assert.equal(world.cell("r-1", root)?.phase, "failed");
  assert.equal(
    world.cell("r-1", root)?.reason,
    "its x.services.placer asks for Placer 3, which there is not: there are 1, 2",
  );
  assert.deepEqual(world.work(), []);
  // Where nobody is known yet, the first will come: a cloud begins with it.
  world.report({ kind: "instances", instances: { placer: [1, 2, 3], storageManager: [], haManager: [] } });
  assert.deepEqual(world.work()[0]?.services, { placer: 3, storageManager: 1 });
});

test("a child hears what its parent lets it have open, and of whom it may ask for names outside", () => {
  const bound = { internet: "none" as const, resolvers: [ipv4("10.0.0.9")] };
  const world = new World().want("s-1", "web.shop", shop, { bound });
  const root = peerName("controller.root");
  world.want("r-1", "shop", root, { bound });
  const life = () => world.desired.get("controller.shop/life") as unknown as DesiredLife | undefined;
  assert.deepEqual(life()?.bound, bound);
  world.want("r-1", "shop", root);
  assert.equal(life()?.bound, undefined);
});

test("a child hears how many machines it may start in a minute, and that this is over", () => {
  const root = peerName("controller.root");
  const world = new World().want("r-1", "shop", root, { startsPerMinute: 4 });
  const life = () => world.desired.get("controller.shop/life") as unknown as DesiredLife | undefined;
  assert.equal(life()?.startsPerMinute, 4);
  world.want("r-1", "shop", root);
  assert.equal(life() !== undefined && "startsPerMinute" in (life() ?? {}), false);
});

test("only the root cell lets a child be the way in, and the child hears where until it has ended", () => {
  const gateway = "10.0.0.40";
  const world = new World().want("s-1", "web.shop", shop, { gateway });
  assert.deepEqual([world.cell("s-1"), world.work()], [undefined, []]);
  const root = peerName("controller.root");
  world.want("r-1", "primary", root, { gateway });
  const life = () => world.desired.get("controller.primary/life") as unknown as DesiredLife | undefined;
  assert.equal(life()?.gateway, gateway);
  world.want("r-1", null, root);
  assert.deepEqual([life()?.ending, life()?.gateway], [true, gateway]);
  world.want("r-2", "shop", root);
  assert.equal((world.desired.get("controller.shop/life") as unknown as DesiredLife).gateway, undefined);
});

const found = (id: string, cell: string, cellNumber: number): FoundController => ({
  uid: uid(id),
  cell: cellName(cell),
  cellNumber,
  services: { placer: 2, storageManager: 1 },
});

test("a Cell Manager without its store makes no cell before it has heard which there are, and each keeps its number", () => {
  const world = new World().want("s-1", "web.shop").want("s-2", "db.shop").want("s-1", null);
  world.lose();
  assert.deepEqual(world.work(), []);
  assert.deepEqual(
    [world.cell("s-2")?.phase, world.cell("s-2")?.reason],
    ["waiting", "waits until the root cell's controller has said which cells there are"],
  );
  world.want("s-3", "mail.shop").report({ kind: "found", controllers: [found("s-2", "db.shop", 101)] });
  const [db, mail] = world.work();
  assert.deepEqual([db?.uid, db?.cellNumber, db?.services], ["s-2", 101, { placer: 2, storageManager: 1 }]);
  assert.equal(mail?.uid, "s-3");
  assert.ok(Number(mail?.cellNumber) > 102, "one that has ended since had a number as well");
  // It knows them all by now, and nothing is left out a second time.
  const next = Number(mail?.cellNumber) + 1;
  world.restart().want("s-4", "new.shop");
  world.report({ kind: "found", controllers: [found("s-2", "db.shop", 101)] });
  assert.equal(world.work().at(-1)?.cellNumber, next);
});

test("a cell that was found stays as it is until its parent says something of it", () => {
  const controllers = [found("s-1", "web.shop", 7), found("r-1", "shop", 3)];
  const world = new World().report({ kind: "found", controllers });
  assert.deepEqual(
    world.work().map(({ uid: id, cellNumber, state }) => [id, cellNumber, state]),
    [
      ["s-1", 7, "run"],
      ["r-1", 3, "run"],
    ],
  );
  world.says({ phase: "ready" });
  assert.deepEqual(world.life(), undefined, "what it was told before, it has");
  assert.equal(world.cell("s-1")?.phase, "waiting");
  assert.equal(world.cell("r-1", peerName("controller.root"))?.phase, "waiting");
  world.restart().report({ kind: "found", controllers }).says({});
  assert.equal(world.life(), undefined);
  world.want("s-1", "web.shop", peerName("controller.bank"));
  assert.equal(world.life(), undefined, "it is nobody else's");
  world.want("s-1", "web.shop");
  assert.equal(world.life()?.ending, false);
  assert.equal(world.work()[0]?.cellNumber, 7);
});

test("a cell that was found, and that its parent does not know any more, ends when an operator says so", () => {
  const controllers = [found("s-1", "web.shop", 7)];
  const world = new World().report({ kind: "found", controllers }).says({ phase: "ready" });
  const named = () => service.unclaimed?.(world.state).get(shop) ?? [];
  world.want("s-9", "web.shop");
  assert.match(world.cell("s-9")?.reason ?? "", /`cells orphans end cell-manager controller\.shop cell\/s-1`/);
  assert.deepEqual(named(), ["cell/s-1"]);
  world.step({ kind: "ended", peer: peerName("controller.bank"), keys: ["cell/s-1"] });
  assert.equal(world.life(), undefined, "it is nobody else's");
  world.step({ kind: "ended", peer: shop, keys: ["cell/s-1", "cell/s-9"] });
  assert.equal(world.life()?.ending, true);
  assert.deepEqual(named(), []);
  world.restart().report({ kind: "found", controllers }).says({ phase: "deleting", empty: true });
  world.step({ kind: "released", peer: web, key: lifeKey });
  assert.equal(world.work()[0]?.state, "end");
  world.report({ kind: "ended", uid: uid("s-1") });
  assert.deepEqual(
    world.work().map(({ uid: id, state }) => [id, state]),
    [["s-9", "run"]],
  );
});

test("nobody but its parent has a word in a cell that was found, whoever named its UID before that was known", () => {
  const bank = peerName("controller.bank");
  const controllers = [found("s-1", "web.shop", 7)];
  for (const ending of [{ ending: true }, {}]) {
    const world = new World().want("s-1", "web.shop").says({});
    world.clients.clear();
    world.lose().want("s-1", "x.bank", bank, ending).report({ kind: "found", controllers }).says({});
    assert.equal(world.life(), undefined);
    assert.equal(world.cell("s-1")?.phase, "waiting");
    assert.equal(world.cell("s-1", bank), undefined);
    world.want("s-1", null, bank).want("s-1", "web.shop");
    assert.equal(world.life()?.ending, false);
    assert.equal(world.cell("s-1")?.phase, "working");
  }
  // Its parent speaks after the other one, and before it is known whose it is.
  const world = new World().lose().want("s-1", "x.bank", bank).want("s-1", "web.shop");
  world.report({ kind: "found", controllers });
  assert.equal(world.life()?.ending, false);
});

test("a cell that was found is stored where the previous version does not take it for one that is to end", () => {
  const controllers = [found("s-1", "web.shop", 7)];
  const world = new World().report({ kind: "found", controllers });
  assert.deepEqual([...world.records.keys()].sort(), ["found/s-1", "numbers"]);
  world.want("s-1", "web.shop");
  assert.deepEqual([...world.records.keys()].sort(), ["cell/s-1", "numbers"]);
  // The previous version has made a record of its own, beside the one that it does not know.
  const other = new World().report({ kind: "found", controllers });
  const [record] = [...other.records.values()].filter((value) => JSON.stringify(value).includes("web.shop"));
  const { unclaimed: _unclaimed, ...claimed } = record as { readonly unclaimed: true };
  const address = "10.0.4.1";
  other.records.set("cell/s-1", toJson({ ...claimed, stage: "ending", address }));
  other.restart().report({ kind: "found", controllers });
  assert.equal(other.work()[0]?.state, "end");
  other.report({ kind: "ended", uid: uid("s-1") });
  assert.deepEqual([...other.records.keys()], ["numbers"]);
});

test("a child is said to be ending until it has ended, also to a Cell Manager that has lost its store", () => {
  const world = new World()
    .want("s-1", "web.shop")
    .report({ kind: "made", uid: uid("s-1"), address: ipv4("10.0.4.1") });
  world.says({}).want("s-1", "web.shop", shop, { ending: true });
  assert.equal(world.life()?.ending, true);
  world.lose();
  assert.equal(world.cell("s-1")?.ended, false, "it may be there");
  world.report({ kind: "found", controllers: [found("s-1", "web.shop", 100)] }).says({ phase: "deleting" });
  assert.equal(world.life()?.ending, true);
  assert.equal(world.cell("s-1")?.ended, false);
  world.says({ phase: "deleting", empty: true });
  world.step({ kind: "released", peer: web, key: lifeKey });
  assert.equal(world.work()[0]?.state, "end");
  world.report({ kind: "ended", uid: uid("s-1") });
  assert.equal(world.cell("s-1")?.ended, true);
  assert.deepEqual(world.work(), []);
  world.lose().report({ kind: "found", controllers: [] });
  assert.equal(world.cell("s-1")?.ended, true, "nothing is made to be ended");
  world.want("s-1", null);
  assert.equal(world.cell("s-1"), undefined);
});

test("a name is that of the cell whose controller is there, whatever an older store says", () => {
  const world = new World().want("s-1", "web.shop");
  world.restart().report({ kind: "found", controllers: [found("s-9", "web.shop", 140)] });
  assert.deepEqual(
    world.work().map(({ uid: id, cellNumber }) => [id, cellNumber]),
    [["s-9", 140]],
  );
  assert.match(world.cell("s-1")?.reason ?? "", /the name web\.shop is that of a former child cell \(s-9/);
});

test("a cell that its parent does not know any more is given back to it when an operator says so", () => {
  const controllers = [found("s-1", "web.shop", 7), found("r-1", "shop", 3)];
  const world = new World().report({ kind: "found", controllers });
  const adopt = (key = "cell/s-1", client = shop): Json | undefined => {
    world.step({ kind: "request", id: 9, request: { kind: "adopt", client, key } });
    return world.answers.at(-1);
  };
  assert.match(String(adopt()), /desires no child cell web\.shop that could be this one/);
  assert.match(String(adopt("cell/s-2")), /no child cell cell\/s-2/);
  world.want("s-40", "web.shop");
  assert.match(world.cell("s-40")?.reason ?? "", /cells orphans adopt/);
  assert.match(String(adopt("cell/s-1", peerName("controller.bank"))), /no child cell/);
  assert.equal(world.cell("s-40")?.is, undefined);
  assert.equal(adopt(), null);
  assert.equal(world.cell("s-40")?.is, "s-1");
  world.restart().report({ kind: "found", controllers });
  assert.equal(world.cell("s-40")?.is, "s-1", "the word is durable");
  world.want("s-1", "web.shop").want("s-40", null);
  assert.deepEqual([world.work()[0]?.cellNumber, world.life()?.ending], [7, false]);
  world.want("s-41", "web.shop");
  assert.equal(world.cell("s-41")?.is, undefined, "it counted once");
  world.want("s-1", null);
  assert.match(String(adopt()), /being ended already/);
});

test("that a cell is off is handed on to its controller, and that it is no more", () => {
  const world = new World().want("s-1", "web.shop", shop, { off: true });
  world.report({ kind: "made", uid: uid("s-1"), address: ipv4("10.0.4.1") }).says({});
  assert.equal(world.life()?.off, true);
  world.want("s-1", "web.shop");
  assert.equal(world.life()?.off, undefined);
});

test("the first HA Manager looks after new cells only as long as there is no further one", () => {
  const root = peerName("controller.root");
  const world = new World();
  const guard = (cell: string) => world.work().find((each) => each.cell === cell)?.services.haManager;
  const report = (...peers: readonly string[]) => world.report({ kind: "instances", instances: instancesIn(peers) });
  report("placer", "storage-manager", "ha-manager");
  world.want("r-1", "one", root);
  report("placer", "storage-manager", "ha-manager", "ha-manager.2", "ha-manager.3");
  for (const [index, cell] of ["two", "three", "six", "seven", "eight"].entries())
    world.want(`r-1${index}`, cell, root);
  world.want("r-4", "four", root, { services: { haManager: 1 } });
  world.want("t-1", "a.two", peerName("controller.two")).want("t-2", "a.one", peerName("controller.one"));
  const all = Object.fromEntries(world.work().map(({ cell, services }) => [cell, services.haManager ?? 1]));
  assert.deepEqual(all, { one: 1, two: 2, three: 3, six: 2, seven: 3, eight: 2, four: 1, "a.two": 2, "a.one": 1 });
  world.want("r-5", "five", root, { services: { haManager: 7 } });
  assert.match(
    world.cell("r-5", root)?.reason ?? "",
    /its x.services.haManager asks for HA Manager 7, which there is not: there are 1, 2, 3/,
  );
  world.restart();
  assert.deepEqual(["one", "two", "three"].map(guard), [undefined, 2, 3]);
});

test("the mode of a cell's networks is its own for good, also where its record is lost", () => {
  const root = peerName("controller.root");
  const world = new World();
  world.report({ kind: "instances", instances: instancesIn(["placer", "storage-manager"]) });
  world.want("r-1", "one", root, { services: { networkMode: "EDGE" } }).want("r-2", "two", root);
  const modes = () => Object.fromEntries(world.work().map(({ cell, services }) => [cell, services.networkMode]));
  assert.deepEqual(modes(), { one: "EDGE", two: undefined });
  world
    .want("r-1", "one", root, { services: { networkMode: "MANAGED" } })
    .want("t-1", "web.one", peerName("controller.one"));
  assert.deepEqual(modes(), { one: "EDGE", two: undefined, "web.one": undefined });
  world.restart();
  assert.equal(modes().one, "EDGE");
  const [one] = world.work();
  assert.ok(one !== undefined);
  const elements = controllerElements(one, "one", ipv4("10.0.3.2"));
  const [found] = controllersIn({ one: elements });
  assert.equal(found?.services.networkMode, "EDGE");
  const lost = new World();
  lost.report({ kind: "found", controllers: found === undefined ? [] : [found] });
  assert.equal(lost.work()[0]?.services.networkMode, "EDGE");
});

test("a cell that ends is told what its pools have now, and nothing once its parent does not know it any more", () => {
  const pools = (vms: readonly string[]) => ({ pools: [{ uid: uid("s-1-5"), reason: null, vms: vms.map(uid) }] });
  const world = new World().want("s-1", "web.shop", shop, pools(["s-1-9"]));
  world.report({ kind: "made", uid: uid("s-1"), address: ipv4("10.0.4.1") }).says({});
  world.want("s-1", "web.shop", shop, { ...pools([]), ending: true });
  assert.deepEqual([world.life()?.ending, world.life()?.pools], [true, pools([]).pools]);
  world.want("s-1", "web.shop", shop, { ending: true });
  assert.deepEqual([world.life()?.ending, world.life()?.pools], [true, undefined], "all is given back");
  const byHand = new World().want("s-1", "web.shop", shop, pools(["s-1-9"]));
  byHand.report({ kind: "made", uid: uid("s-1"), address: ipv4("10.0.4.1") }).says({});
  byHand.want("s-1", null);
  assert.deepEqual([byHand.life()?.ending, byHand.life()?.pools], [true, undefined]);
});
