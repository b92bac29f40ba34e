import assert from "node:assert/strict";
import { readFileSync, statSync } from "node:fs";
import { test } from "node:test";
import { failure, scene } from "../model/scene.testing.ts";
import { addCredential, listCredentials, revokeCredential } from "./credential.ts";

const made = { status: 200, body: { id: "k1", credential: "secret-of-k1" } };

test("a credential of a part names the part, and whether it only reads; it is printed once", async (t) => {
  const bodies: string[] = [];
  const { context, asked, printed } = await scene(t, ({ body }) => {
    bodies.push(body);
    return made;
  });
  await addCredential(context, "shop", { note: "disks", path: "shop/data" }, undefined);
  await addCredential(context, "shop", { note: "disks", path: "shop/data", readOnly: true }, undefined);
  await addCredential(context, "shop", { note: "all" }, undefined);
  assert.deepEqual(
    bodies.map((body) => JSON.parse(body)),
    [
      { note: "disks", path: "shop/data", access: "write" },
      { note: "disks", path: "shop/data", access: "read" },
      { note: "all" },
    ],
  );
  assert.ok(asked.every((line) => line.startsWith("POST /cells/shop/credentials ")));
  assert.match(printed[0] ?? "", /^secret-of-k1\nThis is its only appearance/);
});

test("to read alone is of a part: without one nothing is asked", async (t) => {
  const { context, asked } = await scene(t, () => made);
  const refused = await failure(addCredential(context, "shop", { note: "", readOnly: true }, undefined));
  assert.equal(refused.exitCode, 2);
  assert.match(refused.message, /--read-only is of a part of the cell: name it with --path, as shop\/data/);
  assert.deepEqual(asked, []);
});

test("as a file it is its owner's alone, and the secret is printed nowhere", async (t) => {
  const { context, printed, file } = await scene(t, () => made);
  const at = `${file}.credential`;
  await addCredential(context, "shop", { note: "", path: "shop/data" }, at);
  assert.equal(statSync(at).mode & 0o077, 0);
  assert.match(readFileSync(at, "utf8"), /secret-of-k1/);
  assert.ok(!printed.join("\n").includes("secret-of-k1"));
});

test("the list says what each opens, and one that is taken back opens nothing", async (t) => {
  const created = "2026-11-27T10:00:00.000Z";
  const all = [
    { id: "k1", created, note: "disks", path: "shop/data", access: "write" },
    { id: "k2", created, note: "", path: "shop/data", access: "read" },
    { id: "k3", created, note: "all of it" },
  ];
  const { context, asked, printed } = await scene(t, ({ method }) => ({
    status: 200,
    body: method === "GET" ? all : null,
  }));
  await listCredentials(context, "shop");
  assert.deepEqual(printed.splice(0), [
    `k1  ${created}  reads and changes shop/data alone  disks`,
    `k2  ${created}  reads shop/data alone`,
    `k3  ${created}  all of it`,
  ]);
  await revokeCredential(context, "shop", "k2");
  assert.match(asked[0] ?? "", /^DELETE \/cells\/shop\/credentials\/k2 /);
  assert.match(printed[0] ?? "", /the credential k2 of shop opens nothing any more/);
});
