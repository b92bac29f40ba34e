import assert from "node:assert/strict";
import { test } from "node:test";
import { peerName } from "../../../model/cell/identifiers.ts";
import type { JsonObject } from "../../../model/json/json.ts";
import { lifeKey } from "../../documents/cells.ts";
import { actualKey, type DesiredGrant } from "../../documents/vocabulary.ts";
import { toJson } from "../../outbox.ts";
import { quotaOf, roomNeeded } from "../model/quota.ts";
import type { ControllerResponse } from "../requests/requests.ts";
import { shop, World } from "../world.testing.ts";

/** What a volume was promised counts, also where the model says less of it. */
const copy = (sizeMiB: number | null): JsonObject => ({
  webDisk: {
    "x.type": "VolumeCopy",
    "x.image": "<ref:/shop/golden>",
    ...(sizeMiB === null ? {} : { "x.size": sizeMiB }),
  },
});
const scratch = (sizeMiB: number): JsonObject => ({ scratch: { "x.type": "Volume", "x.size": sizeMiB } });
const limited = (...more: readonly JsonObject[]): JsonObject => {
  const { shop: model } = shop(Object.assign({}, ...more));
  return { shop: { ...(model as JsonObject), "x.limits.storage": 364 } };
};
const put = (world: World, json: JsonObject): ControllerResponse => world.ask({ method: "PUT", path: "", json });

test("a size that is promised while it is written back counts in the quota, and what is so stays", () => {
  const world = new World();
  world.put(limited(copy(64)));
  world.settle();
  const uid = world.uidOf("shop/webDisk");
  assert.equal(put(world, limited(copy(200))).status, 200);
  world.volumesAre.set(uid, { sizeMiB: 64, owes: { phase: "waiting", reason: "it stays at 64 MiB: s1 is full" } });
  world.settle();
  assert.equal(put(world, limited(copy(64))).status, 200, "nothing was promised");
  // Room was found meanwhile.
  world.volumesAre.set(uid, { sizeMiB: 200, owes: { phase: "failed", reason: "it has 200 MiB" } });
  world.settle();
  const more = put(world, limited(copy(64), scratch(60)));
  assert.equal(more.status, 400, JSON.stringify(more.body));
  assert.match(
    JSON.stringify(more.body),
    /asks for 252 MiB of storage, its volumes were given 136 MiB more than it says, and its limit is 364.*Ask for 228 MiB or less, or write `x\.limits\.storage 388` or more/,
  );
  const moved = limited({
    ...scratch(60),
    other: { ...(copy(64).webDisk as JsonObject), "x.movedFrom": "shop/webDisk" },
  });
  const { webDisk: _, webBoot, ...rest } = moved.shop as JsonObject;
  const boot = { ...(webBoot as JsonObject), "x.volume": "<ref:/shop/other>" };
  assert.match(JSON.stringify(put(world, { shop: { ...rest, webBoot: boot } }).body), /136 MiB more than it says/);
  assert.equal(put(world, limited(copy(64), scratch(36))).status, 200, "that there is room for");
  assert.equal(put(world, limited(copy(200), scratch(36))).status, 200, "as large as it is");
  assert.equal(put(world, limited(copy(200))).status, 200);
});

test("what is promised beyond the model is not given back to the parent, and is asked for with what is new", () => {
  const world = new World({ child: true });
  let serial = 0;
  const grant = (storageMiB: number): void => {
    serial += 1;
    const amount = {
      vms: 9,
      memoryMiB: 9999,
      cpus: 9,
      volumes: 9,
      storageMiB,
      subnets: 9,
      addresses: 999,
      publicAddresses: 0,
    };
    const life = { uid: "c1", model: {}, grant: { amount, serial, answered: 0, refusal: null }, ending: false };
    world.step({ kind: "desired", from: peerName("cell-manager"), key: lifeKey, value: life });
    world.settle();
  };
  const holds = () => quotaOf(world.state).holds.storageMiB;
  grant(9999);
  world.put(shop(copy(64)));
  world.settle();
  assert.equal(holds(), 192);
  world.volumesAre.set(world.uidOf("shop/webDisk"), { sizeMiB: 200 });
  world.settle();
  grant(9999);
  assert.equal(holds(), 328);
  assert.equal(roomNeeded(world.state, world.state.cell, { steps: [] }), null);
  grant(300);
  assert.equal(roomNeeded(world.state, world.state.cell, { steps: [] })?.storageMiB, 328);
});

test("a copy whose size is left out keeps what it has, which the plan says and the quota counts", () => {
  const world = new World();
  world.put(limited(copy(128)));
  world.settle();
  const uid = world.uidOf("shop/webDisk");
  world.volumesAre.set(uid, { sizeMiB: 128 });
  world.settle();
  const answer = put(world, limited(copy(null)));
  assert.equal(answer.status, 200, JSON.stringify(answer.body));
  const { plan } = answer.body as unknown as { readonly plan: { readonly steps: readonly JsonObject[] } };
  const step = plan.steps.find(({ path }) => path === "shop/webDisk");
  assert.deepEqual([step?.action, step?.keepsMiB], ["change", 128]);
  const planned = (sizeMiB: number): JsonObject | undefined => {
    const { body } = world.ask({ method: "PUT", path: "", json: limited(copy(sizeMiB)), dryRun: true });
    const { steps } = (body as unknown as { readonly plan: { readonly steps: readonly JsonObject[] } }).plan;
    return steps.find(({ path }) => path === "shop/webDisk");
  };
  const [same, larger] = [planned(128), planned(200)];
  assert.deepEqual([same?.action, same?.keepsMiB, same?.grows], ["change", 128, undefined], "it is as large already");
  assert.deepEqual([larger?.keepsMiB, larger?.grows !== undefined], [undefined, true]);
  world.settle();
  assert.equal(world.uidOf("shop/webDisk"), uid);
  assert.equal(world.phase("shop/webDisk"), "ready");
  assert.equal(put(world, limited(copy(null), scratch(109))).status, 400, "64 + 128 + 64 + 109");
  assert.equal(put(world, limited(copy(null), scratch(108))).status, 200);
  assert.match(JSON.stringify(put(world, limited(copy(100))).body), /has 128 MiB, and a volume cannot be made smaller/);
});

test("what is held for a copy counts in the quota until that is made, also when the whole model has gone", () => {
  const world = new World({ child: true });
  const amount = {
    vms: 9,
    memoryMiB: 9999,
    cpus: 9,
    volumes: 9,
    storageMiB: 9999,
    subnets: 9,
    addresses: 999,
    publicAddresses: 0,
  };
  const life = { uid: "c1", model: {}, grant: { amount, serial: 1, answered: 0, refusal: null }, ending: false };
  world.step({ kind: "desired", from: peerName("cell-manager"), key: lifeKey, value: life });
  const holds = () => quotaOf(world.state).holds.storageMiB;
  const grant = {
    "x.type": "VolumeGrant",
    "x.volume": "<ref:/shop/scratch>",
    "x.cell": "<ref://nobody.cells.internal/>",
    "x.grant": "copy",
    "x.hold": "nobody/copy",
  };
  world.put({ shop: { "x.type": "Cell", ...scratch(300), grant } });
  world.settle();
  const uid = world.uidOf("shop/scratch");
  assert.equal(holds(), 300);
  assert.equal(world.ask({ method: "DELETE", path: "" }).status, 200);
  world.settle();
  assert.equal(holds(), 300, "the volume is still there");
  const manager = peerName("storage-manager");
  for (const { uid: of, ...grants } of world.documents<DesiredGrant>("storage-manager", "grant"))
    world.step({
      kind: "actual",
      from: manager,
      key: actualKey(world.state.options.self, `grant/${of}`),
      value: toJson({ phase: "ready", reason: null, grants, copied: true }),
    });
  world.settle();
  assert.equal(world.state.elements.has(uid), false);
  assert.equal(holds(), 0);
});
