import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import { connect } from "node:net";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import type { FastifyInstance } from "fastify";
import { WebSocket, WebSocketServer } from "ws";
import { peerName } from "../model/identifiers.ts";
import { capabilityPrefix, sessionProtocol } from "../model/sessions.ts";
import { type PeerServer, servePeers } from "../runtime/https.ts";
import { createTestInstallation, type TestInstallation } from "../runtime/installation.testing.ts";
import { createGateway } from "./gateway.ts";

/** The gateway between a client and a controller that speaks WebSocket itself. */
let installation: TestInstallation;
let supervisor: Server;
let controller: PeerServer;
let app: FastifyInstance;
let url = "";
const handshakes: { readonly url: string; readonly headers: NodeJS.Dict<string | string[]> }[] = [];

before(async () => {
  installation = await createTestInstallation("gateway-sessions");
  const { configuration } = await installation.configure(peerName("controller.shop"));
  const webSockets = new WebSocketServer({ noServer: true, handleProtocols: () => sessionProtocol });
  controller = await servePeers(
    configuration,
    (_request, response) => void response.end(),
    ({ url: asked, headers, raw, socket, head }) => {
      handshakes.push({ url: asked, headers });
      webSockets.handleUpgrade(raw, socket, head, (webSocket) =>
        webSocket.on("message", (data) => webSocket.send(`heard ${data}`)),
      );
    },
  );
  const supervisorSocket = join(installation.directory, "supervisor.sock");
  supervisor = createServer((_request, response) => response.end(JSON.stringify(["shop", "gone"])));
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
  await controller.stop();
  supervisor.close();
  await installation.remove();
});

const capability = `${capabilityPrefix}${"c".repeat(43)}`;
const open = (cell: string, protocols = [sessionProtocol, capability], path = `/cells/${cell}/sessions`): WebSocket =>
  new WebSocket(url + path, protocols, { headers: { cookie: "is nobody's business" } });
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
  const socket = open("shop");
  await once(socket, "open");
  assert.equal(socket.protocol, sessionProtocol);
  const heard = once(socket, "message");
  socket.send("hello");
  assert.equal(String((await heard)[0]), "heard hello");
  const [handshake] = handshakes;
  assert.equal(handshake?.url, "/cells/shop/sessions", "no capability in the address");
  assert.equal(handshake.headers["sec-websocket-protocol"], `${sessionProtocol},${capability}`);
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
  assert.match(await refusalOf(open("none")), /^404 there is no cell "none"/);
  assert.match(
    await refusalOf(open("", [sessionProtocol, capability], "/cells")),
    /^404 the only WebSockets here are sessions/,
  );
  assert.match(await refusalOf(open("gone")), /^502 the controller of the cell "gone" does not answer/);
  assert.equal(handshakes.length, before);
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
    const socket = open("shop");
    await once(socket, "open");
    socket.terminate();
    const connections = (): Promise<number> =>
      new Promise((resolve) => app.server.getConnections((_error, count) => resolve(count)));
    while ((await connections()) > 0) await sleep(50);
  } finally {
    for (const socket of idle) socket.destroy();
  }
});

test("a gateway that stops lets nobody wait", async () => {
  const socket = open("shop");
  await once(socket, "open");
  const closed = once(socket, "close");
  await app.close();
  assert.equal((await closed)[0], 1006);
});
