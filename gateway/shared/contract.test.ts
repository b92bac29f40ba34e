import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import { createServer, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { WebSocket, WebSocketServer } from "ws";
import { peerName } from "../../model/cell/identifiers.ts";
import { viaHeader } from "../../model/contract/audit/via.ts";
import { createTestInstallation, eventually, type TestInstallation } from "../../runtime/installation.testing.ts";
import type { ProcessConfiguration } from "../../runtime/installation.ts";
import { readCredentials } from "../../runtime/transport/mutual-tls.ts";
import { createCaas } from "../caas/caas.ts";
import { known } from "./limits.ts";
import { overTls } from "./listen.ts";
import { whoseHeader } from "./whose.ts";

/** CaaS as a process of its own, before a gateway that says what it was asked. */
let installation: TestInstallation;
const servers: Server[] = [];
const asked: IncomingMessage[] = [];

/** Something at a place that shows the certificate of that name. */
const serveAs = async (name: string): Promise<number> => {
  const { configuration } = await installation.configure(peerName(name));
  const { cert, key } = readCredentials(configuration);
  const server = createServer({ cert, key }, async (incoming, response) => {
    asked.push(incoming);
    if (incoming.url === "/events") {
      response.writeHead(200, { "content-type": "text/event-stream", connection: "keep-alive" });
      response.write("data: 1\n\n");
      return;
    }
    const body = await text(incoming);
    response.writeHead(418, { "content-type": "application/json", etag: '"7"', [whoseHeader]: "acme" });
    response.end(JSON.stringify({ method: incoming.method, url: incoming.url, body: body.length }));
  });
  const webSockets = new WebSocketServer({ server });
  webSockets.on("connection", (webSocket, incoming) => {
    asked.push(incoming);
    webSocket.on("message", (data) => webSocket.send(`heard ${data}`));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  servers.push(server);
  return (server.address() as AddressInfo).port;
};
const configure = async (port: number): Promise<{ readonly file: string; readonly own: ProcessConfiguration }> => {
  const { configuration: own, file } = await installation.configure(peerName("personality.caas"), {
    change: {
      role: "personality.caas",
      personality: {
        listen: { address: "127.0.0.1", port: 0 },
        gateway: { address: "127.0.0.1", port },
      },
    },
  });
  return { file, own };
};

before(async () => {
  installation = await createTestInstallation("personality");
});
after(async () => {
  for (const server of servers) {
    server.closeAllConnections();
    server.close();
  }
  await installation.remove();
});

test("who asks more than his account may is refused, and hears it a second later, whichever session he shows", async () => {
  const { own } = await configure(await serveAs("gateway"));
  const app = createCaas(own, { log: () => undefined }, undefined, undefined, () => 0);
  const url = await app.listen({ host: "127.0.0.1", port: 0 });
  try {
    const ask = async (session: number) => {
      const began = performance.now();
      const headers = { authorization: `Bearer session-${session}` };
      const answer = await fetch(`${url}/cells`, { headers });
      await answer.text();
      return { status: answer.status, after: answer.headers.get("retry-after"), tookMs: performance.now() - began };
    };
    // Each is known by then, and of the same account as the gateway says.
    for (const session of [1, 2]) assert.equal((await ask(session)).status, 418);
    for (let asked = 2; asked < known.burst; asked += 18) {
      const some = await Promise.all(Array.from({ length: 18 }, (_, at) => ask((at % 2) + 1)));
      assert.deepEqual([...new Set(some.map(({ status }) => status))], [418], "no more is asked than it may");
    }
    const refusals = await Promise.all([1, 2, 1].map(ask));
    for (const { status, after, tookMs } of refusals)
      assert.ok(status === 429 && after === "1" && tookMs > 990, JSON.stringify(refusals));
    const third = await ask(3);
    assert.equal(third.status, 418, "nobody knows yet whose it is");
    const sessionOf = async (session: number): Promise<string> => {
      const webSocket = new WebSocket(`${url.replace("http", "ws")}/cells/shop/sessions`, "cells.session.v1", {
        headers: { authorization: `bearer  session-${session}` },
      });
      const opened = once(webSocket, "open").then(() => "open");
      const answered = once(webSocket, "unexpected-response").then(([, answer]) => `${answer.statusCode}`);
      webSocket.on("error", () => undefined);
      const became = await Promise.race([opened, answered]);
      webSocket.terminate();
      return became;
    };
    assert.deepEqual(await Promise.all([1, 4].map(sessionOf)), ["503", "open"], "one that leaves HTTP is one as well");
  } finally {
    await app.close();
  }
});

test("CaaS passes the whole contract on, with the credential of whoever asks, and nothing of its own", async () => {
  const port = await serveAs("gateway");
  const { own } = await configure(port);
  const app = createCaas(own, { log: () => undefined });
  const url = await app.listen({ host: "127.0.0.1", port: 0 });
  try {
    const foreign = { [viaHeader]: "ec2;RunInstances;1" };
    const headers = { authorization: "Bearer somebody", "content-type": "application/json", ...foreign };
    const body = "x".repeat(3 * 1024 * 1024);
    const answer = await fetch(`${url}/cells/shop/model?dryRun=true`, {
      method: "PUT",
      headers,
      body,
    });
    assert.equal(answer.status, 418, "the answer is the gateway's");
    assert.equal(answer.headers.get("etag"), '"7"');
    assert.equal(answer.headers.get(whoseHeader), null, "what the gateway says of him is for CaaS alone");
    assert.deepEqual(await answer.json(), { method: "PUT", url: "/cells/shop/model?dryRun=true", body: body.length });
    assert.equal(asked.at(-1)?.headers.authorization, "Bearer somebody");
    assert.match(
      String(asked.at(-1)?.headers[viaHeader]),
      /^caas;putModel;[\w-]{12};127\.0\.0\.1$/,
      "and for which request",
    );
    const stream = await fetch(`${url}/events`, { headers: { authorization: "Bearer somebody" } });
    const reader = stream.body?.getReader() ?? assert.fail();
    assert.equal(new TextDecoder().decode((await reader.read()).value), "data: 1\n\n", "events come one by one");
    const upstream = asked.at(-1) ?? assert.fail();
    await reader.cancel();
    await eventually("who goes ends what was asked for it", () => upstream.socket.destroyed);
    const webSocket = new WebSocket(`${url.replace("http", "ws")}/cells/shop/sessions`, "cells.session.v1", {
      headers: foreign,
    });
    await once(webSocket, "open");
    webSocket.send("hello");
    assert.equal(String((await once(webSocket, "message"))[0]), "heard hello");
    assert.match(String(asked.at(-1)?.headers[viaHeader]), /^caas;[A-Za-z]+;[\w-]{12};127\.0\.0\.1$/);
    webSocket.close();
    await once(webSocket, "close");
  } finally {
    await app.close();
  }
});

test("whoever stands where the gateway was and has not its name hears no credential", async () => {
  const port = await serveAs("placer");
  const { own } = await configure(port);
  const app = createCaas(own, { log: () => undefined });
  const before = asked.length;
  try {
    const answer = await app.inject({ url: "/cells", headers: { authorization: "Bearer somebody" } });
    assert.equal(answer.statusCode, 502);
    assert.match(answer.body, /the gateway behind this door does not answer/);
    assert.equal(asked.length, before);
  } finally {
    await app.close();
  }
});

test("it runs as a process of its own, over TLS with its own certificate, and ends in order", async () => {
  const gateway = await serveAs("gateway");
  const { own } = await configure(gateway);
  assert.ok(overTls(own));
  const { file } = await installation.configure(peerName("personality.caas"), {
    change: {
      role: "personality.caas",
      personality: {
        listen: { address: "127.0.0.1", port: own.httpPort ?? 0 },
        gateway: { address: "127.0.0.1", port: gateway },
      },
    },
  });
  const main = fileURLToPath(new URL("../main.ts", import.meta.url));
  const child = spawn(process.execPath, ["--disable-warning=ExperimentalWarning", main, file], {
    stdio: ["ignore", "pipe", "pipe"],
  });
  let said = "";
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding("utf8").on("data", (part) => (said += part));
  try {
    await eventually(
      "it listens",
      () => said.includes("personality/listening"),
      () => said,
    );
    const { ca } = readCredentials(own);
    const { request } = await import("node:https");
    const outgoing = request({ host: "127.0.0.1", port: own.httpPort, path: "/cells", ca, servername: "" });
    outgoing.end();
    const [answer] = (await once(outgoing, "response")) as [IncomingMessage];
    assert.equal(answer.statusCode, 418);
    answer.resume();
    child.kill("SIGTERM");
    const [code] = await once(child, "exit");
    assert.equal(code, 0, said);
  } finally {
    child.kill("SIGKILL");
  }
});
