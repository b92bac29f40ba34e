import assert from "node:assert/strict";
import { test } from "node:test";
import { World } from "../../../core/controller/world.testing.ts";
import type { CredentialSummary, NewCredential } from "../../../model/api.ts";
import { peerName } from "../../../model/cell/identifiers.ts";
import type { Json, JsonObject } from "../../../model/json/json.ts";
import { hashCredential } from "../../http/bearer.ts";
import { peerRequest, servePeers } from "../../http/https.ts";
import { createTestInstallation } from "../../installation.testing.ts";
import { openEvents } from "../events.ts";
import { createRoutes } from "../routes.ts";

test("a credential of a part of the cell opens that part at every route, and no route besides", async () => {
  const world = new World();
  world.put({
    shop: {
      "x.type": "Cell",
      data: { one: { "x.type": "Volume", "x.size": 64 } },
      web: { "x.type": "VM", "x.memory": 64 },
    },
  });
  const installation = await createTestInstallation("part-of-a-cell");
  const gateway = (await installation.configure(peerName("gateway"))).configuration;
  const { configuration } = await installation.configure(peerName("controller.shop"));
  const names = { cell: "shop", cellUid: "c1", cellNumber: 7, domain: "cells.internal", mac: "02:00:00:00:00:01" };
  const controller = { ...names, credentialHashes: [hashCredential("operator")] };
  const events = openEvents(configuration.directory, "shop");
  const request = async (asked: Json): Promise<Json> => world.ask(asked as JsonObject) as unknown as Json;
  const server = await servePeers(configuration, createRoutes({ configuration, controller, events, request }));
  const ask = async (method: string, path: string, body?: Json, credential = "operator") => {
    const answer = await peerRequest(gateway, peerName("controller.shop"), {
      method,
      path: `/cells/shop${path}`,
      headers: { authorization: `Bearer ${credential}`, "content-type": "application/json" },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await answer.text();
    return {
      status: answer.status,
      json: (text.startsWith("{") || text.startsWith("[") ? JSON.parse(text) : null) as Json,
    };
  };
  const make = (body: JsonObject) => ask("POST", "/credentials", body);
  try {
    assert.equal((await make({ access: "read" })).status, 400);
    assert.equal((await make({ path: "shop" })).status, 400);
    const { credential } = (await make({ path: "shop/data" })).json as unknown as NewCredential;
    const statusOf = async (method: string, path: string, body?: Json): Promise<number> =>
      (await ask(method, path, body, credential)).status;
    const grown = { "x.type": "Volume", "x.size": 128 };
    assert.equal(await statusOf("GET", "/model/shop/data"), 200);
    assert.equal(await statusOf("GET", "/elements"), 200);
    assert.equal(await statusOf("GET", "/why?element=shop/data/one"), 200);
    assert.equal(await statusOf("PUT", "/model/shop/data/two", grown), 200);
    assert.equal(await statusOf("PATCH", "/model", [{ op: "add", path: "/shop/data/three", value: grown }]), 200);
    assert.equal(await statusOf("DELETE", "/model/shop/data/two?allowDestroy=shop/data/two"), 200);
    const beside: readonly (readonly [string, string, Json?])[] = [
      ...([
        ["GET", ""],
        ["GET", "/model"],
        ["GET", "/model/shop/web"],
        ["GET", "/events"],
        ["GET", "/audit"],
      ] as const),
      ...([
        ["GET", "/credentials"],
        ["POST", "/credentials", {}],
        ["DELETE", "/credentials/x"],
      ] as const),
      ...([
        ["GET", "/why?from=shop/web&to=shop/web"],
        ["GET", "/why?element=shop/web"],
      ] as const),
      ...([
        ["POST", "/exec", { vm: "web", command: ["ls"] }],
        ["POST", "/sessions", {}],
      ] as const),
      ...([
        ["PUT", "/model", { shop: {} }],
        ["DELETE", "/model"],
        ["POST", "/moves", {}],
      ] as const),
    ];
    for (const [method, path, body] of beside) assert.equal(await statusOf(method, path, body), 403, method + path);
    const listed = (await ask("GET", "/credentials")).json as unknown as CredentialSummary[];
    assert.deepEqual([listed[0]?.path, listed[0]?.access], ["shop/data", "write"]);
  } finally {
    await server.stop();
    events.close();
    await installation.remove();
  }
});
