import assert from "node:assert/strict";
import { test } from "node:test";
import { peerName } from "../../../../model/cell/identifiers.ts";
import { asksForTags, missingMark } from "../../../../model/cell/tenants/dedication/marks.ts";
import type { KnownOffering } from "../../../../model/cell/tenants/pools/offerings.ts";
import type { JsonObject } from "../../../../model/json/json.ts";
import { desiredPlacement } from "../../../documents/readers/placement.ts";
import type { DesiredPlacement } from "../../../documents/vocabulary.ts";
import { toJson } from "../../../outbox.ts";
import { shop, World } from "../../world.testing.ts";

const vm = (more: JsonObject): JsonObject => ({ "x.type": "VM", "x.memory": 512, ...more });
const asked = (world: World, path = "shop/web"): DesiredPlacement | undefined =>
  world.documents<DesiredPlacement>("placer", "placement").find((each) => each.path === path);
function say(world: World, offerings?: readonly KnownOffering[]): void {
  const hosts = [{ host: "h1", memoryMiB: 4096, cpus: 8, cpuSpeedMHz: 2000 }];
  const value = toJson({ hosts, complete: true, ...(offerings === undefined ? {} : { offerings }) });
  world.step({ kind: "actual", from: peerName("placer"), key: "hosts", value });
  world.settle();
}
const small: KnownOffering = {
  name: "small",
  memoryMiB: 1024,
  cpus: 2,
  cpuSpeedMHz: 1000,
  tags: ["ssd"],
  dedication: "strict",
};

test("a VM stands where its offering has it stand, with what it asks for itself", () => {
  const world = new World();
  say(world, [small]);
  world.put(shop({ web: vm({ "x.placement.offering": "small", "x.placement.tags": "gpu" }), app: vm({}) }));
  world.settle();
  const { memoryMiB, cpuSpeedMHz, placement } = asked(world) ?? assert.fail();
  assert.deepEqual(
    [memoryMiB, cpuSpeedMHz, placement],
    [512, 1000, { offering: "small", tags: ["gpu", "ssd"], dedication: "strict" }],
  );
  assert.deepEqual(asked(world, "shop/app")?.placement, {});
  const before = asked(world);
  say(world, [{ ...small, tags: ["nvme"] }]);
  assert.deepEqual(asked(world), before, "what it was started as it stays");
});

test("what a VM and its offering ask for together is asked for, however many tags these are", () => {
  const tags = (letter: string): string[] => Array.from({ length: 64 }, (_, at) => `${letter}${at}`);
  const world = new World();
  const marks = { places: [], tags: tags("a"), properties: [] };
  const hosts = [{ host: "h1", memoryMiB: 4096, cpus: 8, cpuSpeedMHz: 2000 }];
  const value = toJson({ hosts, complete: true, marks, offerings: [{ ...small, tags: tags("b") }] });
  world.step({ kind: "actual", from: peerName("placer"), key: "hosts", value });
  world.settle();
  world.put(shop({ web: vm({ "x.placement.offering": "small", "x.placement.tags": tags("a") }) }));
  world.settle();
  const { placement = {} } = asked(world) ?? {};
  assert.deepEqual(missingMark({ tags: tags("a") }, placement), { wish: "tags", of: "b0" });
  assert.equal(asksForTags(placement), true);
});

test("a VM waits until it is known what its offering is, and says so", () => {
  const world = new World();
  say(world);
  world.put(shop({ web: vm({ "x.placement.offering": "small" }) }));
  world.settle();
  assert.equal(asked(world), undefined);
  const reason = () => JSON.stringify(world.ask({ method: "WHY-ELEMENT", path: "shop/web" }).body);
  assert.match(reason(), /has not said yet what the offering small is/);
  say(world, []);
  assert.match(reason(), /there is no offering small any more/);
  say(world, [small]);
  assert.equal((asked(world)?.placement as JsonObject | undefined)?.dedication, "strict");
});

test("who asks for a pool says what it boots from: an image, through copies, or a volume of another cell", () => {
  const world = new World();
  const disk = (volume: string, of: string): JsonObject => ({
    "x.type": "VolumeConnection",
    "x.vm": `<ref:../${of}>`,
    "x.volume": volume,
    "x.bootOrder": 1,
  });
  const pool = { "x.placement.pool": "c1-4" };
  world.put(
    shop({
      base: { "x.type": "Volume", "x.size": 64, "x.import": "debian" },
      copy: { "x.type": "VolumeCopy", "x.image": "<ref:../base>" },
      web: vm(pool),
      first: disk("<ref:../copy>", "web"),
      app: vm(pool),
      plain: vm({}),
      third: disk("<ref:../base>", "plain"),
    }),
  );
  world.settle();
  assert.equal(asked(world)?.image, "debian");
  const longest = `//${"a".repeat(253)}/${"b".repeat(253)}`;
  assert.equal(desiredPlacement.of(toJson({ ...asked(world), image: longest }))?.image, longest);
  assert.ok(asked(world, "shop/app") !== undefined && !("image" in (asked(world, "shop/app") ?? {})));
  assert.equal(asked(world, "shop/plain")?.image, undefined, "nobody asks for it elsewhere");
});
