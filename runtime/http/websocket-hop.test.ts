import assert from "node:assert/strict";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import type { IncomingMessage } from "node:http";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { WebSocket, WebSocketServer } from "ws";
import { peerName } from "../../model/cell/identifiers.ts";
import { createTestInstallation, eventually, type TestInstallation } from "../installation.testing.ts";
import type { ProcessConfiguration } from "../installation.ts";
import { type PeerServer, servePeers } from "./https.ts";
import { passUpgradeBack, peerUpgrade, refuseUpgrade } from "./websocket-hop.ts";

/** A client, a hop as gateway and controller are one, and an end that speaks WebSocket, over mutual TLS. */
const [clientName, hopName, endName] = [peerName("gateway"), peerName("controller.shop"), peerName("host.h1")];
let installation: TestInstallation;
let client: ProcessConfiguration;
let hop: ProcessConfiguration;
const servers: PeerServer[] = [];
const sockets: WebSocket[] = [];
const seen: Record<string, unknown>[] = [];

before(async () => {
  installation = await createTestInstallation("upgrade");
  client = (await installation.configure(clientName)).configuration;
  hop = (await installation.configure(hopName)).configuration;
  const end = (await installation.configure(endName)).configuration;
  const webSockets = new WebSocketServer({ noServer: true, handleProtocols: () => "p" });
  servers.push(
    await servePeers(
      end,
      (_request, response) => void response.end("plain"),
      ({ peer, url, headers, raw, socket, head }) => {
        seen.push({ peer, url, note: headers["x-note"], extensions: headers["sec-websocket-extensions"] });
        if (url === "/full") refuseUpgrade(socket, 503, "busy", "no place is free");
        else if (url === "/refused") refuseUpgrade(socket, 409, "not-running", "it does not run");
        else webSockets.handleUpgrade(raw, socket, head, (webSocket) => sockets.push(webSocket));
      },
    ),
    await servePeers(
      hop,
      (_request, response) => void response.end("plain"),
      async ({ url, headers, socket, head }) => {
        const outgoing = { path: url, handshake: headers, headers: { "sec-websocket-protocol": "p", "x-note": "hop" } };
        await passUpgradeBack(await peerUpgrade(hop, endName, outgoing), socket, head);
      },
    ),
  );
});
after(async () => {
  for (const server of servers) await server.stop();
  await installation.remove();
});

const open = (path: string): WebSocket => {
  const [host, , port] = (JSON.parse(readFileSync(installation.peersFile, "utf8")).peers[hopName] as string).split(":");
  const { certFile, keyFile, caFile } = client.certificate;
  return new WebSocket(`wss://${host}:${port}${path}`, ["p", "secret"], {
    cert: readFileSync(certFile),
    key: readFileSync(keyFile),
    ca: readFileSync(caFile),
    checkServerIdentity: () => false,
  });
};
const latest = (): WebSocket => {
  const socket = sockets.at(-1);
  assert.ok(socket);
  return socket;
};

test("a WebSocket crosses a hop, whose own headers go along and the client's do not", async () => {
  const socket = open("/session");
  const messages: string[] = [];
  socket.on("message", (data) => messages.push(String(data)));
  await once(socket, "open");
  assert.equal(socket.protocol, "p");
  assert.deepEqual(seen.at(-1), { peer: hopName, url: "/session", note: "hop", extensions: undefined });
  latest().on("message", (data) => latest().send(`heard ${data}`));
  socket.send("hello");
  await eventually("the answer came back", () => messages.includes("heard hello"));
  const closed = once(socket, "close");
  latest().send("last words");
  latest().close(1012, "restart");
  assert.equal((await closed)[0], 1012);
  assert.equal(messages.at(-1), "last words");
});

test("a refusal keeps its status and its sentence", async () => {
  const socket = open("/refused");
  const [, response] = (await once(socket, "unexpected-response")) as [
    unknown,
    NodeJS.ReadableStream & { statusCode: number },
  ];
  assert.equal(response.statusCode, 409);
  let body = "";
  for await (const chunk of response) body += String(chunk);
  assert.deepEqual(JSON.parse(body), { error: { code: "not-running", message: "it does not run" } });
  socket.on("error", () => undefined);
  socket.terminate();
});

test("whoever is refused a place is told when to ask again", async () => {
  const socket = open("/full");
  const [, response] = (await once(socket, "unexpected-response")) as [unknown, IncomingMessage];
  assert.deepEqual([response.statusCode, response.headers["retry-after"]], [503, "5"]);
  socket.on("error", () => undefined);
  socket.terminate();
});

test("a client that does not read is felt at the other end, and loses nothing", async () => {
  const socket = open("/slow");
  let bytes = 0;
  socket.on("message", (data: Buffer) => {
    bytes += data.length;
  });
  await once(socket, "open");
  const end = latest();
  socket.pause();
  const chunk = Buffer.alloc(256 * 1024);
  let sent = 0;
  // Until nothing moves any more: what is unsent then has no room anywhere on the way.
  for (let quiet = 0; quiet < 5 && sent < 256 * 1024 * 1024; ) {
    if (end.bufferedAmount < chunk.length) {
      end.send(chunk);
      sent += chunk.length;
      quiet = 0;
    } else quiet += 1;
    await sleep(10);
  }
  assert.ok(end.bufferedAmount > 0, `all of ${sent} bytes vanished into buffers`);
  socket.resume();
  await eventually("all arrived", () => bytes === sent);
  const closed = once(end, "close");
  socket.terminate();
  await closed;
});

test("a client that vanishes and a server that stops both end the other side", async () => {
  const first = open("/session");
  await once(first, "open");
  const gone = once(latest(), "close");
  first.terminate();
  await gone;
  const second = open("/session");
  await once(second, "open");
  const ended = once(second, "close");
  await servers[0]?.stop();
  assert.equal((await ended)[0], 1006, "a broken stream is not dressed up as an orderly end");
});
