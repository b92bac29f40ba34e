import assert from "node:assert/strict";
import { test } from "node:test";
import type { CellSummary } from "../../../model/api.ts";
import { peerName } from "../../../model/cell/identifiers.ts";
import type { JsonObject } from "../../../model/json/json.ts";
import { shop, World, written } from "../world.testing.ts";
import { measureController } from "./measure.ts";

const summaryOf = (world: World): CellSummary => world.ask({ method: "SUMMARY" }).body as unknown as CellSummary;
const figureOf = (world: World, name: string, labels: Readonly<Record<string, string>>): number | undefined =>
  measureController(world.state)
    .find((metric) => metric.name === name)
    ?.samples.find((sample) => Object.entries(labels).every(([label, value]) => sample.labels[label] === value))?.value;

test("a summary names what is not ready, causes before what waits for them, and no more than a few", () => {
  const world = new World();
  world.silent.add(peerName("storage-manager"));
  world.put(shop());
  world.slowVolumes.add(world.uidOf("shop/golden"));
  world.silent.clear();
  world.settle();
  const { waiting = [], elements } = summaryOf(world);
  assert.ok(waiting.length === 5 && waiting.length < elements);
  const sentence = "no server has room for it";
  const causes = [{ kind: "said", by: "storage-manager", sentence }];
  assert.deepEqual(waiting[0], { path: "shop/golden", phase: "waiting", reason: sentence, causes });
  assert.ok(waiting.every(({ phase, reason }) => phase !== "ready" && reason !== null));
  world.slowVolumes.clear();
  world.settle();
  assert.deepEqual(summaryOf(world).waiting, []);
});

test("what comes first follows from the kinds of causes, whatever a service writes in its sentences", () => {
  const world = new World();
  const golden = shop().shop as JsonObject;
  world.put({ shop: { "x.type": "Cell", golden: golden.golden ?? {}, other: golden.golden ?? {} } });
  const says = (path: string, reason: string): void => {
    const key = `controller.shop/volume/${world.uidOf(path)}`;
    const value = { phase: "waiting", reason, server: null, sizeMiB: null };
    world.step({ kind: "actual", from: peerName("storage-manager"), key, value });
  };
  says("shop/other", "no server has room for it");
  says("shop/golden", "waits for shop/other");
  const paths = (summaryOf(world).waiting ?? []).map(({ path }) => path);
  assert.deepEqual(paths, ["shop/golden", "shop/other"], "in the order of the model: neither waits for an element");
});

test("a cell in numbers follows its elements and its VMs' lives", () => {
  const world = new World();
  world.put(shop());
  assert.equal(figureOf(world, "cells_elements", { type: "VM", phase: "ready" }), 2);
  assert.equal(figureOf(world, "cells_elements", { type: "VM", phase: "failed" }), 0);
  assert.equal(figureOf(world, "cells_vm_runs", { stage: "running" }), 2);
  assert.equal(figureOf(world, "cells_vm_incarnations_total", { path: "shop/web" }), 1);
  assert.ok((figureOf(world, "cells_policy_rules", {}) ?? 0) > 0);
  world.ask({ method: "DELETE", path: "", allowDestroy: written });
  world.settle();
  assert.equal(figureOf(world, "cells_vm_runs", { stage: "running" }), 0);
  assert.equal(figureOf(world, "cells_elements", { type: "VM", phase: "ready" }), undefined);
});
