import assert from "node:assert/strict";
import { test } from "node:test";
import { hostName, peerName } from "../../../model/cell/identifiers.ts";
import type { JsonObject } from "../../../model/json/json.ts";
import { presenceKey } from "../../documents/presence.ts";
import type { DesiredConnection, DesiredVm, DesiredVolume, LeaseHolder } from "../../documents/vocabulary.ts";
import { toJson } from "../../outbox.ts";
import { rootMeans } from "../model/root.testing.ts";
import { World } from "../world.testing.ts";
import { offer } from "./offers.testing.ts";

const vm = (roles: JsonObject): JsonObject => ({
  "x.type": "VM",
  "x.memory": 160,
  "x.desiredState": "on",
  "x.restartOnFailure": true,
  "x.data": { service: { roles } },
});
const disk = (of: string, volume: string, bootOrder: number): JsonObject => ({
  "x.type": "VolumeConnection",
  "x.vm": `<ref:/shop/${of}>`,
  "x.volume": `<ref:/shop/${volume}>`,
  "x.busType": "virtio",
  "x.bootOrder": bootOrder,
});
const card = (of: string): JsonObject => ({
  "x.type": "VirtualInterface",
  "x.vm": `<ref:/shop/${of}>`,
  "x.subnet": "<ref:/shop/net>",
});
const cell: JsonObject = {
  shop: {
    "x.type": "Cell",
    "x.name": "shop",
    net: { "x.type": "Subnet", "x.size": 8, "x.addressRange": "internal" },
    boot: { "x.type": "Volume", "x.size": 64, "x.import": "tiny" },
    data: { "x.type": "Volume", "x.size": 64 },
    otherBoot: { "x.type": "Volume", "x.size": 64, "x.import": "tiny" },
    otherData: { "x.type": "Volume", "x.size": 64 },
    core: vm({ controller: { cell: "shop", cellUid: "c1", cellNumber: 7 }, placer: {} }),
    other: vm({ presence: { number: 2 } }),
    coreCard: card("core"),
    otherCard: card("other"),

    bootDisk: disk("core", "boot", 0),
    dataDisk: disk("core", "data", 1),
    otherDisk: disk("other", "otherBoot", 0),
    otherStores: disk("other", "otherData", 1),
  },
};
const grown = (
  more: Partial<ConstructorParameters<typeof World>[0]> = { root: rootMeans },
  memoryMiB = 4096,
): World => {
  const world = new World(more);
  for (const host of world.hosts.keys()) world.hosts.set(host, memoryMiB);
  offer(world, ["h1", "h2"]);
  world.put(cell);
  return world;
};
const machine = (world: World, path: string): DesiredVm =>
  (world.vm(path) as { document: DesiredVm } | null)?.document ?? assert.fail(`${path} is desired at no host`);

test("a store that was put back goes on above every number and incarnation that it may have given out since", () => {
  for (const crashing of [false, true]) {
    const world = grown({});
    const before = {
      uid: world.uidOf("shop/data"),
      counters: world.state.counters,
      policy: world.state.policy.version,
    };
    world.crashing = crashing;
    world.putBack();
    world.settle();
    assert.equal(world.uidOf("shop/data"), before.uid, "what it knows stays");
    assert.equal(machine(world, "shop/other").incarnation, 1, "what runs goes on");
    const { nextNumber, nextIdentity, nextRule } = world.state.counters;
    assert.ok(nextNumber > before.counters.nextNumber + 100_000);
    assert.ok(nextIdentity > before.counters.nextIdentity + 10_000 && nextRule > before.counters.nextRule + 10_000);
    assert.ok(world.state.policy.version > before.policy + 10_000);
    // The next start of a machine that the store knows is above any that its storage may have seen.
    world.ended.set(`${world.uidOf("shop/other")}@1`, { power: "off", ended: "crashed", phase: "failed" });
    world.settle();
    assert.ok(machine(world, "shop/other").incarnation > 200);
    const again = world.state.counters;
    world.crash();
    assert.deepEqual(world.state.counters, again, "once");
  }
});

test("a copy that is put back a second time goes on elsewhere than after the first", () => {
  const [first, second] = [0.25, 0.5].map((drawn) => {
    const world = grown({});
    world.crash({ wasRestored: true, drawn });
    world.ended.set(`${world.uidOf("shop/other")}@1`, { power: "off", ended: "crashed", phase: "failed" });
    world.settle();
    return { number: world.state.counters.nextNumber, incarnation: machine(world, "shop/other").incarnation };
  });
  assert.ok(first !== undefined && second !== undefined);
  assert.ok(second.number > first.number + 200_000 && second.incarnation > first.incarnation + 200);
});

test("the root cell's VMs begin anew, on blank volumes for their stores, its controller's own before every other", () => {
  for (const crashing of [false, true]) {
    const world = grown();
    const before = ["shop/data", "shop/otherData"].map((path) => world.uidOf(path));
    const boots = ["shop/boot", "shop/otherBoot"].map((path) => world.uidOf(path));
    world.crashing = crashing;
    // The Placer of the birth knows one host, and what ran elsewhere has ended with its machine.
    world.slowVolumes.add(`${world.state.options.cellUid}-${world.state.counters.nextNumber + 2 ** 20}` as never);
    world.ended.set(`${world.uidOf("shop/other")}@1`, { power: "off", ended: "crashed", phase: "failed" });
    world.putBack("all");
    world.settle();
    const stores = world.uidOf("shop/data");
    assert.ok(!before.includes(stores) && !before.includes(world.uidOf("shop/otherData")));
    assert.deepEqual(
      ["shop/boot", "shop/otherBoot"].map((path) => world.uidOf(path)),
      boots,
    );
    assert.equal(world.vm("shop/core"), null, "its stores are not there yet");
    assert.equal(world.vm("shop/other"), null, "nothing starts before it");
    world.slowVolumes.clear();
    world.settle();
    assert.ok(machine(world, "shop/core").incarnation > 200);
    const connected = world.documents<DesiredConnection>("storage-manager", "connection");
    const own = connected.filter(({ vm: of }) => of === world.uidOf("shop/core")).map(({ volume }) => volume);
    assert.deepEqual(own.sort(), [world.uidOf("shop/boot"), stores].sort());
    const volumes = world.documents<DesiredVolume>("storage-manager", "volume").map(({ uid }) => uid);
    assert.ok(volumes.includes(stores) && !before.some((volume) => volumes.includes(volume)));
    const isTold = world.effects.some(
      (effect) =>
        effect.kind === "desire" && before.some((uid) => effect.key === `volume/${uid}` && effect.value === null),
    );
    assert.ok(!isTold, "what survived on a server stays there, also where the Storage Manager knows nothing of it");
    assert.ok(machine(world, "shop/other").incarnation > 200, "the others follow");
    world.crash();
    world.settle();
    assert.equal(world.uidOf("shop/data"), stores, "once");
  }
});

test("where nothing runs any more on any host of then, every VM starts anew, and nobody is asked about the last one", () => {
  for (const crashing of [false, true]) {
    const world = grown({});
    const hosts = ["h1", "h2"].map((host) => peerName(`host.${host}`));
    world.crashing = crashing;
    for (const host of hosts) world.silent.add(host);
    world.putBack();
    world.settle();
    assert.equal(machine(world, "shop/other").incarnation, 1, "without that word an older store waits for its host");
    world.putBack("all");
    world.silent.clear();
    world.settle();
    for (const path of ["shop/core", "shop/other"]) assert.ok(machine(world, path).incarnation > 200, path);
  }
});

test("where some host of then may live on, nothing starts before each has been heard, and what runs goes on", () => {
  for (const crashing of [false, true]) {
    // One VM on each.
    const world = grown({}, 200);
    const [core, other] = [machine(world, "shop/core"), machine(world, "shop/other")];
    const hostOf = ({ uid }: DesiredVm): string =>
      String(world.state.vms.get(uid)?.run?.host ?? assert.fail("it runs nowhere"));
    // One of the two lives; of the other one nothing was left, as its operator said.
    const living = hostOf(core);
    const gone = living === "h1" ? "h2" : "h1";
    const stays = [core, other].filter((each) => hostOf(each) === living);
    const moves = [core, other].filter((each) => hostOf(each) !== living);
    assert.ok(stays.length === 1 && moves.length === 1);
    world.crashing = crashing;
    world.silent.add(peerName(`host.${living}`));
    world.putBack([gone]);
    world.settle();
    for (const { path } of moves) {
      assert.equal(world.vm(path), null, "it may have moved since to the one that lives");
      assert.equal(world.standing(path), `waiting: restored-unheard ${living}`);
    }
    world.crash();
    world.settle();
    for (const { path } of moves) assert.equal(world.vm(path), null, "nor after another start");
    for (const { path } of stays) assert.equal(machine(world, path).incarnation, 1);
    world.silent.clear();
    world.settle();
    for (const { path } of moves) assert.ok(machine(world, path).incarnation > 200, path);
    for (const { path } of stays) assert.equal(machine(world, path).incarnation, 1, "it goes on where it runs");
  }
});

/** The disks of "shop/core" are held from h9, which says nothing yet. */
const hold = (world: World, holder: LeaseHolder): void => {
  for (const path of ["shop/boot", "shop/data"]) world.holders.set(world.uidOf(path), holder);
  world.silent.add(peerName("host.h9"));
};

test("a VM whose disk is held from a host that the backup does not know starts when that host has ended it", () => {
  for (const crashing of [false, true]) {
    const world = grown({});
    const { uid } = machine(world, "shop/core");
    const holder = { vm: uid, incarnation: 7, host: hostName("h9") };
    hold(world, holder);
    world.crashing = crashing;
    world.putBack(["h1", "h2"]);
    world.settle();
    assert.equal(world.vm("shop/core"), null);
    assert.equal(world.standing("shop/core"), "waiting: forgotten-runs h9");
    assert.ok(machine(world, "shop/other").incarnation > 200, "nobody holds anything of it");
    world.silent.clear();
    world.settle();
    assert.ok(machine(world, "shop/core").incarnation > 200, "that host has nothing of it");
    // What a host that is gone held is taken.
    const again = grown({});
    const before = { vm: machine(again, "shop/core").uid, incarnation: 7, host: hostName("h2") };
    again.holders.set(again.uidOf("shop/data"), before);
    again.crashing = crashing;
    again.putBack(["h1", "h2"]);
    again.settle();
    assert.ok(machine(again, "shop/core").incarnation > 200);
  }
});

test("a host that the backup does not know, and of which an operator says that nothing runs there, is waited for no more", () => {
  const world = grown({});
  const holder = { vm: machine(world, "shop/core").uid, incarnation: 7, host: hostName("h9") };
  hold(world, holder);
  world.putBack(["h1", "h2", "h9"]);
  world.settle();
  assert.ok(machine(world, "shop/core").incarnation > 200);
  assert.notEqual(world.vm("shop/core"), null);
});

test("a disk that is held for a later incarnation, of an earlier restore, is not taken either, and the next start is above it", () => {
  for (const crashing of [false, true]) {
    const world = grown({});
    const { uid } = machine(world, "shop/core");
    const holder = { vm: uid, incarnation: 100_000, host: hostName("h9") };
    hold(world, holder);
    world.crashing = crashing;
    world.putBack(["h1", "h2"]);
    world.settle();
    assert.equal(world.vm("shop/core"), null);
    assert.equal(world.standing("shop/core"), "waiting: forgotten-runs h9");
    world.silent.clear();
    world.settle();
    assert.ok(machine(world, "shop/core").incarnation > holder.incarnation, "that host has nothing of it");
  }
});

/** As most members of the Presence group say. */
const declare = (world: World, host: string, more: JsonObject): void => {
  const death = { host, generation: 3, incarnation: 0, declaredAt: 1, reporters: 3, ...more };
  for (const member of [1, 2, 3])
    world.step({
      kind: "actual",
      from: peerName(`presence.${member}`),
      key: presenceKey.death(host),
      value: toJson(death),
    });
  world.settle();
};
/** Of a host that came back since, or that nobody has said this of in the life that is over. */
const ofEarlierLives: readonly JsonObject[] = [
  { ended: 50, endedIn: 3, returned: 4 },
  { ended: 50, endedIn: 2 },
  { ended: 50 },
  {},
];

test("a host of then whose power is off is waited for no more; an end that it had in an earlier life is none", () => {
  const world = grown({}, 200);
  const living = String(world.state.vms.get(machine(world, "shop/core").uid)?.run?.host);
  world.silent.add(peerName(`host.${living}`));
  world.putBack([living === "h1" ? "h2" : "h1"]);
  for (const earlier of ofEarlierLives) {
    declare(world, living, earlier);
    assert.equal(world.vm("shop/other"), null, `it may have moved there: ${JSON.stringify(earlier)}`);
  }
  declare(world, living, { ended: 60, endedIn: 3 });
  assert.ok(machine(world, "shop/other").incarnation > 200);
});

test("what a host may run that nobody knew of ends with its power", () => {
  const world = grown({});
  const holder = { vm: machine(world, "shop/core").uid, incarnation: 7, host: hostName("h9") };
  hold(world, holder);
  world.putBack(["h1", "h2"]);
  world.settle();
  assert.equal(world.standing("shop/core"), "waiting: forgotten-runs h9");
  for (const earlier of ofEarlierLives) {
    declare(world, "h9", earlier);
    assert.equal(world.vm("shop/core"), null, JSON.stringify(earlier));
  }
  declare(world, "h9", { ended: 60, endedIn: 3 });
  assert.ok(machine(world, "shop/core").incarnation > 200);
});
