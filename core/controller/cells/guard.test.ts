import assert from "node:assert/strict";
import { test } from "node:test";
import { hostName, peerName } from "../../../model/cell/identifiers.ts";
import type { Json, JsonObject } from "../../../model/json/json.ts";
import { lifeKey } from "../../documents/cells.ts";
import type { DesiredGuard, DesiredProtected } from "../../documents/ha.ts";
import type { Effect } from "../../env.ts";
import { toJson } from "../../outbox.ts";
import { childGrant, shop, World } from "../world.testing.ts";

/* A child cell whose HA Manager is gone. */
const cellManager = peerName("cell-manager");
const [second, third] = [peerName("ha-manager.2"), peerName("ha-manager.3")];

class Child extends World {
  constructor() {
    super({ child: true, haManager: second });
    // There is nobody who could take anything back.
    this.silent.add(second);
    this.step({ kind: "request", id: 1, request: { method: "HA" } });
  }
  live(more: JsonObject = {}, model: JsonObject = shop()): this {
    const uid = this.state.options.cellUid;
    const value = toJson({ uid, model, grant: childGrant, ending: false, ...more });
    this.step({ kind: "desired", from: cellManager, key: lifeKey, value });
    this.settle();
    return this;
  }
  over(by: string, path: string, more: JsonObject = {}): void {
    const vm = this.uidOf(path);
    const { incarnation = 0 } = this.vm(path)?.document ?? {};
    const at = this.documents<DesiredProtected>(by, "protected").find((each) => each.vm === vm)?.boundAt;
    const value = toJson({
      vm,
      incarnation,
      host: "h1",
      by: "storage",
      ...(at === undefined ? {} : { boundAt: at }),
      ...more,
    });
    this.step({ kind: "actual", from: peerName(by), key: `controller.shop/over/${vm}`, value });
    this.settle();
    for (const name of [...this.timers.keys()]) this.fire(name);
  }
  get guard(): string | undefined {
    const guard = this.desired.get(peerName("storage-manager"))?.get("guard") as unknown as DesiredGuard | undefined;
    const at = this.documents<DesiredProtected>(guard?.haManager ?? "", "protected").map(({ boundAt }) => boundAt);
    if (guard !== undefined)
      assert.ok(
        at.every((each) => each === guard.boundAt),
        "the same to all",
      );
    return guard?.haManager;
  }
  protectedAt(by: string): number {
    return this.documents(by, "protected").length;
  }
}
test("the guard of a cell moves once its HA Manager is gone, with all that is protected, and nothing waits for the former one", () => {
  const child = new Child().live();
  assert.deepEqual([child.guard, child.protectedAt(second), child.protectedAt(third)], [second, 2, 0]);
  child.live({ guard: 3 });
  assert.deepEqual([child.guard, child.protectedAt(second), child.protectedAt(third)], [third, 0, 2]);
  assert.equal(child.state.outbox.releasing.get(second), undefined);
  child.crash();
  assert.deepEqual([child.guard, child.protectedAt(third)], [third, 2], "its own store tells it");
  assert.equal(child.state.outbox.releasing.get(second), undefined);
  child.live({ guard: 1 });
  assert.deepEqual(
    [child.guard, child.protectedAt("ha-manager")],
    ["ha-manager", 2],
    "of the first it is said as well",
  );
});

test("a Cell Manager whose store is older does not move the cell back, and hears which one it has", () => {
  const child = new Child().live({ guard: 4, guardMoves: 1 });
  const said = () => {
    const life = child.state.outbox.published.get(`cell-manager/${lifeKey}`) as JsonObject | undefined;
    return [life?.guard, life?.guardMoves];
  };
  child.live({ guard: 3, guardMoves: 2 });
  assert.deepEqual([child.guard, said()], [third, [3, 2]]);
  child.live({ guard: 4, guardMoves: 1 });
  assert.deepEqual([child.guard, said()], [third, [3, 2]]);
  child.crash();
  child.live({ guard: 4, guardMoves: 1 });
  assert.deepEqual([child.guard, said()], [third, [3, 2]], "also after a start");
  child.live({ guard: 3, guardMoves: 5 });
  assert.deepEqual([child.guard, said()], [third, [3, 5]]);
  child.live({ guard: 2 });
  assert.equal(child.guard, second, "one of an earlier version says no count");
});

test("what the former HA Manager says to be over counts no more from the step on that hears of another", () => {
  const child = new Child().live();
  child.withdraw(peerName("host.h1"));
  child.hosts.delete(hostName("h1"));
  const before = child.vm("shop/web")?.document.incarnation;
  child.live({ guard: 3 });
  child.over(second, "shop/web");
  assert.deepEqual([child.vm("shop/web")?.host, child.vm("shop/web")?.document.incarnation], ["host.h1", before]);
  child.over(third, "shop/web", { boundAt: 7 });
  assert.equal(child.vm("shop/web")?.host, "host.h1", "it said so when it had the cell before");
  child.over(third, "shop/web");
  assert.equal(child.vm("shop/web")?.host, "host.h2");
});

test("a child whose store was lost says of no HA Manager that it is its own before it has heard how its life is", () => {
  const child = new Child();
  child.settle();
  assert.equal(child.guard, undefined);
  child.live({ guard: 3 });
  assert.deepEqual([child.guard, child.protectedAt(third)], [third, 2]);
  const isOfSecond = (effect: Effect): boolean => effect.kind === "desire" && JSON.stringify(effect).includes(second);
  assert.deepEqual(child.effects.filter(isOfSecond), []);
});

test("its machines, its summary and why say that nobody looks after them, and how that ends", () => {
  const child = new Child().live({ unguarded: true });
  const sentence =
    /ready: .*ha-manager\.2, which looks after the machines of shop, is gone: none of them starts elsewhere/;
  assert.match(child.phases()["shop/web"] ?? "", sentence);
  const fix =
    /whoever has declared shop gives its CellController another x\.services\.haManager.* role ha-manager with number 2 again/;
  assert.match(JSON.stringify(child.ask({ method: "WHY-ELEMENT", path: "shop/web" }).body), fix);
  assert.match(JSON.stringify(child.ask({ method: "SUMMARY" }).body), fix);
  const said = (): Json | undefined => child.desired.get(peerName("ha-manager"))?.get("unguarded");
  assert.deepEqual(said(), { cell: "shop", haManager: "ha-manager.2" }, "the first one opens an alert");
  child.withdraw(peerName("host.h1"));
  assert.match(child.phases()["shop/web"] ?? "", /host h1 is not reachable.*; ha-manager\.2, which looks after/);
  child.live({ guard: 3 });
  assert.equal(said() ?? null, null);
  assert.doesNotMatch(JSON.stringify(child.ask({ method: "SUMMARY" }).body), /is gone/);
  assert.deepEqual((child.ask({ method: "SUMMARY" }).body as { services: Json }).services, {
    placer: 1,
    storageManager: 1,
    haManager: 3,
  });
});

test("a cell that ends leaves nothing behind at an HA Manager that is gone", () => {
  const child = new Child().live();
  child.live({ guard: 3, ending: true });
  for (let round = 0; round < 20 && child.state.elements.size > 0; round += 1) {
    for (const name of [...child.timers.keys()]) child.fire(name);
    child.settle();
  }
  assert.deepEqual([child.state.elements.size, child.guard, child.protectedAt(third)], [0, undefined, 0]);
  assert.equal(
    [...child.state.outbox.releasing.values()].every((keys) => keys.size === 0),
    true,
  );
});
