import assert from "node:assert/strict";
import { test } from "node:test";
import type { JsonObject } from "../../model/json/json.ts";
import { eventually } from "../../runtime/installation.testing.ts";
import { serveSimulation } from "./served.ts";

test("a browser's cookie at the gateway is enough for persistent volumes: made, harvested, shared with another account, taken away", async (t) => {
  const served = await serveSimulation({ hosts: 3, machines: 2, seed: 1, port: 0, volumes: true });
  t.after(() => served.stop());
  const { url, credential } = served;
  const operator = { authorization: `Bearer ${credential}` };
  const asking = (who: Readonly<Record<string, string>>) => async (method: string, path: string, body?: object) => {
    const headers = { ...who, ...(body === undefined ? {} : { "content-type": "application/json" }) };
    const sent = body === undefined ? {} : { body: JSON.stringify(body) };
    const answer = await fetch(`${url}${path}`, { method, headers, ...sent });
    const json = (await answer.json()) as JsonObject & { readonly error?: { readonly message: string } };
    return { status: answer.status, json, answer };
  };
  const say = asking(operator);
  const done = async (...asked: Parameters<typeof say>): Promise<JsonObject> => {
    const { status, json } = await say(...asked);
    assert.ok(status < 300, `${asked[0]} ${asked[1]}: ${status} ${JSON.stringify(json)}`);
    return json;
  };
  const password = "a long enough password";
  await done("POST", "/domains", { path: "ROOT/acme" });
  for (const [account, name] of [
    ["ROOT/acme/dev", "ann"],
    ["ROOT/acme/gold", "bob"],
  ]) {
    await done("POST", "/accounts", { path: account });
    await done("POST", "/users", { account, name, role: "account-admin", password });
  }
  await done("PUT", "/cells/root/model/root/cells/den", {
    "x.type": "CellController",
    "x.account": "ROOT/acme/dev",
    "x.cell": { "x.type": "Cell" },
  });
  const page = { origin: url, "cells-page": "1" };
  const enter = async (user: string) => {
    const { status, json, answer } = await asking(page)("POST", "/login", { user, domain: "ROOT/acme", password });
    assert.equal(status, 201, JSON.stringify(json));
    assert.equal(json.volumes, true);
    return asking({ ...page, cookie: String(answer.headers.get("set-cookie")).split(";")[0] ?? "" });
  };
  const [ann, bob] = [await enter("ann"), await enter("bob")];
  await eventually("her cell is there", async () => (await ann("GET", "/cells/den/model")).status === 200);
  const put = await ann("PUT", "/cells/den/model", {
    den: { "x.type": "Cell", disk: { "x.type": "Volume", "x.size": 64 } },
  });
  assert.equal(put.status, 200, JSON.stringify(put.json));

  const made = await ann("POST", "/volumes", { name: "golden", from: { cell: "den", path: "den/disk" } });
  assert.equal(made.status, 201, JSON.stringify(made.json));
  const at = `/volumes/${String(made.json.uid)}`;
  const read = await eventually("its copy is made", async () => {
    const { json } = await ann("GET", at);
    const [version] = (json.versions ?? []) as readonly JsonObject[];
    return version?.phase === "ready" && json;
  });
  assert.equal(read.account, "ROOT/acme/dev");
  await eventually("the grant that held it has gone again", async () => {
    const { json } = await ann("GET", "/cells/den/model");
    return !JSON.stringify(json).includes("VolumeGrant");
  });

  assert.equal((await bob("GET", at)).status, 404, "for another account there is none");
  const shared = await ann("POST", `${at}/shares`, { kind: "account", path: "ROOT/acme/gold", right: "copy" });
  assert.equal(shared.status, 200, JSON.stringify(shared.json));
  const copied = await bob("POST", "/volumes", { name: "mine", from: { volume: String(made.json.uid) } });
  assert.equal(copied.status, 201, JSON.stringify(copied.json));
  assert.equal((await bob("DELETE", `${at}?allowDestroy=golden`)).status, 403);
  assert.equal((await ann("DELETE", at)).status, 409, "its data is lost, and nobody said so");
  assert.equal((await bob("DELETE", `/volumes/${String(copied.json.uid)}?allowDestroy=mine`)).status, 200);
  const gone = await ann("DELETE", `${at}?allowDestroy=golden`);
  assert.equal(gone.status, 200, JSON.stringify(gone.json));

  const out = await ann("DELETE", "/login");
  assert.equal(out.status, 200, JSON.stringify(out.json));
  assert.equal((await ann("GET", "/volumes")).status, 401, "who has signed out has no volumes either");
});
