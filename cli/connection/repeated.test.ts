import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { type TestContext, test } from "node:test";
import type { Changed } from "../../model/api.ts";
import { CommandFailure, exitCodes } from "../terminal/failure.ts";
import { Client } from "./client.ts";

const changed: Changed = { plan: { steps: [] }, version: 4, dryRun: false };

/** A gateway that does with each request what its turn says, and the keys that it was shown. */
async function gateway(
  t: TestContext,
  ...turns: readonly ((incoming: IncomingMessage, response: ServerResponse) => void)[]
): Promise<{ readonly client: Client; readonly keys: (string | undefined)[] }> {
  const keys: (string | undefined)[] = [];
  const server = createServer((incoming, response) => {
    const turn = turns[keys.length];
    keys.push(incoming.headers["idempotency-key"] as string | undefined);
    incoming.resume().once("end", () => turn?.(incoming, response));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return { client: new Client({ url: `http://127.0.0.1:${port}`, credential: "secret" }), keys };
}
const answer = (_: IncomingMessage, response: ServerResponse): void => void response.end(JSON.stringify(changed));
const reset = (incoming: IncomingMessage): void => void incoming.socket.destroy();
const cut = (_: IncomingMessage, response: ServerResponse): void => {
  response.writeHead(200, { "content-length": "1000" });
  response.write("{", () => response.destroy());
};
const refuse = (_: IncomingMessage, response: ServerResponse): void => {
  response.writeHead(409).end(JSON.stringify({ error: { code: "conflict", message: "no" } }));
};

test("a change whose answer is lost or cut is asked for again under its key, and its maker is told", async (t) => {
  const { client, keys } = await gateway(t, reset, cut, answer, answer);
  let repeats = 0;
  const onRepeat = (): void => {
    repeats += 1;
  };
  const conditions = { key: "7f1c", onRepeat };
  assert.deepEqual(await client.put("shop", "shop/web", {}, false, conditions), changed);
  assert.deepEqual([keys, repeats], [["7f1c", "7f1c", "7f1c"], 2]);
  await client.delete("shop", "", false);
  assert.match(keys[3] ?? "", /^[0-9a-f-]{36}$/);
});

test("what only reads or plans has no key and is not repeated; what is refused is not repeated", async (t) => {
  const { client, keys } = await gateway(t, reset, refuse, reset);
  const lost = await client.put("shop", "shop/web", {}, true).then(
    () => null,
    (error: unknown) => error,
  );
  assert.ok(lost instanceof CommandFailure && lost.exitCode === exitCodes.unreachable);
  await assert.rejects(client.delete("shop", "shop/web", false), /no/);
  await assert.rejects(client.cells(), /does not answer/);
  assert.deepEqual([keys.length, keys[0], keys[2]], [3, undefined, undefined]);
});
