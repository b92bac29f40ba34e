import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { test } from "node:test";
import { fastify } from "fastify";
import { listenAt } from "./listen.ts";

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
