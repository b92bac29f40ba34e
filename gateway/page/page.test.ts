import assert from "node:assert/strict";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { gzipSync } from "node:zlib";
import type { FastifyInstance } from "fastify";
import { peerName } from "../../model/cell/identifiers.ts";
import { createTestInstallation, type TestInstallation } from "../../runtime/installation.testing.ts";
import { createGateway } from "../gateway.ts";

let installation: TestInstallation;
let app: FastifyInstance;
let without: FastifyInstance;
const script = "// a script that is long enough to be worth compressing\n".repeat(20);

before(async () => {
  installation = await createTestInstallation("page");
  const page = join(installation.directory, "page");
  await mkdir(page);
  await writeFile(join(page, "index.html"), '<meta name="cells-nonce" content="NONCE_OF_THIS_ANSWER">');
  await writeFile(join(page, "main-1.js"), script);
  await writeFile(join(page, "main-1.js.gz"), gzipSync(script));
  await writeFile(join(page, "secret.key"), "what is no file of a page");
  const gateway = { listenFd: -1, supervisorSocket: "/nobody", credentialHashes: [] };
  const { configuration } = await installation.configure(peerName("gateway"), { change: { role: "gateway", gateway } });
  app = createGateway({ ...configuration, gateway: { ...gateway, page } });
  without = createGateway({ ...configuration, name: peerName("gateway"), httpPort: 0, gateway });
});
after(async () => {
  await app?.close();
  await without?.close();
  await installation?.remove();
});
const get = (url: string, headers: Record<string, string> = {}) =>
  app.inject({ url, headers: { host: "127.0.0.1", ...headers } });

test("the page has a policy by which a script is a file of the gateway's, and a nonce that is another one each time", async () => {
  const answers = await Promise.all([get("/ui/"), get("/ui/machines?cell=shop"), get("/ui/cells/shop")]);
  const nonces = answers.map(({ statusCode, body, headers }) => {
    assert.equal(statusCode, 200);
    const policy = String(headers["content-security-policy"]);
    const nonce = /content="([^"]+)"/.exec(body)?.[1] ?? "";
    assert.ok(policy.includes(`style-src 'self' 'nonce-${nonce}'`));
    for (const part of [
      "default-src 'none'",
      "script-src 'self'",
      "connect-src 'self'",
      "frame-ancestors 'none'",
      "base-uri 'none'",
      "form-action 'none'",
      "object-src 'none'",
      "require-trusted-types-for 'script'",
    ])
      assert.ok(policy.split("; ").includes(part), part);
    assert.doesNotMatch(policy, /unsafe|https?:|\*/);
    assert.deepEqual(
      [headers["x-frame-options"], headers["x-content-type-options"], headers["cache-control"]],
      ["DENY", "nosniff", "no-store"],
    );
    return nonce;
  });
  assert.equal(new Set(nonces).size, 3);
});

test("files are given compressed to whoever takes that, and for ever; what is none of the page is not there", async () => {
  const plain = await get("/ui/main-1.js");
  assert.deepEqual([plain.body, plain.headers["content-encoding"]], [script, undefined]);
  assert.equal(plain.headers["content-security-policy"], undefined, "a worker would have the policy of its script");
  assert.match(String(plain.headers["cache-control"]), /immutable/);
  const packed = await get("/ui/main-1.js", { "accept-encoding": "gzip, br" });
  assert.equal(packed.headers["content-encoding"], "gzip");
  assert.deepEqual(packed.rawPayload, gzipSync(script));
  for (const url of ["/ui/secret.key", "/ui/..%2fsecret.key", "/ui/main-2.js", "/ui/main-1.js.gz", "/ui/.gz"])
    assert.notEqual((await get(url)).body, "what is no file of a page", url);
  assert.equal((await get("/ui/main-2.js")).statusCode, 404);
  for (const url of ["/", "/ui"]) {
    const moved = await get(url);
    assert.deepEqual([moved.statusCode, moved.headers.location], [308, "/ui/"]);
  }
  assert.equal((await get("/uix/main-1.js")).statusCode, 401, "beside the page all is as it was");
});

test("under a name that was made to lead here there is no page, nor where the gateway has none", async () => {
  for (const host of ["evil.example", "127.0.0.1.evil.example"]) {
    const answer = await get("/ui/", { host });
    assert.equal(answer.statusCode, 403);
    assert.equal(JSON.parse(answer.body).error.code, "page-host");
  }
  assert.equal((await get("/ui/", { host: "localhost:8443" })).statusCode, 200);
  assert.equal((await without.inject({ url: "/ui/", headers: { host: "127.0.0.1" } })).statusCode, 404);
});

test("whatever is not the page is nothing that a browser shows, also what is refused", async () => {
  for (const url of ["/cells", "/cells/shop/model", "/nothing", "/ui/main-2.js", "/login"]) {
    const { headers, statusCode } = await get(url);
    assert.ok(statusCode >= 400, url);
    assert.deepEqual(
      [headers["x-content-type-options"], headers["content-security-policy"]],
      ["nosniff", "default-src 'none'; sandbox; frame-ancestors 'none'"],
      url,
    );
  }
});
