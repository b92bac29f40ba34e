import assert from "node:assert/strict";
import { test } from "node:test";
import type { Changed, Refusal } from "../../../model/api.ts";
import { recordsIn } from "../../../model/contract/testing/audited.testing.ts";
import type { Json, JsonObject } from "../../../model/json/json.ts";
import { childOf, Root, rootWithTenancy } from "../model/root.testing.ts";
import { shop, World } from "../world.testing.ts";
import type { ControllerResponse } from "./requests.ts";

const vm: JsonObject = { "x.type": "VM", "x.memory": 128 };
const patch = (world: Pick<World, "ask">, operations: Json, more: object = {}): ControllerResponse =>
  world.ask({ method: "PATCH", path: "", patch: operations, ...more });
const errorOf = ({ body }: ControllerResponse): Refusal["error"] => (body as unknown as Refusal).error;
const modelOf = (world: Pick<World, "ask">): JsonObject => world.ask({ method: "GET", path: "" }).body as JsonObject;

test("several parts of a model change at once, as one version with one record, and a dry run changes none", () => {
  const world = new World();
  world.put(shop());
  const before = modelOf(world);
  const operations = [
    { op: "test", path: "/shop/one", value: vm },
    { op: "add", path: "/shop/one/x.memory", value: 256 },
    { op: "copy", from: "/shop/one", path: "/shop/two" },
  ];
  world.put({ shop: { ...(before.shop as JsonObject), one: vm } });
  const planned = patch(world, operations, { dryRun: true });
  const steps = (planned.body as unknown as Changed).plan.steps.filter(({ action }) => action !== "none");
  assert.deepEqual(
    steps.map(({ path, action }) => [path, action]),
    [
      ["shop/one", "restart"],
      ["shop/two", "create"],
    ],
  );
  assert.equal(planned.version, 2);
  const changed = patch(world, operations);
  assert.deepEqual([changed.status, changed.version], [200, 3]);
  const { one, two } = modelOf(world).shop as { readonly one?: Json; readonly two?: Json };
  assert.deepEqual(
    [one, two],
    [
      { ...vm, "x.memory": 256 },
      { ...vm, "x.memory": 256 },
    ],
  );
  const last = recordsIn(world.records).at(-1);
  assert.deepEqual(
    [last?.verb, last?.target, last?.what, last?.before, last?.after],
    ["patchModel", "shop", "3 operations", 2, 3],
  );
});

test("the same model comes of a patch and of the model that it makes", () => {
  const [one, other] = [new World(), new World()];
  for (const world of [one, other]) world.put(shop());
  patch(one, [{ op: "add", path: "/shop/one", value: vm }]);
  other.put({ shop: { ...(modelOf(other).shop as JsonObject), one: vm } });
  assert.equal(JSON.stringify(modelOf(one)), JSON.stringify(modelOf(other)));
});

test("a test that fails is 412, tells what was wanted and found, and nothing has changed", () => {
  const world = new World();
  world.put({ shop: { "x.type": "Cell", one: vm } });
  const answer = patch(world, [
    { op: "add", path: "/shop/two", value: vm },
    { op: "test", path: "/shop/one/x.memory", value: 64 },
  ]);
  assert.deepEqual([answer.status, answer.version], [412, 1]);
  assert.deepEqual(errorOf(answer), {
    code: "patch/test-failed",
    message: 'operation 1 (test "/shop/one/x.memory"): what is there is another value than the test names',
    patch: { operation: 1, path: "/shop/one/x.memory", wanted: 64, found: 128 },
  });
  assert.equal((modelOf(world).shop as JsonObject).two, undefined);
  const record = recordsIn(world.records).at(-1);
  assert.deepEqual([record?.outcome, record?.verb], ["refused", "patchModel"]);
  assert.ok(!JSON.stringify(record).includes("128"), "a record says nothing of values");
});

test("what cannot be done is 400 with its place, and comes after If-Match and before the specification's faults", () => {
  const world = new World();
  assert.equal(patch(world, []).status, 404);
  world.put({ shop: { "x.type": "Cell", one: vm } });
  const faults: readonly (readonly [Json, string, number | null, string | null])[] = [
    [[{ op: "remove", path: "/shop/two" }], "patch/invalid", 0, "/shop/two"],
    [[{ op: "merge", path: "/shop", value: {} }], "patch/invalid", 0, "/shop"],
    [Array(1001).fill({ op: "test", path: "/shop/one", value: vm }), "patch/invalid", 1000, null],
    [[{ op: "remove", path: "" }], "patch/invalid", 0, ""],
    [{ op: "remove", path: "" }, "patch/invalid", null, null],
  ];
  for (const [operations, code, operation, path] of faults) {
    const answer = patch(world, operations);
    const error = errorOf(answer);
    assert.deepEqual([answer.status, error.code, error.patch], [400, code, { operation, path }]);
  }
  const whole = patch(world, [{ op: "replace", path: "", value: 7 }]);
  assert.deepEqual([whole.status, errorOf(whole).code], [400, "patch/invalid"]);
  const noCell = patch(world, [{ op: "remove", path: "/shop" }]);
  assert.deepEqual([noCell.status, errorOf(noCell).code], [400, "invalid-specification"]);
  const wrong = patch(world, [{ op: "add", path: "/shop/one/x.memory", value: -1 }]);
  assert.deepEqual([wrong.status, errorOf(wrong).code], [400, "invalid-specification"]);
  const older = patch(world, [], { ifMatch: 7 });
  assert.deepEqual([older.status, errorOf(older).code], [412, "version-mismatch"]);
  assert.equal(modelOf(world) !== null && world.ask({ method: "GET", path: "" }).version, 1);
});

test("data is lost by a patch only if its volumes are named", () => {
  const world = new World();
  const connection = { "x.type": "VolumeConnection", "x.vm": "<ref:../vm>", "x.volume": "<ref:../disk>" };
  const cell = { "x.type": "Cell", vm, disk: { "x.type": "Volume", "x.size": 64 }, connection };
  world.put({ shop: cell });
  world.settle();
  const taken = [
    { op: "remove", path: "/shop/connection" },
    { op: "remove", path: "/shop/disk" },
  ];
  const refused = patch(world, taken);
  assert.deepEqual([refused.status, errorOf(refused).code], [409, "change/destroys-data"]);
  assert.equal(patch(world, taken, { allowDestroy: ["shop/disk"] }).status, 200);
});

test("of two who add different elements with a test each none is refused; of two who change one, the second is", () => {
  const world = new World();
  world.put({ shop: { "x.type": "Cell", one: vm } });
  const add = (name: string) => [{ op: "add", path: `/shop/${name}`, value: vm }];
  assert.equal(patch(world, add("two")).status, 200);
  assert.equal(patch(world, add("three")).status, 200);
  const grow = (from: number, to: number) => [
    { op: "test", path: "/shop/one/x.memory", value: from },
    { op: "replace", path: "/shop/one/x.memory", value: to },
  ];
  assert.equal(patch(world, grow(128, 256)).status, 200);
  assert.equal(patch(world, grow(128, 512)).status, 412);
  assert.deepEqual(Object.keys(modelOf(world).shop as JsonObject), ["x.type", "one", "two", "three"]);
});

test("a patch of the root cell keeps what has grown there, unless it names what is to go", () => {
  const root = new Root();
  root.put("", rootWithTenancy());
  assert.equal(root.put("root/cells/bank", childOf("bank", "ROOT/acme/dev")).status, 200);
  const cells = (): readonly string[] =>
    Object.keys((modelOf(root).root as { readonly cells?: JsonObject }).cells ?? {}).filter(
      (name) => name !== "x.type",
    );
  const whole = rootWithTenancy();
  for (const operation of [
    { op: "replace", path: "", value: whole },
    { op: "replace", path: "/root", value: whole.root ?? null },
    { op: "add", path: "", value: whole },
  ]) {
    assert.equal(patch(root, [operation]).status, 200);
    assert.deepEqual(cells(), ["bank"]);
  }
  const another = childOf("store", "ROOT/acme/dev");
  assert.equal(patch(root, [{ op: "add", path: "/root/cells/store", value: another }]).status, 200);
  assert.deepEqual(cells(), ["bank", "store"]);
  assert.equal(patch(root, [{ op: "remove", path: "/root/cells/bank" }]).status, 200);
  assert.deepEqual(cells(), ["store"]);
});
