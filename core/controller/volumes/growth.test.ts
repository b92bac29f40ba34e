import assert from "node:assert/strict";
import { test } from "node:test";
import type { ElementState } from "../../../model/api.ts";
import type { JsonObject } from "../../../model/json/json.ts";
import type { PlanStep } from "../../../model/plan/plan-types.ts";
import type { ControllerResponse } from "../requests/requests.ts";
import { shop, World } from "../world.testing.ts";

/*
 * A volume with a larger x.size is ready when it has that size, and so has the disk of the VM that runs; until then its state says what is
 * owed and when it comes, and the plan said so before.
 */
const copy = (sizeMiB: number): JsonObject => ({
  webDisk: { "x.type": "VolumeCopy", "x.image": "<ref:/shop/golden>", "x.size": sizeMiB },
});
const stepOf = ({ body }: ControllerResponse, path: string): PlanStep | undefined =>
  (body as unknown as { readonly plan: { readonly steps: readonly PlanStep[] } }).plan.steps.find(
    (step) => step.path === path,
  );
const worldOf = (roomMiB: number, more: JsonObject = {}): World => {
  const world = new World();
  world.put(shop({ ...copy(64), ...more }));
  world.settle();
  world.volumesAre.set(world.uidOf("shop/webDisk"), { roomMiB });
  return world.settle();
};
/** What the server has of it; the Storage Manager has promised it all. */
const has = (world: World, smallerMiB: number, roomMiB: number): void => {
  world.volumesAre.set(world.uidOf("shop/webDisk"), { smallerMiB, roomMiB });
};

test("a volume in use grows while its VM runs, and is ready when the VM's host has shown it to the guest", () => {
  const world = worldOf(1000);
  has(world, 64, 1000);
  const step = stepOf(world.put(shop(copy(200))), "shop/webDisk");
  assert.deepEqual([step?.action, step?.grows], ["change", { when: "running", vm: "shop/web" }]);
  assert.equal(world.phase("shop/webDisk"), "working: grows from 64 to 200 MiB, while shop/web runs");
  assert.equal(world.phase("shop/web"), "ready", "which needs nothing of it");
  const connection = world.uidOf("shop/webBoot");
  const vm = `${world.uidOf("shop/web")}@1`;
  world.ended.set(vm, { disks: [{ connection, sizeMiB: null, reason: "QEMU refuses" }] });
  world.settle();
  assert.equal(world.phase("shop/webDisk"), "working: grows from 64 to 200 MiB, while shop/web runs: QEMU refuses");
  world.ended.set(vm, { disks: [{ connection, sizeMiB: 200, reason: null }] });
  world.settle();
  assert.equal(world.phase("shop/webDisk"), "ready");
});

test("a volume whose file has no room grows when its VM starts next, and so does an IDE disk", () => {
  const { webBoot } = shop().shop as { readonly webBoot: JsonObject };
  const ide = { webBoot: { ...webBoot, "x.busType": "ide" } };
  for (const [roomMiB, more, why] of [
    [100, {}, /the file that it runs with has no room for more/],
    [1000, ide, /a guest looks at the size of an IDE disk only then/],
  ] as const) {
    const world = worldOf(roomMiB, more);
    has(world, 64, roomMiB);
    const step = stepOf(world.put(shop({ ...copy(200), ...more })), "shop/webDisk");
    assert.deepEqual(step?.grows, { when: "next-start", vm: "shop/web" });
    assert.match(world.phase("shop/webDisk"), /^waiting: grows from 64 to 200 MiB at the next start of shop\/web: /);
    assert.match(world.phase("shop/webDisk"), why);
    const { body } = world.ask({ method: "GET", path: "shop/webDisk", state: true });
    assert.equal((body as { $state?: ElementState }).$state?.stuck, true, "so that nobody waits for it");
    const model = shop({ ...copy(200), ...more }).shop as JsonObject;
    world.put({ shop: { ...model, web: { ...(model.web as JsonObject), "x.desiredState": "off" } } });
    world.volumesAre.set(world.uidOf("shop/webDisk"), { roomMiB: 1000 });
    world.settle();
    assert.equal(world.phase("shop/webDisk"), "ready", "its server has grown it since");
  }
});

test("a volume that nobody uses grows at once; one that cannot grow says why", () => {
  const world = worldOf(1000);
  const off = (sizeMiB: number): JsonObject => {
    const model = shop(copy(sizeMiB)).shop as JsonObject;
    return { shop: { ...model, web: { ...(model.web as JsonObject), "x.desiredState": "off" } } };
  };
  world.put(off(64));
  has(world, 64, 1000);
  assert.deepEqual(stepOf(world.put(off(200)), "shop/webDisk")?.grows, { when: "now" });
  assert.match(world.phase("shop/webDisk"), /^working: grows from 64 to 200 MiB/);
  const owes = { phase: "waiting", reason: "it stays at 64 MiB: storage server s1 is full" } as const;
  world.volumesAre.set(world.uidOf("shop/webDisk"), { sizeMiB: 64, owes });
  world.settle();
  assert.equal(world.phase("shop/webDisk"), `waiting: ${owes.reason}`);
});

test("a volume is not made smaller, and of what is lost the true size is told", () => {
  const world = worldOf(1000);
  const asked = (json: JsonObject) => world.ask({ method: "PUT", path: "", json, allowDestroy: ["shop/webDisk"] });
  world.put(shop(copy(128)));
  const refused = asked(shop(copy(100)));
  assert.equal(refused.status, 400);
  assert.match(JSON.stringify(refused.body), /shop\/webDisk.*has 128 MiB, and a volume cannot be made smaller/);
  assert.match(JSON.stringify(refused.body), /make a volume of 100 MiB under another name/);
  assert.equal(
    asked(shop({ ...copy(128), golden: { "x.type": "Volume", "x.size": 128, "x.import": "tiny" } })).status,
    400,
  );
  has(world, 64, 100);
  world.put(shop(copy(200)));
  const { webDisk: _, webBoot: __, ...rest } = shop(copy(200)).shop as JsonObject;
  const lost = world.ask({ method: "PUT", path: "", json: { shop: rest } });
  assert.equal(lost.status, 409);
  assert.match(JSON.stringify(lost.body), /up to 64 MiB that were written since it was copied/);
});

test("a size that nothing could be promised for is written back, and that of a volume that was frozen before", () => {
  for (const said of [
    { sizeMiB: 64, owes: { phase: "waiting", reason: "it stays at 64 MiB: storage server s1 is full" } },
    { sizeMiB: 200, smallerMiB: 64, frozen: true, owes: { phase: "failed", reason: "it stays at 64 MiB" } },
  ] as const) {
    const world = worldOf(1000);
    const put = (sizeMiB: number) => world.ask({ method: "PUT", path: "", json: shop(copy(sizeMiB)) });
    const uid = world.uidOf("shop/webDisk");
    assert.equal(put(200).status, 200);
    world.volumesAre.set(uid, said);
    world.settle();
    assert.equal(put(32).status, 400, "it has more than that");
    const back = put(64);
    assert.equal(back.status, 200, JSON.stringify(back.body));
    assert.notEqual(stepOf(back, "shop/webDisk")?.action, "replace");
    world.volumesAre.set(uid, { roomMiB: 1000 });
    world.settle();
    assert.equal(world.uidOf("shop/webDisk"), uid);
    assert.equal(world.phase("shop/webDisk"), "ready");
  }
});
