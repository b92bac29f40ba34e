import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type IncomingMessage, type OutgoingHttpHeaders, request } from "node:http";
import { text } from "node:stream/consumers";
import { type TestContext, test } from "node:test";
import { WebSocket, WebSocketServer } from "ws";
import { foreign, serveLoopback } from "./loopback.ts";

/** Names below `localhost` are this machine to a browser; not every resolver knows that. */
async function asked(url: string, { method = "GET", headers = {} as OutgoingHttpHeaders, body = "" } = {}) {
  const { port, host, pathname, search } = new URL(url);
  const sent = request({ host: "127.0.0.1", port, method, path: pathname + search, headers: { host, ...headers } });
  sent.end(body);
  const answer = await new Promise<IncomingMessage>((resolve, reject) =>
    sent.once("response", resolve).once("error", reject),
  );
  const cookies = answer.headers["set-cookie"] ?? [];
  return { status: answer.statusCode, headers: answer.headers, cookies, body: await text(answer) };
}
interface Seen {
  readonly incoming: IncomingMessage;
  readonly body: string;
}
/** A gateway that gives each who signs in a cookie, and takes it from who signs out. */
async function world(t: TestContext) {
  const seen: Seen[] = [];
  let given = 0;
  const gateway = createServer(async (incoming, response) => {
    seen.push({ incoming, body: await text(incoming) });
    const { method, url } = incoming;
    given += 1;
    if (method === "POST")
      response.setHeader("set-cookie", `__Host-cells=secret-${given}; Max-Age=60; Path=/; HttpOnly; Secure`);
    if (method === "DELETE") response.setHeader("set-cookie", "__Host-cells=; Max-Age=0; Path=/; HttpOnly; Secure");
    response.writeHead(url === "/login?a=b" ? 201 : 200, { "content-type": "text/plain" });
    response.end("done");
  });
  await new Promise<void>((resolve) => gateway.listen(0, "127.0.0.1", resolve));
  const at = `http://127.0.0.1:${(gateway.address() as { readonly port: number }).port}`;
  const loopback = await serveLoopback(at, 0);
  t.after(async () => {
    await loopback.stop();
    gateway.closeAllConnections();
    gateway.close();
  });
  return { seen, gateway, at, url: loopback.url };
}
const last = (seen: readonly Seen[]): Seen => seen.at(-1) ?? assert.fail();

test("what its own page asks is passed on as the gateway's own page, and what comes back as it is", async (t) => {
  const { seen, gateway, at, url } = await world(t);
  assert.match(url, /^http:\/\/[0-9a-f]{32}\.localhost:\d+$/);
  const headers = { origin: url, "cells-page": "1", authorization: "Bearer of-a-page" };
  const answer = await asked(`${url}/login?a=b`, { method: "POST", body: "{}", headers });
  assert.deepEqual([answer.status, answer.body], [201, "done"]);
  const { incoming, body } = last(seen);
  assert.deepEqual([incoming.method, incoming.url, body], ["POST", "/login?a=b", "{}"]);
  const { host, origin, cookie, authorization } = incoming.headers;
  assert.deepEqual(
    [host, origin, cookie, authorization, incoming.headers["cells-page"]],
    [new URL(at).host, at, undefined, undefined, "1"],
  );

  const evil = await asked(`${url}/login`, { method: "POST", headers: { origin: "https://evil.example" } });
  assert.equal(evil.status, 403);
  const elsewhere = await asked(`${url}/ui/`, { headers: { host: `127.0.0.1:${new URL(url).port}` } });
  assert.equal(elsewhere.status, 403, "nor is the page at the address");
  assert.ok(!elsewhere.body.includes(new URL(url).hostname), "which does not tell its name");
  assert.equal(seen.length, 1, "and the gateway hears nothing of it");

  gateway.closeAllConnections();
  await new Promise((resolve) => gateway.close(resolve));
  const gone = await asked(`${url}/ui/`);
  assert.equal(gone.status, 502);
  assert.match(gone.body, /does not answer/);
});

test("the gateway's cookie stays here: a browser has another one, by which it is sent on", async (t) => {
  const { seen, url } = await world(t);
  const enter = { method: "POST", headers: { origin: url } };
  const begun = await asked(`${url}/login`, enter);
  const [given = ""] = begun.cookies;
  assert.match(given, /^cells-[0-9a-f]{16}=[\w-]{43}; Max-Age=60; Path=\/; HttpOnly; SameSite=Strict$/);
  assert.ok(!JSON.stringify(begun.headers).includes("secret"), "what opens something at the gateway is not told");
  const [cookie = ""] = given.split(";");
  await asked(`${url}/whoami`, { headers: { cookie: `other=1; ${cookie}` } });
  assert.equal(last(seen).incoming.headers.cookie, "__Host-cells=secret-1");

  for (const none of ["__Host-cells=secret-1", `${cookie}x`, `${cookie}; ${cookie}`, "other=1"]) {
    await asked(`${url}/whoami`, { headers: { cookie: none } });
    assert.equal(last(seen).incoming.headers.cookie, undefined, none);
  }
  const [other = ""] = (await asked(`${url}/login`, enter)).cookies;
  assert.notEqual(other.split(";")[0], cookie, "each browser has its own");
  const out = await asked(`${url}/login`, { method: "DELETE", headers: { origin: url, cookie } });
  assert.match(String(out.cookies[0]), /^cells-[0-9a-f]{16}=; Max-Age=0;/);
  await asked(`${url}/whoami`, { headers: { cookie } });
  assert.equal(last(seen).incoming.headers.cookie, undefined, "and it is forgotten");
  for (let n = 0; n < 40; n += 1) await asked(`${url}/login`, enter);
  await asked(`${url}/whoami`, { headers: { cookie: other.split(";")[0] ?? "" } });
  assert.equal(last(seen).incoming.headers.cookie, undefined, "what is kept is bounded");
});

test("a session of its own page is passed on by its capability alone; another page's is not, nor another path", async (t) => {
  const { gateway, url } = await world(t);
  const sockets = new WebSocketServer({ noServer: true, handleProtocols: () => "cells.session.v1" });
  const heard: IncomingMessage[] = [];
  gateway.on("upgrade", (request, socket, head) => {
    heard.push(request);
    sockets.handleUpgrade(request, socket, head, (client) => client.on("message", (data) => client.send(`${data}!`)));
  });
  const { host, port } = new URL(url);
  const open = (path: string, origin: string | undefined): WebSocket =>
    new WebSocket(`ws://127.0.0.1:${port}${path}`, ["cells.session.v1", "cells.capability.x"], {
      headers: { host, cookie: "other=1", ...(origin === undefined ? {} : { origin }) },
    });
  const client = open("/cells/shop/sessions", url);
  await once(client, "open");
  client.send("hello");
  assert.equal(String((await once(client, "message"))[0]), "hello!");
  const [{ headers = {} } = {}] = heard;
  assert.deepEqual(
    [headers.cookie, headers["sec-websocket-protocol"]],
    [undefined, "cells.session.v1,cells.capability.x"],
  );
  for (const [path, origin] of [
    ["/cells/shop/sessions", "https://evil.example"],
    ["/cells/shop/sessions", undefined],
    ["/other", url],
  ] as const) {
    const refused = open(path, origin);
    const why = await new Promise<string>((resolve) => {
      refused.once("error", (error) => resolve(String(error)));
      refused.once("open", () => resolve("it is open"));
    });
    refused.terminate();
    assert.match(why, /403/, `${path} of ${origin}`);
  }
  assert.equal(heard.length, 1);
  client.terminate();
});

test("another name or another page is told apart from its own", () => {
  const own = "0123.localhost:80";
  assert.equal(foreign(own, undefined, own), null);
  assert.equal(foreign(own, "http://0123.localhost:80", own), null);
  for (const [host, origin] of [
    ["evil.example:80", undefined],
    ["evil.example:80", "http://evil.example:80"],
    ["127.0.0.1:80", undefined],
    ["localhost:80", "http://localhost:80"],
    [own, "http://localhost:80"],
    [own, "http://0123.localhost:81"],
    [own, "null"],
    ["0123.localhost:81", undefined],
    [undefined, undefined],
  ] as const)
    assert.notEqual(foreign(host, origin, own), null, `${host} ${origin}`);
});
