import assert from "node:assert/strict";
import { createServer, type IncomingMessage } from "node:http";
import { text } from "node:stream/consumers";
import { test } from "node:test";
import { foreign, serveLoopback } from "./loopback.ts";

test("what its own page asks is passed on as the gateway's own page, and what comes back as it is", async (t) => {
  const seen: { readonly incoming: IncomingMessage; readonly body: string }[] = [];
  const gateway = createServer(async (incoming, response) => {
    seen.push({ incoming, body: await text(incoming) });
    response.writeHead(201, { "content-type": "text/plain", "set-cookie": "__Host-cells=x; Secure" });
    response.end("done");
  });
  await new Promise<void>((resolve) => gateway.listen(0, "127.0.0.1", resolve));
  const at = `http://127.0.0.1:${(gateway.address() as { readonly port: number }).port}`;
  const loopback = await serveLoopback(at, 0);
  t.after(async () => {
    await loopback.stop();
    gateway.close();
  });
  const headers = {
    origin: loopback.url,
    cookie: "__Host-cells=y",
    "cells-page": "1",
    authorization: "Bearer of-a-page",
  };
  const answer = await fetch(`${loopback.url}/login?a=b`, { method: "POST", body: "{}", headers });
  assert.deepEqual(
    [answer.status, await answer.text(), answer.headers.getSetCookie()],
    [201, "done", ["__Host-cells=x; Secure"]],
  );
  const [{ incoming, body } = assert.fail()] = seen;
  assert.deepEqual([incoming.method, incoming.url, body], ["POST", "/login?a=b", "{}"]);
  const { host, origin, cookie, authorization } = incoming.headers;
  assert.deepEqual(
    [host, origin, cookie, authorization, incoming.headers["cells-page"]],
    [new URL(at).host, at, "__Host-cells=y", undefined, "1"],
  );

  const evil = await fetch(`${loopback.url}/login`, { method: "POST", headers: { origin: "https://evil.example" } });
  assert.equal(evil.status, 403);
  assert.equal(seen.length, 1, "and the gateway hears nothing of it");

  gateway.closeAllConnections();
  await new Promise((resolve) => gateway.close(resolve));
  const gone = await fetch(`${loopback.url}/ui/`);
  assert.equal(gone.status, 502);
  assert.match(await gone.text(), /does not answer/);
});

test("another name or another page is told apart from its own", () => {
  assert.equal(foreign("127.0.0.1:80", undefined, 80), null);
  assert.equal(foreign("localhost:80", "http://localhost:80", 80), null);
  for (const [host, origin] of [
    ["evil.example:80", undefined],
    ["evil.example:80", "http://evil.example:80"],
    ["127.0.0.1:80", "http://localhost:80"],
    ["127.0.0.1:80", "null"],
    ["127.0.0.1:81", undefined],
    [undefined, undefined],
  ] as const)
    assert.notEqual(foreign(host, origin, 80), null, `${host} ${origin}`);
});
