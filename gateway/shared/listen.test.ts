import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { text } from "node:stream/consumers";
import { test } from "node:test";
import { connect as connectTls } from "node:tls";
import { fastify } from "fastify";
import { peerName } from "../../model/cell/identifiers.ts";
import { createTestInstallation } from "../../runtime/installation.testing.ts";
import { listenAt, overTls } from "./listen.ts";

test("who closes ends the listener, and connections that stand", async () => {
  const app = fastify({ serverFactory: (handler) => createServer(handler) });
  await listenAt(app, { listen: { address: "127.0.0.1", port: 0 } });
  const { port } = app.server.address() as AddressInfo;
  const standing = connect(port, "127.0.0.1");
  await once(standing, "connect");
  standing.write("GET / HTTP/1.1\r\nhost: a\r\n\r\n");
  await once(standing, "data");
  try {
    await app.close();
    assert.equal(app.server.listening, false, "nobody comes in any more");
    if (!standing.closed) await once(standing, "close");
  } finally {
    standing.destroy();
    app.server.closeAllConnections();
    app.server.close();
  }
});

test("headers have their bound, whoever sends them", async () => {
  const installation = await createTestInstallation("headers");
  const { configuration } = await installation.configure(peerName("gateway"), { change: { role: "gateway" } });
  const app = fastify({ serverFactory: overTls(configuration) });
  try {
    await listenAt(app, { listen: { address: "127.0.0.1", port: 0 } });
    const { port } = app.server.address() as AddressInfo;
    const statusOf = async (octets: number, where: "path" | "header"): Promise<string> => {
      const socket = connectTls({ host: "127.0.0.1", port, rejectUnauthorized: false });
      const long = "x".repeat(octets);
      const [path, header] = where === "path" ? [long, "a"] : ["", long];
      socket.write(`GET /${path} HTTP/1.1\r\nhost: a\r\nx-long: ${header}\r\nconnection: close\r\n\r\n`);
      return (await text(socket)).slice(9, 12);
    };
    for (const each of ["path", "header"] as const) {
      assert.equal(await statusOf(30 * 1024, each), "404", `${each}, taken`);
      assert.equal(await statusOf(33 * 1024, each), "431", `${each}, refused`);
    }
  } finally {
    await app.close();
    await installation.remove();
  }
});
