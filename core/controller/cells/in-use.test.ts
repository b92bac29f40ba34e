import assert from "node:assert/strict";
import { test } from "node:test";
import { peerName } from "../../../model/cell/identifiers.ts";
import type { JsonObject } from "../../../model/json/json.ts";
import { type ActualLife, type InUse, lifeKey } from "../../documents/cells.ts";
import { actualKey } from "../../documents/vocabulary.ts";
import { toJson } from "../../outbox.ts";
import { shop, World } from "../world.testing.ts";

const cellManager = peerName("cell-manager");
const amount = {
  vms: 99,
  memoryMiB: 40_960,
  cpus: 99,
  volumes: 99,
  storageMiB: 40_960,
  subnets: 99,
  addresses: 9000,
  publicAddresses: 0,
};
const grant = { amount, serial: 1, answered: 0, refusal: null };

/** What a child's controller says to its parent of what the cell uses. */
class Child {
  readonly world = new World({ child: true, cellManager: true });
  live(model: JsonObject): void {
    const life = toJson({ uid: this.world.state.options.cellUid, model, grant, ending: false });
    this.world.step({ kind: "desired", from: cellManager, key: lifeKey, value: life });
    this.world.settle();
  }
  get all(): readonly (InUse | null | undefined)[] {
    const key = actualKey(cellManager, lifeKey);
    return this.world.effects.flatMap((effect) =>
      effect.kind === "publish" && effect.key === key ? [(effect.value as unknown as ActualLife).quota.uses] : [],
    );
  }
  get uses(): InUse | null | undefined {
    return this.all.at(-1);
  }
  /** Until what changed last is said. */
  later(): this {
    this.world.wait(5_000);
    if (this.world.timers.has("in-use")) this.world.fire("in-use");
    return this;
  }
  /** These machines are on, and the others off. */
  power(...on: readonly string[]): void {
    const vms = shop().shop as JsonObject;
    const power = (name: string): JsonObject => ({
      ...(vms[name] as JsonObject),
      "x.desiredState": on.includes(name) ? "on" : "off",
    });
    this.world.put(shop({ web: power("web"), db: power("db") }));
  }
}

test("a cell says what of it is in use: machines that run, and volumes; and nothing more of what is off", () => {
  const child = new Child();
  child.live(shop());
  const both = child.later().uses;
  assert.deepEqual(both, { vms: 2, memoryMiB: 3072, cpus: 2, storageMiB: 192 });
  child.power("db");
  assert.deepEqual(child.later().uses, { vms: 1, memoryMiB: 2048, cpus: 1, storageMiB: 192 });
  // It counts until its host says that it has ended, and what a start over the store knows is the same.
  for (const host of child.world.hosts.keys()) child.world.slowStops.add(host);
  child.power();
  assert.equal(child.later().uses?.vms, 1);
  child.world.crash();
  child.live(shop());
  assert.equal(child.uses?.vms, 1);
});

test("a cell whose machines come and go says so at once, and then every few seconds", () => {
  const child = new Child();
  child.live(shop());
  child.later();
  child.world.wait(5_000);
  const before = child.all.length;
  for (let round = 0; round < 10; round += 1) {
    child.power("db");
    child.power("db", "web");
  }
  child.power("db");
  const said = child.all.slice(before).map((each) => each?.vms);
  const changes = said.filter((vms, at) => vms !== said[at - 1]);
  assert.deepEqual(changes, [2, 1], "the first change, and nothing of what came within the next seconds");
  child.world.wait(5_000);
  child.power("db", "web");
  assert.equal(child.uses?.vms, 2, "what is late enough waits for no timer");
});

test("what child cells use is in it, and while one of them was not heard nothing is known", () => {
  const child = new Child();
  const sub = { "x.type": "CellController", "x.cell": { sub: { "x.type": "Cell" } } };
  child.live({ shop: { "x.type": "Cell", data: { "x.type": "Volume", "x.size": 8 }, sub } });
  const uid = child.world.uidOf("shop/sub");
  const heard = (quota: object | null): InUse | null | undefined => {
    const said = { phase: "ready", reason: null, controller: "controller.sub.shop", address: "10.0.3.9", version: 1 };
    child.world.children.set(uid, { ...said, services: { placer: 1, storageManager: 1 }, ended: false, quota });
    child.world.settle();
    return child.later().uses;
  };
  assert.equal(heard(null), null);
  const quota = { serial: 1, holds: amount, asks: null };
  assert.equal(heard({ ...quota, uses: { vms: 7, memoryMiB: 70, cpus: 8, storageMiB: 9 } })?.vms, 7);
  assert.equal(heard({ ...quota, uses: { vms: 4, memoryMiB: 70, cpus: 8, storageMiB: 9 } })?.vms, 4);
  const most = 2 ** 48;
  assert.deepEqual(
    heard({ ...quota, uses: { vms: most, memoryMiB: most, cpus: most, storageMiB: most } }),
    { vms: most, memoryMiB: most, cpus: most, storageMiB: most },
    "no sum is more than its reader takes, whatever is said",
  );
  assert.equal(heard({ ...quota, uses: null }), null, "one of its own children was not heard");
  assert.equal(heard(quota)?.vms, 0, "a version before says nothing");
});
