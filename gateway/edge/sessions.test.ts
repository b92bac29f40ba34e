import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import { connect } from "node:net";
import { join } from "node:path";
import type { Duplex } from "node:stream";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import type { FastifyInstance } from "fastify";
import { WebSocket, WebSocketServer } from "ws";
import { peerName } from "../../model/cell/identifiers.ts";
import { capabilityPrefix, sessionProtocol } from "../../model/cell/session-messages.ts";
import { newCredential } from "../../runtime/http/bearer.ts";
import { type PeerServer, servePeers } from "../../runtime/http/https.ts";
import { createTestInstallation, eventually, type TestInstallation } from "../../runtime/installation.testing.ts";
import { createGateway } from "../gateway.ts";

/** The gateway between a client and controllers that speak WebSocket themselves, one of which never answers a handshake. */
const credentials = new Map(["shop", "team.shop", "slow"].map((cell) => [cell, newCredential(cell).credential]));
let installation: TestInstallation;
let supervisor: Server;
const controllers: PeerServer[] = [];
const held = new Set<Duplex>();
let app: FastifyInstance;
let url = "";
const handshakes: { readonly url: string; readonly headers: NodeJS.Dict<string | string[]> }[] = [];

const serveController = async (cell: string): Promise<PeerServer> => {
  const { configuration } = await installation.configure(peerName(`controller.${cell}`));
  const webSockets = new WebSocketServer({ noServer: true, handleProtocols: () => sessionProtocol });
  return servePeers(
    configuration,
    ({ method }, response) => {
      const session = randomBytes(32).toString("base64url");
      response.writeHead(method === "POST" ? 201 : 200, { "content-type": "application/json" });
      response.end(JSON.stringify({ session }));
    },
    ({ url: asked, headers, raw, socket, head }) => {
      handshakes.push({ url: asked, headers });
      if (cell === "slow") {
        held.add(socket);
        socket.once("close", () => held.delete(socket));
        return;
      }
      webSockets.handleUpgrade(raw, socket, head, (webSocket) =>
        webSocket.on("message", (data) => webSocket.send(`heard ${data}`)),
      );
    },
  );
};

before(async () => {
  installation = await createTestInstallation("gateway-sessions");
  for (const cell of credentials.keys()) controllers.push(await serveController(cell));
  const supervisorSocket = join(installation.directory, "supervisor.sock");
  supervisor = createServer((_request, response) => response.end(JSON.stringify([...credentials.keys()])));
  supervisor.listen(supervisorSocket);
  await once(supervisor, "listening");
  const gateway = await installation.configure(peerName("gateway"), {
    change: { role: "gateway", gateway: { listenFd: -1, supervisorSocket, credentialHashes: [] } },
  });
  app = createGateway(gateway.configuration);
  url = (await app.listen({ host: "127.0.0.1", port: 0 })).replace("http", "ws");
});
after(async () => {
  await app.close();
  for (const controller of controllers) await controller.stop();
  supervisor.close();
  await installation.remove();
});

const madeUp = `${capabilityPrefix}${"c".repeat(43)}`;
/** One that the cell's controller gave through the gateway. */
const capability = async (cell: string): Promise<string> => {
  const headers = { authorization: `Bearer ${credentials.get(cell)}`, "content-type": "application/json" };
  const asked = await fetch(`${url.replace("ws", "http")}/cells/${cell}/sessions`, {
    method: "POST",
    headers,
    body: "{}",
  });
  assert.equal(asked.status, 201);
  return `${capabilityPrefix}${((await asked.json()) as { session: string }).session}`;
};
const open = (cell: string, protocols = [sessionProtocol, madeUp], path = `/cells/${cell}/sessions`): WebSocket =>
  new WebSocket(url + path, protocols, { headers: { cookie: "is nobody's business" } });
const openGranted = async (cell: string): Promise<WebSocket> => {
  const socket = open(cell, [sessionProtocol, await capability(cell)]);
  await once(socket, "open");
  return socket;
};
const refusalOf = (socket: WebSocket): Promise<string> =>
  new Promise((resolve, reject) => {
    socket.once("open", () => reject(new Error("it was let in")));
    socket.once("unexpected-response", async (_request, response) => {
      let body = "";
      for await (const chunk of response) body += String(chunk);
      resolve(`${response.statusCode} ${JSON.parse(body).error.message}`);
    });
  });

test("a session passes to its cell's controller, with the handshake's own headers and no other", async () => {
  const given = await capability("shop");
  const socket = open("shop", [sessionProtocol, given]);
  await once(socket, "open");
  assert.equal(socket.protocol, sessionProtocol);
  const heard = once(socket, "message");
  socket.send("hello");
  assert.equal(String((await heard)[0]), "heard hello");
  const [handshake] = handshakes;
  assert.equal(handshake?.url, "/cells/shop/sessions", "no capability in the address");
  assert.equal(handshake.headers["sec-websocket-protocol"], `${sessionProtocol},${given}`);
  assert.deepEqual([handshake.headers.cookie, handshake.headers["sec-websocket-extensions"]], [undefined, undefined]);
  const closed = once(socket, "close");
  socket.close(1000);
  assert.equal((await closed)[0], 1000);
});

test("what is no session of a cell goes no further, and the refusal says what would be right", async () => {
  const before = handshakes.length;
  assert.match(
    await refusalOf(open("shop", [sessionProtocol])),
    /^401 .*POST \/cells\/shop\/sessions gives a capability/,
  );
  const opensNothing = /^403 this capability opens nothing: it was used before/;
  // Whether there is such a cell is nobody's business who has no credential.
  for (const cell of ["shop", "none"]) assert.match(await refusalOf(open(cell)), opensNothing);
  assert.match(await refusalOf(open("slow", [sessionProtocol, await capability("shop")])), opensNothing);
  for (const path of ["/cells", "/cells/UPPER/sessions", "/cells/a..b/sessions", "/cells/shop%2e/sessions"])
    assert.match(
      await refusalOf(open("", [sessionProtocol, madeUp], path)),
      /^404 the only WebSockets here are sessions/,
    );
  assert.equal(handshakes.length, before);
});

test("a capability is used once", async () => {
  const given = await capability("shop");
  const first = open("shop", [sessionProtocol, given]);
  await once(first, "open");
  assert.match(await refusalOf(open("shop", [sessionProtocol, given])), /^403 .*; ask for another one$/);
  (await openGranted("shop")).terminate();
  first.terminate();
});

test("a cell has no more sessions than it may, until one of them ends", async () => {
  const cell = "team.shop";
  const sockets: WebSocket[] = [];
  const refused = async (): Promise<string> => refusalOf(open(cell, [sessionProtocol, await capability(cell)]));
  try {
    for (let round = 0; round < 32; round += 1)
      sockets.push(...(await Promise.all(Array.from({ length: 4 }, () => openGranted(cell)))));
    assert.match(await refused(), /^503 as many sessions are open .*; try again later$/);
    (await openGranted("shop")).terminate();
    const [first] = sockets;
    const ended = first && once(first, "close");
    first?.close(1000);
    await ended;
    await eventually("there is room for one more", async () => {
      const again = open(cell, [sessionProtocol, await capability(cell)]);
      sockets.push(again);
      again.on("error", () => undefined);
      return refusalOf(again).then(
        () => false,
        () => true,
      );
    });
  } finally {
    for (const socket of sockets) socket.terminate();
  }
});

test("a child cell has its sessions under its whole name", async () => {
  await assert.doesNotReject(openGranted("team.shop").then((socket) => socket.terminate()));
  assert.equal(handshakes.at(-1)?.url, "/cells/team.shop/sessions");
});

test("neither made-up capabilities nor a cell whose controller does not answer keep others from theirs", async () => {
  const sockets: WebSocket[] = [];
  try {
    await Promise.all(Array.from({ length: 64 }, () => refusalOf(open("slow"))));
    assert.equal(held.size, 0, "no controller was asked");
    for (let count = 0; count < 8; count += 1) {
      const socket = open("slow", [sessionProtocol, await capability("slow")]);
      socket.on("error", () => undefined);
      sockets.push(socket);
    }
    await eventually("eight of the cell are opening", () => held.size === 8);
    const more = await refusalOf(open("slow", [sessionProtocol, await capability("slow")]));
    assert.match(more, /^503 too many sessions of the cell "slow" are opening/);
    (await openGranted("shop")).terminate();
  } finally {
    for (const socket of sockets) socket.terminate();
  }
  // What it took was given back.
  await eventually("none is opening", async () => {
    for (const socket of held) socket.destroy();
    return held.size === 0;
  });
  (await openGranted("shop")).terminate();
  const again = open("slow", [sessionProtocol, await capability("slow")]);
  again.on("error", () => undefined);
  await eventually("its controller is asked again", () => held.size === 1);
  again.terminate();
});

test("who was refused and stays takes no place of a session, and is sent away", async () => {
  const { hostname, port } = new URL(url);
  const idle = Array.from({ length: 300 }, () => connect({ host: hostname, port: Number(port), allowHalfOpen: true }));
  try {
    const answers = idle.map(async (socket) => {
      socket.on("error", () => undefined);
      socket.write("GET /nothing HTTP/1.1\r\nhost: x\r\nconnection: Upgrade\r\nupgrade: websocket\r\n\r\n");
      return String((await once(socket, "data"))[0]);
    });
    for (const answer of await Promise.all(answers)) assert.match(answer, /^HTTP\/1.1 404 /);
    const socket = await openGranted("shop");
    socket.terminate();
    const connections = (): Promise<number> =>
      new Promise((resolve) => app.server.getConnections((_error, count) => resolve(count)));
    // The test's own requests leave theirs open for a while.
    while ((await connections()) > 8) await sleep(50);
  } finally {
    for (const socket of idle) socket.destroy();
  }
});

test("a gateway that stops lets nobody wait", async () => {
  const socket = await openGranted("shop");
  const closed = once(socket, "close");
  await app.close();
  assert.equal((await closed)[0], 1006);
});
