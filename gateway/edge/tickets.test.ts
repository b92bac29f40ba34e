import assert from "node:assert/strict";
import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { after, before, test } from "node:test";
import type { FastifyInstance } from "fastify";
import { WebSocket } from "ws";
import type { CellSummary, Refusal } from "../../model/api.ts";
import { peerName } from "../../model/cell/identifiers.ts";
import { capabilityPrefix, sessionProtocol } from "../../model/cell/session-messages.ts";
import type { Json } from "../../model/json/json.ts";
import type { EdgeContext } from "../../runtime/controller/exchange.ts";
import { createRoutes } from "../../runtime/controller/routes.ts";
import type { ControllerSessions } from "../../runtime/controller/sessions.ts";
import { hashCredential, newCredential } from "../../runtime/http/bearer.ts";
import { type PeerServer, peerRequest, servePeers } from "../../runtime/http/https.ts";
import type { PeerHandler } from "../../runtime/http/peer-handler.ts";
import { refuseUpgrade } from "../../runtime/http/websocket-hop.ts";
import { createTestInstallation, type TestInstallation } from "../../runtime/installation.testing.ts";
import type { ProcessConfiguration } from "../../runtime/installation.ts";
import { createGateway } from "../gateway.ts";

/*
 * Who holds a tenant's controller, or the host under its VM, reads whatever comes there. Everything that reaches a
 * controller is recorded here, down to the bodies and the handshakes of sessions; behind the record are the real routes.
 */
const operator = "open-sesame-of-the-operator";
const own = { shop: newCredential("shop").credential, web: newCredential("web").credential };
let installation: TestInstallation;
let app: FastifyInstance;
let url = "";
let configuration: ProcessConfiguration;
/** By cell, everything that came. */
const received = new Map<string, string[]>();
const servers = new Map<string, PeerServer>();

const credentialsOf = (cell: string): readonly string[] =>
  Object.entries(own).flatMap(([each, credential]) => (each === cell ? [credential] : []));

/** Takes what a controller's service would be asked, and answers as one whose cell is empty. */
const service =
  (cell: string) =>
  async (request: Json): Promise<Json> => {
    const asked = request as { readonly method: string; readonly hash?: string };
    const known = credentialsOf(cell).some((credential) => hashCredential(credential) === asked.hash);
    if (asked.method === "CREDENTIAL-KNOWN") return { status: 200, version: 1, body: known };
    return { status: 200, version: 1, body: { cell, version: 1, phases: {}, elements: 0, empty: false } };
  };

/** Of the version before only that it knows no tickets. */
type Version = "present" | "previous";
const startController = async (cell: string, version: Version = "present"): Promise<void> => {
  await servers.get(cell)?.stop();
  const { configuration } = await installation.configure(peerName(`controller.${cell}`));
  const controller = {
    cell,
    cellUid: cell,
    cellNumber: 1,
    domain: "cells.internal",
    mac: "02:00:00:00:00:01",
    cellManager: true as const,
    credentialHashes: [hashCredential(operator)],
  };
  const seen = received.get(cell) ?? [];
  received.set(cell, seen);
  const events = { lines: () => [], since: () => [], subscribe: () => () => undefined, record: () => undefined };
  const context = { configuration, controller, events: { ...events, close: () => undefined }, request: service(cell) };
  const sessions: ControllerSessions = {
    grant: async () => ({ status: 201, body: { session: "c".repeat(43) } }),
    open: async () => undefined,
    revoked: async () => undefined,
  };
  const present = createRoutes(context as unknown as EdgeContext, sessions);
  const previous: PeerHandler = (incoming, response) => {
    const credential = incoming.headers.authorization?.replace("Bearer ", "") ?? "";
    const isKnown = credential === operator || credentialsOf(cell).includes(credential);
    const status = !isKnown ? 401 : incoming.url.startsWith("/cells/") ? 200 : 404;
    response.writeHead(status, { "content-type": "application/json" });
    response.end(JSON.stringify({ cell, version: 1, phases: {}, elements: 0, empty: false }));
  };
  const record = ({ rawHeaders, method, url: path }: IncomingMessage): number =>
    seen.push(`${method} ${path}\n${rawHeaders.join("\n")}`);
  const handler: PeerHandler = async (incoming, response) => {
    record(incoming.raw);
    const body = await buffer(incoming.body);
    seen.push(body.toString("latin1"));
    await (version === "present" ? present : previous)({ ...incoming, body: Readable.from([body]) }, response);
  };
  const server = await servePeers(configuration, handler, ({ raw, socket }) => {
    record(raw);
    refuseUpgrade(socket, 403, "capability", "this capability opens nothing");
  });
  servers.set(cell, server);
};

before(async () => {
  installation = await createTestInstallation("tickets");
  for (const cell of ["root", "shop", "web"]) await startController(cell);
  ({ configuration } = await installation.configure(peerName("gateway"), {
    change: { role: "gateway", gateway: { listenFd: -1, credentialHashes: [hashCredential(operator)] } },
  }));
  app = createGateway(configuration);
  url = await app.listen({ host: "127.0.0.1", port: 0 });
});
after(async () => {
  await app.close();
  for (const server of servers.values()) await server.stop();
  await installation.remove();
});

const ask = async (method: string, path: string, credential = operator, body?: string) => {
  const response = await fetch(url + path, {
    method,
    headers: { authorization: `Bearer ${credential}`, "content-type": "application/json" },
    ...(body === undefined ? {} : { body }),
  });
  return { status: response.status, text: await response.text() };
};
const messageOf = (text: string): string => (JSON.parse(text) as Refusal).error.message;
const forgetAll = (): void => {
  for (const seen of received.values()) seen.length = 0;
};
const whatCame = (cell: string): string => (received.get(cell) ?? []).join("\n");

const requests = [
  ["GET", ""],
  ["GET", "/model"],
  ["PUT", "/model", "{}"],
  ["PUT", "/model?dryRun=true", "{}"],
  ["DELETE", "/model/shop/x"],
  ["GET", "/events"],
  ["GET", "/why?element=shop/x"],
  ["POST", "/exec", '{"vm":"x","command":["true"]}'],
  ["GET", "/credentials"],
  ["POST", "/credentials", "{}"],
  ["DELETE", "/credentials/12345678"],
  ["POST", "/sessions", '{"vm":"x","verb":"console"}'],
  ["GET", "/nothing"],
] as const;

test("no controller but the root cell's is ever shown the operator's credential, nor another cell's", async () => {
  forgetAll();
  for (const path of ["/cells", "/status", "/metrics", "/events", "/images"]) await ask("GET", path);
  for (const cell of ["shop", "web"] as const) {
    for (const credential of [operator, own[cell]])
      for (const [method, path, body] of requests)
        assert.notEqual((await ask(method, `/cells/${cell}${path}`, credential, body)).status, 401, path);
    assert.equal((await ask("GET", `/cells/${cell}`, own.shop)).status, cell === "shop" ? 200 : 403);
    await ask("GET", "/cells", own[cell]);
    const socket = new WebSocket(
      `${url.replace("http", "ws")}/cells/${cell}/sessions`,
      [sessionProtocol, `${capabilityPrefix}${"c".repeat(43)}`],
      { headers: { authorization: `Bearer ${operator}` } },
    );
    await once(socket, "unexpected-response");
  }
  for (const [cell, other] of [["shop", own.web] as const, ["web", own.shop] as const]) {
    const came = whatCame(cell);
    const all = /POST \/cells\/.*\/exec/.test(came) && /sec-websocket-key/i.test(came);
    assert.ok(all, "requests, bodies and handshakes were recorded");
    for (const secret of [operator, other]) assert.ok(!came.includes(secret), `${cell} was shown ${secret}`);
  }
});

test("the operator opens the root cell, every other and the list of all", async () => {
  for (const cell of ["root", "shop", "web"]) assert.equal((await ask("GET", `/cells/${cell}`)).status, 200, cell);
  const listed = JSON.parse((await ask("GET", "/cells")).text) as CellSummary[];
  assert.deepEqual(
    listed.map(({ phases }) => phases),
    listed.map(() => ({})),
  );
});

const ticketIn = (text: string): string => /Bearer (ticket\.[\w-]{43})/.exec(text)?.[1] ?? assert.fail(text);
const askController = async (cell: string, from: ProcessConfiguration, ticket: string): Promise<number> => {
  const answer = await peerRequest(from, peerName(`controller.${cell}`), {
    method: "GET",
    path: `/cells/${cell}`,
    headers: { authorization: `Bearer ${ticket}` },
  });
  answer.body.destroy();
  return answer.status;
};

test("a ticket opens the one cell that it is for, by the gateway alone, and is spent once", async () => {
  forgetAll();
  await ask("GET", "/cells/shop");
  const ticket = ticketIn(whatCame("shop"));
  assert.equal(await askController("shop", configuration, ticket), 200);
  assert.equal(await askController("web", configuration, ticket), 401);
  const host = (await installation.configure(peerName("host.h9"))).configuration;
  assert.notEqual(await askController("shop", host, ticket), 200);
  // Its controller has begun anew: the ticket was spent, and another one is had without a word to the operator.
  await startController("shop");
  assert.equal(await askController("shop", configuration, ticket), 401);
  assert.equal((await ask("GET", "/cells/shop")).status, 200);
  assert.notEqual(ticketIn(whatCame("shop").slice(-2000)), "");
});

test("nobody gets a ticket without the operator's credential", async () => {
  const register = async (from: ProcessConfiguration, credential: string): Promise<number> => {
    const answer = await peerRequest(from, peerName("controller.root"), {
      method: "PUT",
      path: `/tickets/${"ab".repeat(32)}`,
      body: JSON.stringify({ cell: "shop" }),
      headers: { authorization: `Bearer ${credential}`, "content-type": "application/json" },
    });
    answer.body.destroy();
    return answer.status;
  };
  assert.equal(await register(configuration, operator), 200);
  for (const credential of ["wrong", own.shop, "ticket.".padEnd(50, "x")])
    assert.equal(await register(configuration, credential), 401);
  const { configuration: shop } = await installation.configure(peerName("controller.other"));
  assert.equal(await register(shop, operator), 403);
  assert.equal((await ask("PUT", `/tickets/${"ab".repeat(32)}`, operator, "{}")).status, 404);
});

test("a controller of the previous version is not shown it either: its own credentials open it, and the refusal says so", async () => {
  await startController("shop", "previous");
  forgetAll();
  const refused = await ask("GET", "/cells/shop");
  assert.equal(refused.status, 502);
  assert.match(messageOf(refused.text), /controller of the cell "shop" .*previous version.*credential of the cell/);
  assert.equal((await ask("GET", "/cells/shop", own.shop)).status, 200);
  assert.ok(!whatCame("shop").includes(operator));
  await startController("shop");
  assert.equal((await ask("GET", "/cells/shop")).status, 200);

  await startController("root", "previous");
  await app.close();
  app = createGateway(configuration);
  url = await app.listen({ host: "127.0.0.1", port: 0 });
  assert.equal((await ask("GET", "/cells/root")).status, 200);
  const waits = await ask("GET", "/cells/web");
  assert.equal(waits.status, 502);
  assert.match(messageOf(waits.text), /controller of the root cell .*previous version/);
  assert.ok(!whatCame("web").includes(operator));
  await startController("root");
  assert.equal((await ask("GET", "/cells/web")).status, 200);
});

test("while the root controller is away, the operator keeps the cells that he has used, and is told why of others", async () => {
  await ask("GET", "/cells/shop");
  await servers.get("root")?.stop();
  assert.equal((await ask("GET", "/cells/shop")).status, 200);
  await installation.configure(peerName("controller.late"));
  const { text, status } = await ask("GET", "/cells/late");
  assert.equal(status, 502);
  assert.match(messageOf(text), /the controller of the root cell, .* does not answer/);
  await startController("root");
});

test("a gateway of the previous version, which shows the operator's credential, is let in as before", async () => {
  assert.equal(await askController("shop", configuration, operator), 200);
});
