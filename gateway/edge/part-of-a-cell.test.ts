import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { join } from "node:path";
import { test } from "node:test";
import { World } from "../../core/controller/world.testing.ts";
import { peerName } from "../../model/cell/identifiers.ts";
import type { ListedElement } from "../../model/contract/tenancy/listed-element.ts";
import type { Json, JsonObject } from "../../model/json/json.ts";
import { openEvents } from "../../runtime/controller/events.ts";
import { createRoutes } from "../../runtime/controller/routes.ts";
import { hashCredential, newCredential } from "../../runtime/http/bearer.ts";
import { servePeers } from "../../runtime/http/https.ts";
import { createTestInstallation } from "../../runtime/installation.testing.ts";
import { createGateway } from "../gateway.ts";

test("a credential of a part of a cell works through the gateway, there and nowhere else", async () => {
  const volume: JsonObject = { "x.type": "Volume", "x.size": 64 };
  const world = new World();
  world.put({ shop: { "x.type": "Cell", data: { one: volume }, secret: volume } });
  const installation = await createTestInstallation("part-at-the-gateway");
  const { configuration } = await installation.configure(peerName("controller.shop"));
  const names = { cell: "shop", cellUid: "c1", cellNumber: 7, domain: "cells.internal", mac: "02:00:00:00:00:01" };
  const controller = { ...names, credentialHashes: [hashCredential("operator")] };
  const events = openEvents(configuration.directory, "shop");
  const request = async (asked: Json): Promise<Json> => world.ask(asked as JsonObject) as unknown as Json;
  const server = await servePeers(configuration, createRoutes({ configuration, controller, events, request }));
  const supervisorSocket = join(installation.directory, "supervisor.sock");
  const supervisor = createServer((_request, response) => response.end(JSON.stringify(["other", "shop"])));
  supervisor.listen(supervisorSocket);
  await once(supervisor, "listening");
  const role = { listenFd: -1, supervisorSocket, credentialHashes: [hashCredential("operator")] };
  const gateway = await installation.configure(peerName("gateway"), { change: { role: "gateway", gateway: role } });
  const app = createGateway(gateway.configuration);
  const ask = async (method: "GET" | "PATCH", url: string, credential: string, body?: Json) => {
    const answer = await app.inject({
      method,
      url,
      headers: { authorization: `Bearer ${credential}`, "content-type": "application/json" },
      ...(body === undefined ? {} : { payload: JSON.stringify(body) }),
    });
    return { status: answer.statusCode, json: JSON.parse(answer.body) as Json };
  };
  try {
    const { id, credential } = newCredential("shop");
    const within = { path: "shop/data", access: "write" };
    world.ask({ method: "CREDENTIAL-ADD", id, hash: hashCredential(credential), note: "", within });
    const listed = await ask("GET", "/elements", credential);
    assert.equal(listed.status, 200, JSON.stringify(listed.json));
    assert.deepEqual(
      (listed.json as unknown as ListedElement[]).map(({ path }) => path),
      ["shop/data/one"],
    );
    assert.deepEqual((await ask("GET", "/cells", credential)).json, [], "of the cell as a whole it says nothing");
    assert.equal((await ask("GET", "/cells/shop/model/shop/data", credential)).status, 200);
    for (const path of ["model", "model/shop/secret", "events", "credentials"])
      assert.equal((await ask("GET", `/cells/shop/${path}`, credential)).status, 403, path);
    assert.equal((await ask("GET", "/cells/other/model/other/data", credential)).status, 403);
    assert.equal((await ask("GET", "/status", credential)).status, 403);
    assert.equal((await ask("GET", "/elements", newCredential("shop").credential)).status, 401);
  } finally {
    await app.close();
    await server.stop();
    supervisor.close();
    events.close();
    await installation.remove();
  }
});
