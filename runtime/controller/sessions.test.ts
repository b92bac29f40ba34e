import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { WebSocket, WebSocketServer } from "ws";
import type { ExecTarget } from "../../core/controller/requests/session-requests.ts";
import { hostName, peerName, uid } from "../../model/cell/identifiers.ts";
import { capabilityPrefix, type SessionGrant, sessionProtocol } from "../../model/cell/session-messages.ts";
import { viaHeader } from "../../model/contract/audit/via.ts";
import type { Json } from "../../model/json/json.ts";
import { hashCredential } from "../http/bearer.ts";
import { type PeerServer, peerRequest, servePeers } from "../http/https.ts";
import { decodeCapability, type HostCapability, hostCapabilityHeader } from "../http/session-capability.ts";
import { createTestInstallation, eventually, type TestInstallation } from "../installation.testing.ts";
import type { ProcessConfiguration } from "../installation.ts";
import type { CellEvents } from "./events.ts";
import { createRoutes, createUpgrades } from "./routes.ts";
import { createSessions, SessionGrants } from "./sessions.ts";

const target: ExecTarget = { path: "shop/web", host: hostName("h1"), uid: uid("c1-1"), incarnation: 3 };

test("a grant is redeemed once, in its time, and there are only so many", () => {
  let now = 0;
  const grants = new SessionGrants(() => now);
  const grant = {
    path: "shop/web",
    verb: "exec",
    target,
    holder: null,
    by: { who: "ann@ROOT", door: "gateway" },
  } as const;
  const session = grants.mint(grant) ?? "";
  assert.match(session, /^[\w-]{43}$/);
  assert.equal(grants.redeem(`${session.slice(0, -1)}!`), null);
  assert.equal(grants.redeem(session), grant);
  assert.equal(grants.redeem(session), null, "it was used");
  const late = grants.mint(grant) ?? "";
  now = 60_001;
  assert.equal(grants.redeem(late), null, "it has expired");
  for (let count = 0; count < 256; count += 1) assert.notEqual(grants.mint(grant), null);
  assert.equal(grants.mint(grant), null);
  now = 130_000;
  assert.notEqual(grants.mint(grant), null, "those that expired make room");
});

/** What was recorded, and how often the host had been asked then. */
const recorded: { readonly asked: Json; readonly before: number }[] = [];
let recordFails = false;
/** Of the cell itself, by number. */
const credentials = new Map<string, string>();
/** A controller between the gateway and a host, over mutual TLS; its model and the host are the test's. */
let installation: TestInstallation;
const configurations = new Map<string, ProcessConfiguration>();
const servers: PeerServer[] = [];
const atHost: { peer: string; capability: HostCapability | null; protocol: string | undefined }[] = [];
const configurationOf = (name: string): ProcessConfiguration => {
  const found = configurations.get(name);
  assert.ok(found);
  return found;
};

const webSockets = new WebSocketServer({ noServer: true, handleProtocols: () => sessionProtocol });

before(async () => {
  installation = await createTestInstallation("grants");
  for (const name of ["host.h1", "controller.shop", "gateway", "placer"])
    configurations.set(name, (await installation.configure(peerName(name))).configuration);
  servers.push(
    await servePeers(
      configurationOf("host.h1"),
      (_request, response) => void response.end(),
      ({ peer, headers, raw, socket, head }) => {
        const capability = decodeCapability(String(headers[hostCapabilityHeader]));
        atHost.push({ peer, capability, protocol: headers["sec-websocket-protocol"] });
        webSockets.handleUpgrade(raw, socket, head, (webSocket) => webSocket.send("from the host"));
      },
    ),
  );
  const configuration = configurationOf("controller.shop");
  const controller: NonNullable<ProcessConfiguration["controller"]> = {
    cell: "shop",
    cellUid: "c1",
    cellNumber: 7,
    domain: "cells.internal",
    mac: "02:00:00:00:00:01",
    credentialHashes: [hashCredential("right")],
  };
  const request = async (asked: Json): Promise<Json> => {
    const { method, vm, hash, id } = asked as Readonly<Record<string, string | undefined>>;
    if (method === "CREDENTIAL-REVOKE") credentials.delete(id ?? "");
    if (method === "RECORD") {
      recorded.push({ asked, before: atHost.length });
      return { status: recordFails ? 503 : 200, body: {}, version: 1 };
    }
    if (method !== "EXEC-TARGET")
      return { status: 200, body: [...credentials.values()].some((each) => hashCredential(each) === hash), version: 1 };
    const { incarnation } = asked as { readonly incarnation?: number };
    if (vm === "web" && incarnation === 2)
      return { status: 200, body: { ...target, incarnation, former: true } as unknown as Json, version: 1 };
    if (vm === "web") return { status: 200, body: target as unknown as Json, version: 1 };
    return { status: 409, body: { error: { code: "off", message: `${vm} does not run: it is off` } }, version: 1 };
  };
  const sessions = createSessions({ configuration, cell: "shop", request });
  const context = { configuration, controller, events: {} as CellEvents, request };
  servers.push(await servePeers(configuration, createRoutes(context, sessions), createUpgrades("shop", sessions)));
});
after(async () => {
  for (const server of servers) await server.stop();
  await installation.remove();
});

const ask = async (
  body: Json,
  credential = "right",
  said: Readonly<Record<string, string>> = {},
): Promise<{ readonly status: number; readonly json: Json }> => {
  const answer = await peerRequest(configurationOf("gateway"), peerName("controller.shop"), {
    method: "POST",
    path: "/cells/shop/sessions",
    headers: { authorization: `Bearer ${credential}`, ...said },
    body: JSON.stringify(body),
  });
  return { status: answer.status, json: JSON.parse(await answer.text()) as Json };
};
const granted = async (credential = "right"): Promise<SessionGrant> =>
  (await ask({ vm: "web", verb: "console" }, credential)).json as unknown as SessionGrant;

const connect = (protocols: readonly string[], peer: string, path: string): WebSocket => {
  const { certFile, keyFile, caFile } = configurationOf(peer).certificate;
  const { address, httpPort } = configurationOf("controller.shop");
  return new WebSocket(`wss://${address}:${httpPort}${path}`, [...protocols], {
    cert: readFileSync(certFile),
    key: readFileSync(keyFile),
    ca: readFileSync(caFile),
    checkServerIdentity: () => false,
  });
};
/** The first message, or the status of a refusal with its sentence. */
const open = (protocols: readonly string[], peer = "gateway", path = "/cells/shop/sessions"): Promise<string> => {
  const socket = connect(protocols, peer, path);
  return new Promise((resolve, reject) => {
    socket.once("message", (data) => {
      resolve(`${socket.protocol}: ${data}`);
      socket.terminate();
    });
    socket.once("unexpected-response", async (_request, response) => {
      let body = "";
      for await (const chunk of response) body += String(chunk);
      resolve(`${response.statusCode} ${JSON.parse(body).error.message}`);
    });
    socket.once("error", reject);
  });
};

test("a credential of the cell gives a capability, which opens one stream at the VM's host", async () => {
  const answer = await ask({ vm: "web", verb: "console" });
  assert.equal(answer.status, 201);
  const { session, expires, ...rest } = answer.json as unknown as SessionGrant;
  assert.deepEqual(rest, { vm: "shop/web", incarnation: 3, host: "h1" });
  assert.ok(Math.abs(Date.parse(expires) - Date.now() - 60_000) < 30_000);
  const protocols = [sessionProtocol, capabilityPrefix + session];
  assert.equal(await open(protocols), `${sessionProtocol}: from the host`);
  const { peer, capability, protocol } = atHost.at(-1) ?? {};
  assert.deepEqual(
    [peer, protocol],
    ["controller.shop", sessionProtocol],
    "the host never sees the client's capability",
  );
  assert.deepEqual([capability?.vm, capability?.incarnation, capability?.verb], ["c1-1", 3, "console"]);
  assert.match(await open(protocols), /^403 this capability opens nothing: it was used before/);
  assert.equal(atHost.length, 1);
});

test("a port is forwarded to by a capability of its own, which names it, and by no other verb", async () => {
  const answer = await ask({ vm: "web", verb: "forward", port: 80 });
  assert.equal(answer.status, 201);
  const { session } = answer.json as unknown as SessionGrant;
  assert.equal(await open([sessionProtocol, capabilityPrefix + session]), `${sessionProtocol}: from the host`);
  const { verb, port } = atHost.at(-1)?.capability ?? {};
  assert.deepEqual([verb, port], ["forward", 80]);
  const { asked } = recorded.at(-1) ?? assert.fail();
  assert.equal((asked as { readonly what?: string }).what, "forward to port 80");
  for (const body of [
    { verb: "forward" },
    { verb: "forward", port: 0 },
    { verb: "forward", port: 65_536 },

    { verb: "forward", port: "80" },
    { verb: "console", port: 80 },
  ])
    assert.equal((await ask({ vm: "web", ...body })).status, 400, JSON.stringify(body));
});

test("what a former incarnation has said is asked for of where it ran, and recorded as that", async () => {
  const answer = await ask({ vm: "web", verb: "console", incarnation: 2 });
  assert.equal(answer.status, 201);
  const grant = answer.json as unknown as SessionGrant;
  assert.equal(grant.incarnation, 2);
  assert.equal(await open([sessionProtocol, capabilityPrefix + grant.session]), `${sessionProtocol}: from the host`);
  const { incarnation, former } = atHost.at(-1)?.capability ?? {};
  assert.deepEqual([incarnation, former], [2, true]);
  const { asked } = recorded.at(-1) ?? assert.fail();
  assert.equal((asked as { readonly what?: string }).what, "console of incarnation 2");
  for (const body of [
    { verb: "exec", incarnation: 2 },
    { verb: "console", incarnation: 0 },
    { verb: "console", incarnation: "2" },
  ])
    assert.equal((await ask({ vm: "web", ...body })).status, 400, JSON.stringify(body));
});

test("who opens a stream is recorded before the host hears of it, and without that nothing is opened", async () => {
  const [hosts, records] = [atHost.length, recorded.length];
  const { session } = await granted();
  assert.equal(recorded.length, records, "what is not opened has no record");
  assert.equal(await open([sessionProtocol, capabilityPrefix + session]), `${sessionProtocol}: from the host`);
  const { asked, before } = recorded.at(-1) ?? assert.fail();
  const { verb, target: at, what, by } = asked as { verb: string; target: string; what: string; by: { who: string } };
  assert.deepEqual([verb, at, what, by.who], ["openSession", "shop/web", "console", "operator"]);
  assert.deepEqual([before, atHost.length], [hosts, hosts + 1]);
  // For which command of which personality it was asked stands there too (decision 164).
  const via = "caas;grantSession;r-1;192.0.2.7";
  const through = await ask({ vm: "web", verb: "console" }, "right", { [viaHeader]: via });
  const { session: theirs } = through.json as unknown as SessionGrant;
  assert.equal(await open([sessionProtocol, capabilityPrefix + theirs]), `${sessionProtocol}: from the host`);
  const { by: theirBy } = (recorded.at(-1) ?? assert.fail()).asked as { readonly by: { readonly via?: string } };
  assert.equal(theirBy.via, via);
  const { session: next } = await granted();
  recordFails = true;
  assert.match(await open([sessionProtocol, capabilityPrefix + next]), /^403 /);
  recordFails = false;
  assert.equal(atHost.length, hosts + 2);
});

test("what is not entitled gets no capability and opens nothing", async () => {
  assert.equal((await ask({ vm: "web", verb: "console" }, "wrong")).status, 401);
  assert.equal((await ask({ vm: "db", verb: "console" })).status, 409);
  for (const body of [{ vm: "web", verb: "format" }, { verb: "exec" }, []])
    assert.match(JSON.stringify(await ask(body)), /400.*the body is/);
  const before = atHost.length;
  const { session } = await granted();
  const protocols = [sessionProtocol, capabilityPrefix + session];
  assert.match(await open(protocols, "placer"), /^403 only the gateway may ask/);
  assert.match(await open(protocols, "gateway", "/cells/other/sessions"), /^404 /);
  assert.match(await open([sessionProtocol]), /^400 to open a session of the cell shop, ask for it first/);
  assert.match(await open([sessionProtocol, `${capabilityPrefix}${"x".repeat(43)}`]), /^403 /);
  assert.equal(atHost.length, before);
  assert.equal(await open(protocols), `${sessionProtocol}: from the host`, "none of that has used it up");
});

test("a credential that is revoked ends the sessions that were opened with it, and no others", async () => {
  for (const [id, credential] of [
    ["1", "one"],
    ["2", "two"],
  ] as const)
    credentials.set(id, credential);
  const stays = async (credential: string) => {
    const { session } = await granted(credential);
    const socket = connect([sessionProtocol, capabilityPrefix + session], "gateway", "/cells/shop/sessions");
    const state = { closed: false, socket };
    socket.on("error", () => undefined).once("close", () => (state.closed = true));
    await new Promise((resolve) => socket.once("message", resolve));
    return state;
  };
  const [mine, again, another, operators] = [
    await stays("one"),
    await stays("one"),
    await stays("two"),
    await stays("right"),
  ];
  const unused = await granted("one");
  const atHostBefore = atHost.length;
  const sockets = [...webSockets.clients].slice(-4);
  assert.deepEqual(
    sockets.map(({ readyState }) => readyState),
    Array(4).fill(WebSocket.OPEN),
  );
  const answer = await peerRequest(configurationOf("gateway"), peerName("controller.shop"), {
    method: "DELETE",
    path: "/cells/shop/credentials/1",
    headers: { authorization: "Bearer right" },
  });
  assert.equal(answer.status, 200);
  await eventually("both end at the client", () => mine?.closed === true && again?.closed === true);
  await eventually("and at the host", () => sockets.slice(0, 2).every((each) => each.readyState === WebSocket.CLOSED));
  assert.deepEqual([another?.closed, operators?.closed], [false, false]);
  assert.match(await open([sessionProtocol, capabilityPrefix + unused.session]), /^403 the credential .* was revoked/);
  assert.equal((await ask({ vm: "web", verb: "console" }, "one")).status, 401);
  assert.equal(atHost.length, atHostBefore, "the host hears of nothing more");
  // The others are as good as before.
  const alive = new Promise((resolve) => another?.socket.once("pong", resolve));
  another?.socket.ping();
  await alive;
  for (const each of [another, operators]) each?.socket.terminate();
});

test("a host that does not answer is named", async () => {
  const { session } = await granted();
  await servers[0]?.stop();
  await eventually("it is gone", async () =>
    /^502 host h1, where shop\/web runs, does not answer/.test(
      await open([sessionProtocol, capabilityPrefix + session]),
    ),
  );
});
