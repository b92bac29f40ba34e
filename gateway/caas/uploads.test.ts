import assert from "node:assert/strict";
import { test } from "node:test";
import type { JsonObject } from "../../model/json/json.ts";
import { type Answer, CaasWorld } from "./volumes/caas.testing.ts";

/** Volumes of what users have brought, at CaaS before real controllers. What becomes of the bytes: `gateway/storage/uploads.test.ts`. */
const people = {
  ann: { account: "ROOT/acme/dev", cells: ["shop"] },
  al: { account: "ROOT/acme/dev", cells: ["shop"] },
  adam: { account: "ROOT/acme/ops", role: "domain-admin", cells: ["shop"] },
  bob: { account: "ROOT/bank/core", cells: [] },
} as const;
const id = "0123456789abcdef0123456789abcdef";
const image = `upload-0011223344556677-${id}`;
const withWorld = async (work: (world: CaasWorld) => Promise<void>): Promise<void> => {
  const world = new CaasWorld(people, "shop");
  world.uploads.set("ROOT/acme/dev", [{ id, sha256: "a".repeat(64), sizeMiB: 8, image }]);
  try {
    await work(world);
  } finally {
    await world.end();
  }
};
const said = ({ status, json }: Answer): string =>
  `${status} ${String(((json.error ?? {}) as JsonObject).message ?? "")}`;
const group = (world: CaasWorld, uid: unknown): JsonObject => (world.volumes()[String(uid)] ?? {}) as JsonObject;
const taken = (world: CaasWorld): readonly string[] => world.asked.filter((each) => each.startsWith("DELETE /uploads"));

test("a volume is made of what its account has uploaded, as large at least, and of nobody else's", () =>
  withWorld(async (world) => {
    assert.match(
      said(await world.ask("bob", "POST /volumes", { name: "x", upload: id })),
      /^404 your account has no upload/,
    );
    const none = id.replaceAll("0", "1");
    assert.match(
      said(await world.ask("ann", "POST /volumes", { name: "x", upload: none })),
      /^404 your account has no/,
    );
    assert.match(
      said(await world.ask("ann", "POST /volumes", { name: "x", upload: id, sizeMiB: 7 })),
      /^400 the upload has 8 MiB/,
    );
    for (const more of [{ image: "tiny" }, { from: { cell: "shop", path: "shop/disk" } }])
      assert.match(
        said(await world.ask("ann", "POST /volumes", { name: "x", upload: id, ...more })),
        /^400 a volume is of/,
      );
    assert.equal((await world.ask("ann", "POST /volumes", { name: "x", upload: "../service" })).status, 400);
    assert.deepEqual([world.volumes(), taken(world)], [{}, []]);
    const made = await world.ask("ann", "POST /volumes", { name: "mine", upload: id, access: "ro" });
    assert.equal(made.status, 201, said(made));
    const { v1 } = group(world, made.json.uid);
    const element = { "x.type": "Volume", "x.public": true, "x.size": 8, "x.access": "ro", "x.import": image };
    assert.deepEqual(v1, element);
    const larger = await world.ask("al", `POST /volumes/${String(made.json.uid)}/versions`, { upload: id, sizeMiB: 9 });
    assert.equal(larger.status, 200, said(larger));
    assert.equal((group(world, made.json.uid).v2 as JsonObject)["x.size"], 9);
  }));

test("nobody has what was uploaded by the name of its image, whoever told him", () =>
  withWorld(async (world) => {
    for (const who of ["ann", "bob", "operator"])
      assert.match(
        said(await world.ask(who, "POST /volumes", { name: "x", image, sizeMiB: 8 })),
        /^400 such a name is of what users upload/,
        who,
      );
    const { json } = await world.ask("bob", "POST /volumes", { name: "mine", sizeMiB: 8 });
    const version = await world.ask("bob", `POST /volumes/${String(json.uid)}/versions`, { image, sizeMiB: 8 });
    assert.match(said(version), /^400 such a name/);
    assert.ok(!JSON.stringify(world.volumes()).includes(image));
  }));

test("what CaaS changes of the primary cell by its own credential names the user who had it done, also where several wait for their turns", () =>
  withWorld(async (world) => {
    const names = ["a", "b", "c", "d"];
    const whoOf = (at: number): string => (at % 2 === 0 ? "ann" : "bob");
    await Promise.all(names.map((name, at) => world.ask(whoOf(at), "POST /volumes", { name, sizeMiB: 1 })));
    const seen = world.changedFor.filter((via) => via.startsWith("caas;POST;"));
    assert.deepEqual([...new Set(seen)].sort(), ["caas;POST;ann_r1;192.0.2.7", "caas;POST;bob_r1;192.0.2.7"]);
    assert.ok(seen.length >= names.length && seen.length === world.changedFor.length, world.changedFor.join());
  }));

test("once the volume is made the upload is taken away, by the first of its account who looks", () =>
  withWorld(async (world) => {
    const { json } = await world.ask("ann", "POST /volumes", { name: "mine", upload: id });
    const line = `GET /volumes/${String(json.uid)}`;
    await world.ask("ann", `POST /volumes/${String(json.uid)}/shares`, {
      kind: "domain",
      path: "ROOT",
      right: "manage",
    });
    // Of another account, though he sees it and may change it.
    for (const other of ["adam", "bob", "operator"]) assert.equal((await world.ask(other, line)).status, 200, other);
    assert.deepEqual(taken(world), []);
    assert.equal(group(world, json.uid)["v1-held"], `upload:${id}:ROOT/acme/dev`);
    await world.ask("al", line);
    assert.deepEqual(taken(world), [`DELETE /uploads/${id}`]);
    assert.equal(group(world, json.uid)["v1-held"], undefined);
    await world.ask("ann", line);
    assert.equal(taken(world).length, 1, "and not again");
    assert.equal(((await world.ask("ann", line)).json.versions as JsonObject[])[0]?.phase, "ready");
  }));

test("asked for again under its key the volume is the same one, also when the upload is gone by then", () =>
  withWorld(async (world) => {
    const key = { "idempotency-key": "k1" };
    const body = { name: "mine", upload: id };
    const first = await world.ask("ann", "POST /volumes", body, key);
    world.uploads.clear();
    const second = await world.ask("ann", "POST /volumes", body, key);
    assert.deepEqual([second.status, second.json.uid], [201, first.json.uid], said(second));
    assert.equal(Object.keys(world.volumes()).length, 1);
  }));
