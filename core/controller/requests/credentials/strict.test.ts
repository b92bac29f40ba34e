import assert from "node:assert/strict";
import { test } from "node:test";
import { peerName } from "../../../../model/cell/identifiers.ts";
import type { JsonObject } from "../../../../model/json/json.ts";
import { World } from "../../world.testing.ts";

const vm = (dedication?: string): JsonObject => ({
  "x.type": "VM",
  "x.memory": 64,
  "x.desiredState": "off",
  ...(dedication === undefined ? {} : { "x.placement.dedication": dedication }),
});
const shop = (elements: JsonObject): JsonObject => ({ shop: { "x.type": "Cell", ...elements } });
const lacks = ["placement.strict"];

test("who has not the right to hosts alone asks for none, and what asks for one already goes on", () => {
  const world = new World();
  const put = (json: JsonObject, more: JsonObject = { lacks }, path = "") => {
    const { status, body } = world.ask({ method: "PUT", path, json, ...more });
    return `${status} ${JSON.stringify(body)}`;
  };
  assert.match(put(shop({ web: vm("preferred") })), /^200/);
  const refused = put(shop({ web: vm("strict") }));
  assert.match(refused, /^403 .*forbidden.*shop\/web would have a host alone .*needs the right placement\.strict/);
  assert.match(put(shop({ web: vm("strict") }), { lacks, dryRun: true }), /^403/, "nor is it only shown");
  assert.match(put(vm("strict"), { lacks }, "shop/app"), /^403 .*shop\/app/, "one element");
  const patch = [{ op: "add", path: "/shop/web/x.placement.dedication", value: "strict" }];
  assert.equal(world.ask({ method: "PATCH", path: "", patch, lacks }).status, 403, "a patch");
  const kid = {
    "x.type": "CellController",
    "x.name": "kid",
    "x.cell": { kid: { "x.type": "Cell", db: vm("strict") } },
  };
  assert.match(put(shop({ web: vm("preferred"), kid })), /^403 .*shop\/kid\/kid\/db/, "the first model of a child");
  const said = { ...kid, "x.cell": { kid: { "x.type": "Cell", word: "strict", db: vm("<ref:../word>") } } };
  assert.match(put(shop({ web: vm("preferred"), kid: said })), /^403 .*shop\/kid\/kid\/db/, "by a reference there");
  const below = { ...kid, "x.cell": { kid: { "x.type": "Cell", low: { ...said, "x.name": "low" } } } };
  assert.match(
    put(shop({ web: vm("preferred"), kid: below })),
    /^403 .*shop\/kid\/kid\/low\/kid\/db/,
    "and further below",
  );

  assert.match(put(shop({ web: vm("strict") }), {}), /^200/, "who has the right");
  assert.match(put(shop({ web: { ...vm("strict"), "x.memory": 128 } })), /^200/, "it asked for that before");
  assert.match(put(shop({ web: vm("strict"), app: vm("strict") })), /^403 (?!.*shop\/web).*shop\/app/);
  assert.match(put(shop({ web: vm() })), /^200/, "and gives it up");
  assert.match(put(shop({ web: vm("strict") })), /^403/);
});

test("who has not that right asks for no offering that gives a host alone, nor for one of which nothing is known", () => {
  const world = new World();
  const of = (offering: string): JsonObject => ({ ...vm(), "x.placement.offering": offering });
  const put = (json: JsonObject) => world.ask({ method: "PUT", path: "", json, lacks }).status;
  assert.equal(put(shop({ web: of("shared") })), 403, "nothing is known of it");
  const offerings = [
    { name: "alone", memoryMiB: 64, cpus: 1, dedication: "strict" },
    { name: "shared", memoryMiB: 64, cpus: 1, dedication: "preferred" },
  ];
  const value = { hosts: [], complete: false, offerings };
  world.step({ kind: "actual", from: peerName("placer"), key: "hosts", value });
  assert.equal(put(shop({ web: of("shared") })), 200);
  assert.equal(put(shop({ web: of("alone") })), 403);
  const kid = (db: JsonObject): JsonObject => ({
    "x.type": "CellController",
    "x.name": "kid",
    "x.cell": { kid: { "x.type": "Cell", db } },
  });
  assert.equal(put(shop({ kid: kid(of("alone")) })), 403, "in a child's first model");
  assert.equal(put(shop({ kid: kid(of("shared")) })), 200);
});

test("an offering that is not known any more is no host alone that was had before", () => {
  const world = new World();
  const of = (offering: string, more: JsonObject = {}): JsonObject => ({
    ...vm(),
    "x.placement.offering": offering,
    ...more,
  });
  const put = (web: JsonObject) => world.ask({ method: "PUT", path: "", json: shop({ web }), lacks }).status;
  const say = (offerings?: readonly JsonObject[]): void => {
    const value = { hosts: [], complete: false, ...(offerings === undefined ? {} : { offerings }) };
    world.step({ kind: "actual", from: peerName("placer"), key: "hosts", value });
  };
  const small = { name: "small", memoryMiB: 64, cpus: 1 };
  say([small]);
  assert.equal(put(of("small")), 200);
  say([]);
  assert.equal(put(vm("strict")), 403, "it is none any more");
  say();
  assert.equal(put(vm("strict")), 403, "by its own word");
  assert.equal(put(of("small", { "x.placement.dedication": "strict" })), 403, "beside it");
  assert.equal(put(of("other")), 403, "by another offering");
  assert.equal(put(of("small", { "x.data": { a: 1 } })), 200, "it goes on naming it");
  say([{ ...small, dedication: "strict" }]);
  assert.equal(put(vm("strict")), 200, "that one gives it a host alone by now");
});
