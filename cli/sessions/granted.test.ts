import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { type TestContext, test } from "node:test";
import { Client } from "../connection/client.ts";
import { CommandFailure } from "../terminal/failure.ts";
import { openSession } from "./session.ts";

/** A gateway that takes every connection and says nothing, or grants and says nothing more. */
const silent = async (t: TestContext, grants: boolean): Promise<Client> => {
  const server = createServer((_request, response) => {
    if (grants) response.writeHead(201, { "content-type": "application/json" }).end(JSON.stringify({ session: "c" }));
  });
  server.on("upgrade", () => undefined);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return new Client({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, credential: "x" });
};
const opened = (client: Client) =>
  openSession(
    client,
    { cell: "shop", vm: "shop/web", verb: "console" },
    { output: () => undefined, message: () => undefined },
    200,
  );

test("nobody waits for ever for a capability that never comes, nor for the session after it", {
  timeout: 30_000,
}, async (t) => {
  for (const [grants, why] of [
    [false, /^nobody has said within 200 ms whether shop\/web may be reached; `cells status` names/],
    [true, /^the session could not be opened: .*timed out/],
  ] as const)
    await assert.rejects(opened(await silent(t, grants)), (error) => {
      assert.ok(error instanceof CommandFailure && error.exitCode === 3, String(error));
      assert.match(error.message, why);
      return true;
    });
});
