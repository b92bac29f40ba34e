import assert from "node:assert/strict";
import { once } from "node:events";
import { readFile, writeFile } from "node:fs/promises";
import { createServer, request } from "node:https";
import { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { pipeline } from "node:stream/promises";
import { after, before, test } from "node:test";
import { connect, type TLSSocket } from "node:tls";
import { peerName } from "../../model/cell/identifiers.ts";
import { createTestInstallation, type TestInstallation } from "../installation.testing.ts";
import type { ProcessConfiguration } from "../installation.ts";
import { deafListener } from "../transport/deaf-listener.testing.ts";
import { expectPeer, readCredentials } from "../transport/mutual-tls.ts";
import { keepConnection, type PeerServer, peerRequest, servePeers } from "./https.ts";

const serverName = peerName("host.h1");
const clientName = peerName("controller.shop");
let installation: TestInstallation;
let client: ProcessConfiguration;
let server: PeerServer;

before(async () => {
  installation = await createTestInstallation("https");
  client = (await installation.configure(clientName)).configuration;
  const { configuration } = await installation.configure(serverName);
  server = await servePeers(configuration, async ({ peer, method, url, headers, body }, response) => {
    if (url === "/fails") throw new Error("a cause that is nobody's business");
    if (url === "/long") {
      const piece = Buffer.alloc(1024 * 1024, 97);
      await pipeline(Readable.from(Array.from({ length: 65 }, () => piece)), response).catch(() => undefined);
      return;
    }
    const received = await text(body);
    response.writeHead(201, { "content-type": "application/json" });
    response.end(JSON.stringify({ peer, method, url, note: headers["x-note"] ?? null, received }));
  });
});
after(async () => {
  await server.stop();
  await installation.remove();
});

test("a request carries the client's authenticated name, and its body as a stream", async () => {
  for (const body of ["some bytes", Buffer.from("some bytes"), Readable.from(["some ", "bytes"])]) {
    const response = await peerRequest(client, serverName, {
      method: "POST",
      path: "/volumes?x=1",
      headers: { "x-note": "n" },
      body,
    });
    assert.equal(response.status, 201);
    const expected = { peer: clientName, method: "POST", url: "/volumes?x=1", note: "n", received: "some bytes" };
    assert.deepEqual(JSON.parse(await response.text()), expected);
  }
});

test("a body that is handed over is sent to a peer that waits for it, and to no other one", async () => {
  const asked = { method: "POST", path: "/order", body: "an order", headers: { "content-length": 8 } };
  let times = 0;
  const handsOver = (): void => {
    times += 1;
  };
  const answer = await peerRequest(client, serverName, { ...asked, handsOver });
  const { received } = JSON.parse(await answer.text());
  assert.deepEqual([received, times], ["an order", 1]);
  const { configuration } = await installation.configure(peerName("host.h5"));
  const seen: string[] = [];
  // It stands still, or is lost, once it has the headers.
  const silent = createServer({ ...readCredentials(configuration), requestCert: true });
  silent.on("checkContinue", (incoming) => {
    seen.push("headers");
    incoming.on("data", () => seen.push("body"));
  });
  await new Promise<void>((resolve) => silent.listen(configuration.httpPort, configuration.address, resolve));
  try {
    const late = AbortSignal.timeout(500);
    await assert.rejects(peerRequest(client, peerName("host.h5"), { ...asked, handsOver, signal: late }));
    assert.deepEqual([seen, times], [["headers"], 1]);
  } finally {
    const closed = new Promise((resolve) => silent.close(resolve));
    silent.closeAllConnections();
    await closed;
  }
});

test("a handler that fails answers 500 and keeps its cause to itself", async () => {
  const response = await peerRequest(client, serverName, { method: "GET", path: "/fails" });
  assert.equal(response.status, 500);
  assert.doesNotMatch(await response.text(), /nobody's business/);
});

test("an answer that is longer than anybody's is given up, on a kept connection too, which goes on", async () => {
  for (const connection of [undefined, keepConnection(client, serverName)]) {
    const kept = connection === undefined ? {} : { connection };
    const long = await peerRequest(client, serverName, { method: "GET", path: "/long", ...kept });
    await assert.rejects(long.text(), /"host\.h1" answers more than 64 MiB/);
    const next = await peerRequest(client, serverName, { method: "GET", path: "/short", ...kept });
    assert.equal((JSON.parse(await next.text()) as { readonly url: string }).url, "/short");
    connection?.agent.destroy();
  }
});

test("a client of another authority is refused, and so is a server", async () => {
  const { configuration } = await installation.configure(peerName("controller.other"), {
    authority: installation.foreignAuthority,
  });
  const get = { method: "GET", path: "/" };
  await assert.rejects(peerRequest(configuration, serverName, get), /"host.h1" at/);
  // The client now trusts the server, so that only the server can refuse.
  const trusting = { ...configuration.certificate, caFile: client.certificate.caFile };
  await assert.rejects(peerRequest({ ...configuration, certificate: trusting }, serverName, get), /"host.h1" at/);
});

test("a server with another peer's certificate is not asked", async () => {
  const { configuration } = await installation.configure(peerName("host.h2"));
  const impostor = await servePeers({ ...configuration, certificate: client.certificate }, () =>
    assert.fail("it was asked"),
  );
  const request = peerRequest(client, peerName("host.h2"), { method: "GET", path: "/" });
  await assert.rejects(request, /is "controller.shop", not "host.h2"/);
  await impostor.stop();
});

test("a peer that the peers file does not name is said to be missing there", async () => {
  const request = peerRequest(client, peerName("host.h9"), { method: "GET", path: "/" });
  await assert.rejects(request, /peers file .* does not name "host.h9"/);
});

test("a machine that does not answer is not waited for as long as its kernel's next attempt", async () => {
  const deaf = await deafListener();
  const peers = { [serverName]: `127.0.0.1:1:${deaf.port}` };
  const peersFile = `${client.peersFile}.deaf`;
  await writeFile(peersFile, JSON.stringify({ peers }));
  const asking = peerRequest({ ...client, peersFile }, serverName, { method: "GET", path: "/" });
  await assert.rejects(asking, { message: `"${serverName}" at 127.0.0.1:${deaf.port}: no answer within 5 s` });
  deaf.end();
});

test("a connection that is kept serves one request after the other, at exactly its peer", async () => {
  const impostor = peerName("host.h2");
  const { peers } = JSON.parse(await readFile(installation.peersFile, "utf8"));
  await writeFile(installation.peersFile, JSON.stringify({ peers: { ...peers, [impostor]: peers[serverName] } }));
  const kept = keepConnection(client, serverName);
  const ports = new Set<number | undefined>();
  for (let count = 0; count < 3; count += 1) {
    const response = await peerRequest(client, serverName, { method: "GET", path: "/", connection: kept });
    ports.add(response.body.socket.localPort);
    assert.equal(JSON.parse(await response.text()).peer, clientName);
  }
  assert.equal(ports.size, 1);
  for (const connection of [kept, keepConnection(client, impostor)]) {
    const asking = peerRequest(client, impostor, { method: "GET", path: "/", connection });
    await assert.rejects(asking, /the server at this address is "host.h1", not "host.h2"/);
    connection.agent.destroy();
  }
});

test("where users are let in, one comes without a certificate, and nobody with another authority's", async (t) => {
  const peer = peerName("controller.users");
  const { configuration } = await installation.configure(peer);
  const open = await servePeers(configuration, ({ peer: caller }, response) => void response.end(caller), undefined, {
    users: true,
  });
  t.after(() => open.stop());
  const { ca, ...shown } = readCredentials(client);
  const foreign = await installation.configure(peerName("controller.alien"), {
    authority: installation.foreignAuthority,
  });
  const { ca: _other, ...alien } = readCredentials(foreign.configuration);
  const ask = (identity: object): Promise<string> =>
    new Promise((resolve, reject) => {
      const options = { host: configuration.address, port: open.port, ca, agent: false, ...identity };
      const asking = request({ ...options, checkServerIdentity: expectPeer(peer) }, (answer) => resolve(text(answer)));
      asking.once("error", reject).end();
    });
  assert.equal(await ask({}), "user");
  assert.equal(await ask(shown), clientName);
  await assert.rejects(ask(alien), /socket hang up|ECONNRESET/);

  // As many of them as there may be, which say nothing; somebody with a certificate is served all the same afterwards.
  const idle = Array.from({ length: 64 }, () =>
    connect({ host: configuration.address, port: open.port, ca, checkServerIdentity: expectPeer(peer) }),
  );
  t.after(() => {
    for (const socket of idle) socket.destroy();
  });
  await Promise.all(idle.map((socket) => once(socket, "secureConnect")));
  await assert.rejects(ask({}), /socket hang up|ECONNRESET|disconnected/);
  idle[0]?.destroy();
  await once(idle[0] as TLSSocket, "close");
  for (let tries = 0; (await ask(shown).catch(() => "")) !== clientName; tries += 1) {
    assert.ok(tries < 100, "room that was left is taken again");
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  await assert.rejects(
    new Promise((resolve, reject) => {
      const { address: host } = client;
      const options = { host, port: server.port, ca, agent: false, checkServerIdentity: expectPeer(serverName) };
      request(options, resolve).once("error", reject).end();
    }),
    /certificate required|ECONNRESET|socket hang up/,
    "elsewhere nobody is let in without a certificate",
  );
});
