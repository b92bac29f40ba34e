import assert from "node:assert/strict";
import { test } from "node:test";
import { cidr } from "../../../model/cell/identifiers.ts";
import { endsAs, parts, web } from "../explain/remedy-worlds.testing.ts";
import { shop, World } from "../world.testing.ts";

/*
 * A controller whose store is older wants a subnet again that it had given back since, with the range of then. Another cell's
 * has that by now.
 */
const rangeOf = (world: World, path: string): string | undefined => world.recordOf(path).range?.cidr;
const addressOf = (world: World, path: string): string | undefined => world.recordOf(path).allocation?.address;

/** The range of `shop/front` is another's, as this controller hears at its next start. */
function taken(changes: Parameters<typeof shop>[0] = {}): World {
  const world = new World();
  world.put(shop(changes));
  world.settle();
  world.takenRanges.add(cidr(rangeOf(world, "shop/front") ?? ""));
  world.crash();
  return world.settle();
}

test("a range that another subnet has and no machine uses is given up: subnet and interfaces get others", () => {
  const off = web({ "x.desiredState": "off" });
  const world = taken(off);
  const range = rangeOf(world, "shop/front") ?? "";
  assert.ok(!world.takenRanges.has(cidr(range)), range);
  assert.equal(world.phase("shop/front"), "ready");
  const front = range.replace(/\.\d+\/29$/, ".");
  assert.ok(addressOf(world, "shop/webCard")?.startsWith(front));
  world.put(shop());
  world.settle();
  const [card] = world.vm("shop/web")?.document.interfaces ?? [];
  assert.equal(card?.address, addressOf(world, "shop/webCard"));
  assert.equal(world.phase("shop/web"), "ready");
});

test("a range that a machine uses stays with it as long as it runs, and it starts anew with another one", () => {
  const world = taken();
  const before = addressOf(world, "shop/webCard");
  assert.deepEqual(
    world.recordOf("shop/front").causes.map(({ kind }) => kind),
    ["range-taken"],
  );
  assert.equal(world.phase("shop/web"), "ready", "it goes on");
  assert.equal(world.phase("shop/back"), "ready");
  const { incarnation = 0 } = world.vm("shop/web")?.document ?? {};
  endsAs(world, { power: "off", ended: "crashed", phase: "failed", reason: "its QEMU ended" });
  for (const name of [...world.timers.keys()].filter((each) => each.startsWith("retry"))) world.fire(name);
  const next = world.vm("shop/web")?.document;
  assert.ok((next?.incarnation ?? 0) > incarnation, "it was started again");
  assert.equal(world.phase("shop/front"), "ready");
  assert.notEqual(addressOf(world, "shop/webCard"), before);
  assert.equal(next?.interfaces[0]?.address, addressOf(world, "shop/webCard"));
});

test("an interface that its machine can do without holds nothing up in a subnet whose range is another's", () => {
  const spare = { ...parts().webCard, "x.subnet": "<ref:/shop/front>", "x.vifName": "spare", "x.requires": false };
  const back = { webCard: { ...parts().webCard, "x.subnet": "<ref:/shop/back>" } };
  const world = taken({ ...back, spare });
  assert.equal(world.phase("shop/web"), "ready");
});
