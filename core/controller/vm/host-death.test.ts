import assert from "node:assert/strict";
import { test } from "node:test";
import { hostName, type PeerName, peerName } from "../../../model/cell/identifiers.ts";
import { type ActualPresenceDeath, presenceKey } from "../../documents/presence.ts";
import type { DesiredConnection, DesiredPlacement } from "../../documents/vocabulary.ts";
import { toJson } from "../../outbox.ts";
import { shownCauses } from "../explain/shown-causes.testing.ts";
import { shop, World } from "../world.testing.ts";

const h1 = peerName("host.h1");
const member = peerName("presence.1");
const death: ActualPresenceDeath = {
  host: hostName("h1"),
  generation: 3,
  incarnation: 0,
  declaredAt: Date.UTC(2026, 10, 21, 20, 40, 7),
  reporters: 3,
};
/** Two of three members say it, unless it is one alone. */
const declare = (world: World, value: object = death, ...by: readonly PeerName[]): void => {
  for (const from of by.length > 0 ? by : [member, peerName("presence.3")])
    world.step({ kind: "actual", from, key: presenceKey.death("h1"), value: toJson(value) });
};
const incarnations = (world: World) =>
  ["shop/web", "shop/db"].map((path) => [path, world.vm(path)?.host, world.vm(path)?.document.incarnation]);

test("what a declared death withdraws is unknown and not stopped: nothing is given away or started elsewhere", () => {
  const world = new World();
  world.put(shop());
  const before = incarnations(world);
  assert.deepEqual(before[0], ["shop/web", "host.h1", 1]);
  const placements = world.documents<DesiredPlacement>("placer", "placement");
  const connections = world.documents<DesiredConnection>("storage-manager", "connection");
  world.withdraw(h1);
  declare(world);
  assert.equal(world.standing("shop/web"), "waiting: host-declared-dead h1 2026-11-21T20:40:07Z");
  world.settle();
  for (const name of [...world.timers.keys()]) world.fire(name);
  assert.deepEqual(incarnations(world), before, "no new incarnation");
  assert.deepEqual(world.documents("placer", "placement"), placements, "its place is kept");
  assert.deepEqual(world.documents("storage-manager", "connection"), connections, "and its leases are");
  const why = world.ask({ method: "WHY-ELEMENT", path: "shop/web" });
  assert.match(JSON.stringify(why.body), /was declared dead at 2026-11-21T20:40:07Z/);
  // The machines went on there: it says so again, in its next generation.
  world.silent.clear();
  declare(world, { ...death, returned: 4 });
  world.settle();
  assert.equal(world.phase("shop/web"), "ready");
  assert.deepEqual(incarnations(world), before, "adopted, not started again");
  assert.ok(
    !world.effects.some(
      (effect) => effect.kind === "log" && effect.event === "vm/stage" && effect.fields.stage === "stopping",
    ),
  );
});

test("one that is to be deleted waits for its dead host, which is said too", () => {
  const world = new World();
  world.put(shop());
  const web = world.uidOf("shop/web");
  world.withdraw(h1);
  declare(world);
  const { web: _web, ...rest } = shop().shop as Record<string, never>;
  const links = Object.fromEntries(
    Object.entries(rest).filter(([, value]) => !JSON.stringify(value).includes("<ref:/shop/web>")),
  );
  const response = world.ask({ method: "PUT", path: "", json: { shop: links }, allowDestroy: ["shop/web"] });
  assert.equal(response.status, 200, JSON.stringify(response.body));
  world.settle();
  const record = world.state.elements.get(web);
  assert.equal(record?.phase, "deleting");
  assert.equal(shownCauses(record?.causes ?? []), "host-declared-dead h1 2026-11-21T20:40:07Z");
  world.silent.clear();
  world.settle();
  assert.equal(world.state.elements.get(web), undefined, "back, and in step: it holds nothing of it any more");
});

test("a death that a host came back from, of a stranger, or of another host is nothing to be said", () => {
  const world = new World();
  world.put(shop());
  declare(world, death, peerName("host.h2"));
  declare(world, { ...death, returned: 4 });
  world.step({ kind: "actual", from: member, key: presenceKey.death("h2"), value: toJson({ ...death, host: "h2" }) });
  declare(world, death, peerName("presence.2"));
  world.silent.add(h1);
  world.settle();
  assert.equal(world.standing("shop/web"), "ready: host-unreachable h1", "any member that knows better counts");
  declare(world, { ...death, generation: 4 }, peerName("presence.2"));
  assert.equal(world.standing("shop/web"), "ready: host-unreachable h1", "one alone makes no declaration");
  declare(world, { ...death, generation: 4 });
  assert.equal(world.standing("shop/web"), "waiting: host-declared-dead h1 2026-11-21T20:40:07Z", "it died again");
});

test("a controller that starts while a host is dead hears of it and takes nothing for stopped", () => {
  const world = new World();
  world.put(shop());
  const before = incarnations(world);
  world.silent.add(h1);
  world.crash();
  declare(world);
  world.settle();
  assert.equal(world.standing("shop/web"), "waiting: host-declared-dead h1 2026-11-21T20:40:07Z");
  assert.deepEqual(incarnations(world), before);
});

/** h1 and h2 in their first boots; all of `shop` is placed at h1. Nothing more is placed there. */
const inBoots = (json = shop()): World => {
  const world = new World();
  world.boots.set(hostName("h1"), 100).set(hostName("h2"), 200);
  world.put(json);
  assert.equal(world.vm("shop/web")?.document.boot, 100);
  world.withdraw(h1);
  declare(world);
  world.hosts.delete(hostName("h1"));
  return world;
};
const fireAll = (world: World): void => {
  world.settle();
  for (const name of [...world.timers.keys()]) world.fire(name);
};

test("a host whose power was off for certain: its machines have ended, and start elsewhere under the same names", () => {
  const world = inBoots();
  fireAll(world);
  assert.deepEqual(world.vm("shop/web")?.document.incarnation, 1, "silence is no end");
  const address = world.vm("shop/web")?.document.interfaces[0]?.address;
  declare(world, { ...death, ended: 99 });
  fireAll(world);
  assert.deepEqual(world.vm("shop/web")?.host, "host.h1", "the end of an earlier boot is none of this one");
  declare(world, { ...death, ended: 100 });
  fireAll(world);
  assert.deepEqual(incarnations(world), [
    ["shop/web", "host.h2", 2],
    ["shop/db", "host.h2", 2],
  ]);
  assert.equal(world.vm("shop/web")?.document.boot, 200);
  assert.equal(world.vm("shop/web")?.document.interfaces[0]?.address, address);
  assert.equal(world.phase("shop/web"), "ready");
  assert.equal(world.documents("host.h1", "vm").length, 0);
  assert.deepEqual(
    world.documents<DesiredConnection>("storage-manager", "connection").map(({ incarnation }) => incarnation),
    [2, 2],
  );
  // Back in its next boot, it is a host like any other, and so is the word about the one before.
  world.silent.clear();
  declare(world, { ...death, ended: 100, returned: 4 });
  fireAll(world);
  assert.deepEqual(incarnations(world)[0], ["shop/web", "host.h2", 2]);
});

test("one that is not to be started again stays off, and says why; one member's word is enough where most are away", () => {
  const { shop: cell = {} } = shop();
  const web = { ...(cell as Record<string, object>).web, "x.restartOnFailure": false };
  const world = inBoots({ shop: { ...(cell as object), web } } as never);
  declare(world, { ...death, ended: 100 }, peerName("presence.2"));
  fireAll(world);
  assert.equal(world.vm("shop/web")?.document.incarnation, 1, "one alone ends nothing while the others could be asked");
  const away = (name: string) => world.silent.add(peerName(name));
  away("presence.1");
  fireAll(world);
  assert.equal(world.vm("shop/web")?.document.incarnation, 1);
  away("presence.3");
  fireAll(world);
  const reason = "the power of its host h1 is known to be off";
  assert.equal(world.standing("shop/web"), "failed: ended host died, not-restarted shop/web");
  assert.equal(world.vm("shop/web"), null);
  assert.equal(world.vm("shop/db")?.host, "host.h2");
  assert.match(JSON.stringify(world.ask({ method: "WHY-ELEMENT", path: "shop/web" }).body), new RegExp(reason));
});

test("what is placed at a host by mistake after its end is placed again, never given to it", () => {
  const world = new World();
  world.boots.set(hostName("h1"), 100).set(hostName("h2"), 200);
  declare(world, { ...death, ended: 100 });
  world.put(shop());
  for (let turn = 0; turn < 3; turn += 1) fireAll(world);
  assert.equal(world.documents("host.h1", "vm").length, 0);
  assert.ok((world.state.vms.get(world.uidOf("shop/web"))?.incarnation ?? 0) > 1, "it was placed there");
  assert.deepEqual(world.state.vms.get(world.uidOf("shop/web"))?.avoid, ["h1"]);
  world.boots.set(hostName("h1"), 101);
  fireAll(world);
  assert.equal(world.vm("shop/web")?.host, "host.h1", "it started again");
});

test("a crash between any two steps changes nothing of that, and a run of unknown boot is left alone", () => {
  const world = inBoots();
  world.crashing = true;
  for (let turn = 0; turn < 4; turn += 1) {
    declare(world, { ...death, ended: 100 });
    fireAll(world);
  }
  assert.equal(world.vm("shop/web")?.host, "host.h2");
  const other = new World();
  other.put(shop());
  other.withdraw(h1);
  declare(other, { ...death, ended: 1e15 });
  fireAll(other);
  assert.equal(other.vm("shop/web")?.host, "host.h1");
});
