import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from "node:http";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { after, before, test } from "node:test";
import type { FastifyInstance } from "fastify";
import type { Refusal } from "../../model/api.ts";
import { peerName } from "../../model/cell/identifiers.ts";
import { viaHeader } from "../../model/contract/audit/via.ts";
import { hashCredential, newCredential } from "../../runtime/http/bearer.ts";
import { type PeerServer, servePeers } from "../../runtime/http/https.ts";
import { isTicket } from "../../runtime/identity/tickets.ts";
import { createTestInstallation, eventually, type TestInstallation } from "../../runtime/installation.testing.ts";
import type { ProcessConfiguration } from "../../runtime/installation.ts";
import { createGateway } from "../gateway.ts";
import { whoseHeader } from "../shared/whose.ts";
import { createIntroduction } from "./admission.ts";

/** The gateway before a controller that knows one credential, and keeps whoever asks for `slow` waiting. */
const own = newCredential("shop").credential;
const operator = "open-sesame";
let installation: TestInstallation;
let supervisor: Server;
let controller: PeerServer;
let app: FastifyInstance;
let configuration: ProcessConfiguration;
let url = "";
let seen: string[] = [];
const waiting = new Set<ServerResponse>();
/** The controller answers nobody. */
let isStuck = false;
/** Questions about credentials that came meanwhile. */
const asked = new Set<ServerResponse>();
const release = (): void => {
  isStuck = false;
  for (const response of waiting) response.destroy();
  waiting.clear();
  asked.clear();
};

before(async () => {
  installation = await createTestInstallation("admission");
  const { configuration: ofController } = await installation.configure(peerName("controller.shop"));
  controller = await servePeers(ofController, (incoming, response) => {
    const credential = incoming.headers.authorization?.replace("Bearer ", "");
    const known = credential === own || isTicket(credential ?? "");
    seen.push(`${incoming.method} ${incoming.url} ${known ? "known" : "unknown"}`);
    if (isStuck && incoming.url === "/cells/shop") asked.add(response);
    if (isStuck || (known && incoming.url.endsWith("/slow"))) waiting.add(response);
    else response.writeHead(known ? 200 : 401, { "content-type": "application/json" }).end("{}");
  });
  const supervisorSocket = join(installation.directory, "supervisor.sock");
  supervisor = createServer((_request, response) => response.end(JSON.stringify(["shop", "secret-project"])));
  supervisor.listen(supervisorSocket);
  await once(supervisor, "listening");
  const gateway = await installation.configure(peerName("gateway"), {
    change: {
      role: "gateway",
      gateway: { listenFd: -1, supervisorSocket, credentialHashes: [hashCredential(operator)] },
    },
  });
  configuration = gateway.configuration;
  app = createGateway(configuration);
  url = await app.listen({ host: "127.0.0.1", port: 0 });
});
after(async () => {
  await app.close();
  await controller.stop();
  supervisor.close();
  await installation.remove();
});

const ask = async (path: string, credential: string, options: RequestInit = {}) => {
  const response = await fetch(url + path, { ...options, headers: { authorization: `Bearer ${credential}` } });
  return { status: response.status, said: await response.text() };
};

test("who only says to be of a cell learns nothing of it, and of no other either", async () => {
  seen = [];
  const forged = newCredential("shop").credential;
  for (const method of ["GET", "PUT", "DELETE", "POST"]) {
    const body = method === "GET" ? {} : { body: "{}" };
    const there = await ask("/cells/shop/model", forged, { method, ...body });
    const absent = await ask("/cells/none/model", newCredential("none").credential, { method, ...body });
    assert.equal(there.status, 401);
    assert.match(there.said, /no credential of the cell shop: ask its operator/);
    assert.deepEqual([absent.status, absent.said], [401, there.said.replaceAll("shop", "none")]);
    assert.doesNotMatch(absent.said, /secret-project/);
  }
  assert.ok(seen.length > 0 && seen.every((line) => line === "GET /cells/shop unknown"), seen.join("\n"));
  assert.deepEqual(await ask("/cells", forged), { status: 200, said: "[]" });
});

test("who only says to be of a cell is told so before a body is read", async () => {
  const forged = newCredential("shop").credential;
  const headers = { authorization: `Bearer ${forged}`, "content-length": 8 * 1024 * 1024 };
  const upload = request(`${url}/cells/shop/model`, { method: "PUT", headers });
  upload.on("error", () => undefined).flushHeaders();
  const [answer] = (await once(upload, "response")) as [IncomingMessage];
  assert.equal(answer.statusCode, 401);
  assert.match((JSON.parse(await text(answer)) as Refusal).error.message, /no credential of the cell/);
  upload.destroy();
});

test("a personality is told whose share a request is of, once that is sure, and nobody else is", async () => {
  const whose = async (credential: string, via: string | null = "caas;listCells;1") => {
    const headers = { authorization: `Bearer ${credential}`, ...(via === null ? {} : { [viaHeader]: via }) };
    const answer = await fetch(`${url}/cells/shop/model`, { headers });
    await answer.text();
    return answer.headers.get(whoseHeader);
  };
  const [its, operators] = [await whose(own), await whose(operator)];
  assert.match(String(its), /^[\w-]{22}$/);
  assert.match(String(operators), /^[\w-]{22}$/);
  assert.notEqual(its, operators);
  assert.equal(await whose(own), its, "each time the same");
  assert.equal(await whose(newCredential("shop").credential), null, "who made one up would use up what the cell has");
  assert.equal(await whose("nobody"), null);
  assert.equal(await whose(own, null), null);
});

test("a cell's holder is let in, has a share of the gateway, and stands in nobody's way with it", async () => {
  assert.equal((await ask("/cells/shop/model", own)).status, 200);
  const leave = new AbortController();
  const slow = Array.from({ length: 16 }, () =>
    ask("/cells/shop/slow", own, { signal: leave.signal }).catch(() => null),
  );
  await eventually("all of them wait", () => waiting.size === 16);
  const more = await ask("/cells/shop/model", own);
  assert.equal(more.status, 503);
  assert.match(more.said, /of the cell/);
  assert.equal((await ask("/cells/shop/model", operator)).status, 200);
  leave.abort();
  await Promise.all(slow);
  release();
  await eventually("there is room again", async () => (await ask("/cells/shop/model", own)).status === 200);
});

test("whoever was known once is asked about apart from those who make credentials up, and not at all while at work", async () => {
  let now = 0;
  const minute = 60_000;
  const { introduce, forget } = createIntroduction(configuration, { has: async () => true }, () => now);
  const credential = `Bearer ${own}`;
  const here = "192.0.2.1";
  await introduce("shop", credential, here);
  seen = [];
  for (; now < 60 * minute; now += 9 * minute) await introduce("shop", credential, here);
  assert.deepEqual(seen, []);

  now += 11 * minute;
  isStuck = true;
  const forged = Array.from({ length: 32 }, (_, index) =>
    introduce("shop", `Bearer ${newCredential("shop").credential}`, `192.0.2.${index}`).then(
      () => "in",
      (error: Error) => error.message,
    ),
  );
  await eventually("the cell's part of questions is taken", () => asked.size === 8);
  isStuck = false;
  await assert.doesNotReject(introduce("shop", credential, here));
  release();
  assert.ok(!(await Promise.all(forged)).includes("in"));

  // What was revoked is a stranger's again.
  forget(credential);
  seen = [];
  await introduce("shop", credential, here);
  assert.equal(seen.length, 1);
});

// What its clients gave up may still come to the controller after it, so it is the last one.
test("lists of cells for made-up credentials of a cell that does not answer take nobody's place", async () => {
  isStuck = true;
  const leave = new AbortController();
  const lists = Array.from({ length: 100 }, () =>
    ask("/cells", newCredential("shop").credential, { signal: leave.signal }).catch(() => null),
  );
  try {
    await eventually("the controller is asked of some", () => asked.size === 4);
    const { status } = await ask("/cells/none/model", operator);
    assert.equal(status, 404);
    for (let count = 0; count < 16; count += 1)
      lists.push(ask("/cells/shop/slow", own, { signal: leave.signal }).catch(() => null));
    await eventually("the cell's holder has all of its places", () => waiting.size - asked.size === 16);
  } finally {
    leave.abort();
    await Promise.all(lists);
    release();
  }
});
