import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { type TestContext, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { Client } from "../connection/client.ts";
import { CommandFailure } from "../terminal/failure.ts";
import { openSession } from "./session.ts";

/** A gateway that takes every connection and says nothing, or grants and says nothing more. */
const silent = async (t: TestContext, grants: boolean): Promise<Client> => {
  const server = createServer((_request, response) => {
    if (grants) response.writeHead(201, { "content-type": "application/json" }).end(JSON.stringify({ session: "c" }));
  });
  server.on("upgrade", () => undefined);
  const sockets = new Set<Socket>();
  server.on("connection", (socket) => sockets.add(socket));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  return new Client({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, credential: "x" });
};
const opened = async (client: Client): Promise<unknown> => {
  const listener = { output: () => undefined, message: () => undefined };
  const left = new AbortController();
  const late = sleep(20_000, null, { signal: left.signal }).then(() => assert.fail("it is waited for without end"));
  late.catch(() => undefined);
  const request = { cell: "shop", vm: "shop/web", verb: "console" } as const;
  return Promise.race([openSession(client, request, listener, 3000), late]).finally(() => left.abort());
};

test("nobody waits for ever for a capability that never comes, nor for the session after it", async (t) => {
  for (const [grants, why] of [
    [false, /^nobody has said within 3 s whether shop\/web may be reached; `cells status` names/],
    [true, /^the session could not be opened: .*timed out/],
  ] as const)
    await assert.rejects(opened(await silent(t, grants)), (error) => {
      assert.ok(error instanceof CommandFailure && error.exitCode === 3, String(error));
      assert.match(error.message, why);
      return true;
    });
});
