import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { Socket } from "node:net";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import type { FastifyInstance } from "fastify";
import { peerName } from "../../model/cell/identifiers.ts";
import type { AuditView } from "../../model/contract/audit/audit.ts";
import type { DeviceLogin, NewProvider, PageLogin, ProviderSummary } from "../../model/contract/tenancy/oidc.ts";
import type { Login, WhoAmI } from "../../model/contract/tenancy/tenancy.ts";
import type { Json, JsonObject } from "../../model/json/json.ts";
import { hashCredential } from "../../runtime/http/bearer.ts";
import { createTestInstallation, eventually, type TestInstallation } from "../../runtime/installation.testing.ts";
import { createGateway } from "../gateway.ts";
import { type Answered, askGateway, given } from "./asking.testing.ts";
import { redirect, startIssuer, type TestIssuer } from "./issuer.testing.ts";

/*
 * Logins by a provider of OpenID Connect: `oidc-provider` on loopback, the service `tenancy` as a process, this process is the gateway, whose way outside
 * is the only one that `tenancy` takes.
 */
const operator = "open-sesame-of-the-operator";
const credentialHashes = [hashCredential(operator)];
const clientSecret = "a secret of this client alone";
const main = fileURLToPath(new URL("../../runtime/main.ts", import.meta.url));

let installation: TestInstallation;
let issuer: TestIssuer;
let app: FastifyInstance;
let tenancy: ChildProcess;
let supervisor: Server;
let url = "";
let said = "";
/** Ports of connections that this process has made. */
const ownPorts = new Set<number>();
const note = (message: unknown): void => {
  const { socket } = message as { readonly socket: Socket };
  socket.once("connect", () => ownPorts.add(socket.localPort ?? 0));
};

before(async () => {
  subscribe("net.client.socket", note);
  installation = await createTestInstallation("oidc");
  issuer = await startIssuer(installation.foreignAuthority, clientSecret);
  const { file } = await installation.configure(peerName("tenancy"), {
    change: { role: "tenancy", tenancy: { credentialHashes } },
  });
  tenancy = spawn(process.execPath, [main, file], { stdio: ["ignore", "pipe", "pipe"] });
  for (const stream of [tenancy.stdout, tenancy.stderr])
    stream?.setEncoding("utf8").on("data", (text: string) => {
      said += text;
    });
  const supervisorSocket = join(installation.directory, "supervisor");
  supervisor = createServer((_, response) => response.setHeader("content-type", "application/json").end("[]"));
  supervisor.listen(supervisorSocket);
  await once(supervisor, "listening");
  const gateway = { listenFd: -1, supervisorSocket, credentialHashes };
  const { configuration } = await installation.configure(peerName("gateway"), { change: { role: "gateway", gateway } });
  app = createGateway(configuration);
  url = await app.listen({ host: "127.0.0.1", port: 0 });
  await eventually("tenancy answers", async () => (await ask("GET", "/whoami")).status === 200);
  await done("POST", "/domains", { path: "ROOT/acme" });
  for (const path of ["ROOT/acme/dev", "ROOT/acme/ops"]) await done("POST", "/accounts", { path });
});
after(async () => {
  unsubscribe("net.client.socket", note);
  await app?.close();
  tenancy?.kill("SIGKILL");
  if (tenancy?.exitCode === null && tenancy.signalCode === null) await once(tenancy, "exit");
  supervisor?.close();
  await issuer?.stop();
  await installation?.remove();
});

const ask = (method: string, path: string, body?: object, credential: string | null = operator): Promise<Answered> =>
  askGateway(url, [method, path], credential, body);
const done = async (...asked: Parameters<typeof ask>): Promise<JsonObject> => given(await ask(...asked), asked);
const codeOf = ({ status, json }: Answered): string =>
  `${status} ${(json.error as JsonObject | undefined)?.code ?? ""}`;
const refusedAs = (answer: Answered, code: string, reason: RegExp): void => {
  assert.equal(codeOf(answer), code, answer.text);
  assert.match(String((answer.json.error as JsonObject).message), reason);
};

const provider = (): NewProvider => ({
  name: "acme",
  issuer: issuer.url,
  clientId: "cells",
  clientSecret,
  redirects: [redirect],
  authority: issuer.authority,
  mappings: [
    { claim: "groups", value: "admins", account: "ROOT/acme/dev", role: "account-admin" },
    { claim: "groups", value: "devs", account: "ROOT/acme/dev", role: "user" },
  ],
});
/** Each test stands alone. */
const declared = async (): Promise<void> => {
  const all = (await done("GET", "/providers")) as unknown as readonly ProviderSummary[];
  if (all.length === 0) await done("POST", "/providers", provider());
};
const page = async (): Promise<PageLogin> =>
  (await done("POST", "/logins/oidc/page", { redirect }, null)) as unknown as PageLogin;
const end = (login: string, answer?: string): Promise<Answered> =>
  ask("POST", "/logins/oidc", { login, ...(answer === undefined ? {} : { answer }) }, null);
const whoIs = async (answer: Answered): Promise<string> => {
  assert.equal(answer.status, 201, answer.text);
  const { session } = answer.json as unknown as Login;
  const { user } = (await done("GET", "/whoami", undefined, session)) as unknown as WhoAmI;
  return `${user?.name}@${user?.domain} ${user?.account} ${user?.role}`;
};
const entersByPage = async (person: string): Promise<Answered> => {
  const { login, authorizationUri } = await page();
  return end(login, await issuer.browse(authorizationUri, person));
};

test("a provider is declared whole, or refused with what would be right", async () => {
  const right = provider();
  const [mapping] = right.mappings;
  const wrong: readonly (readonly [object, string, RegExp])[] = [
    [{ issuer: "http://127.0.0.1" }, "400 bad-request", /issuer.*https:\/\/host/],
    [{ mappings: [] }, "400 bad-request", /mappings/],
    [{ mappings: [{ ...mapping, account: "ROOT/acme/none" }] }, "404 not-found", /no account "ROOT\/acme\/none"/],
    [{ mappings: [{ ...mapping, role: "king" }] }, "404 not-found", /no role "king"/],
    [{ clientId: "x".repeat(10_000) }, "400 bad-request", /clientId/],
    [{ hosts: ["elsewhere"] }, "400 bad-request", /host:port/],
  ];
  for (const [change, code, reason] of wrong)
    refusedAs(await ask("POST", "/providers", { ...right, ...change }), code, reason);
  refusedAs(await ask("POST", "/logins/oidc/device", {}, null), "404 not-found", /no provider/);
  assert.deepEqual(await done("GET", "/providers"), []);
  const made = (await done("POST", "/providers", right)) as unknown as ProviderSummary;
  assert.deepEqual([made.hasSecret, made.nameClaim, made.mappings], [true, "preferred_username", right.mappings]);
  refusedAs(await ask("POST", "/providers", right), "409 conflict", /acme already/);
});

test("by the device flow a person says yes elsewhere, and is the user that his groups make him", async () => {
  await declared();
  const begun = (await done("POST", "/logins/oidc/device", {}, null)) as unknown as DeviceLogin;
  const early = await end(begun.login);
  refusedAs(early, "409 oidc-pending", /nobody has said yes yet/);
  assert.ok(Number(early.retryAfter) >= 1);
  refusedAs(await end(begun.login), "409 oidc-pending", /ask again after a while/);
  await issuer.sayYes(begun.verificationUriComplete ?? "", begun.userCode, "ann");
  let answer = await end(begun.login);
  await eventually("the session is there", async () => {
    if (codeOf(answer) === "409 oidc-pending") answer = await end(begun.login);
    return codeOf(answer) !== "409 oidc-pending";
  });
  assert.equal(await whoIs(answer), "ann@ROOT/acme ROOT/acme/dev account-admin");
  refusedAs(await end(begun.login), "401 oidc", /no such login/);
  // The service has made no connection of its own.
  assert.ok(issuer.callers.size > 3);
  assert.deepEqual(
    [...issuer.callers].filter((port) => !ownPorts.has(port)),
    [],
  );
});

test("by a page he is the same user, with the role of now; whom nothing fits is nobody", async () => {
  await declared();
  assert.equal(await whoIs(await entersByPage("ann")), "ann@ROOT/acme ROOT/acme/dev account-admin");
  issuer.people.ann = { preferred_username: "anna", groups: ["devs"] };
  assert.equal(await whoIs(await entersByPage("ann")), "ann@ROOT/acme ROOT/acme/dev user");
  issuer.people.ann = { preferred_username: "ann", groups: ["guests"] };
  refusedAs(await entersByPage("ann"), "403 oidc-unmapped", /groups.*ask the operator/);
  issuer.people.ann = { preferred_username: "ann", groups: ["admins"] };
  refusedAs(await entersByPage("eve"), "403 oidc-unmapped", /makes nobody a user/);
  refusedAs(await entersByPage("long"), "403 oidc-unmapped", /preferred_username no name/);
  // Another person whom the provider calls the same is not her.
  refusedAs(await entersByPage("twin"), "409 conflict", /has a user ann already/);
});

test("what a provider answers counts only if it is for this login, from this issuer, and signed", async () => {
  await declared();
  const tries: readonly (readonly [string, Parameters<TestIssuer["tampering"]>[0], RegExp | null])[] = [
    ["nothing altered, and signed anew", {}, null],
    ["issuer", { claims: { iss: "https://evil.example" } }, /"iss"/],
    ["audience", { claims: { aud: "another client" } }, /"aud"/],
    ["nonce", { claims: { nonce: "of another login" } }, /"?nonce"?/],
    ["no nonce", { claims: { nonce: null } }, /"?nonce"?/],
    ["expired", { claims: { exp: 1_000_000_000, iat: 999_999_000 } }, /"?exp"?/],
    ["without a subject", { claims: { sub: null } }, /"?sub"?/],
    ["signature", { key: "another" }, /signature/],
    ["no signature", { key: "none" }, /alg|JWS|signature/],
    ["nothing altered, once more", {}, null],
  ];
  for (const [what, change, reason] of tries) {
    const stop = issuer.tampering(change);
    const answer = await entersByPage("ann");
    stop();
    if (reason === null) assert.equal(answer.status, 201, `${what}: ${answer.text}`);
    else refusedAs(answer, "401 oidc", reason);
  }
});

test("what a browser brings back counts once, for the page that began it, at the place that was agreed", async () => {
  await declared();
  const { login, authorizationUri } = await page();
  const answer = await issuer.browse(authorizationUri, "ann");
  const other = await page();
  refusedAs(await end(other.login, answer), "401 oidc", /state/);
  refusedAs(await end(login, answer.replace(redirect, "https://evil.example/back")), "400 bad-request", /begins/);
  refusedAs(await end(login), "400 bad-request", /answer/);
  const altered = answer.replace(/code=[^&]+/, "code=another");
  assert.equal(await whoIs(await end(login, answer)), "ann@ROOT/acme ROOT/acme/dev account-admin");
  refusedAs(await end(login, answer), "401 oidc", /no such login/);
  const third = await page();
  const state = new URL(third.authorizationUri).searchParams.get("state") ?? "";
  const forged = altered.replace(/state=[^&]+/, `state=${state}`);
  refusedAs(await end(third.login, forged), "401 oidc", /invalid_grant/);
  const fourth = await page();
  const denied = `${redirect}?error=access_denied&state=${new URL(fourth.authorizationUri).searchParams.get("state")}&iss=${encodeURIComponent(issuer.url)}`;
  refusedAs(await end(fourth.login, denied), "401 oidc", /access_denied/);
  refusedAs(
    await ask("POST", "/logins/oidc/page", { redirect: "https://evil.example/back" }, null),
    "400 bad-request",
    /sends nobody back/,
  );
});

test("an issuer that is another one, or sends elsewhere, begins no login; and nobody trusts a certificate for nothing", async () => {
  await declared();
  const right = provider();
  const [first] = (await done("GET", "/providers")) as unknown as readonly ProviderSummary[];
  await done("DELETE", `/providers/${first?.uid}`);
  const begins = async (change: Partial<NewProvider>, metadata: JsonObject = {}): Promise<Answered> => {
    const made = (await done("POST", "/providers", { ...right, ...change })) as unknown as ProviderSummary;
    issuer.metadata = metadata;
    const answer = await ask("POST", "/logins/oidc/device", { provider: "acme" }, null);
    issuer.metadata = {};
    await done("DELETE", `/providers/${made.uid}`);
    return answer;
  };
  assert.equal((await begins({})).status, 201);
  refusedAs(await begins({}, { issuer: "https://evil.example" }), "502 provider", /issuer/);
  const elsewhere = { device_authorization_endpoint: "https://127.0.0.1:9/device" };
  refusedAs(await begins({}, elsewhere), "502 provider", /127\.0\.0\.1:9.*does not name/);
  const plain = { device_authorization_endpoint: `${issuer.url.replace("https", "http")}/device/auth` };
  refusedAs(await begins({}, plain), "502 provider", /HTTPS|http:/);
  const { authority: _, ...untrusted } = right;
  void _;
  const made = (await done("POST", "/providers", untrusted)) as unknown as ProviderSummary;
  refusedAs(await ask("POST", "/logins/oidc/device", {}, null), "502 provider", /certificate/);
  await done("DELETE", `/providers/${made.uid}`);
});

const logOut = async (token: string, type = "application/x-www-form-urlencoded"): Promise<string> => {
  const body = new URLSearchParams({ logout_token: token }).toString();
  const response = await fetch(`${url}/logins/oidc/logout`, {
    method: "POST",
    body,
    headers: { "content-type": type },
  });
  const text = await response.text();
  assert.equal(response.headers.get("cache-control"), "no-store");
  return `${response.status} ${text}`;
};

test("who logs out at the provider is out here within a second; nobody else's word does that, and none twice", async () => {
  await declared();
  const enter = async (): Promise<string> => ((await entersByPage("ann")).json as unknown as Login).session;
  const [one, two] = [await enter(), await enter()];
  const isIn = async (session: string): Promise<boolean> =>
    (await ask("GET", "/whoami", undefined, session)).status === 200;
  for (const [what, token, reason] of [
    ["no token", "nothing", /400 .*no token that is signed/],
    ["another issuer", await issuer.logoutToken({ sub: "ann", iss: "https://evil.example" }), /400 .*no provider/],
    ["another client", await issuer.logoutToken({ sub: "ann", aud: "another" }), /400 .*no provider/],
    ["another key", await issuer.logoutToken({ sub: "ann" }, "another"), /400 .*signature/],
    ["no logout", await issuer.logoutToken({ sub: "ann", events: {} }), /400 .*of no logout/],
    ["an ID token's", await issuer.logoutToken({ sub: "ann", nonce: "n" }), /400 .*nonce/],
    ["somebody else", await issuer.logoutToken({ sub: "mia" }), /^200 \{\}$/],
  ] as const) {
    assert.match(await logOut(token), reason, what);
    assert.deepEqual([await isIn(one), await isIn(two)], [true, true], what);
  }
  const token = await issuer.logoutToken({ sub: "ann" });
  assert.equal(await logOut(token), "200 {}");
  assert.deepEqual([await isIn(one), await isIn(two)], [false, false]);
  const three = await enter();
  assert.match(await logOut(token), /400 .*it was shown before/);
  assert.equal(await isIn(three), true);
  const { records } = (await done("GET", "/audit?service=tenancy")) as unknown as AuditView;
  const told = records.filter(({ verb, outcome }) => verb === "logOutByProvider" && outcome === "done");
  const refusals = records.filter(({ verb, outcome }) => verb === "logOutByProvider" && outcome === "refused");
  assert.deepEqual(
    [refusals.length, refusals[0]?.who, refusals[0]?.target],
    [4, "an unknown user", "the provider acme"],
  );
  assert.deepEqual(
    told.map(({ who, target }) => `${who}: ${target}`),
    ["the provider acme: ann@ROOT/acme"],
  );
});

test("who came by a provider is out when that is deleted; the audit says who came, and nobody says a secret", async () => {
  await declared();
  const [made] = (await done("GET", "/providers")) as unknown as readonly ProviderSummary[];
  const { session } = (await entersByPage("ann")).json as unknown as Login;
  assert.equal((await ask("GET", "/whoami", undefined, session)).status, 200);
  await done("DELETE", `/providers/${made?.uid}`);
  assert.equal((await ask("GET", "/whoami", undefined, session)).status, 401);
  const { records } = (await done("GET", "/audit?service=tenancy")) as unknown as AuditView;
  const of = (verb: string): readonly string[] =>
    records.filter((each) => each.verb === verb).map(({ who, outcome }) => `${who} ${outcome}`);
  assert.ok(of("endOidcLogin").includes("ann@ROOT/acme done"));
  assert.deepEqual(of("addUser"), ["the provider acme done"]);
  const text = JSON.stringify(records as unknown as Json) + said;
  for (const secret of [clientSecret, session]) assert.ok(!text.includes(secret));
});
