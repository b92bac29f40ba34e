import assert from "node:assert/strict";
import { test } from "node:test";
import { type CellName, ipv4, mac, peerName, uid } from "../../../model/cell/identifiers.ts";
import { noUsage } from "../../../model/check/check-limits.ts";
import type { Json, JsonObject } from "../../../model/json/json.ts";
import type { DesiredCell } from "../../documents/cells.ts";
import type { Effect } from "../../env.ts";
import { toJson } from "../../outbox.ts";
import { createCheckedController } from "../changes/agreement.ts";
import type { ControllerRequest, ControllerResponse } from "../requests/requests.ts";

const cellManager = peerName("cell-manager");

class Member {
  readonly #service;
  readonly desired = new Map<string, Json>();
  state;
  constructor(cell: string, child: boolean) {
    this.#service = createCheckedController({
      cell: cell as CellName,
      cellUid: uid(cell),
      cellNumber: 1,
      domain: "cells.internal",
      address: ipv4("10.0.3.1"),
      mac: mac("02:00:0a:00:03:01"),
      self: peerName(`controller.${cell}`),
      cellManager: true,
      ...(child ? { child: true } : {}),
    });
    this.state = this.#service.restore({ records: new Map(), desiredAt: new Map() });
    this.#take(this.#service.step(this.state, { kind: "start" }, { ms: 0, wallMs: 0 }).effects);
    for (const peer of ["storage-manager", "address-manager", "dns-manager", "placer", "cell-manager"])
      this.step({ kind: "reachable", peer: peerName(peer), reachable: true });
  }
  #take(effects: readonly Effect[]): readonly Effect[] {
    for (const effect of effects) {
      if (effect.kind !== "desire" || effect.to !== cellManager) continue;
      if (effect.value === null) this.desired.delete(effect.key);
      else this.desired.set(effect.key, effect.value);
    }
    return effects;
  }
  step(input: Parameters<ReturnType<typeof createCheckedController>["step"]>[1]): readonly Effect[] {
    const { state, effects } = this.#service.step(this.state, input, { ms: 1, wallMs: 1 });
    this.state = state;
    return this.#take(effects);
  }
  ask(request: ControllerRequest): ControllerResponse | undefined {
    const effects = this.step({ kind: "request", id: 1, request: toJson(request) });
    const reply = effects.find((effect) => effect.kind === "reply");
    return reply?.response as unknown as ControllerResponse | undefined;
  }
  paths(): string[] {
    return [...(this.state.cell?.elements.keys() ?? [])].sort();
  }
  cells(): string[] {
    return [...this.desired.values()].map((value) => (value as unknown as DesiredCell).cell).sort();
  }
}
const childOf = (name: string): JsonObject => ({
  "x.type": "CellController",
  "x.cell": { [name]: { "x.type": "Cell" } },
});
const vm: JsonObject = { "x.type": "VM", "x.memory": 64, "x.desiredState": "off" };

test("a child of the root cell has its label for a name, and none is called root", () => {
  const root = new Member("root", false);
  root.ask({ method: "PUT", path: "", json: { root: { "x.type": "Cell", core1: vm } } });
  assert.equal(root.ask({ method: "PUT", path: "root/cells/shop", json: childOf("shop") })?.status, 200);
  assert.equal(root.ask({ method: "PUT", path: "root/cells/root", json: childOf("root") })?.status, 200);
  assert.deepEqual(root.cells(), ["shop"]);
  const record = [...root.state.elements.values()].find(({ path }) => path === "root/cells/root");
  assert.deepEqual(record?.causes, [{ kind: "child-named-root", name: "root" }]);
  const named = { ...childOf("root"), "x.cell": { root: { "x.type": "Cell", "x.name": "bank" } } };
  assert.equal(root.ask({ method: "PUT", path: "root/cells/root", json: named })?.status, 200);
  assert.deepEqual(root.cells(), ["bank", "shop"], "another x.name makes it one, as it is told");
  const shop = new Member("shop", false);
  shop.ask({ method: "PUT", path: "", json: { shop: { "x.type": "Cell", web: childOf("web") } } });
  assert.deepEqual(shop.cells(), ["web.shop"]);
});

test("the root cell's specification comes again, and nobody's cell goes with it", () => {
  const root = new Member("root", false);
  const specification = (...names: string[]): JsonObject => ({
    root: { "x.type": "Cell", ...Object.fromEntries(names.map((name) => [name, vm])) },
  });
  root.ask({ method: "PUT", path: "", json: specification("core1", "core2") });
  root.ask({ method: "PUT", path: "root/cells/shop", json: childOf("shop") });
  root.ask({ method: "PUT", path: "root/controllers/shop", json: { vm } });
  root.ask({ method: "PUT", path: "", json: specification("core1", "core3") });
  assert.deepEqual(root.paths(), ["root/cells/shop", "root/controllers/shop/vm", "root/core1", "root/core3"]);
  const text = 'root extends Cell { core4 extends VM { x.memory 64; x.desiredState "off"; } }';
  root.ask({ method: "PUT", path: "", bundle: { main: "root.sf", files: { "root.sf": text } } });
  assert.deepEqual(root.paths(), ["root/cells/shop", "root/controllers/shop/vm", "root/core4"]);
  // One by one they go.
  root.ask({ method: "DELETE", path: "root/controllers/shop" });
  root.ask({ method: "DELETE", path: "root/cells/shop" });
  assert.deepEqual(root.paths(), ["root/core4"]);
  // A cell with such names that is not the root cell is the business of its users.
  const shop = new Member("shop", false);
  shop.ask({ method: "PUT", path: "", json: { shop: { "x.type": "Cell", cells: { a: vm } } } });
  shop.ask({ method: "PUT", path: "", json: { shop: { "x.type": "Cell" } } });
  assert.deepEqual(shop.paths(), []);
  assert.equal(shop.ask({ method: "PUT", path: "shop/cells/a", json: vm })?.status, 404);
});

test("a child of the root cell has what it is granted, though its name has no parent in it", () => {
  const shop = new Member("shop", true);
  const request = { method: "PUT", path: "", json: { shop: { "x.type": "Cell", a: vm } } } as const;
  assert.equal(shop.ask(request), undefined, "it waits for its life");
  const grant = { amount: noUsage, serial: 1, answered: 0, refusal: null };
  const life = { uid: "root-1", model: { shop: { "x.type": "Cell" } }, grant, ending: false };
  shop.step({ kind: "desired", from: cellManager, key: "life", value: life });
  shop.step({ kind: "reachable", peer: peerName("placer"), reachable: true });
  assert.deepEqual([shop.state.model.version, shop.paths()], [1, []]);
  const { amount } = shop.state.ask ?? assert.fail("its parent is asked for room");
  const more = { ...grant, amount, serial: 2, answered: 1 };
  shop.step({ kind: "desired", from: cellManager, key: "life", value: { ...life, grant: more } });
  assert.deepEqual([shop.state.model.version, shop.paths()], [2, ["shop/a"]]);
});

test("hosts that a Placer tells of are written into the root cell, each once", () => {
  const root = new Member("root", false);
  const hear = (...hosts: readonly string[]): void => {
    const all = hosts.map((host) => ({ host, memoryMiB: 4096, cpus: 8, cpuSpeedMHz: 2000 }));
    root.step({
      kind: "actual",
      from: peerName("placer"),
      key: "hosts",
      value: toJson({ hosts: all, complete: true }),
    });
  };
  hear("h1");
  assert.deepEqual(root.paths(), [], "there is no model yet");
  root.ask({ method: "PUT", path: "", json: { root: { "x.type": "Cell", core1: vm } } });
  hear("h1", "h2");
  assert.deepEqual(root.paths(), ["root/core1", "root/hosts/h1", "root/hosts/h2"]);
  const { version } = root.state.model;
  hear("h1", "h2");
  assert.equal(root.state.model.version, version);
});

test("a patch adds to what the root cell has grown, also where nothing has grown yet, and takes nothing there that is not", () => {
  const root = new Member("root", false);
  root.ask({ method: "PUT", path: "", json: { root: { "x.type": "Cell", core1: vm } } });
  const patch = (op: string, path: string, more: object = {}): number | undefined =>
    root.ask({ method: "PATCH", path: "", patch: [{ op, path, ...more }] } as unknown as ControllerRequest)?.status;
  assert.equal(patch("add", "/root/cells/shop", { value: childOf("shop") }), 200);
  assert.deepEqual(root.paths(), ["root/cells/shop", "root/core1"]);
  assert.notEqual(patch("remove", "/root/hosts/h1"), 200);
  assert.deepEqual(root.paths(), ["root/cells/shop", "root/core1"]);
});
