import assert from "node:assert/strict";
import { test } from "node:test";
import { type ElementPath, peerName, serverName, type Uid, uid } from "../../../../model/cell/identifiers.ts";
import { noUsage } from "../../../../model/check/check-limits.ts";
import type { JsonObject } from "../../../../model/json/json.ts";
import type { DesiredPublic } from "../../../documents/cells.ts";
import type { DesiredConnection, DesiredVolume } from "../../../documents/vocabulary.ts";
import { toJson } from "../../../outbox.ts";
import { provedAfterMs } from "../../upgrade/upgrade.ts";
import { trialTimeoutMs } from "../../vm/trial-timeout.ts";
import { World } from "../../world.testing.ts";
import { rootMeans } from "../root.testing.ts";

const crashed = { phase: "failed", power: "off", ended: "crashed", reason: "its kernel found no root" } as const;

/** A cell that is the way in: its gateway boots from a copy of the root cell's image. */
const at = "10.0.0.40";
const image = "<ref://root.cells.internal/root/images/service>";
const boots = (volume: string): JsonObject => ({
  [volume]: { "x.type": "VolumeCopy", "x.image": image },
  disk: disk("gateway", volume),
});
const disk = (vm: string, volume: string): JsonObject => ({
  "x.type": "VolumeConnection",
  "x.vm": `<ref:../${vm}>`,
  "x.volume": `<ref:../${volume}>`,
  "x.bootOrder": 0,
});
const primary = (more: JsonObject = boots("boot")): JsonObject => ({
  shop: {
    "x.type": "Cell",
    "x.name": "shop",
    "x.limits.vms": 9,
    "x.limits.memory": 2048,
    "x.limits.cpus": 9,
    net: { "x.type": "Subnet", "x.addressRange": "management" },
    gateway: {
      "x.type": "VM",
      "x.memory": 160,
      "x.restartOnFailure": true,
      "x.liveness.protocol": "icmp",
      "x.data": { service: { roles: { gateway: {} } } },
    },
    card: {
      "x.type": "VirtualInterface",
      "x.vm": "<ref:../gateway>",
      "x.subnet": "<ref:../net>",
      "x.address": at,
    },
    // A tenant's machine beside it has a copy of the same image, and writes there.
    mine: { "x.type": "VolumeCopy", "x.image": image },
    other: { "x.type": "VM", "x.memory": 64 },
    otherDisk: disk("other", "mine"),
    ...more,
  },
});
class Primary {
  readonly world = new World({ child: true, services: rootMeans, directory: true });
  /** Its controller starts again whenever something happened. */
  crashes = false;
  constructor() {
    this.show("root-1");
    this.live();
    this.settle();
  }
  /** It hears its life, which it knows no longer after a restart. */
  live(): void {
    const room = Object.fromEntries(Object.keys(noUsage).map((key) => [key, 1_000_000])) as unknown as typeof noUsage;
    const grant = { amount: room, serial: 1, answered: 0, refusal: null };
    const life = toJson({ uid: "root-9", model: primary(), grant, ending: false, gateway: at });
    this.world.step({ kind: "desired", from: peerName("cell-manager"), key: "life", value: life });
    this.world.settle();
  }
  /** The root cell shows another image. */
  show(image: string, name = "service"): void {
    const shows = { kind: "volume", type: "Volume", sizeMiB: 64, server: serverName("s1") } as const;
    this.world.shown.set(`root.cells.internal/root/images/${name}`, { uid: uid(image), shows });
    this.settle();
  }
  settle(): void {
    this.world.settle();
    if (this.crashes) {
      this.world.crash();
      // Long enough for everything else to be known before it.
      this.world.settle();
      this.live();
    }
    for (const path of ["shop/gateway", "shop/other"]) {
      const found = this.world.vm(path)?.document;
      const key = `${found?.uid}@${found?.incarnation}`;
      if (found !== undefined && !this.world.ended.has(key)) this.world.ended.set(key, { health: "answering" });
    }
    this.world.settle();
  }
  pass(ms: number): void {
    this.world.wait(ms);
    for (const name of [...this.world.timers.keys()]) this.world.fire(name);
    this.settle();
  }
  /** It ends, and is started again at once. */
  end(path = "shop/gateway"): void {
    const { uid, incarnation } = this.world.vm(path)?.document ?? assert.fail(this.world.phase(path));
    this.world.ended.set(`${uid}@${incarnation}`, crashed);
    this.world.settle();
    for (const name of [...this.world.timers.keys()]) if (name.startsWith("restart")) this.world.fire(name);
    this.settle();
  }
  /** Its incarnation, and of which image its disk is a copy. */
  runs(path = "shop/gateway"): readonly [number, string] {
    const { incarnation, disks } = this.world.vm(path)?.document ?? assert.fail(this.world.phase(path));
    const volumes = this.world.documents<DesiredVolume>("storage-manager", "volume");
    const origin = volumes.find((each) => each.uid === disks[0]?.attachment.volume)?.origin;
    return [incarnation, origin?.kind === "copy" ? origin.volume : "nothing"];
  }
  volumes = (): number => this.world.documents("storage-manager", "volume").length;
  version = (): number => this.world.state.model.version;
}

test("the gateway goes to the image that the root cell shows, keeps its old disk meanwhile, and its model stays", () => {
  const cell = new Primary();
  assert.deepEqual([cell.runs(), cell.runs("shop/other"), cell.volumes()], [[1, "root-1"], [1, "root-1"], 2]);
  cell.show("root-2");
  assert.deepEqual([cell.runs(), cell.volumes()], [[2, "root-2"], 3]);
  assert.equal(cell.world.standing("shop/disk"), "working: upgrade-tried shop/gateway");
  cell.pass(provedAfterMs);
  assert.deepEqual([cell.runs(), cell.volumes(), cell.version()], [[2, "root-2"], 2, 1]);
  assert.equal(cell.world.documents<DesiredConnection>("storage-manager", "connection").length, 2);
  assert.deepEqual(cell.runs("shop/other"), [1, "root-1"], "what a tenant's machine writes to is never made anew");
  assert.ok(
    Object.values(cell.world.phases()).every((phase) => phase === "ready"),
    JSON.stringify(cell.world.phases()),
  );
  // Nothing shown is not another image, and the same again is none either.
  cell.world.shown.clear();
  cell.settle();
  cell.show("root-2");
  assert.deepEqual(cell.runs(), [2, "root-2"]);
});

test("a gateway that does not come up goes back, and tries the next image; also over restarts of its controller", () => {
  for (const crashes of [false, true]) {
    const cell = new Primary();
    cell.crashes = crashes;
    cell.show("root-2");
    cell.end();
    assert.deepEqual(cell.runs(), [3, "root-2"], "once may be its host's fault");
    cell.end();
    assert.deepEqual([cell.runs(), cell.volumes()], [[4, "root-1"], 3]);
    assert.equal(
      cell.world.standing("shop/disk"),
      "failed: upgrade-went-back shop/gateway shop/boot (ended crashed), upgrade-over",
    );
    cell.pass(trialTimeoutMs);
    cell.end();
    assert.deepEqual(cell.runs(), [5, "root-1"], "it stays at what works");
    cell.show("root-3");
    assert.deepEqual(cell.runs(), [6, "root-3"]);
    cell.pass(provedAfterMs);
    cell.pass(provedAfterMs);
    assert.deepEqual([cell.runs(), cell.volumes(), cell.version()], [[6, "root-3"], 2, 1]);
  }
});

test("the former image in the model of the way in again: the gateway that went back to it goes on as it is", () => {
  const cell = new Primary();
  // `mine` goes on naming the former image: without anybody who does, the directory would not be asked for it.
  cell.show("root-7", "bad");
  const bad = { boot: { "x.type": "VolumeCopy", "x.image": "<ref://root.cells.internal/root/images/bad>" } };
  cell.world.put(primary({ ...boots("boot"), ...bad }), ["shop/boot"]);
  cell.settle();
  assert.deepEqual(cell.runs(), [2, "root-7"]);
  cell.end();
  cell.end();
  assert.deepEqual(cell.runs(), [4, "root-1"]);
  cell.world.put(primary(), ["shop/boot"]);
  cell.settle();
  assert.deepEqual([cell.runs(), cell.volumes(), cell.world.phase("shop/disk")], [[4, "root-1"], 2, "ready"]);
});

test("a boot volume of another name in the way in's own model is an upgrade as well", () => {
  const cell = new Primary();
  cell.world.put(primary(boots("boot2")), ["shop/boot"]);
  cell.settle();
  assert.deepEqual(cell.runs(), [2, "root-1"]);
  assert.equal(cell.world.standing("shop/disk"), "working: upgrade-tried shop/gateway");
  cell.pass(provedAfterMs);
  assert.deepEqual([cell.runs(), cell.volumes(), cell.world.phase("shop/disk")], [[2, "root-1"], 2, "ready"]);
});

const service = (name: string, roles: JsonObject): JsonObject => ({
  [`${name}Boot`]: { "x.type": "VolumeCopy", "x.image": "<ref:/shop/image>" },
  [`${name}Disk`]: disk(name, `${name}Boot`),
  [`${name}Card`]: { "x.type": "VirtualInterface", "x.vm": `<ref:../${name}>`, "x.subnet": "<ref:../net>" },
  [name]: {
    "x.type": "VM",
    "x.memory": 160,
    "x.restartOnFailure": true,
    "x.liveness.protocol": "icmp",
    "x.data": { service: { roles } },
  },
});
const root = (imported: string): JsonObject => ({
  shop: {
    "x.type": "Cell",
    "x.name": "shop",
    net: { "x.type": "Subnet", "x.size": 8, "x.addressRange": "internal" },
    image: { "x.type": "Volume", "x.size": 64, "x.access": "ro", "x.public": true, "x.import": imported },
    ...service("one", { placer: {} }),
    ...service("two", { presence: { number: 2 } }),
  },
});

test("other cells see the new image when all of the root cell's services run from it, and never one that was refused", () => {
  const world = new World({ root: rootMeans, directory: true });
  const seen = (): readonly Uid[] =>
    world
      .documents<DesiredPublic>("directory", "public")
      .flatMap(({ uid, path }) => (path === "shop/image" ? uid : []));
  const uidNow = (): Uid => world.state.uids.get("shop/image" as ElementPath) ?? assert.fail("no image");
  const prove = (): void => {
    for (const path of ["shop/one", "shop/two"]) {
      const found = world.vm(path)?.document;
      world.ended.set(`${found?.uid}@${found?.incarnation}`, { health: "answering" });
    }
    world.settle();
    world.wait(provedAfterMs);
    for (let more = 0; more < 2; more += 1) world.fire("upgrade");
  };
  world.put(root("service"));
  const first = uidNow();
  assert.deepEqual(seen(), [first]);
  world.put(root("service-2"));
  const second = uidNow();
  assert.notEqual(second, first);
  assert.deepEqual(seen(), [first]);
  prove();
  assert.equal(world.standing("shop/twoDisk"), "working: upgrade-tried shop/two");
  world.crash();
  world.settle();
  assert.deepEqual(seen(), [first], "one of two is not all");
  prove();
  assert.equal(world.phase("shop/twoDisk"), "ready");
  assert.deepEqual(seen(), [second]);
  // One that does not come up is taken back by the operator, and was never shown.
  world.put(root("service-3"));
  for (let end = 0; end < 2; end += 1) {
    const { uid, incarnation } = world.vm("shop/one")?.document ?? assert.fail(world.phase("shop/one"));
    world.ended.set(`${uid}@${incarnation}`, crashed);
    world.settle();
    for (const name of [...world.timers.keys()]) if (name.startsWith("restart")) world.fire(name);
  }
  assert.equal(
    world.standing("shop/oneDisk"),
    "failed: upgrade-went-back shop/one shop/oneBoot (ended crashed), upgrade-over",
  );
  assert.deepEqual(seen(), [second]);
  world.put(root("service-2"));
  assert.deepEqual([seen(), uidNow()], [[second], second]);
});
