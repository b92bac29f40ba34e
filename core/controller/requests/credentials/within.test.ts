import assert from "node:assert/strict";
import { test } from "node:test";
import type { Changed, Refusal } from "../../../../model/api.ts";
import type { ElementPage } from "../../../../model/contract/tenancy/listed-element.ts";
import { recordsIn } from "../../../../model/contract/testing/audited.testing.ts";
import type { Json, JsonObject } from "../../../../model/json/json.ts";
import { World } from "../../world.testing.ts";
import type { ControllerResponse } from "../requests.ts";
import type { Within } from "./within.ts";

const volume: JsonObject = { "x.type": "Volume", "x.size": 64 };
const vm: JsonObject = { "x.type": "VM", "x.memory": 128 };
const cell: JsonObject = {
  shop: { "x.type": "Cell", web: vm, secret: volume, data: { one: volume }, database: { two: volume } },
};
const writing: Within = { path: "shop/data", access: "write" };
const reading: Within = { ...writing, access: "read" };

function made(): World {
  const world = new World();
  world.put(cell);
  return world;
}
const asked = (world: World, method: string, path: string, more: object = {}, within = writing): ControllerResponse =>
  world.ask({ method, path, within, ...more } as never);
const patch = (world: World, operations: Json, within = writing): ControllerResponse =>
  asked(world, "PATCH", "", { patch: operations }, within);
const messageOf = ({ body }: ControllerResponse): string => (body as unknown as Refusal).error.message;

test("what a credential of a part reads is what is in that part", () => {
  const world = made();
  for (const path of ["shop/data", "shop/data/one", "shop//data/one/x.size"])
    assert.equal(asked(world, "GET", path, {}, reading).status, 200, path);
  for (const path of ["", "shop", "shop/web", "shop/database", "shop/database/two", "shop/dat"])
    assert.equal(asked(world, "GET", path, {}, reading).status, 403, path);
  const { items } = asked(world, "ELEMENTS", "", {}, reading).body as unknown as ElementPage;
  assert.deepEqual(
    items.map(({ path }) => path),
    ["shop/data/one"],
  );
  assert.equal(asked(world, "WHY-ELEMENT", "shop/data/one", {}, reading).status, 200);
  assert.equal(asked(world, "WHY-ELEMENT", "shop/web", {}, reading).status, 403);
  for (const method of ["SUMMARY", "CREDENTIALS", "AUDIT"])
    assert.equal(asked(world, method, "", {}, reading).status, 403, method);
});

test("what is not there is told without names that come close, and a path cut short leads to nothing beside", () => {
  const world = new World();
  world.put({ shop: { "x.type": "Cell", data: { one: volume }, shop: { data: { two: volume } } } });
  const near: Within = { path: "shop/dat", access: "write" };
  for (const [method, path, within] of [
    ["GET", "shop/data/on", writing],
    ["GET", "shop/dat", near],
    ["GET", "shop/dat/one", near],
    ["WHY-ELEMENT", "shop/dat/one", near],
    ["WHY-ELEMENT", "shop/data/two", writing],
    ["DELETE", "shop/dat/one", near],
  ] as const) {
    const answer = asked(world, method, path, {}, within);
    assert.equal(answer.status, 404, `${method} ${path}`);
    assert.equal(messageOf(answer), `there is nothing at ${path}`);
  }
});

test("who may only read changes nothing, and his refusal is recorded", () => {
  const world = made();
  const operations = [{ op: "add", path: "/shop/data/two", value: volume }];
  for (const answer of [
    patch(world, operations, reading),
    asked(world, "PUT", "shop/data/one", { json: { ...volume, "x.size": 128 } }, reading),
    asked(world, "DELETE", "shop/data/one", {}, reading),
  ]) {
    assert.deepEqual([answer.status, answer.version], [403, 1]);
    assert.equal(messageOf(answer), "this credential reads what is in shop/data, and changes nothing");
  }
  assert.deepEqual(
    recordsIn(world.records).map(({ outcome, verb }) => [verb, outcome]),
    [
      ["putModel", "done"],
      ["patchModel", "refused"],
      ["putElement", "refused"],
      ["deleteElement", "refused"],
    ],
  );
});

test("who may write changes what is in that part, and the plan names nothing beside it", () => {
  const world = made();
  const answer = patch(world, [
    { op: "test", path: "/shop/data/one", value: volume },
    { op: "copy", from: "/shop/data/one", path: "/shop/data/two" },
  ]);
  assert.equal(answer.status, 200, JSON.stringify(answer.body));
  assert.deepEqual(
    (answer.body as unknown as Changed).plan.steps.map(({ path, action }) => [path, action]),
    [
      ["shop/data/one", "none"],
      ["shop/data/two", "create"],
    ],
  );
  assert.equal(asked(world, "PUT", "shop/data/two", { json: { ...volume, "x.size": 128 } }).status, 200);
  const gone = asked(world, "DELETE", "shop/data/two", { allowDestroy: ["shop/data/two"] });
  assert.equal(gone.status, 200, JSON.stringify(gone.body));
});

test("no pointer of a patch leads outside, whatever it does there", () => {
  const world = made();
  for (const operation of [
    { op: "add", path: "/shop/mine", value: volume },
    { op: "add", path: "/shop/database/x", value: volume },
    { op: "replace", path: "", value: cell },
    { op: "test", path: "/shop/secret/x.size", value: 64 },
    { op: "copy", from: "/shop/secret", path: "/shop/data/secret" },
    { op: "move", from: "/shop/secret", path: "/shop/data/secret" },
    { op: "remove", path: "/shop/web" },
    { op: "add", path: "/shop/data~1x", value: volume },
  ]) {
    const answer = patch(world, [operation]);
    assert.deepEqual([answer.status, answer.version], [403, 1], JSON.stringify(operation));
    assert.doesNotMatch(messageOf(answer), /secret|web|database/);
  }
  for (const each of [null, [null], [{ op: "add", path: 1 }]]) assert.equal(patch(world, each as Json).status, 403);
});

test("no element of the part reaches one beside it, nor takes its place, nor speaks for more", () => {
  const world = made();
  const before = world.ask({ method: "GET", path: "" } as never).body;
  for (const element of [
    { "x.type": "VolumeCopy", "x.image": "<ref:../../secret>" },
    { "x.type": "VolumeConnection", "x.volume": "<ref:../one>", "x.vm": "<ref:../../web>" },
    { "x.type": "VolumeGrant", "x.volume": "<ref:../../secret>", "x.grant": "copy", "x.cell": "<ref://a.b.example/>" },
    { ...vm, "x.data": { service: { roles: { gateway: {} } } } },
    { "x.type": "CellController", "x.cell": { other: { "x.type": "Cell" } } },
  ]) {
    const answer = patch(world, [{ op: "add", path: "/shop/data/other", value: element }]);
    assert.equal(answer.status, 403, JSON.stringify([element, answer.body]));
  }
  assert.deepEqual(world.ask({ method: "GET", path: "" } as never).body, before);
});

test("a credential of a part is known with its part, is kept under a name of its own, and of nothing but a part", () => {
  const world = made();
  const add = (id: string, within?: object): ControllerResponse =>
    world.ask({ method: "CREDENTIAL-ADD", id, hash: `hash ${id}`, note: "", ...(within ? { within } : {}) } as never);
  assert.equal(add("all").status, 200);
  assert.equal(add("part", writing).status, 200);
  for (const path of ["shop", "", "other/data", "shop/data/..", "shop/ /x", "shop//x"])
    assert.equal(add("none", { path, access: "read" }).status, 400, path);
  const known = (id: string): Json => world.ask({ method: "CREDENTIAL-KNOWN", hash: `hash ${id}` } as never).body;
  assert.deepEqual([known("all"), known("part"), known("none")], [true, { within: writing }, false]);
  const keys = [...world.records.keys()].filter((key) => key.includes("credential"));
  assert.deepEqual(keys.sort(), ["credential/all", "limited-credential/part"]);
  world.crash();
  assert.deepEqual(known("part"), { within: writing });
  const last = recordsIn(world.records).findLast(({ target }) => target === "credential part");
  assert.equal(last?.what, "writing shop/data");
  assert.equal(world.ask({ method: "CREDENTIAL-REVOKE", id: "part" } as never).status, 200);
  world.crash();
  assert.equal(known("part"), false);
});
