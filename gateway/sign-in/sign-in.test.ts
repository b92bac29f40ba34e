import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import type { FastifyInstance, InjectOptions } from "fastify";
import { peerName } from "../../model/cell/identifiers.ts";
import { assertConforms } from "../../model/contract/testing/conforms.testing.ts";
import type { JsonObject } from "../../model/json/json.ts";
import { hashCredential } from "../../runtime/http/bearer.ts";
import { createTestInstallation, eventually, type TestInstallation } from "../../runtime/installation.testing.ts";
import { createGateway } from "../gateway.ts";

/* A browser at the gateway's door, and pages of others that would like to be in. Users are those of the service `tenancy`, a process of its own. */
const operator = "open-sesame-of-the-operator";
const password = "a horse of another colour";
const credentialHashes = [hashCredential(operator)];
const host = "127.0.0.1:8443";
const page = { host, origin: `http://${host}`, "cells-page": "1" };
let installation: TestInstallation;
let supervisor: Server;
let tenancy: ChildProcess;
let app: FastifyInstance;

type Asked = Omit<InjectOptions, "headers"> & { readonly headers?: Record<string, string | undefined> };
async function ask(method: "GET" | "POST" | "PUT" | "DELETE", url: string, { headers = {}, ...more }: Asked = {}) {
  const given = Object.entries({ "content-type": "application/json", ...headers }).filter(
    ([, value]) => value !== undefined,
  );
  const answer = await app.inject({
    method,
    url,
    headers: Object.fromEntries(given) as Record<string, string>,
    ...more,
  });
  assertConforms(method, url, {
    status: answer.statusCode,
    type: String(answer.headers["content-type"]),
    text: answer.body,
  });
  const cookie = /^__Host-cells=([\w-]*);/.exec(String(answer.headers["set-cookie"]))?.[1];
  const json = JSON.parse(answer.body) as JsonObject & {
    readonly error?: { readonly code: string; readonly message: string };
  };
  return { status: answer.statusCode, json, code: json.error?.code ?? null, cookie, headers: answer.headers };
}
let addresses = 0;
/** From an address of its own, so that no test has another's wrong attempts. */
const signIn = (
  body: object,
  headers: Record<string, string | undefined> = {},
  remoteAddress = `192.0.2.${++addresses}`,
) => ask("POST", "/login", { payload: JSON.stringify(body), headers: { ...page, ...headers }, remoteAddress });
const shown = (cookie: string | undefined, more = {}) => ({
  headers: { ...page, cookie: `__Host-cells=${cookie}`, ...more },
});
const asOperator = { headers: { authorization: `Bearer ${operator}` } };
const done = async (url: string, payload: object): Promise<void> => {
  const { status, json } = await ask("POST", url, { ...asOperator, payload: JSON.stringify(payload) });
  assert.ok(status < 300, JSON.stringify(json));
};

before(async () => {
  installation = await createTestInstallation("sign-in");
  const supervisorSocket = join(installation.directory, "supervisor");
  supervisor = createServer(({ url }, response) => response.end(url === "/status" ? '{"services":[]}' : "[]"));
  supervisor.listen(supervisorSocket);
  await once(supervisor, "listening");
  const main = fileURLToPath(new URL("../../runtime/main.ts", import.meta.url));
  const service = await installation.configure(peerName("tenancy"), {
    change: { role: "tenancy", tenancy: { credentialHashes } },
  });
  tenancy = spawn(process.execPath, [main, service.file], { stdio: "ignore" });
  const gateway = { listenFd: -1, supervisorSocket, credentialHashes };
  const { configuration } = await installation.configure(peerName("gateway"), { change: { role: "gateway", gateway } });
  app = createGateway(configuration);
  await eventually("tenancy answers", async () => (await ask("GET", "/whoami", asOperator)).status === 200);
  await done("/domains", { path: "ROOT/acme" });
  await done("/accounts", { path: "ROOT/acme/dev" });
  await done("/users", { name: "ann", account: "ROOT/acme/dev", role: "account-admin", password });
});
after(async () => {
  await app?.close();
  tenancy?.kill("SIGKILL");
  supervisor?.close();
  await installation?.remove();
});
const ann = { user: "ann", domain: "ROOT/acme", password };

test("a user signs in by password, asks by the cookie, and is out when he says so", async () => {
  const begun = await signIn(ann);
  assert.equal(begun.status, 201, JSON.stringify(begun.json));
  const { expires, ...who } = begun.json;
  assert.deepEqual(who, {
    kind: "user",
    name: "ann@ROOT/acme",
    account: "ROOT/acme/dev",
    cookie: true,
    volumes: false,
  });
  assert.ok(Date.parse(String(expires)) - Date.now() > 3_600_000);
  assert.match(String(begun.headers["set-cookie"]), /HttpOnly; Secure; SameSite=Strict$/);
  assert.ok(!JSON.stringify(begun.json).includes("session."), "the session is not told to the page");
  const is = await ask("GET", "/login", shown(begun.cookie));
  assert.deepEqual([is.status, is.json.name, is.json.cookie], [200, "ann@ROOT/acme", true]);
  assert.equal((await ask("GET", "/whoami", shown(begun.cookie))).status, 200);
  assert.equal((await ask("GET", "/status", shown(begun.cookie))).status, 403, "he is no operator by that");

  const out = await ask("DELETE", "/login", shown(begun.cookie));
  assert.deepEqual([out.status, out.cookie], [200, ""]);
  const after = await ask("GET", "/login", shown(begun.cookie));
  assert.deepEqual([after.status, after.code], [401, "signed-out"]);
});

test("a pasted credential signs in, and its sign-in alone ends", async () => {
  const begun = await signIn({ credential: operator });
  assert.deepEqual([begun.status, begun.json.kind, begun.json.name], [201, "operator", null]);
  assert.equal((await ask("GET", "/status", shown(begun.cookie))).status, 200);
  await ask("DELETE", "/login", shown(begun.cookie));
  assert.equal((await ask("GET", "/status", shown(begun.cookie))).status, 401);
  assert.equal((await ask("GET", "/status", asOperator)).status, 200);
  const none = await ask("DELETE", "/login", asOperator);
  assert.deepEqual([none.status, none.code], [409, "no-cookie"]);
  const direct = await ask("GET", "/login", asOperator);
  assert.deepEqual([direct.json.kind, direct.json.cookie, direct.json.expires], ["operator", false, null]);
});

const readCode = (oneTimeCode: string, headers = {}, remoteAddress = `192.0.2.${++addresses}`) =>
  ask("POST", "/login/codes/read", {
    payload: JSON.stringify({ oneTimeCode }),
    headers: { ...page, ...headers },
    remoteAddress,
  });

test("a one-time code signs in once, as whoever made it", async () => {
  const made = await ask("POST", "/login/codes", asOperator);
  assert.equal(made.status, 201);
  const { code } = made.json as { readonly code: string };
  const first = await signIn({ oneTimeCode: code, as: "the operator" });
  assert.deepEqual([first.status, first.json.kind], [201, "operator"]);
  const second = await signIn({ oneTimeCode: code, as: "the operator" });
  assert.deepEqual([second.status, second.code, second.cookie], [401, "login", undefined]);
});

test("whoever follows a link with a code is told first whom it signs in, and nobody is signed in unseen", async () => {
  const { json: session } = await ask("POST", "/logins", { payload: JSON.stringify(ann) });
  const asAnn = { headers: { authorization: `Bearer ${session.session}` } };
  const { code } = (await ask("POST", "/login/codes", asAnn)).json as { readonly code: string };
  for (const as of [undefined, "the operator", "", "ann"]) {
    const unseen = await signIn({ oneTimeCode: code, as });
    assert.deepEqual([unseen.status, unseen.cookie], [as === undefined ? 400 : 409, undefined], as);
  }
  const foreign = await readCode(code, { origin: "https://evil.example" });
  assert.deepEqual([foreign.status, foreign.code], [403, "page-foreign"]);
  for (const _ of [1, 2]) {
    const { status, json } = await readCode(code);
    assert.deepEqual(
      [status, json],
      [200, { kind: "user", name: "ann@ROOT/acme", account: "ROOT/acme/dev", as: "ann@ROOT/acme" }],
    );
  }
  const seen = await signIn({ oneTimeCode: code, as: "ann@ROOT/acme" });
  assert.deepEqual([seen.status, seen.json.name], [201, "ann@ROOT/acme"]);
  assert.equal((await readCode(code)).status, 401, "and it is used");
  const from = "198.51.100.77";
  for (let n = 0; n < 10; n += 1) assert.equal((await readCode("made-up", {}, from)).status, 401);
  assert.equal((await readCode("made-up", {}, from)).status, 429, "nor are codes guessed by it");
});

test("who signs in again in the same browser is out of the sign-in before", async () => {
  const before = await signIn({ credential: operator });
  const { status, cookie } = await signIn(ann, { cookie: `__Host-cells=${before.cookie}` });
  assert.equal(status, 201);
  assert.equal((await ask("GET", "/login", shown(before.cookie))).status, 401);
  assert.equal((await ask("GET", "/login", shown(cookie))).json.name, "ann@ROOT/acme");
});

test("a sign-in makes no other that would outlive it", async () => {
  for (const body of [ann, { credential: operator }]) {
    const { cookie } = await signIn(body);
    const made = await ask("POST", "/login/codes", shown(cookie));
    assert.deepEqual([made.status, made.code, made.json.code], [403, "forbidden", undefined]);
    assert.match(JSON.stringify(made.json), /is made by a credential, .* and not by a sign-in/);
  }
  assert.equal((await ask("POST", "/login/codes", asOperator)).status, 201);
});

test("what opens nothing is refused in the same words, and after ten of them from one address it has to wait", async () => {
  const wrong = [
    { credential: "made-up" },
    { oneTimeCode: "made-up" },
    { credential: "shop.0123abcd.".padEnd(57, "x") },
  ];
  for (const body of wrong) {
    const { status, cookie, json } = await signIn(body);
    assert.deepEqual([status, cookie], [401, undefined], JSON.stringify(body));
    assert.equal(json.error?.message, "this opens nothing: it is wrong, was used before, or is over");
  }
  assert.equal((await signIn({ ...ann, password: "not hers at all" })).status, 401);
  for (const body of [
    {},
    { user: "ann" },
    { password },
    { ...ann, credential: operator },
    { credential: "x".repeat(10_000) },
  ])
    assert.equal((await signIn(body)).status, 400, JSON.stringify(body).slice(0, 80));

  const from = "198.51.100.7";
  for (let n = 0; n < 10; n += 1) assert.equal((await signIn({ credential: "made-up" }, {}, from)).status, 401);
  const limited = await signIn({ credential: operator }, {}, from);
  assert.deepEqual([limited.status, Number(limited.headers["retry-after"]) > 50], [429, true]);
  assert.equal((await signIn({ credential: operator }, {}, "198.51.100.8")).status, 201, "nobody else has to");
});

test("another site has a browser that is signed in do nothing, and nobody in under its own name", async () => {
  const { cookie } = await signIn({ credential: operator });
  const change = (headers: Record<string, string | undefined>) =>
    ask("POST", "/domains", { ...shown(cookie, headers), payload: JSON.stringify({ path: "ROOT/evil" }) });
  const evil = "https://evil.example";
  const attacks: readonly (readonly [Record<string, string | undefined>, string])[] = [
    [{ origin: evil }, "page-foreign"],
    [{ origin: undefined }, "page-foreign"],
    [{ origin: "null" }, "page-foreign"],
    [{ "cells-page": undefined }, "page-foreign"],
    [{ "sec-fetch-site": "cross-site" }, "page-foreign"],
    [{ host: "evil.example", origin: evil }, "page-host"],
  ];
  for (const [headers, code] of attacks) {
    const tried = await change(headers);
    assert.deepEqual([tried.status, tried.code], [403, code], JSON.stringify(headers));
    const entered = await signIn({ credential: operator }, headers);
    assert.deepEqual(
      [entered.status, entered.code, entered.cookie],
      [403, code, undefined],
      "nor is anybody signed in by it",
    );
  }
  const rebound = await ask("GET", "/status", shown(cookie, { host: "evil.example" }));
  assert.deepEqual([rebound.status, rebound.code], [403, "page-host"]);
  assert.equal((await change({})).status, 200, "what the page itself asks is done");
  const direct = { ...asOperator.headers, host: "evil.example", origin: evil };
  assert.equal(
    (await ask("GET", "/status", { headers: direct })).status,
    200,
    "a client that shows a credential is none of this",
  );
});

test("whoever is not in any more loses the sign-in, too, and what he follows", async () => {
  const { cookie } = await signIn(ann);
  const url = await app.listen({ host: "127.0.0.1", port: 0 });
  const followed = await fetch(`${url}/follow?topic=cells`, { headers: { cookie: `__Host-cells=${cookie}` } });
  assert.equal(followed.status, 200);
  const reader = followed.body?.getReader() ?? assert.fail();
  assert.match(new TextDecoder().decode((await reader.read()).value), /event: snapshot/);
  const ended = reader.closed.then(
    () => "ended",
    () => "ended",
  );
  void (async () => {
    while (!(await reader.read()).done);
  })().catch(() => undefined);
  await ask("DELETE", "/login", shown(cookie));
  assert.equal(await ended, "ended");
});
