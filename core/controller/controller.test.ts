import assert from "node:assert/strict";
import { test } from "node:test";
import { hostName, peerName } from "../../model/cell/identifiers.ts";
import type { JsonObject } from "../../model/json/json.ts";
import type { DesiredConnection, DesiredName, DesiredPlacement } from "../documents/vocabulary.ts";
import { execTarget } from "./requests/session-requests.ts";
import type { ControllerState } from "./state.ts";
import { shop, World, written } from "./world.testing.ts";

const cellOf = (document: JsonObject): JsonObject => document.shop as JsonObject;
const withVm = (name: "web" | "db", changes: JsonObject): JsonObject =>
  shop({ [name]: { ...(cellOf(shop())[name] as JsonObject), ...changes } });

test("a cell is made in the order of its dependencies, and then everything is ready", () => {
  const world = new World();
  world.put(shop());
  assert.deepEqual(new Set(Object.values(world.phases())), new Set(["ready"]));
  const desires = world.effects.flatMap((effect) =>
    effect.kind === "desire" && effect.value !== null ? [effect.key.split("/")[0]] : [],
  );
  const first = (kind: string): number => desires.indexOf(kind);
  assert.ok(first("subnet") >= 0 && first("volume") >= 0);
  assert.ok(first("volume") < first("placement"));
  assert.ok(first("subnet") < first("name"));
  assert.ok(first("placement") < first("connection"));
  assert.ok(first("connection") < first("policy"));
  assert.ok(first("policy") < first("vm"));
  const web = world.vm("shop/web")?.document;
  assert.equal(web?.incarnation, 1);
  assert.equal(web?.interfaces[0]?.address, "10.64.0.2");
  assert.equal(web?.interfaces[0]?.mac, "02:ce:0a:40:00:02");
  assert.equal(web?.interfaces[0]?.nameServer, "10.0.3.1");
  assert.equal(web?.interfaces[0]?.prefixLength, 29);
  assert.deepEqual(
    world.documents<DesiredName>("dns-manager", "name").map(({ name }) => name),
    ["web.shop.cells.internal", "db.shop.cells.internal"],
  );
});

test("what is ready again changes nothing", () => {
  const world = new World();
  world.put(shop());
  const before = world.effects.length;
  world.put(shop());
  const after = world.effects.slice(before).filter((effect) => effect.kind !== "reply");
  assert.deepEqual(after, []);
});

test("a crash after every step ends the same", () => {
  const steady = new World();
  const crashing = new World();
  crashing.crashing = true;
  for (const world of [steady, crashing]) world.put(shop());
  assert.deepEqual(crashing.phases(), steady.phases());
  assert.deepEqual(crashing.desired, steady.desired);
  for (const world of [steady, crashing]) world.put(withVm("db", { "x.memory": 1500 }));
  assert.deepEqual(crashing.desired, steady.desired);
  assert.equal(crashing.vm("shop/db")?.document.incarnation, 2);
  assert.equal(crashing.vm("shop/web")?.document.incarnation, 1);
  for (const world of [steady, crashing]) {
    world.ask({ method: "DELETE", path: "", allowDestroy: written });
    world.settle();
    const summary = world.ask({ method: "SUMMARY" }).body as JsonObject;
    assert.equal(summary.empty, true);
    assert.ok([...world.desired.values()].every((documents) => documents.size === 0));
    assert.ok([...world.records.keys()].every((key) => !key.startsWith("element/") && !key.startsWith("vm/")));
  }
});

test("after a restart nothing is logged again and nothing is taken down before peers have spoken", () => {
  const world = new World();
  world.put(shop());
  const before = structuredClone(world.desired);
  const count = world.effects.length;
  world.crash();
  assert.deepEqual(world.desired, before);
  world.settle();
  assert.deepEqual(world.desired, before);
  assert.deepEqual(
    world.effects.slice(count).filter(({ kind }) => kind !== "subscribe"),
    [],
  );
});

test("a VM that crashes is started again at once, then after a back-off that doubles, once its host confirmed the end", () => {
  const world = new World();
  world.put(shop());
  const web = world.uidOf("shop/web");
  world.ended.set(`${web}@2`, { phase: "failed", reason: "killed by signal 9", power: "off", ended: "crashed" });
  world.ended.set(`${web}@1`, { phase: "failed", reason: null, power: "off", ended: "crashed" });
  world.settle();
  assert.equal(world.vm("shop/web"), null);
  assert.equal(world.standing("shop/web"), "waiting: ended crashed, backs-off seconds=1 failures=2");
  assert.deepEqual(
    world.documents<DesiredPlacement>("placer", "placement").map(({ path }) => path),
    ["shop/db"],
  );
  assert.deepEqual([...world.timers], [[`retry/${web}`, 1_000]]);
  world.ended.set(`${web}@3`, { phase: "failed", reason: null, power: "off", ended: "exited" });
  world.fire(`retry/${web}`);
  assert.deepEqual([...world.timers], [[`retry/${web}`, 2_000]]);
  world.fire(`retry/${web}`);
  assert.equal(world.phase("shop/web"), "ready");
  assert.equal(world.vm("shop/web")?.document.incarnation, 4);
  const connection = world.documents<DesiredConnection>("storage-manager", "connection").find(({ vm }) => vm === web);
  assert.equal(connection?.incarnation, 4);
  assert.equal(world.vm("shop/db")?.document.incarnation, 1);
  const { lastEnd } = stateOf(world, "shop/web");
  assert.deepEqual(lastEnd, { incarnation: 3, how: "exited", reason: null });
  world.wait(300_000);
  world.ended.set(`${web}@4`, { phase: "failed", reason: null, power: "off", ended: "crashed" });
  world.settle();
  assert.equal(world.vm("shop/web")?.document.incarnation, 5, "five minutes of running start the back-off anew");
});

const stateOf = (world: World, path: string): JsonObject =>
  (world.ask({ method: "GET", path, state: true }).body as JsonObject).$state as JsonObject;
const probed = { "x.liveness.protocol": "icmp", "x.liveness.intervalMs": 500 };
const silent = { phase: "failed", reason: "did not answer 3 ICMP probes in a row", health: "silent" } as const;

test("a VM whose host was switched off comes back as it was, whatever x.restartOnFailure says", () => {
  const world = new World();
  world.put(withVm("web", { "x.restartOnFailure": false }));
  const web = world.uidOf("shop/web");
  world.ended.set(`${web}@1`, { power: "off", ended: "stopped", phase: "ready", reason: "its host was switched off" });
  world.settle();
  assert.equal(world.vm("shop/web")?.document.incarnation, 2);
  assert.equal(world.phase("shop/web"), "ready");
  world.ended.set(`${web}@2`, { power: "off", ended: "crashed", phase: "failed", reason: "killed" });
  world.settle();
  assert.equal(world.vm("shop/web"), null, "what crashed stays off");
});

test("a VM that runs but does not answer is stopped, and started again once its host confirmed the end", () => {
  const world = new World();
  world.put(withVm("web", probed));
  const web = world.uidOf("shop/web");
  const liveness = { protocol: "icmp", port: null, intervalMs: 500, failures: 3 };
  assert.deepEqual(world.vm("shop/web")?.document.liveness, liveness);
  assert.equal(world.vm("shop/db")?.document.liveness, undefined);
  world.put(withVm("web", { ...probed, "x.liveness.interface": "<ref:/shop/webCard>" }));
  assert.equal(world.vm("shop/web")?.document.liveness?.interface, world.uidOf("shop/webCard"));
  assert.equal(world.vm("shop/web")?.document.incarnation, 1, "it changes while it runs");
  world.slowStops.add(hostName("h1"));
  world.ended.set(`${web}@1`, silent);
  world.settle();
  assert.equal(world.vm("shop/web"), null, "its host is to stop it");
  assert.equal(world.standing("shop/web"), "working: stops h1, before (ended silent)");
  assert.equal(world.documents<DesiredConnection>("storage-manager", "connection").length, 2, "it may still write");
  world.slowStops.clear();
  world.settle();
  assert.equal(world.vm("shop/web")?.document.incarnation, 2);
  assert.equal(world.phase("shop/web"), "ready");
  assert.deepEqual(stateOf(world, "shop/web").lastEnd, { incarnation: 1, how: "silent", reason: silent.reason });
  // Each time again: it never was well for long.
  world.ended.set(`${web}@2`, silent);
  world.settle();
  assert.deepEqual([...world.timers], [[`retry/${web}`, 1_000]]);
});

test("a silent VM is left as it is without x.restartOnFailure, and when its host is not reachable", () => {
  const world = new World();
  world.put(withVm("web", { ...probed, "x.restartOnFailure": false }));
  const web = world.uidOf("shop/web");
  world.ended.set(`${web}@1`, silent);
  world.settle();
  assert.equal(world.standing("shop/web"), "failed: said host.h1, silent-left");
  assert.equal(stateOf(world, "shop/web").health, "silent");
  world.silent.add(peerName("host.h1"));
  world.settle();
  world.put(withVm("web", probed));
  assert.equal(world.vm("shop/web")?.document.incarnation, 1, "what was said before the host was lost is no news");
  world.silent.clear();
  world.settle();
  assert.equal(world.vm("shop/web")?.document.incarnation, 2);
});

test("a reboot of the guest is one event and no new incarnation", () => {
  const world = new World();
  world.put(shop());
  const web = world.uidOf("shop/web");
  world.ended.set(`${web}@1`, { reboots: 2 });
  world.settle();
  world.crash();
  world.settle();
  const events = world.effects.filter((effect) => effect.kind === "log" && effect.event === "vm/rebooted");
  assert.equal(events.length, 1);
  assert.equal(world.vm("shop/web")?.document.incarnation, 1);
  assert.equal(stateOf(world, "shop/web").reboots, 2);
  assert.equal(world.phase("shop/web"), "ready");
});

test("a controller that starts again during a back-off waits once more", () => {
  const world = new World();
  world.put(shop());
  const web = world.uidOf("shop/web");
  for (const incarnation of [2, 1])
    world.ended.set(`${web}@${incarnation}`, { phase: "failed", reason: null, power: "off", ended: "crashed" });
  world.settle();
  world.crash();
  world.settle();
  assert.equal(world.vm("shop/web"), null);
  world.fire(`retry/${web}`);
  assert.equal(world.phase("shop/web"), "ready");
});

test("without x.restartOnFailure a VM that ends has failed, until a change touches it", () => {
  const world = new World();
  world.put(withVm("web", { "x.restartOnFailure": false }));
  world.ended.set(`${world.uidOf("shop/web")}@1`, { phase: "failed", power: "off", ended: "exited" });
  world.settle();
  assert.equal(world.standing("shop/web"), "failed: ended exited, not-restarted shop/web");
  world.put(withVm("web", { "x.restartOnFailure": false, "x.memory": 512 }));
  assert.equal(world.phase("shop/web"), "ready");
});

test("a start that fails is tried again with its reason shown", () => {
  const world = new World();
  world.hosts.delete(hostName("h2"));
  world.put(shop());
  const db = world.uidOf("shop/db");
  for (const incarnation of [2, 1])
    world.ended.set(`${db}@${incarnation}`, { phase: "failed", reason: "h1 has 12 MiB left", power: "off" });
  world.settle();
  assert.equal(world.standing("shop/db"), "waiting: ended not started, backs-off seconds=1 failures=2");
  const refuser = (world.state.vms.get(db)?.avoid ?? [])[0];
  assert.ok(refuser);
  const avoided = () => {
    const asked = world.documents<DesiredPlacement>("placer", "placement").find(({ path }) => path === "shop/db");
    return asked === undefined ? "not asked" : asked.avoid;
  };
  assert.equal(avoided(), "not asked");
  world.silent.add(peerName("placer"));
  world.fire(`retry/${db}`);
  assert.deepEqual(avoided(), [refuser], "another host is asked for first");
  world.silent.delete(peerName("placer"));
  world.crash();
  world.settle();
  assert.equal(world.phase("shop/db"), "ready");
  assert.equal(avoided(), undefined, "once it runs, every host is as good as another");
  world.fire(`retry/${db}`);
  assert.equal(world.phase("shop/db"), "ready");
});

test("a host is short of memory, each says so, and when there is room the VM starts", () => {
  const world = new World();
  world.hosts.set(hostName("h1"), 1200);
  world.hosts.set(hostName("h2"), 1000);
  world.put(shop());
  assert.equal(world.standing("shop/db"), "waiting: no-host h1 memory+h2 memory");
  assert.equal(world.phase("shop/web"), "ready");
  assert.equal(world.standing("shop/dbCard"), "waiting: waits-for shop/db");
  world.hosts.set(hostName("h2"), 4096);
  world.settle();
  assert.equal(world.phase("shop/db"), "ready");
  assert.equal(world.vm("shop/db")?.host, "host.h2");
});

test("all-or-none: no VM goes beyond its placement until there is a host for each", () => {
  const world = new World();
  world.hosts.set(hostName("h1"), 1200);
  world.hosts.delete(hostName("h2"));
  world.put(shop({ "x.policy.deploy": "all-or-none" }));
  assert.equal(world.vm("shop/web"), null);
  assert.equal(world.standing("shop/web"), "waiting: all-or-none asking shop/db");
  world.hosts.set(hostName("h1"), 4096);
  world.settle();
  assert.deepEqual(new Set(Object.values(world.phases())), new Set(["ready"]));
});

test("a VM waits for its volume and says why", () => {
  const world = new World();
  world.silent.add(peerName("storage-manager"));
  world.put(shop());
  world.slowVolumes.add(world.uidOf("shop/golden"));
  world.silent.clear();
  world.settle();
  assert.equal(world.standing("shop/web"), "waiting: waits-for shop/webDisk (said storage-manager)");
  world.slowVolumes.clear();
  world.settle();
  assert.equal(world.phase("shop/web"), "ready");
});

test("switched off: the host confirms before the volumes and the place are released", () => {
  const world = new World();
  world.put(shop());
  world.slowStops.add(hostName("h1"));
  world.put(withVm("web", { "x.desiredState": "off" }));
  assert.equal(world.vm("shop/web"), null);
  assert.equal(world.standing("shop/web"), "working: stops h1");
  assert.equal(world.documents("storage-manager", "connection").length, 2);
  assert.equal(world.documents("placer", "placement").length, 2);
  world.slowStops.clear();
  world.settle();
  assert.equal(world.phase("shop/web"), "ready");
  assert.equal(world.documents("storage-manager", "connection").length, 1);
  assert.equal(world.documents("placer", "placement").length, 1);
});

test("a host that is not reachable is no host that has stopped", () => {
  const world = new World();
  world.put(shop());
  world.silent.add(peerName("host.h1"));
  world.settle();
  assert.equal(world.standing("shop/web"), "ready: host-unreachable h1");
  world.fire("lost/host.h1");
  assert.equal(world.standing("shop/web"), "waiting: host-unreachable h1 unknown=true");
  world.ask({ method: "DELETE", path: "", allowDestroy: written });
  world.settle();
  world.crash();
  world.settle();
  assert.equal((world.ask({ method: "SUMMARY" }).body as JsonObject).empty, false);
  assert.equal(world.documents("storage-manager", "connection").length, 2);
  const seen = world.ask({ method: "GET", path: "shop/web", state: true }).body as JsonObject;
  const { phase, reason } = seen.$state as JsonObject;
  assert.deepEqual([seen["x.type"], phase, reason], ["VM", "deleting", "host h1 is not reachable"]);
  assert.equal(world.ask({ method: "GET", path: "shop/web" }).status, 404, "in the model it is no more");
  world.silent.clear();
  world.settle();
  assert.equal((world.ask({ method: "SUMMARY" }).body as JsonObject).empty, true);
  assert.equal(world.ask({ method: "GET", path: "", state: true }).status, 404);
});

test("a change of a rule reaches the policy alone, and no VM document but by its audience", () => {
  const world = new World();
  world.hosts.set(hostName("h1"), 2048);
  world.put(shop());
  assert.deepEqual([world.vm("shop/web")?.host, world.vm("shop/db")?.host], ["host.h1", "host.h2"]);
  assert.deepEqual(world.vm("shop/web")?.document.interfaces[0]?.audience, ["h2"]);
  const version = world.policy("host.h1")?.version ?? 0;
  const before = world.effects.length;
  world.put(shop({ toDb: { ...(cellOf(shop()).toDb as JsonObject), "x.port2": 5433 } }));
  const desired = world.effects.slice(before).flatMap((effect) => (effect.kind === "desire" ? [effect.key] : []));
  assert.deepEqual([...new Set(desired)], ["policy/shop"]);
  assert.equal(world.policy("host.h1")?.version, version + 1);
  assert.deepEqual(world.policy("host.h1"), world.policy("host.h2"));
  const { toDb: _, ...rest } = cellOf(shop());
  world.put({ shop: rest });
  assert.deepEqual(world.vm("shop/web")?.document.interfaces[0]?.audience, []);
  assert.equal(world.vm("shop/web")?.document.incarnation, 1);
});

test("a volume leaves only when no incarnation has it any more", () => {
  const world = new World();
  world.put(shop());
  world.slowStops.add(hostName("h1"));
  const { dbDisk: _disk, dbBoot: _boot, ...rest } = cellOf(shop());
  world.put({ shop: rest }, written);
  assert.equal(world.documents("storage-manager", "volume").length, 3);
  world.slowStops.clear();
  world.settle();
  assert.equal(world.documents("storage-manager", "volume").length, 2);
  assert.equal(world.vm("shop/db")?.document.incarnation, 2);
  assert.deepEqual(world.vm("shop/db")?.document.disks, []);
});

test("fixed addresses are honoured, and those of others are never given away", () => {
  const world = new World();
  const back = { "x.type": "Subnet", "x.size": 8, "x.cidr": "10.64.0.8/29", "x.addressRange": "internal" };
  const card = (more: JsonObject): JsonObject => ({ ...(cellOf(shop()).dbCard as JsonObject), ...more });
  const other = card({ "x.vm": "<ref:/shop/web>", "x.vifName": "other" });
  world.put(shop({ aCard: other, back, dbCard: card({ "x.address": "10.64.0.10", "x.mac": "02:00:00:00:00:07" }) }));
  assert.equal(world.vm("shop/db")?.document.interfaces[0]?.address, "10.64.0.10");
  assert.equal(world.vm("shop/db")?.document.interfaces[0]?.mac, "02:00:00:00:00:07");
  assert.equal(
    world.vm("shop/web")?.document.interfaces.find(({ hostName: name }) => name === "other")?.address,
    "10.64.0.11",
  );
});

test("a subnet that is full says so, and gives a freed address to who waits", () => {
  const world = new World();
  const cards = Object.fromEntries(
    [1, 2, 3, 4].map((n) => [`more${n}`, { ...(cellOf(shop()).dbCard as JsonObject), "x.vifName": `more${n}` }]),
  );
  world.put(shop({ ...cards, db: { ...(cellOf(shop()).db as JsonObject), "x.desiredState": "off" } }));
  assert.equal(world.phase("shop/dbCard"), "ready");
  const more5 = { ...(cellOf(shop()).dbCard as JsonObject), "x.vifName": "more5" };
  world.put(shop({ ...cards, more5 }));
  assert.equal(world.standing("shop/more5"), "waiting: subnet-full shop/back 10.64.0.8/29");
  assert.equal(world.standing("shop/db"), "waiting: waits-for shop/more5 (subnet-full shop/back 10.64.0.8/29)");
  const { more2: _, ...fewer } = cards;
  world.put(shop({ ...fewer, more5 }));
  assert.equal(world.phase("shop/db"), "ready");
});

test("what is asked of a controller is answered or refused with a reason", () => {
  const world = new World();
  assert.equal(world.ask({ method: "GET", path: "" }).status, 404);
  const wrong = world.ask({ method: "PUT", path: "", json: { a: { "x.type": "Cell", "x.name": "other" } } });
  assert.equal(wrong.status, 400);
  assert.match(JSON.stringify(wrong.body), /cell/);
  const dry = world.ask({ method: "PUT", path: "", json: shop(), dryRun: true });
  assert.deepEqual([dry.status, dry.version, (dry.body as JsonObject).dryRun], [200, 0, true]);
  assert.equal(world.state.elements.size, 0);
  assert.equal(world.put(shop()).version, 1);
  assert.equal(world.put(shop()).version, 1, "what is already so makes no new version");
  assert.equal(world.ask({ method: "PUT", path: "shop/web", json: {}, ifMatch: 9 }).status, 412);
  assert.equal(world.ask({ method: "DELETE", path: "shop/nothing" }).status, 404);
  const dangling = world.ask({ method: "DELETE", path: "shop/webDisk" });
  assert.equal(dangling.status, 400);
  const web = { ...(cellOf(shop()).web as JsonObject), "x.memory": 768 };
  assert.equal(world.ask({ method: "PUT", path: "shop/web", json: web }).status, 200);
  world.settle();
  assert.equal(world.vm("shop/web")?.document.memoryMiB, 768);
  const part = world.ask({ method: "GET", path: "shop/web", state: true }).body as JsonObject;
  const { since, ...state } = part.$state as JsonObject;
  assert.match(String(since), /^2023-11-14T22:13:2\d\.\d{3}Z$/);
  assert.deepEqual(state, {
    phase: "ready",
    reason: null,
    uid: world.uidOf("shop/web"),
    host: "h1",
    incarnation: 2,
    power: "on",
    reachability: "ok",
  });
  const summary = world.ask({ method: "SUMMARY" }).body;
  const phases = { ready: 12 };
  const services = { placer: 1, storageManager: 1 };
  assert.deepEqual(summary, { cell: "shop", version: 2, phases, elements: 12, services, waiting: [], empty: false });
  const target = world.ask({ method: "EXEC-TARGET", vm: "web" }).body;
  assert.deepEqual(target, { path: "shop/web", host: "h1", uid: world.uidOf("shop/web"), incarnation: 2 });
  assert.equal(world.ask({ method: "EXEC-TARGET", vm: "shop/front" }).status, 404);
  const forwarded = { method: "EXEC-TARGET", vm: "web", forwards: true } as const;
  const refused = world.ask(forwarded);
  assert.deepEqual([refused.status, (refused.body as { error?: { code: string } }).error?.code], [403, "forbidden"]);
  assert.match(JSON.stringify(refused.body), /`x.policy.forward true` in it does/);
  world.put(shop({ web, "x.policy.forward": true }));
  assert.deepEqual(world.ask(forwarded).body, target, "and nothing of the cell is made anew for it");
  const ends = world.ask({ method: "WHY-ENDS", from: "shop/web", to: "shop/dbCard" }).body as JsonObject;
  assert.deepEqual(ends.to, { path: "shop/dbCard", address: "10.64.0.10", vm: "shop/db", host: "h1" });
  assert.ok(Object.values(ends.rules as JsonObject).includes("shop/toDb"));
  assert.equal(world.ask({ method: "NONSENSE" }).status, 400);
});

test("what an incarnation has said is asked for where it ran, whatever runs now", () => {
  const world = new World();
  world.put(shop());
  const uid = world.uidOf("shop/web");
  for (const memory of [768, 896, 1024, 1152])
    world.put(shop({ web: { ...(cellOf(shop()).web as JsonObject), "x.memory": memory } }));
  assert.equal(world.vm("shop/web")?.document.incarnation, 5);
  const ask = (incarnation: number) => world.ask({ method: "EXEC-TARGET", vm: "web", incarnation });
  assert.deepEqual(ask(5).body, { path: "shop/web", host: "h1", uid, incarnation: 5 }, "the one that runs, as ever");
  assert.deepEqual(ask(4).body, { path: "shop/web", host: "h1", uid, incarnation: 4, former: true });
  assert.equal(ask(2).status, 200);
  const why = (incarnation: number): string => JSON.stringify(ask(incarnation).body);
  assert.deepEqual([ask(1).status, ask(6).status], [404, 404]);
  assert.match(why(1), /where incarnation 1 of shop\/web ran is not known any more; `cells events`/);
  const told = world.effects.flatMap((effect) =>
    effect.kind === "log" && effect.event === "vm/stage" && effect.fields.incarnation === 1 ? [effect.fields] : [],
  );
  assert.ok(told.some(({ path, stage, host }) => path === "shop/web" && stage === "stopping" && host === "h1"));
  assert.match(why(6), /shop\/web has had no incarnation 6 yet: the newest is 5/);
  world.put(shop({ web: { ...(cellOf(shop()).web as JsonObject), "x.desiredState": "off" } }));
  assert.equal(ask(4).status, 200, "one that is off now, too");
});

test("a renamed element keeps its identity and is not started again", () => {
  const world = new World();
  world.put(shop());
  const before = world.uidOf("shop/webCard");
  const { webCard, ...rest } = cellOf(shop());
  world.put({ shop: { ...rest, card: { ...(webCard as JsonObject), "x.movedFrom": "shop/webCard" } } });
  assert.equal(world.uidOf("shop/card"), before);
  assert.equal(world.vm("shop/web")?.document.incarnation, 1);
});

test("the name of an interface is public where the interface is, or its VM", () => {
  const world = new World();
  const isPublic = (): readonly unknown[] =>
    world.documents<DesiredName>("dns-manager", "name").map((document) => document.public ?? false);
  world.put(shop());
  assert.deepEqual(isPublic(), [false, false]);
  const card = cellOf(shop()).dbCard as JsonObject;
  world.put(
    shop({ dbCard: { ...card, "x.public": true }, web: { ...(cellOf(shop()).web as JsonObject), "x.public": true } }),
  );
  assert.deepEqual(isPublic(), [true, true]);
  world.put(shop());
  assert.deepEqual(isPublic(), [false, false]);
});

test("a port of a VM is reached where its cell says so, and in the root cell never", () => {
  const world = new World();
  world.put(shop({ "x.policy.forward": true }));
  const reached = execTarget(world.state, "web", { forwards: true });
  assert.equal(reached.ok && reached.value.path, "shop/web");
  const root = { ...world.state, options: { ...world.state.options, cell: "root" } } as ControllerState;
  const refused = execTarget(root, "web", { forwards: true });
  assert.equal(!refused.ok && refused.error.status, 403);
  assert.match(refused.ok ? "" : refused.error.message, /nothing is forwarded to its services/);
  assert.equal(execTarget(root, "web").ok, true, "a console there is another matter");
  for (const said of [undefined, false]) {
    world.put(shop(said === undefined ? {} : { "x.policy.forward": said }));
    const none = execTarget(world.state, "web", { forwards: true });
    assert.equal(!none.ok && none.error.status, 403, String(said));
  }
});

test("a display is reached where a VM has one, and its host is told to give it one", () => {
  const world = new World();
  world.put(shop());
  const refused = world.ask({ method: "EXEC-TARGET", vm: "web", displays: true });
  assert.equal(refused.status, 409);
  assert.match(JSON.stringify(refused.body), /shop\/web has no display: `x.display \\"vga\\"` in it gives it one/);
  assert.equal(world.vm("shop/web")?.document.display, undefined);
  world.put(shop({ web: { ...(cellOf(shop()).web as JsonObject), "x.display": "vga" } }));
  assert.equal(world.vm("shop/web")?.document.display, "vga");
  assert.equal(world.vm("shop/web")?.document.incarnation, 2);
  assert.equal(world.ask({ method: "EXEC-TARGET", vm: "web", displays: true }).status, 200);
});
