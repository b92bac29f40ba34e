import assert from "node:assert/strict";
import { test } from "node:test";
import type { ElementAnswer } from "../../../../model/api.ts";
import { displayMiB } from "../../../../model/cell/attributes/display-memory.ts";
import { crossingSays } from "../../../../model/cell/tenants/dedication/alerts.ts";
import { mostOf } from "../../../../model/cell/tenants/wishes/nice.ts";
import type { JsonObject } from "../../../../model/json/json.ts";
import type { DesiredPlacement } from "../../../documents/vocabulary.ts";
import { shop, World } from "../../world.testing.ts";

/** By its nice wishes a VM may get more than it has to have. */
const web = (most = 2048): JsonObject => ({
  "x.type": "VM",
  "x.memory": 512,
  "x.restartOnFailure": true,
  "x.placement.nice": { roomy: { memory: most }, fast: { tags: "ssd", weight: 7 } },
});
function worldWith(given: { readonly memoryMiB: number; readonly cpus: number }, crashing = false): World {
  const world = new World();
  world.crashing = crashing;
  for (let at = 1; at < 20; at += 1) world.gives.set(`c1-${at}`, { given, nice: ["roomy"] });
  world.put(shop({ web: web() }));
  world.settle();
  return world;
}
const asked = (world: World): DesiredPlacement =>
  world.documents<DesiredPlacement>("placer", "placement").find(({ path }) => path === "shop/web") ?? assert.fail();

for (const crashing of [false, true])
  test(`a VM starts with what its place gives, and asks for no more than it has to have${crashing ? ", whenever its controller crashes" : ""}`, () => {
    const world = worldWith({ memoryMiB: 2048, cpus: 1 }, crashing);
    const { document } = world.vm("shop/web") ?? assert.fail();
    assert.deepEqual([document.memoryMiB, document.cpus, document.nice], [2048, 1, ["roomy"]]);
    const { memoryMiB, has, at } = asked(world);
    assert.deepEqual([memoryMiB, has], [512, { memoryMiB: 2048, cpus: 1 }]);
    assert.notEqual(at, undefined);
    // The next incarnation begins with what its text says.
    world.gives.clear();
    world.ask({ method: "PUT", path: "shop/web/x.restart", json: 1 });
    world.settle();
    const next = world.vm("shop/web")?.document ?? assert.fail();
    assert.deepEqual([next.memoryMiB, next.nice, asked(world).has], [512, undefined, undefined]);
  });

test("a screen is memory of its place, and none of its guest's", () => {
  const screen = (more: JsonObject): JsonObject => shop({ web: { ...web(), "x.display": "vga", ...more } });
  const world = new World();
  for (let at = 1; at < 20; at += 1)
    world.gives.set(`c1-${at}`, { given: { memoryMiB: 2048 + displayMiB, cpus: 1 }, nice: [] });
  world.put(screen({}));
  world.settle();
  const { document } = world.vm("shop/web") ?? assert.fail();
  assert.deepEqual([document.memoryMiB, document.besideMiB], [2048, displayMiB]);
  const { memoryMiB, has } = asked(world);
  assert.deepEqual([memoryMiB, has?.memoryMiB], [512 + displayMiB, 2048 + displayMiB]);
  const { placement } = asked(world);
  assert.equal(mostOf("memory", memoryMiB, placement), 2048 + displayMiB, "a Placer gives no more than is wished for");
  const fast = { tags: "ssd", weight: 7 };
  assert.deepEqual(placement, { nice: { roomy: { memory: 2048 + displayMiB, weight: 1 }, fast } });
  world.gives.clear();
  world.put(screen({ "x.display": "none" }));
  world.settle();
  assert.deepEqual(
    [asked(world).memoryMiB, asked(world).placement],
    [512, { nice: { roomy: { memory: 2048 }, fast } }],
  );
});

test("why says which of its wishes are so where it stands, and what it has by them", () => {
  const told = (world: World): string | undefined => {
    const { body } = world.ask({ method: "WHY-ELEMENT", path: "shop/web" });
    const { checks } = body as unknown as ElementAnswer;
    assert.ok(checks.every(({ passes }) => passes));
    return checks.find(({ check }) => check === "nice wishes")?.detail;
  };
  const world = worldWith({ memoryMiB: 2048, cpus: 1 });
  const has = "it has 2048 MiB and 1 processor, and has to have 512 MiB and 1 processor";
  assert.equal(told(world), `roomy is so; fast (weight 7) is not; ${has}`);
  world.gives.clear();
  world.ask({ method: "PUT", path: "shop/web/x.restart", json: 1 });
  world.settle();
  assert.equal(told(world), "none of what it would rather have is so; roomy, fast (weight 7) are not");
  const plain = new World();
  plain.put(shop({ web: { "x.type": "VM", "x.memory": 512 } }));
  plain.settle();
  assert.equal(told(plain), undefined);
});

test("more than its text asks for is not taken, whatever a Placer says: its quota counts no more", () => {
  for (const given of [
    { memoryMiB: 4096, cpus: 1 },
    { memoryMiB: 2048, cpus: 8 },
    { memoryMiB: 256, cpus: 1 },
  ]) {
    const { document } = worldWith(given).vm("shop/web") ?? assert.fail();
    assert.deepEqual([document.memoryMiB, document.cpus], [512, 1], JSON.stringify(given));
  }
});

test("a quota counts the most that a VM may get", () => {
  const world = new World();
  const model = { ...shop({ web: web(4096) }) } as { readonly shop: JsonObject };
  const answer = world.ask({ method: "PUT", path: "", json: { shop: { ...model.shop, "x.limits.memory": 4000 } } });
  assert.equal(answer.status, 400);
  assert.match(JSON.stringify(answer.body), /MiB of memory/);
});

test("why of a VM says that it came over what is dedicated, also of what only a later version knows", () => {
  const world = new World();
  for (let at = 1; at < 20; at += 1) world.gives.set(`c1-${at}`, { crossed: ["E1", "E9"] });
  world.put(shop({ web: web() }));
  world.settle();
  const { checks } = world.ask({ method: "WHY-ELEMENT", path: "shop/web" }).body as unknown as ElementAnswer;
  const { passes, detail } = checks.find(({ check }) => check === "dedication") ?? assert.fail();
  assert.deepEqual([passes, detail], [true, `by the way that it came here: E1, ${crossingSays.E1}; E9`]);
});
