import assert from "node:assert/strict";
import { test } from "node:test";
import type { RefusalKind } from "../../../model/cause/cause.ts";
import { elementPath, hostName, peerName, serverName } from "../../../model/cell/identifiers.ts";
import type { Json, JsonObject } from "../../../model/json/json.ts";
import { isObject } from "../../outbox.ts";
import { shop, World } from "../world.testing.ts";
import { shownWithState } from "./shown.ts";

/** Everything at a path of what is shown of the whole cell, by paths. */
function* partsOf(json: Json, path: string): Generator<readonly [path: string, json: Json]> {
  if (path !== "") yield [path, json];
  for (const [name, value] of isObject(json) ? Object.entries(json) : [])
    yield* partsOf(value, path === "" ? name : `${path}/${name}`);
}
function assertPartsAreOfTheWhole(world: World): number {
  const whole = shownWithState(world.state, "");
  assert.ok(whole?.ok);
  const parts = [...partsOf(whole.value, "")];
  for (const [path, json] of parts) {
    const part = shownWithState(world.state, path);
    assert.deepEqual(part?.ok && part.value, json, path);
  }
  return parts.length;
}
const vm: JsonObject = { "x.type": "VM", "x.memory": 256 };

test("a part is shown as it is in the whole: elements, groups, attributes and states, also of what leaves the model", () => {
  const world = new World();
  world.put(shop({ group: { one: vm, two: vm } }));
  const stays = assertPartsAreOfTheWhole(world);
  for (const peer of ["host.h1", "host.h2", "storage-manager"]) world.silent.add(peerName(peer));
  world.put(shop({ group: { two: vm } }));
  assert.ok(world.state.indexes.deleting.size > 0);
  assertPartsAreOfTheWhole(world);
  world.put({ shop: { "x.type": "Cell", "x.name": "shop" } }, ["shop/webDisk", "shop/dbDisk"]);
  assert.ok(assertPartsAreOfTheWhole(world) < stays);
  const gone = shownWithState(world.state, "shop/nothing");
  assert.ok(gone !== null && !gone.ok && /nothing/.test(gone.error.message));
});

test("an element that waits for one that has failed is stuck, however long the chain, whether it is asked for alone or not", () => {
  const world = new World();
  const chain = Object.fromEntries(
    Array.from({ length: 12 }, (_, at) => [
      `copy${at}`,
      { "x.type": "VolumeCopy", "x.image": `<ref:/shop/${at === 0 ? "golden" : `copy${at - 1}`}>` },
    ]),
  );
  world.put(shop(chain));
  const first = world.state.uids.get(elementPath("shop/copy1"));
  for (const [uid, each] of world.state.elements)
    if (/copy/.test(each.path)) world.state.elements.set(uid, { ...each, phase: uid === first ? "failed" : "waiting" });
  const stuck = (path: string): unknown => {
    const part = shownWithState(world.state, path);
    return part?.ok && isObject(part.value) && isObject(part.value.$state) && part.value.$state.stuck;
  };
  assert.deepEqual(
    [stuck("shop/copy11"), stuck("shop/copy1"), stuck("shop/copy0"), stuck("shop/web")],
    [true, true, undefined, undefined],
  );
  assertPartsAreOfTheWhole(world);
});

test("what needs an image that no server has is stuck until somebody adds it or names another one", () => {
  const world = new World();
  world.put(shop());
  const golden = world.uidOf("shop/golden");
  const stuck = (): readonly string[] =>
    [...world.state.elements.values()]
      .map(({ path }) => path)
      .filter((path) => {
        const part = shownWithState(world.state, path);
        return part?.ok && isObject(part.value) && isObject(part.value.$state) && part.value.$state.stuck === true;
      });
  const none = { phase: "waiting", reason: 'no image "tiny"; there are: none', server: null, sizeMiB: null } as const;
  world.volumesAre.set(golden, none);
  world.settle();
  assert.deepEqual(stuck(), [], "a server that is not heard may have it");
  world.volumesAre.set(golden, { ...none, noImage: true });
  world.settle();
  assert.deepEqual(stuck(), ["shop/golden"], "what runs from it already is not concerned");
  assert.equal(world.phase("shop/golden"), 'waiting: no image "tiny"; there are: none');
  world.volumesAre.clear();
  world.settle();
  assert.equal(world.phase("shop/golden"), "ready");
  assert.deepEqual(stuck(), []);
  const late = (image: string) => ({ late: { "x.type": "Volume", "x.size": 64, "x.import": image } });
  world.put(shop(late("late")));
  world.volumesAre.set(world.uidOf("shop/late"), { ...none, noImage: true });
  world.settle();
  assert.deepEqual(stuck(), ["shop/late"]);
  const damaged = { reason: 'the disk of image "late" is damaged', server: serverName("s1") } as const;
  world.volumesAre.set(world.uidOf("shop/late"), { ...none, ...damaged, noImage: true });
  world.settle();
  assert.deepEqual(stuck(), ["shop/late"]);
  const told = JSON.stringify(world.ask({ method: "WHY-ELEMENT", path: "shop/late" }).body);
  assert.match(told, /let the operator replace it \(`cells image add late FILE --replace`\)/);
  world.put(shop(late("tiny")), ["shop/late"]);
  assert.deepEqual([world.phase("shop/late"), stuck()], ["ready", []]);
});

test("a VM that each host refuses for what nothing that becomes free there changes is stuck", () => {
  const world = new World();
  world.put(shop());
  const web = world.uidOf("shop/web");
  const record = world.state.elements.get(web) ?? assert.fail();
  const stuckWith = (...kinds: readonly RefusalKind[]): boolean => {
    const refusals = kinds.map((kind) => ({ host: hostName("h1"), why: "…", lifts: "…", kind }));
    const causes = [{ kind: "no-host", refusals, said: null }] as const;
    world.state.elements.set(web, { ...record, phase: "waiting", causes });
    const part = shownWithState(world.state, "shop/web");
    return part?.ok === true && isObject(part.value) && isObject(part.value.$state) && part.value.$state.stuck === true;
  };
  assert.ok(stuckWith("pinned", "closed", "speed"));
  for (const kind of ["memory", "cpus", "unreachable", "apart"] as const) assert.ok(!stuckWith("pinned", kind), kind);
  assert.ok(!stuckWith(), "nobody has said yet");
});

test("of what a cell waits for, causes are told before what waits for them, in whatever order they stand", () => {
  const world = new World();
  const card = { "x.type": "VirtualInterface", "x.vm": "<ref:/shop/late>", "x.subnet": "<ref:/shop/front>" };
  world.put(shop({ lateCard: card, late: { "x.type": "VM", "x.memory": 8192, "x.desiredState": "on" } }));
  const { waiting } = world.ask({ method: "SUMMARY" }).body as unknown as { waiting: readonly { path: string }[] };
  assert.deepEqual(
    waiting.map(({ path }) => path),
    ["shop/late", "shop/lateCard"],
  );
});

test("a machine that runs says whether it is reached: by its host, Presence, its probes, its disks and its address", () => {
  const world = new World({ networkMode: "EDGE" });
  const said = (path = "shop/web"): unknown => {
    const part = shownWithState(world.state, path);
    return part?.ok && isObject(part.value) && isObject(part.value.$state) && part.value.$state.reachability;
  };
  const off: JsonObject = { "x.type": "VM", "x.memory": 256, "x.desiredState": "off" };
  const toDb: JsonObject = {
    "x.type": "NetworkRule",
    "x.address1": "<ref:/shop/front>",
    "x.address2": "<ref:/shop/back>",
  };
  world.put(shop({ off, toDb: { ...toDb, "x.protocol": "tcp", "x.port2": 5432 } }));
  assert.deepEqual([said(), said("shop/off"), said("shop/webCard")], ["ok", undefined, undefined]);
  const uid = world.uidOf("shop/web");
  // A vanished instance: its host does not say any more that its address is in place.
  const there = { id: "i-00000001", address: "10.9.0.1", mac: "D0:0D:00:00:00:01" };
  world.networks.set(uid, { phase: "waiting", reason: "its host h1 has yet to say", ...there });
  world.settle();
  assert.equal(said(), "impaired");
  world.networks.delete(uid);
  world.settle();
  assert.equal(said(), "ok");
  world.step({ kind: "reachable", peer: peerName("network-view-manager"), reachable: false });
  assert.equal(said(), "insufficient-data", "nobody says where its address is");
  world.step({ kind: "reachable", peer: peerName("network-view-manager"), reachable: true });
  world.step({ kind: "reachable", peer: peerName("host.h1"), reachable: false });
  assert.equal(said(), "insufficient-data", "nobody hears its host");
});
