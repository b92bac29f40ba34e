import assert from "node:assert/strict";
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { type FastifyInstance, fastify, type HTTPMethods } from "fastify";
import { peerName } from "../../model/cell/identifiers.ts";
import { routeNames, routeOf } from "../../model/contract/routes.ts";
import { hashCredential } from "../../runtime/http/bearer.ts";
import { createAuthority, issueCertificate } from "../../runtime/identity/certificates.ts";
import { createGateway } from "../gateway.ts";
import { RefusedError } from "./refused.ts";
import { serveRoute } from "./serve.ts";

let root = "";
let app: FastifyInstance;
before(async () => {
  root = await mkdtemp(join(tmpdir(), "gateway-serve-"));
  await mkdir(join(root, "ca"));
  await createAuthority(join(root, "ca"));
  await writeFile(join(root, "peers.json"), JSON.stringify({ peers: {} }));
  const certificate = await issueCertificate(join(root, "ca"), peerName("gateway"), ["127.0.0.1"]);
  app = createGateway({
    name: peerName("gateway"),
    role: "gateway",
    address: "127.0.0.1",
    distributionPort: 0,
    httpPort: 0,
    directory: root,
    runDirectory: root,
    peersFile: join(root, "peers.json"),
    certificate,
    gateway: { supervisorSocket: join(root, "nobody"), credentialHashes: [hashCredential("open-sesame")] },
  });
  await app.ready();
});
after(async () => {
  await app.close();
  await rm(root, { recursive: true, force: true });
});

const urlOf = (path: string): string => path.replace(/\{\w+\}/g, (name) => `:${name.slice(1, -1)}`);
const headers = { authorization: "Bearer open-sesame" };

test("the gateway serves every route of the table that is its own", () => {
  for (const name of routeNames) {
    const { method, path, at } = routeOf(name);
    if (at === "gateway") assert.ok(app.hasRoute({ method: method as HTTPMethods, url: urlOf(path) }), name);
  }
});

/** Files of the page are no part of the contract. */
const rightIn: Readonly<Record<string, readonly string[]>> = {
  "requests/serve.ts": ["app.route"],
  "gateway.ts": ["app.all"],
  "page/page.ts": ["app.get"],
};
test("it serves nothing else: routes come from the table, and what is below a cell is passed on", async () => {
  const folder = join(import.meta.dirname, "..");
  const files = (await readdir(folder, { recursive: true })).filter(
    (name) => name.endsWith(".ts") && !name.endsWith(".test.ts"),
  );
  for (const file of files) {
    const text = await readFile(join(folder, file), "utf8");
    const found = text.match(/\b(?:app|scope)\s*\.(?:get|put|post|delete|patch|all|route)\b/g) ?? [];
    const right = rightIn[file] ?? [];
    assert.deepEqual(found, right, `${file}: serve it by a row of model/contract/routes.ts, with \`serveRoute\``);
  }
  for (const [method, url] of [
    ["GET", "/nothing"],
    ["DELETE", "/status"],
    ["POST", "/cells"],
    ["GET", "/images/x"],
  ] as const) {
    const answer = await app.inject({ method, url, headers });
    assert.equal(answer.statusCode, 404, url);
    assert.match(answer.body, /see the API reference/);
  }
});

test("what violates the table's schemas is refused with the place, before anybody is asked", async () => {
  const wrong = [
    ["GET", "/events?follow=1", "", /^follow in the query: found "1", must be true or false$/],
    ["PUT", "/cells/shop/model?dryRun=yes", "{}", /^dryRun in the query: found "yes"/],
    ["DELETE", "/cells/shop/model?dryRun=", "", /^dryRun in the query/],
    ["DELETE", "/orphans/placer/controller.shop?all=all", "", /^all in the query/],
    ["POST", "/management/orders", '{"recipient":7}', /as orderBackup takes it: at recipient: found 7, must be text/],
    ["POST", "/management/parts/placer", '{"text":""}', /at signature: found nothing, must be text/],
    ["POST", "/management/orders", "{", /the body is not JSON/],
  ] as const;
  for (const [method, url, payload, why] of wrong) {
    const answer = await app.inject({ method, url, headers, ...(payload === "" ? {} : { payload }) });
    const { error } = answer.json() as { error: { code: string; message: string } };
    assert.deepEqual([answer.statusCode, error.code], [400, "bad-request"], url);
    assert.match(error.message, why);
  }
});

test("a handler gets what its row says", async () => {
  const one = fastify();
  one.removeAllContentTypeParsers();
  one.addContentTypeParser("*", { parseAs: "buffer" }, (_request, body, done) => done(null, body));
  one.setErrorHandler((error, _request, reply) =>
    reply.code(error instanceof RefusedError ? error.statusCode : 500).send({ error: String(error) }),
  );
  serveRoute(one, "endOrphans", ({ parameters, query, body }) => ({ parameters, query, body }));
  const answer = await one.inject({ method: "DELETE", url: "/orphans/placer/x%20y?key=a&key=b" });
  assert.deepEqual(answer.json(), {
    parameters: { service: "placer", peer: "x y" },
    query: { key: ["a", "b"] },
    body: null,
  });
  await one.close();
});
