import assert from "node:assert/strict";
import { test } from "node:test";
import { match } from "../match.ts";
import { readQuery } from "../request.ts";
import { addressOf, createClient } from "./client.ts";

test("an address is read back as what it was made from", () => {
  const parameters = { cell: "a b/c", path: "shop/we?b/ü" };
  const query = { dryRun: true, allowDestroy: ["shop/a", "b&c"] };
  const address = addressOf("putElement", parameters, query);
  assert.equal(
    address,
    "/cells/a%20b%2Fc/model/shop/we%3Fb/%C3%BC?dryRun=true&allowDestroy=shop%2Fa&allowDestroy=b%26c",
  );
  assert.deepEqual(match("PUT", address)?.parameters, parameters);
  assert.deepEqual(readQuery("putElement", address), { ok: true, value: query });
  assert.equal(addressOf("explain", { cell: "shop" }, { element: undefined }), "/cells/shop/why");
});

test("the client asks by the table, gives what is answered, and rejects with what is made of a refusal", async () => {
  const asked: unknown[] = [];
  let answer = Response.json({ exitCode: 0, stdout: "", stderr: "" });
  const client = createClient({
    fetch: async (...request) => {
      asked.push(request);
      return answer;
    },
    url: "http://gateway",
    credential: "secret",
    refuse: (status, text) => new Error(`${status} ${text}`),
  });
  const body = { vm: "shop/vm", command: ["ls"] };
  const { exitCode } = await client.ask("exec", { parameters: { cell: "shop" }, body });
  assert.equal(exitCode, 0);
  const headers = { authorization: "Bearer secret", "content-type": "application/json" };
  assert.deepEqual(asked, [
    ["http://gateway/cells/shop/exec", { method: "POST", headers, body: JSON.stringify(body) }],
  ]);
  answer = new Response("no", { status: 404 });
  await assert.rejects(client.ask("readStatus", { parameters: {} }), /404 no/);
});
