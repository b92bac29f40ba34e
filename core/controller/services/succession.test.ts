import assert from "node:assert/strict";
import { test } from "node:test";
import { peerName } from "../../../model/cell/identifiers.ts";
import type { JsonObject } from "../../../model/json/json.ts";
import type { DesiredStandby } from "../../documents/standby.ts";
import type { DesiredConnection, DesiredPlacement, DesiredVm } from "../../documents/vocabulary.ts";
import { toJson } from "../../outbox.ts";
import { rootMeans } from "../model/root.testing.ts";
import { World } from "../world.testing.ts";

const own: JsonObject = { cell: "shop", cellUid: "c1", cellNumber: 7 };
const vm = (roles: JsonObject): JsonObject => ({
  "x.type": "VM",
  "x.memory": 160,
  "x.desiredState": "on",
  "x.restartOnFailure": true,
  "x.data": { service: { roles } },
});
const disk = (volume: string, bootOrder: number): JsonObject => ({
  "x.type": "VolumeConnection",
  "x.vm": "<ref:/shop/core>",
  "x.volume": `<ref:/shop/${volume}>`,
  "x.busType": "virtio",
  "x.bootOrder": bootOrder,
});
/** The VM of the cell's own controller on two volumes, and another one. */
const cell: JsonObject = {
  shop: {
    "x.type": "Cell",
    "x.name": "shop",
    net: { "x.type": "Subnet", "x.size": 8, "x.addressRange": "internal" },
    boot: { "x.type": "Volume", "x.size": 64, "x.import": "tiny" },
    data: { "x.type": "Volume", "x.size": 64 },
    core: vm({ controller: own, placer: {} }),
    other: vm({ presence: { number: 2 } }),
    coreCard: { "x.type": "VirtualInterface", "x.vm": "<ref:/shop/core>", "x.subnet": "<ref:/shop/net>" },
    bootDisk: disk("boot", 0),
    dataDisk: disk("data", 1),
  },
};
const grown = (
  more: Partial<ConstructorParameters<typeof World>[0]> = { root: rootMeans },
  model: JsonObject = cell,
): World => {
  const world = new World(more);
  // The Placer says which hosts there are.
  const hosts = ["h1", "h2", "h3"].map((host) => ({ host, memoryMiB: 4096, cpus: 4, cpuSpeedMHz: 0 }));
  world.step({ kind: "actual", from: peerName("placer"), key: "hosts", value: toJson({ hosts, complete: true }) });
  world.put(model);
  return world;
};
const standbyAt = (world: World, host: string): DesiredStandby | undefined =>
  world.desired.get(peerName(`host.${host}`))?.get("root-vm") as unknown as DesiredStandby | undefined;
/** The Storage Manager says who has the leases of its volumes, as the agents say. */
const leasedTo = (world: World, host: string, incarnation: number): void => {
  for (const id of ["shop/bootDisk", "shop/dataDisk"].map((path) => world.uidOf(path))) {
    const key = `controller.shop/connection/${id}`;
    const waits = { phase: "waiting", reason: "its lease is another's", incarnation: 1, attachment: null };
    const value = toJson({ ...waits, holder: { vm: world.uidOf("shop/core"), incarnation, host } });
    world.step({ kind: "actual", from: peerName("storage-manager"), key, value });
  }
};
/** A host says that it runs an incarnation of it. */
const runsAt = (world: World, host: string, incarnation: number): void => {
  const value = toJson({ phase: "ready", reason: null, incarnation, power: "on", ended: null });
  const key = `controller.shop/vm/${world.uidOf("shop/core")}`;
  world.step({ kind: "actual", from: peerName(`host.${host}`), key, value });
};

test("every host is given what it needs to start the controller's own VM, and no secret of its present leases", () => {
  const world = grown();
  const id = world.uidOf("shop/core");
  const documents = ["h1", "h2", "h3"].map((host) => standbyAt(world, host));
  const [first] = documents;
  assert.ok(first !== undefined);
  for (const document of documents) assert.deepEqual(document, first);
  assert.deepEqual([first.host, first.vm.uid, first.vm.incarnation, first.vm.restart], ["h1", id, 1, "host"]);
  assert.deepEqual(
    first.volumes.map(({ volume, agent }) => [volume, agent]),
    [
      [world.uidOf("shop/data"), "agent.s1"],
      [world.uidOf("shop/boot"), "agent.s1"],
    ],
    "what it keeps its stores on comes first",
  );
  assert.deepEqual(
    first.vm.disks.map(({ attachment }) => attachment.layers),
    [[], []],
  );
  assert.deepEqual([first.policy.cell, first.policy.cellNumber, first.policy.rules], ["shop", 7, []]);
  const marked = world.documents<DesiredConnection>("storage-manager", "connection");
  assert.deepEqual(
    marked.map(({ succession }) => succession),
    [true, true],
  );
  assert.equal(standbyAt(grown({}), "h1"), undefined, "only the root controller's VM has that");
});

test("hosts of VMs that keep apart from it, and closed ones, are said to take their turn last", () => {
  assert.equal(standbyAt(grown(), "h1")?.last, undefined);
  const spread = { "x.placement.spread": "presence" };
  const of = cell.shop as Readonly<Record<string, JsonObject>>;
  const other = { ...of.other, ...spread };
  // The world's Placer fills one host after the other.
  const card = (vmName: string): JsonObject => ({ ...of.coreCard, "x.vm": `<ref:/shop/${vmName}>` });
  const cards = { otherCard: card("other"), aloneCard: card("alone") };
  const more = {
    ...cards,
    core: { ...of.core, ...spread },
    other: { ...other, "x.memory": 4000 },
    alone: vm({ presence: { number: 3 } }),
  };
  const world = grown({ root: rootMeans }, { shop: { ...of, ...more } });
  assert.deepEqual([world.vm("shop/other")?.host, world.vm("shop/alone")?.host], ["host.h2", "host.h1"]);
  assert.deepEqual(standbyAt(world, "h1")?.last, ["h2"]);
  assert.deepEqual(standbyAt(world, "h3")?.last, ["h2"]);
});

test("the controller finds by a host's word that it was started there, and everything follows", () => {
  for (const crashing of [false, true]) {
    const world = grown();
    world.crashing = crashing;
    const id = world.uidOf("shop/core");
    world.silent.add(peerName("host.h1"));
    world.settle();
    leasedTo(world, "h2", 2);
    runsAt(world, "h2", 2);
    world.settle();
    const { document, host } = world.vm("shop/core") as { document: DesiredVm; host: string };
    assert.deepEqual([host, document.incarnation], ["host.h2", 2]);
    assert.equal(world.desired.get(peerName("host.h1"))?.has(`vm/${id}`), false, "its old host is to let go of it");
    const connections = world.documents<DesiredConnection>("storage-manager", "connection");
    assert.deepEqual(
      connections.map(({ incarnation, host: at }) => [incarnation, at]),
      [
        [2, "h2"],
        [2, "h2"],
      ],
    );
    const placement = world.documents<DesiredPlacement>("placer", "placement").find(({ vm: of }) => of === id);
    assert.deepEqual([placement?.incarnation, placement?.on], [2, "h2"]);
    for (const at of ["h1", "h2", "h3"])
      assert.deepEqual([standbyAt(world, at)?.host, standbyAt(world, at)?.vm.incarnation], ["h2", 2]);
    // What the old one says of the past changes nothing any more.
    runsAt(world, "h1", 1);
    world.settle();
    assert.equal(world.vm("shop/core")?.host, "host.h2");
  }
});

test("a host that says that it runs the controller is not believed before the volume's lease names it", () => {
  const world = grown();
  const before = (): readonly unknown[] => [
    world.vm("shop/core")?.host,
    world
      .documents<DesiredConnection>("storage-manager", "connection")
      .map(({ incarnation, host }) => [incarnation, host]),
    world.documents<DesiredPlacement>("placer", "placement").map(({ vm: of, incarnation }) => [of, incarnation]),
  ];
  const was = before();
  leasedTo(world, "h1", 1);
  runsAt(world, "h2", 1_000_000);
  world.settle();
  assert.deepEqual(before(), was);
  // Another host has the lease; the same host has it, as another incarnation; or another VM has.
  for (const [host, incarnation] of [
    ["h3", 1_000_000],
    ["h2", 2],
  ] as const) {
    leasedTo(world, host, incarnation);
    world.settle();
    assert.deepEqual(before(), was);
  }
  leasedTo(world, "h2", 2);
  runsAt(world, "h2", 2);
  world.settle();
  assert.equal(world.vm("shop/core")?.host, "host.h2");
});

test("a Storage Manager of the previous version names no holder: then the host's word has to do", () => {
  const world = grown();
  runsAt(world, "h2", 2);
  world.settle();
  assert.equal(world.vm("shop/core")?.host, "host.h2");
});

test("a host that claims no later incarnation, or another VM's, is not followed", () => {
  const world = grown();
  runsAt(world, "h2", 1);
  world.settle();
  assert.equal(world.vm("shop/core")?.host, "host.h1");
  const value = toJson({ phase: "ready", reason: null, incarnation: 9, power: "on", ended: null });
  const other = world.vm("shop/other")?.host;
  world.step({
    kind: "actual",
    from: peerName("host.h3"),
    value,
    key: `controller.shop/vm/${world.uidOf("shop/other")}`,
  });
  world.settle();
  assert.equal(world.vm("shop/other")?.host, other);
});
