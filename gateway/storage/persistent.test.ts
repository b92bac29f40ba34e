import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type IncomingHttpHeaders, type Server } from "node:http";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { after, before, test } from "node:test";
import type { FastifyInstance } from "fastify";
import { peerName } from "../../model/cell/identifiers.ts";
import { nextHeader } from "../../model/contract/tenancy/pages.ts";
import type { JsonObject } from "../../model/json/json.ts";
import { hashCredential } from "../../runtime/http/bearer.ts";
import { createTestInstallation, eventually, type TestInstallation } from "../../runtime/installation.testing.ts";
import { createGateway } from "../gateway.ts";
import { overTls } from "../shared/listen.ts";

/* A gateway whose CaaS is in somebody else's hands: it has the right certificate, and keeps all that it is shown. */
const operator = "open-sesame-of-the-operator";
const host = "127.0.0.1:8443";
const page = { host, origin: `http://${host}`, "cells-page": "1" };
interface Heard {
  readonly line: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}
const heard: Heard[] = [];
let installation: TestInstallation;
let supervisor: Server;
let caas: Server;
let app: FastifyInstance;
let cookie = "";
/** What CaaS does not answer before it is let go. */
const held = "/volumes?limit=7";
const released = Promise.withResolvers<void>();

type Headers = Readonly<Record<string, string>>;
async function ask(line: string, headers: Headers, payload?: string) {
  const [method = "GET", url = "/"] = line.split(" ");
  const answer = await app.inject({
    method: method as "GET",
    url,
    headers: { ...(payload === undefined ? {} : { "content-type": "application/json" }), ...headers },
    ...(payload === undefined ? {} : { payload }),
  });
  const json = JSON.parse(answer.body) as JsonObject & { readonly error?: { readonly code: string } };
  return { status: answer.statusCode, json, code: json.error?.code, headers: answer.headers };
}
const asPage = (): Headers => ({ ...page, cookie: `__Host-cells=${cookie}` });
const bearer = (credential: string): Headers => ({ authorization: `Bearer ${credential}` });

before(async () => {
  installation = await createTestInstallation("persistent");
  const supervisorSocket = join(installation.directory, "supervisor");
  supervisor = createServer(({ url }, response) => response.end(url === "/status" ? '{"services":[]}' : "[]"));
  supervisor.listen(supervisorSocket);
  await once(supervisor, "listening");
  const own = await installation.configure(peerName("personality.caas"), { change: { role: "personality.caas" } });
  caas = overTls(own.configuration)(async (incoming, response) => {
    const { method, url, headers } = incoming;
    heard.push({ line: `${method} ${url}`, headers, body: await text(incoming) });
    if (url === held) await released.promise;
    response.writeHead(method === "POST" ? 201 : 200, { "content-type": "application/json", [nextHeader]: "behind" });
    response.end('[{"said":true}]');
  }, {}) as unknown as Server;
  caas.listen(own.configuration.httpPort, "127.0.0.1");
  await once(caas, "listening");
  const gateway = { listenFd: -1, supervisorSocket, credentialHashes: [hashCredential(operator)] };
  const { configuration } = await installation.configure(peerName("gateway"), { change: { role: "gateway", gateway } });
  app = createGateway(configuration);
  const answer = await ask("POST /login", page, JSON.stringify({ credential: operator }));
  assert.equal(answer.status, 201, JSON.stringify(answer.json));
  assert.equal(answer.json.volumes, true);
  cookie = /^__Host-cells=([\w-]*);/.exec(String(answer.headers["set-cookie"]))?.[1] ?? assert.fail();
});
after(async () => {
  await app?.close();
  supervisor?.close();
  caas?.close();
  await installation?.remove();
});

test("who asks the gateway for persistent volumes is passed on to CaaS, which sees neither cookie nor credential", async () => {
  const listed = await ask("GET /volumes?limit=3&tag=a", asPage());
  assert.deepEqual([listed.status, listed.json], [200, [{ said: true }]]);
  assert.equal(listed.headers[nextHeader.toLowerCase()], "behind");
  const body = JSON.stringify({ name: "golden", sizeMiB: 64 });
  const made = await ask("POST /volumes", { ...asPage(), "idempotency-key": "once" }, body);
  assert.equal(made.status, 201);
  assert.equal((await ask("GET /volumes", bearer(operator))).status, 200, "by a credential as well");
  assert.deepEqual(
    heard.map(({ line, body: sent }) => [line, sent]),
    [
      ["GET /volumes?limit=3&tag=a", ""],
      ["POST /volumes", body],
      ["GET /volumes", ""],
    ],
  );
  assert.equal(heard[1]?.headers["idempotency-key"], "once");
  for (const { headers } of heard) {
    assert.match(String(headers.authorization), /^Bearer pass\./);
    for (const [name, value] of Object.entries(headers))
      assert.ok(name !== "cookie" && !String(value).includes(operator) && !String(value).includes(cookie), name);
  }
});

test("what another page has a browser ask, and who shows nothing, does not get to CaaS", async () => {
  const before = heard.length;
  const foreign = { ...asPage(), origin: "https://evil.example" };
  assert.equal((await ask("POST /volumes", foreign, "{}")).status, 403);
  const { "cells-page": _, ...plain } = asPage();
  assert.equal((await ask("POST /volumes", plain, "{}")).status, 403);
  assert.equal((await ask("GET /volumes", {})).status, 401);
  assert.equal((await ask("GET /volumes", bearer("nothing"))).status, 401);
  assert.equal(heard.length, before);
  assert.equal((await ask("POST /volumes", asPage(), "{}")).status, 201, "its own page is passed on");
});

test("with what it was shown CaaS asks what persistent volumes take, and does nothing else in anybody's name", async () => {
  await ask("GET /volumes", asPage());
  const shown = String(heard.at(-1)?.headers.authorization).replace("Bearer ", "");
  assert.equal((await ask("GET /cells", bearer(shown))).status, 200);
  for (const line of [
    "GET /status",
    "GET /metrics",
    "GET /images",
    "GET /volumes",
    "DELETE /volumes/x",
    "GET /login",
  ]) {
    const answer = await ask(line, bearer(shown));
    assert.deepEqual([answer.status, answer.code], [403, "forbidden"], line);
  }
  for (const line of ["POST /login/codes", "PUT /cells/shop/model", "POST /cells/shop/credentials"])
    assert.equal((await ask(line, bearer(shown), "{}")).status, 403, line);
  assert.equal((await ask("GET /status", bearer(operator))).status, 200, "the operator is let in there");
  const cannot = await ask("POST /login", page, JSON.stringify({ credential: shown }));
  assert.equal(cannot.status, 401, "nobody signs in by it");
});

test("who has as many requests under way as he may is answered what CaaS asks for them", async () => {
  const all = Array.from({ length: 64 }, () => ask(`GET ${held}`, bearer(operator)));
  const underWay = () => heard.filter(({ line }) => line === `GET ${held}`);
  await eventually("CaaS has all of them", () => underWay().length === all.length);
  assert.equal((await ask("GET /cells", bearer(operator))).status, 503, "there is no further place");
  const shown = String(underWay()[0]?.headers.authorization).replace("Bearer ", "");
  assert.equal((await ask("GET /cells", bearer(shown))).status, 200);
  released.resolve();
  assert.deepEqual([...new Set((await Promise.all(all)).map(({ status }) => status))], [200]);
});

test("a CaaS that is away is said to be, and so is one that the installation does not have", async () => {
  caas.close();
  (caas as Server & { closeAllConnections(): void }).closeAllConnections();
  const away = await ask("GET /volumes", asPage());
  assert.deepEqual([away.status, away.code], [502, "unreachable"]);
  await installation.forget(peerName("personality.caas"));
  const none = await ask("GET /volumes", asPage());
  assert.deepEqual([none.status, none.code], [404, "no-volumes"]);
  assert.equal((await ask("GET /login", asPage())).json.volumes, false);
});
