import assert from "node:assert/strict";
import { test } from "node:test";
import type { AuditRecord } from "../../../model/contract/audit/audit.ts";
import { faultsOf, recordsIn } from "../../../model/contract/testing/audited.testing.ts";
import type { JsonObject } from "../../../model/json/json.ts";
import { shop, World, written } from "../world.testing.ts";
import type { Asker } from "./audited.ts";

const by: Asker = { who: "ann@ROOT/acme", account: "ROOT/acme/dev", by: "session 0123456789ab", door: "gateway" };
const recordsOf = (world: World): readonly AuditRecord[] => recordsIn(world.records);
const assertWhole = (world: World): void => assert.deepEqual(faultsOf(world.records), []);
/** Each version of the model has its record, and no other one says that it was done. */
const assertEachVersion = (world: World): void => {
  const { version = 0 } = (world.records.get("model") ?? {}) as { readonly version?: number };
  const done = recordsOf(world).filter(({ outcome, before, after }) => outcome === "done" && before !== after);
  assert.deepEqual(
    done.map(({ before, after }) => [before, after]),
    Array.from({ length: version }, (_, at) => [at, at + 1]),
  );
};
const vm: JsonObject = { "x.type": "VM", "x.memory": 256 };

test("each version of a model has one record, which says who made it; what is refused has one as well", () => {
  const world = new World();
  world.ask({ method: "PUT", path: "", json: shop(), by });
  world.ask({ method: "PUT", path: "shop/one", json: vm, by });
  world.ask({ method: "PUT", path: "shop/one", json: vm, by });
  world.ask({ method: "PUT", path: "shop/one", json: { ...vm, "x.memory": 512 }, dryRun: true, by });
  world.ask({ method: "PUT", path: "shop/one", json: { ...vm, "x.memory": -1 }, by });
  world.ask({ method: "DELETE", path: "shop/one" });
  assertEachVersion(world);
  assertWhole(world);
  const said = recordsOf(world).map(({ verb, who, target, outcome }) => [verb, who, target, outcome]);
  assert.deepEqual(said, [
    ["putModel", by.who, "shop", "done"],
    ["putElement", by.who, "shop/one", "done"],
    ["putElement", by.who, "shop/one", "refused"],
    ["deleteElement", "controller.shop", "shop/one", "done"],
  ]);
  const [first] = recordsOf(world);
  assert.deepEqual([first?.account, first?.by, first?.door], [by.account, by.by, by.door]);
});

test("who has a store given back is recorded with the first start over it, once", () => {
  const world = new World();
  world.ask({ method: "PUT", path: "", json: shop(), by });
  const actor = { who: "operator", door: "gateway", source: "192.0.2.7" };
  world.crash({ wasRestored: true, putBackBy: { actor, from: "a backup" } });
  world.crash();
  world.crash({ wasRestored: true });
  assertWhole(world);
  const given = recordsOf(world).filter(({ verb }) => verb === "returnStore");
  assert.deepEqual(
    given.map(({ who, source, target, what, outcome }) => [who, source, target, what, outcome]),
    [["operator", "192.0.2.7", "shop", "from a backup", "done"]],
  );
});

test("a crash after any step leaves no change without its record, and no record without its change", () => {
  const world = new World();
  world.crashing = true;
  const step = world.step.bind(world);
  world.step = (input) => {
    const effects = step(input);
    // What became durable at one moment has both or neither.
    assertEachVersion(world);
    return effects;
  };
  /** Whoever started anew has to hear what there is, and answers then. */
  const ask = (request: object): void => {
    world.settle();
    assert.equal(world.ask({ ...request, by }).status, 200);
  };
  ask({ method: "PUT", path: "", json: shop() });
  for (let memory = 256; memory < 262; memory += 1)
    ask({ method: "PUT", path: "shop/one", json: { ...vm, "x.memory": memory } });
  ask({ method: "DELETE", path: "", allowDestroy: [...written, "shop"] });
  assertEachVersion(world);
  assertWhole(world);
  assert.equal(recordsOf(world).at(-1)?.verb, "deleteModel");
});

test("credentials are given and taken with a record, and who uses one is known by its id", () => {
  const world = new World();
  world.ask({ method: "PUT", path: "", json: shop() });
  world.ask({ method: "CREDENTIAL-ADD", id: "c1", hash: "hash of it", note: "of the builder", by });
  world.ask({ method: "CREDENTIAL-REVOKE", id: "other", by });
  const own: Asker = { who: "credential", credential: "hash of it", door: "gateway" };
  world.ask({ method: "PUT", path: "shop/one", json: vm, by: own });
  world.ask({ method: "CREDENTIAL-REVOKE", id: "c1", by });
  const said = recordsOf(world).slice(1);
  assert.deepEqual(
    said.map(({ verb, who, target, outcome }) => [verb, who, target, outcome]),
    [
      ["addCredential", by.who, "credential c1", "done"],
      ["revokeCredential", by.who, "credential other", "refused"],
      ["putElement", "credential c1 of shop", "shop/one", "done"],
      ["revokeCredential", by.who, "credential c1", "done"],
    ],
  );
  assert.ok(!JSON.stringify(said).includes("hash of it"));
  assertWhole(world);
});

test("what is opened, moved, or asked for without a right has a record, and changes nothing of the model", () => {
  const world = new World();
  world.ask({ method: "PUT", path: "", json: shop(), by });
  const [console, command] = [
    { method: "RECORD", verb: "openSession", target: "shop/web", what: "console", by },
    { method: "RECORD", verb: "exec", target: "shop/web", by },
  ];
  world.ask(console);
  world.ask(command);
  world.ask({ method: "RECORD", verb: "grantSession", target: "shop/web", what: "console", refused: "no rule", by });
  world.ask({ method: "MOVE", vm: "shop/web", to: "nowhere", tentative: true, by });
  world.ask({ method: "MOVE", vm: "shop/web", to: "nowhere", tentative: false, by });
  const said = recordsOf(world).slice(1);
  assert.deepEqual(
    said.map(({ verb, who, target, what = "", outcome }) => [verb, who, target, what, outcome]),
    [
      ["openSession", by.who, "shop/web", "console", "done"],
      ["exec", by.who, "shop/web", "", "done"],
      ["grantSession", by.who, "shop/web", "console", "refused"],
      ["moveVm", by.who, "shop/web", "to nowhere", "refused"],
    ],
  );
  assertEachVersion(world);
  assertWhole(world);
});

test("who asks a thousand times for what he may not do writes so many records and no more", () => {
  const world = new World();
  world.ask({ method: "PUT", path: "", json: shop(), by });
  for (let count = 0; count < 1000; count += 1)
    world.ask({ method: "RECORD", verb: "exec", target: "shop/web", refused: "no rule", by });
  assert.ok(recordsOf(world).length < 40, `${recordsOf(world).length} records`);
});

test("guests of another account who are refused all the time keep nobody else's refusals out", () => {
  const world = new World();
  world.ask({ method: "PUT", path: "", json: shop(), by });
  for (let count = 0; count < 1000; count += 1) {
    const guest = {
      who: `m${count % 50}@ROOT/evil`,
      account: `ROOT/evil/a${count % 25}`,
      by: "session 1",
      door: "gateway",
    };
    world.ask({
      method: "RECORD",
      verb: "exec",
      target: "shop/web",
      refused: "no rule",
      by: { ...guest, source: `192.0.2.${count % 50}` },
    });
  }
  const flood = recordsOf(world).length - 1;
  assert.ok(flood <= 100, `${flood} of 1000 have a record`);
  world.ask({ method: "RECORD", verb: "exec", target: "shop/web", refused: "no rule", by });
  assert.deepEqual([recordsOf(world).at(-1)?.who, recordsOf(world).at(-1)?.outcome], [by.who, "refused"]);
});
