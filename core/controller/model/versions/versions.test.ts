import assert from "node:assert/strict";
import { test } from "node:test";
import type { ModelSource, ModelVersions } from "../../../../model/contract/versions.ts";
import type { JsonObject } from "../../../../model/json/json.ts";
import { World } from "../../world.testing.ts";
import type { Asker } from "../audited.ts";
import { keptVersions } from "./versions.ts";

const ann: Asker = { who: "ann@ROOT/acme", account: "ROOT/acme/dev", by: "session 0123456789ab", door: "gateway" };
const vm = (memory: number): JsonObject => ({ "x.type": "VM", "x.memory": memory });
/** As somebody writes it, with a comment that no document has. */
const text = (memory: number, comment = "as the shop needs it"): string =>
  `shop extends Cell { web extends VM { x.memory ${memory}; } } // ${comment}`;
const bundle = (memory: number, comment?: string) => ({
  bundle: { main: "shop.sf", files: { "shop.sf": text(memory, comment) } },
});
const put = (world: World, more: object, by: Asker = ann) => world.ask({ method: "PUT", path: "", by, ...more }).status;
const list = (world: World): ModelVersions => world.ask({ method: "VERSIONS" }).body as unknown as ModelVersions;
const source = (world: World, version?: number) => {
  const { status, body } = world.ask({ method: "SOURCE", ...(version === undefined ? {} : { version }) });
  return { status, body: body as unknown as ModelSource & { error?: { message: string } } };
};
const versionRecords = (world: World): readonly string[] =>
  [...world.records.keys()].filter((key) => key.startsWith("version")).sort();

test("a text is kept as it was written, with who sent it and what its plan did; other ways are named", () => {
  for (const isCrashing of [false, true]) {
    const world = new World();
    world.crashing = isCrashing;
    assert.equal(put(world, bundle(128)), 200);
    assert.equal(put(world.settle(), bundle(256)), 200);
    const patch = [{ op: "add", path: "/shop/app", value: vm(64) }];
    assert.equal(
      world.settle().ask({ method: "PATCH", path: "", patch, by: { who: "operator", door: "gateway" } }).status,
      200,
    );
    world.crashing = false;
    world.crash();
    world.settle();
    const { version, versions } = list(world);
    assert.equal(version, 3);
    assert.deepEqual(
      versions.map(({ time: _, ...each }) => each),
      [
        {
          version: 3,
          who: "operator",
          verb: "patchModel",
          target: "shop",
          changes: { create: 1 },
          parts: [{ path: "shop/app", action: "create" }],
        },
        {
          version: 2,
          who: "ann@ROOT/acme",
          account: "ROOT/acme/dev",
          verb: "putModel",
          target: "shop",
          changes: { restart: 1 },
          parts: [{ path: "shop/web", action: "restart" }],
          text: { main: "shop.sf", characters: "shop.sf".length + text(256).length },
        },
        {
          version: 1,
          who: "ann@ROOT/acme",
          account: "ROOT/acme/dev",
          verb: "putModel",
          target: "shop",
          changes: { create: 1 },
          parts: ["shop", "shop/web"].map((path) => ({ path, action: "create" })),
          text: { main: "shop.sf", characters: "shop.sf".length + text(128).length },
        },
      ],
    );
    const newest = source(world).body;
    assert.deepEqual([newest.version, newest.files, newest.unknown], [2, { "shop.sf": text(256) }, 0]);
    assert.deepEqual(
      newest.since.map(({ version, parts }) => [version, parts[0]?.path]),
      [[3, "shop/app"]],
    );
    assert.deepEqual(source(world, 1).body.files, { "shop.sf": text(128) });
  }
});

test("what was never sent as a text has none, and is told apart from what is not kept any more", () => {
  const world = new World();
  assert.match(source(world).body.error?.message ?? "", /^the cell shop has no model/);
  world.put({ shop: { "x.type": "Cell", web: vm(128) } });
  assert.deepEqual(JSON.parse(source(world).body.files["model.json"] ?? "").shop.web, vm(128), "JSON is a text, too");
  world.ask({ method: "PUT", path: "shop/app", json: vm(64), by: ann });
  const no = (version: number): string => {
    const { status, body } = source(world, version);
    assert.equal(status, 404);
    return body.error?.message ?? "";
  };
  assert.equal(
    no(2),
    "the version 2 of shop has no text: ann@ROOT/acme made it by putElement of shop/app; there are texts of 1",
  );
  assert.equal(no(9), "the model of shop has not had the version 9 yet, it has 2; there are texts of 1");
});

test("a dry run, and what is refused, leave no text", () => {
  const world = new World();
  put(world, bundle(128));
  const before = versionRecords(world);
  assert.equal(put(world, { ...bundle(512), dryRun: true }), 200);
  assert.equal(put(world, { ...bundle(512), ifMatch: 7 }), 412);
  assert.equal(put(world, { bundle: { main: "shop.sf", files: { "shop.sf": "main extends {" } } }), 400);
  assert.deepEqual([versionRecords(world), source(world).body.files["shop.sf"]], [before, text(128)]);
});

test("a text that says the same in other words takes the place of the one before, and says who sent it", () => {
  const world = new World();
  put(world, bundle(128));
  assert.equal(put(world, bundle(128, "Ann: not more, it is enough"), { who: "operator", door: "gateway" }), 200);
  const { version, versions } = list(world);
  assert.deepEqual(
    [version, versions.length, versions[0]?.who, versions[0]?.sent?.who],
    [1, 1, "ann@ROOT/acme", "operator"],
  );
  assert.match(source(world).body.files["shop.sf"] ?? "", /not more/);
  world.ask({ method: "PUT", path: "shop/app", json: vm(64), by: ann });
  const whole = "shop extends Cell { web extends VM { x.memory 128; } app extends VM { x.memory 64; } }";
  assert.equal(put(world, { bundle: { main: "shop.sf", files: { "shop.sf": whole } } }), 200);
  const now = source(world).body;
  assert.deepEqual([now.version, now.since, now.unknown], [2, [], 0], "the text has caught up with the model");
});

test("texts are bounded in their number and their length, and the newest one stays however long it is", () => {
  const world = new World();
  for (let memory = 1; memory <= keptVersions.texts + 5; memory += 1) put(world, bundle(100 + memory));
  assert.equal(list(world).versions.length, keptVersions.texts);
  assert.equal(list(world).versions.at(-1)?.version, 6);
  assert.match(source(world, 5).body.error?.message ?? "", /is not kept any more; there are texts of 6, 7,/);
  const long = "x".repeat(keptVersions.characters / 2);
  put(world, bundle(300, long));
  assert.deepEqual(
    list(world)
      .versions.filter(({ version }) => version <= 7)
      .map(({ version }) => version),
    [7],
  );
  put(world, bundle(301, long));
  assert.deepEqual(
    list(world).versions.map(({ version }) => version),
    [27],
    "two halves and their names are more than the whole",
  );
  put(world, bundle(302, long + long));
  assert.deepEqual(
    list(world).versions.map(({ version }) => version),
    [28],
  );
  assert.deepEqual(versionRecords(world), ["version/28", "versions"]);
});

test("changes without a text push no text out", () => {
  const world = new World();
  put(world, bundle(128));
  for (let at = 0; at < keptVersions.others + 10; at += 1)
    world.ask({ method: "PUT", path: "shop/web/x.memory", json: 200 + at, by: ann });
  const { status, body } = source(world);
  assert.equal(status, 200);
  assert.deepEqual([body.version, body.since.length, body.unknown], [1, keptVersions.others, 10]);
});

test("with the model its texts are gone", () => {
  const world = new World();
  put(world, bundle(128));
  assert.equal(world.ask({ method: "DELETE", path: "", by: ann }).status, 200);
  world.settle();
  assert.doesNotMatch(JSON.stringify([...world.records]), /as the shop needs it/);
  assert.equal(source(world).status, 404);
});

test("a store of the previous version has no such records, and goes on; what that version did meanwhile is counted", () => {
  const world = new World();
  put(world, bundle(128));
  const forget = (): void => {
    for (const key of versionRecords(world)) world.records.delete(key);
  };
  forget();
  world.crash();
  world.settle();
  assert.deepEqual(list(world), { version: 1, versions: [] });
  assert.match(source(world).body.error?.message ?? "", /^no text is kept of the cell shop/);
  put(world, bundle(128));
  assert.deepEqual([source(world).body.version, source(world).body.files["shop.sf"]], [1, text(128)], "sent again");
  const kept = [...world.records].filter(([key]) => key.startsWith("version"));
  put(world, bundle(256));
  forget();
  for (const [key, value] of kept) world.records.set(key, value);
  world.crash();
  world.settle();
  assert.deepEqual([source(world).body.version, source(world).body.unknown], [1, 1]);
});
