import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import { join } from "node:path";
import { after, before, test } from "node:test";
import type { FastifyInstance } from "fastify";
import { World } from "../../core/controller/world.testing.ts";
import { mayAsk, mayDesire, maySee, permissions, type ServiceKind } from "../../core/documents/permissions.ts";
import type { Bench } from "../../core/tenancy/tenancy.testing.ts";
import { settled } from "../../core/tenancy/tenancy.testing.ts";
import { cellName, type PeerName, peerName } from "../../model/cell/identifiers.ts";
import type { Json, JsonObject } from "../../model/json/json.ts";
import { openEvents } from "../../runtime/controller/events.ts";
import { createRoutes } from "../../runtime/controller/routes.ts";
import { hashCredential, newCredential } from "../../runtime/http/bearer.ts";
import { peerRequest, servePeers } from "../../runtime/http/https.ts";
import { newSession } from "../../runtime/identity/tickets.ts";
import { createTestInstallation, type TestInstallation } from "../../runtime/installation.testing.ts";
import type { ProcessConfiguration } from "../../runtime/installation.ts";
import { tenancyHandler } from "../../runtime/tenancy/edge.ts";
import { Keys } from "../../runtime/tenancy/keys.ts";
import { Notices } from "../../runtime/tenancy/notices.ts";
import { Oidc } from "../../runtime/tenancy/oidc.ts";
import { SecondFactor } from "../../runtime/tenancy/second-factor.ts";
import { Tunnels } from "../../runtime/tenancy/tunnels.ts";
import { createGateway } from "../gateway.ts";

/*
 * This test is CaaS in somebody else's hands: it has its certificate and key, its credential, and the session of one user who came through it.
 * What it then tries is what anybody may in the table of permissions, at real services over mutual TLS; beside each refusal stands somebody
 * who is let in with the same.
 */
const operator = "operator";
const credentialHashes = [hashCredential(operator)];
const caas = peerName("personality.caas");
let installation: TestInstallation;
let own: ProcessConfiguration;
let gateway: ProcessConfiguration;
let app: FastifyInstance;
let bench: Bench;
let credential = "";
const ends: (() => unknown)[] = [];

async function startController(cell: string, model: JsonObject): Promise<World> {
  const world = new World({ cell: cellName(cell) });
  world.put({ [cell]: model });
  const { configuration } = await installation.configure(peerName(`controller.${cell}`));
  const names = { cell, cellUid: `of-${cell}`, cellNumber: 7, domain: "cells.internal", mac: "02:00:00:00:00:01" };
  const events = openEvents(configuration.directory, cell);
  const request = async (asked: Json): Promise<Json> => world.ask(asked as JsonObject) as unknown as Json;
  const controller = { ...names, credentialHashes };
  const server = await servePeers(configuration, createRoutes({ configuration, controller, events, request }));
  ends.push(
    () => server.stop(),
    () => events.close(),
  );
  return world;
}
before(async () => {
  installation = await createTestInstallation("taken-over");
  const volume: JsonObject = { "x.type": "Volume", "x.size": 64 };
  const primary = await startController("primary", { "x.type": "Cell", volumes: { one: volume }, secret: volume });
  await startController("shop", { "x.type": "Cell", data: volume });
  bench = settled();
  const tenancy = await installation.configure(peerName("tenancy"));
  const key = randomBytes(32);
  const secrets = {
    keys: new Keys(key),
    factor: new SecondFactor(key),
    oidc: new Oidc(key, new Tunnels()),
    notices: new Notices(key),
  };
  const asked: Parameters<typeof tenancyHandler>[0] = async (request) => bench.request(request);
  const server = await servePeers(tenancy.configuration, tenancyHandler(asked, secrets, credentialHashes));
  ends.push(() => server.stop());
  const supervisorSocket = join(installation.directory, "supervisor.sock");
  const supervisor = createServer((_request, response) => response.end(JSON.stringify(["primary", "shop"])));
  supervisor.listen(supervisorSocket);
  await once(supervisor, "listening");
  ends.push(() => supervisor.close());
  const role = { listenFd: -1, supervisorSocket, credentialHashes };
  ({ configuration: gateway } = await installation.configure(peerName("gateway"), {
    change: { role: "gateway", gateway: role },
  }));
  ({ configuration: own } = await installation.configure(caas));
  app = createGateway(gateway);
  ends.push(() => app.close());
  const made = newCredential("primary");
  credential = made.credential;
  const within = { path: "primary/volumes", access: "write" };
  primary.ask({ method: "CREDENTIAL-ADD", id: made.id, hash: hashCredential(credential), note: "", within });
});
after(async () => {
  for (const end of ends.reverse()) await end();
  await installation?.remove();
});

/** What a pattern of the table stands for. */
const examplesOf = (pattern: string): readonly string[] =>
  (pattern.startsWith("*")
    ? ["GET", "POST", "PUT", "DELETE"].map((method) => method + pattern.slice(1))
    : [pattern]
  ).map((text) =>
    text
      .replaceAll("<uid>", "u-1")
      .replaceAll("<name>", "one")
      .replaceAll("<cell>", "shop")
      .replaceAll("<peer>", caas)
      .replace(/…$/, "x"),
  );
const kinds = Object.keys(permissions) as readonly ServiceKind[];
const patternsOf = (kind: ServiceKind, verb: "asks" | "desires" | "sees"): readonly string[] =>
  Object.values(permissions[kind][verb] as Readonly<Record<string, readonly string[]>>).flat();

test("of all that anybody may say, hear or ask at any service, its certificate may nothing", () => {
  let tried = 0;
  for (const kind of kinds) {
    for (const key of patternsOf(kind, "desires").flatMap(examplesOf)) {
      assert.ok(!mayDesire(kind, caas, key), `${kind} ${key}`);
      tried += 1;
    }
    for (const key of [...patternsOf(kind, "sees").flatMap(examplesOf), `${caas}/u-1`]) {
      assert.ok(!maySee(kind, caas, key), `${kind} ${key}`);
      tried += 1;
    }
    for (const asked of patternsOf(kind, "asks").flatMap(examplesOf)) {
      const [method = "", path = ""] = asked.split(" ");
      assert.ok(!mayAsk(kind, caas, method, path), `${kind} ${asked}`);
      tried += 1;
    }
  }
  assert.ok(tried > 300, `${tried}`);
  assert.ok(mayAsk("tenancy", peerName("gateway"), "GET", "/cells"), "the gateway may");
});

test("at a cell's controller and at the service of users it is refused by its certificate, whichever credential it shows", async () => {
  const ann = newSession();
  const annsOwn = bench.logIn("ann", "ROOT/acme", "of ann") ?? assert.fail();
  const record = bench.state.tables.session.get(annsOwn) ?? assert.fail();
  bench.state.tables.session.set(hashCredential(ann), record);
  const ask = async (by: ProcessConfiguration, at: PeerName, line: string, shown: string): Promise<number> => {
    const [method = "GET", path = "/"] = line.split(" ");
    const body = method === "GET" || method === "DELETE" ? {} : { body: "{}" };
    const headers = { authorization: `Bearer ${shown}`, "content-type": "application/json" };
    const answer = await peerRequest(by, at, { method, path, headers, ...body });
    answer.body.destroy();
    return answer.status;
  };
  for (const shown of [operator, credential, ann]) {
    for (const line of new Set(patternsOf("tenancy", "asks").flatMap(examplesOf)))
      assert.equal(await ask(own, peerName("tenancy"), line, shown), 403, `tenancy: ${line}`);
    for (const cell of ["primary", "shop"])
      for (const line of [`GET /cells/${cell}/model`, `PUT /cells/${cell}/model`, `GET /cells/${cell}`, "GET /metrics"])
        assert.equal(await ask(own, peerName(`controller.${cell}`), line, shown), 403, `${cell}: ${line}`);
  }
  assert.equal(await ask(gateway, peerName("tenancy"), "GET /whoami", ann), 200, "the gateway is let in with the same");
  assert.equal(await ask(gateway, peerName("controller.shop"), "GET /cells/shop/model", operator), 200);
});

test("its credential opens persistent volumes and nothing beside them; a user's session what he himself may", async () => {
  const ask = async (method: "GET" | "PUT" | "PATCH" | "DELETE" | "POST", url: string, shown: string, body?: Json) => {
    const answer = await app.inject({
      method,
      url,
      headers: { authorization: `Bearer ${shown}`, "content-type": "application/json" },
      ...(body === undefined ? {} : { payload: JSON.stringify(body) }),
    });
    return { status: answer.statusCode, json: JSON.parse(answer.body) as Json };
  };
  assert.equal((await ask("GET", "/cells/primary/model/primary/volumes", credential)).status, 200);
  assert.deepEqual((await ask("GET", "/cells", credential)).json, []);
  for (const path of ["model", "model/primary/secret", "events", "credentials", "source", "versions"])
    assert.equal((await ask("GET", `/cells/primary/${path}`, credential)).status, 403, path);
  for (const path of ["", "/model", "/model/shop/data", "/events", "/credentials"])
    assert.equal((await ask("GET", `/cells/shop${path}`, credential)).status, 403, `shop${path}`);
  for (const path of ["/status", "/metrics", "/images", "/orphans", "/users", "/keys", "/domains", "/audit"])
    assert.ok([401, 403].includes((await ask("GET", path, credential)).status), path);
  assert.equal((await ask("POST", "/cells/primary/credentials", credential, {})).status, 403);
  assert.equal((await ask("DELETE", "/cells/primary/model", credential)).status, 403);
});
