import assert from "node:assert/strict";
import { test } from "node:test";
import { peerName } from "../../../model/cell/identifiers.ts";
import type { JsonObject } from "../../../model/json/json.ts";
import { type ActualLife, lifeKey } from "../../documents/cells.ts";
import { actualKey } from "../../documents/vocabulary.ts";
import { toJson } from "../../outbox.ts";
import { childGrant, shop, World } from "../world.testing.ts";
import { nothingLeft } from "./life.ts";

const cellManager = peerName("cell-manager");

/** What a child's controller says of its cell's life to the Cell Manager. */
class Child {
  readonly world: World;
  constructor(more: Partial<ConstructorParameters<typeof World>[0]> = {}) {
    this.world = new World({ child: true, ...more });
  }
  live(model: JsonObject, ending = false, off = false): void {
    const uid = this.world.state.options.cellUid;
    const life = toJson({ uid, model, grant: childGrant, ending, ...(off ? { off } : {}) });
    this.world.step({ kind: "desired", from: cellManager, key: lifeKey, value: life });
    this.world.settle();
  }
  get says(): Pick<ActualLife, "phase" | "reason"> {
    const key = actualKey(cellManager, lifeKey);
    const said = this.world.effects.findLast((effect) => effect.kind === "publish" && effect.key === key);
    const { phase, reason } = (said?.kind === "publish" ? said.value : null) as unknown as ActualLife;
    return { phase, reason };
  }
}

test("a cell that was accepted is ready, and one that ends says what is left of it", () => {
  const child = new Child();
  child.live(shop());
  assert.deepEqual(child.says, { phase: "ready", reason: null });
  child.world.silent.add(peerName("storage-manager"));
  child.live(shop(), true);
  const { phase, reason } = child.says;
  assert.equal(phase, "deleting");
  assert.match(reason ?? "", /^\d+ of its elements are left$/);
});

test("a cell that has ended says to nobody any more which HA Manager looks after it", () => {
  const child = new Child({ haManager: peerName("ha-manager.2") });
  const { world } = child;
  const guard = (): unknown => world.desired.get(peerName("storage-manager"))?.get("guard");
  world.step({ kind: "request", id: 1, request: { method: "HA" } });
  child.live(shop());
  assert.deepEqual(guard(), { cell: "shop", haManager: "ha-manager.2" });
  world.silent.add(peerName("storage-manager"));
  child.live(shop(), true);
  assert.notEqual(guard(), undefined, "something of it is left, and may have to be fenced");
  world.silent.delete(peerName("storage-manager"));
  for (let round = 0; round < 20 && world.state.elements.size > 0; round += 1) {
    for (const name of [...world.timers.keys()]) world.fire(name);
    world.settle();
  }
  assert.equal(world.state.elements.size, 0);
  assert.equal(guard(), undefined);
});

test("a first model that is refused is told with its reason", () => {
  const child = new Child();
  child.live(shop({ more: { "x.type": "Nothing" } }));
  assert.equal(child.says.phase, "failed");
  assert.match(child.says.reason ?? "", /^its first model is refused: /);
});

test("a cell whose controller's store is older has failed until somebody lets it count, and says so", () => {
  const child = new Child();
  child.live(shop());
  const forked = (isForked: boolean): void => {
    child.world.step({ kind: "forked", peer: peerName("storage-manager"), forked: isForked, itForked: false });
    child.world.settle();
  };
  forked(true);
  assert.equal(child.says.phase, "failed");
  assert.match(child.says.reason ?? "", /was lost or is older than what storage-manager holds/);
  forked(false);
  assert.deepEqual(child.says, { phase: "ready", reason: null });
});

test("machines of a cell whose account is disabled are off, and stay so after a crash; then they start again", () => {
  const child = new Child();
  const { world } = child;
  const running = (): number => [...world.state.vms.values()].filter(({ run }) => run !== null).length;
  child.live(shop());
  assert.equal(running(), 2);
  child.live(shop(), false, true);
  assert.equal(running(), 0);
  assert.match(world.phases()["shop/web"] ?? "", /^waiting: .* is disabled: its machines are off/);
  const record = [...world.state.elements.values()].find(({ path }) => path === "shop/web");
  assert.match(JSON.stringify(record?.causes), /is disabled: its machines are off/);
  const why = world.ask({ method: "WHY-ELEMENT", path: "shop/web" });
  assert.match(JSON.stringify(why.body), /is disabled: its machines are off/);
  world.crash();
  child.live(shop(), false, true);
  assert.equal(running(), 0, "also who starts anew knows it");
  child.live(shop());
  assert.equal(running(), 2);
});

test("a cell has nothing left only when neither an element nor a grant is", () => {
  const of = (elements: number, grants: number, ending = true): boolean =>
    nothingLeft({
      life: { ending },
      model: { document: null },
      elements: { size: elements },
      grants: { size: grants },
    } as unknown as Parameters<typeof nothingLeft>[0]);
  assert.ok(of(0, 0));
  for (const [elements, grants] of [
    [1, 0],
    [0, 1],
    [1, 1],
  ] as const)
    assert.ok(!of(elements, grants), `${elements} and ${grants}`);
  assert.ok(!of(0, 0, false), "it does not end");
});
