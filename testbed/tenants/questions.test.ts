import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { test } from "node:test";
import { Client } from "../../cli/connection/client.ts";
import type { Testbed } from "../harness.ts";
import { askElements, execIn, stateOf } from "./questions.testing.ts";

test("questions are the contract's, and an answer that is none is null or a code", async (context) => {
  const asked: string[] = [];
  const vm = { "x.type": "VM", $state: { phase: "ready", reason: null, uid: "c1-1", since: "" } };
  const answers: Readonly<Record<string, unknown>> = {
    "GET /cells/shop/model/shop/web/vm?state=true": vm,
    "GET /cells/shop/model?state=true": { shop: { "x.type": "Cell", web: { vm } } },
    "POST /cells/shop/exec": { exitCode: 3, stdout: "out", stderr: "err" },
  };
  const server = createServer(async (incoming, response) => {
    const question = `${incoming.method} ${incoming.url}`;
    asked.push(`${question} ${await text(incoming)}`.trim());
    const answer = answers[question];
    response.writeHead(answer === undefined ? 404 : 200, { "content-type": "application/json" });
    response.end(JSON.stringify(answer ?? { error: { code: "not-found", message: "there is none" } }));
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  context.after(() => server.close());
  const { port } = server.address() as AddressInfo;
  const client = new Client({ url: `http://127.0.0.1:${port}`, credential: "secret" });
  const t = { gateway: () => client } as unknown as Testbed;

  assert.equal((await stateOf(t, "shop/web/vm"))?.phase, "ready");
  assert.equal(await stateOf(t, "shop/none"), null);
  assert.deepEqual(
    (await askElements(t, "shop"))?.map(({ path }) => path),
    ["shop/web/vm"],
  );
  assert.equal(await askElements(t, "other"), null);
  assert.deepEqual(await execIn(t, "shop/web/vm", ["hostname"]), { code: 3, stdout: "out", stderr: "err" });
  assert.deepEqual(JSON.parse(asked.at(-1)?.slice("POST /cells/shop/exec ".length) ?? ""), {
    vm: "shop/web/vm",
    command: ["hostname"],
    timeoutMs: 60_000,
  });
  const refused = await execIn(t, "other/vm", ["hostname"]);
  assert.deepEqual([refused.code, refused.stdout], [1, ""]);
  assert.match(refused.stderr, /there is none/);
  server.closeAllConnections();
  server.close();
  await once(server, "close");
  assert.equal(await stateOf(t, "shop/web/vm"), null);
  assert.equal((await execIn(t, "shop/web/vm", ["hostname"])).code, 3, "the code of a gateway that does not answer");
});
