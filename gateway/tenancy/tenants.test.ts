import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { rm } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import { connect } from "node:net";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import type { FastifyInstance } from "fastify";
import type { Refusal } from "../../model/api.ts";
import { peerName } from "../../model/cell/identifiers.ts";
import type { AuditView } from "../../model/contract/audit/audit.ts";
import { faultsIn } from "../../model/contract/audit/chain.ts";
import type { Login, UserSummary } from "../../model/contract/tenancy/tenancy.ts";
import type { Json, JsonObject } from "../../model/json/json.ts";
import { hashCredential } from "../../runtime/http/bearer.ts";
import { createTestInstallation, eventually, type TestInstallation } from "../../runtime/installation.testing.ts";
import type { ProcessConfiguration } from "../../runtime/installation.ts";
import { createGateway } from "../gateway.ts";
import { type Answered, askGateway, given } from "./asking.testing.ts";
import { tryFlood } from "./flood.testing.ts";
import { tryKeys, tryLink, tryPages, trySecondFactor, tryWayBack } from "./keys.testing.ts";
import { tryVia } from "./via.testing.ts";

/*
 * Users at the door: the service `tenancy` and each cell's controller are processes of their own, as in an installation; this
 * process is the gateway, and the supervisor that makes controllers.
 */
const operator = "open-sesame-of-the-operator";
const main = fileURLToPath(new URL("../../runtime/main.ts", import.meta.url));
/** Loopback addresses of this test: a controller's name server needs port 53. */
const addressOf = (number: number): string => `127.${120 + (process.pid % 60)}.${(process.pid >> 6) % 250}.${number}`;
const credentialHashes = [hashCredential(operator)];

let installation: TestInstallation;
let app: FastifyInstance;
let supervisor: Server;
let url = "";
let own: ProcessConfiguration;
const programs = new Map<string, ChildProcess>();
/** All that the processes said. */
let said = "";
/** Everything that nobody may ever say. */
const secrets: string[] = [];

const start = async (name: string, change: Partial<ProcessConfiguration>): Promise<void> => {
  const { file } = await installation.configure(peerName(name), { change });
  run(name, file);
};
const run = (name: string, file: string): void => {
  const child = spawn(process.execPath, [main, file], { stdio: ["ignore", "pipe", "pipe"] });
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding("utf8").on("data", (text: string) => {
      said += text;
    });
  programs.set(name, child);
};
const end = async (name: string, signal: NodeJS.Signals): Promise<void> => {
  const child = programs.get(name);
  programs.delete(name);
  if (child === undefined || child.exitCode !== null) return;
  child.kill(signal);
  await once(child, "exit");
};

const cells: string[] = [];
let made = 0;
const makeCell = async (cell: string): Promise<void> => {
  if (cells.includes(cell)) return;
  cells.push(cell);
  made += 1;
  const mac = `02:00:00:00:00:0${made}`;
  const own = { cell, cellUid: `c${made}`, cellNumber: made, domain: "cells.internal", mac };
  const address = addressOf(made + 1);
  await start(`controller.${cell}`, { role: "controller", address, controller: { ...own, credentialHashes } });
};

before(async () => {
  installation = await createTestInstallation("tenants");
  const supervisorSocket = join(installation.directory, "supervisor");
  supervisor = createServer(async ({ method, url: path = "" }, response) => {
    const cell = path.split("/")[2] ?? "";
    if (method === "POST") await makeCell(cell);
    if (method === "DELETE") {
      cells.splice(cells.indexOf(cell), 1);
      await end(`controller.${cell}`, "SIGTERM");
      await rm(join(installation.directory, `controller.${cell}`), { recursive: true });
    }
    response.setHeader("content-type", "application/json").end(JSON.stringify(method === "GET" ? cells : {}));
  });
  supervisor.listen(supervisorSocket);
  await once(supervisor, "listening");
  await start("tenancy", { role: "tenancy", tenancy: { credentialHashes } });
  const gateway = { listenFd: -1, supervisorSocket, credentialHashes };
  const { configuration } = await installation.configure(peerName("gateway"), { change: { role: "gateway", gateway } });
  own = configuration;
  app = createGateway(configuration);
  url = await app.listen({ host: "127.0.0.1", port: 0 });
  await eventually("tenancy answers", async () => (await ask("GET", "/whoami")).status === 200);
});
after(async () => {
  await app?.close();
  for (const name of [...programs.keys()]) await end(name, "SIGKILL");
  supervisor?.close();
  await installation?.remove();
});

const ask = (method: string, path: string, credential: string | null = operator, body?: Json): Promise<Answered> =>
  askGateway(url, [method, path], credential, body);
const done = async (...asked: Parameters<typeof ask>): Promise<JsonObject> => given(await ask(...asked), asked);
const codeOf = ({ text }: Answered): string => (JSON.parse(text) as Refusal).error.code;
const messageOf = ({ text }: Answered): string => (JSON.parse(text) as Refusal).error.message;

const passwords = { ann: "a horse of another colour", bob: "not a very good one", eve: "always listening in" };
secrets.push(operator, ...Object.values(passwords));
const domain = "ROOT/acme";
const logIn = (user: string, password: string): Promise<Answered> =>
  ask("POST", "/logins", null, { user, domain, password });
const inAs = async (user: keyof typeof passwords): Promise<string> => {
  let answer = await logIn(user, passwords[user]);
  // Wrong passwords of a test before may still slow him down.
  await eventually(`${user} is not slowed down`, async () => {
    if (answer.status === 429) answer = await logIn(user, passwords[user]);
    return answer.status !== 429;
  });
  assert.equal(answer.status, 201, answer.text);
  const { session } = answer.json as unknown as Login;
  secrets.push(session);
  return session;
};
const userOf = async (name: string): Promise<UserSummary> => {
  const all = (await done("GET", "/users")) as unknown as readonly UserSummary[];
  const found = all.find((each) => each.name === name);
  assert.ok(found !== undefined, name);
  return found;
};
const emptyCell = (cell: string): Json => ({ [cell]: { "x.type": "Cell" } });

test("the operator makes domains, accounts and users; what is wrong is refused with what would be right", async () => {
  await done("POST", "/domains", operator, { path: domain });
  for (const path of ["ROOT/acme/dev", "ROOT/acme/ops"]) await done("POST", "/accounts", operator, { path });
  const people = { ann: ["dev", "account-admin"], bob: ["ops", "user"], eve: ["dev", "reader"] } as const;
  for (const [name, [account, role]] of Object.entries(people)) {
    const password = passwords[name as keyof typeof passwords];
    await done("POST", "/users", operator, { name, account: `ROOT/acme/${account}`, role, password });
  }
  const refusals: readonly (readonly [string, string, Json, number, RegExp])[] = [
    ["POST", "/domains", { path: domain }, 409, /is there already/],
    ["POST", "/domains", { path: "ROOT/no/deeper" }, 404, /no domain "ROOT\/no"/],
    ["POST", "/domains", { path: "acme" }, 400, /path/],
    ["POST", "/accounts", { path: "ROOT/acme/Dev" }, 400, /path/],
    [
      "POST",
      "/users",
      { name: "x", account: "ROOT/acme/dev", role: "king", password: "long enough" },
      404,
      /no role "king"/,
    ],
    [
      "POST",
      "/users",
      { name: "x", account: "ROOT/acme/nobody", role: "user", password: "long enough" },
      404,
      /no account/,
    ],
    [
      "POST",
      "/users",
      { name: "ann", account: "ROOT/acme/ops", role: "user", password: "long enough" },
      409,
      /has a user ann/,
    ],
    ["POST", "/users", { name: "x", account: "ROOT/acme/dev", role: "user", password: "short" }, 400, /at least 8/],
    ["POST", "/users", { name: "x".repeat(10_000), account: "ROOT/acme/dev", role: "user" }, 400, /name/],
    ["POST", "/logins", { user: "ann", domain: "ROOT/acme", password: "x".repeat(10_000) }, 400, /password/],
    ["PUT", "/owners/root", { account: "ROOT/acme/dev" }, 400, /operator's/],
  ];
  for (const [method, path, body, status, expected] of refusals) {
    const answer = await ask(method, path, operator, body);
    assert.equal(answer.status, status, `${path} ${JSON.stringify(body).slice(0, 100)}: ${answer.text}`);
    assert.match(messageOf(answer), expected);
  }
});

test("a user makes a cell of his account, and nobody of another account can tell that it is there", async () => {
  const [ann, bob] = [await inAs("ann"), await inAs("bob")];
  const who = await done("GET", "/whoami", ann);
  assert.equal((who.user as JsonObject).account, "ROOT/acme/dev");
  assert.deepEqual(await done("GET", "/cells", ann), []);
  const planned = await done("PUT", "/cells/shop/model?dryRun=true", ann, emptyCell("shop"));
  assert.equal(planned.dryRun, true);
  assert.deepEqual(cells, [], "a dry run makes no controller");
  await done("PUT", "/cells/shop/model", ann, emptyCell("shop"));
  assert.equal((await done("GET", "/cells/shop", ann)).cell, "shop");
  assert.deepEqual(
    ((await done("GET", "/cells", ann)) as unknown as readonly JsonObject[]).map(({ cell }) => cell),
    ["shop"],
  );
  assert.deepEqual(await done("GET", "/cells", bob), []);
  for (const path of ["", "/model", "/model/shop/x", "/events", "/why?element=shop", "/credentials"]) {
    const [his, nobodys] = [await ask("GET", `/cells/shop${path}`, bob), await ask("GET", `/cells/none${path}`, bob)];
    assert.deepEqual([his.status, his.text.replaceAll("shop", "none")], [404, nobodys.text], path);
  }
  const off = { "x.type": "VM", "x.memory": 64, "x.desiredState": "off" };
  const names = ["one", "two", "three"];
  const added = names.map((name) => ({ op: "add", path: `/shop/${name}`, value: off }));
  await done("PATCH", "/cells/shop/model", ann, added);
  const listed = async (query: string, credential: string): Promise<readonly JsonObject[]> =>
    (await done("GET", `/elements${query}`, credential)) as unknown as readonly JsonObject[];
  const seen = [
    [await listed("", ann), "ROOT/acme/dev"],
    [await listed("?account=ROOT/acme&type=VM", ann), "ROOT/acme/dev"],
    [await listed("?account=ROOT/acme/dev", operator), "ROOT/acme/dev"],
    [await listed("?cell=shop", operator), undefined],
  ] as const;
  for (const [items, account] of seen)
    assert.deepEqual(
      items.map((each) => [each.cell, each.name, each.account]),
      names.map((name) => ["shop", name, account]),
    );
  const nothing = ["", "?cell=shop", "?account=ROOT/acme/dev", "?name=one"];
  for (const query of nothing) {
    const answer = await ask("GET", `/elements${query}`, bob);
    assert.deepEqual([answer.status, answer.text], [200, "[]"], query);
  }
  assert.deepEqual(await listed("?account=ROOT/acme/de", ann), []);
  await done(
    "PATCH",
    "/cells/shop/model",
    ann,
    names.map((name) => ({ op: "remove", path: `/shop/${name}` })),
  );
  const taken = await ask("PUT", "/cells/shop/model", bob, emptyCell("shop"));
  assert.deepEqual([taken.status, messageOf(taken)], [409, 'the name "shop" is taken: give the cell another one']);
  assert.equal((await ask("PUT", "/cells/root/model", ann, emptyCell("root"))).status, 409);
  assert.equal((await ask("GET", "/cells/root", ann)).status, 404);
  await done("PUT", "/cells/shop/model?dryRun=true", operator, emptyCell("shop"));
});

test("the controller decides by the role's rules, and what is the operator's stays that", async () => {
  const [ann, eve] = [await inAs("ann"), await inAs("eve")];
  await done("GET", "/cells/shop/model", eve);
  const no = await ask("PUT", "/cells/shop/model", eve, emptyCell("shop"));
  assert.deepEqual([no.status, codeOf(no)], [403, "forbidden"]);
  assert.match(messageOf(no), /eve@ROOT\/acme may not do this \(cell\.change\): no rule allows it/);
  for (const [method, path, body] of [
    ["DELETE", "/cells/shop/model"],
    ["POST", "/cells/shop/exec", { vm: "x", command: ["true"] }],
    ["POST", "/cells/shop/sessions", { vm: "x", verb: "console" }],
    ["POST", "/cells/shop/credentials", {}],
    ["PUT", "/cells/shop/store", {}],
    ["GET", "/cells/shop/hosts/h1/end"],
  ] as const)
    assert.equal((await ask(method, path, eve, body)).status, 403, path);
  for (const path of ["/status", "/metrics", "/images", "/orphans", "/bin", "/management/backups"])
    assert.equal((await ask("GET", path, ann)).status, 403, path);
  const made = await done("POST", "/cells/shop/credentials", ann, {});
  secrets.push(String(made.credential));
  const can = async (user: string, verb: string, path: string): Promise<boolean> =>
    (await done("GET", `/can?${new URLSearchParams({ user, domain, verb, path })}`, ann)).allowed === true;
  assert.deepEqual(
    [
      await can("eve", "cell.read", "shop/web"),
      await can("eve", "vm.console", "shop/web"),
      await can("ann", "vm.console", "shop"),
    ],
    [true, false, true],
  );
  assert.equal(await can("ann", "cell.read", "bank"), false);
});

test("no other spelling of the operator's paths opens them to a user", async () => {
  const ann = await inAs("ann");
  const { hostname, port } = new URL(url);
  /** As no client would send it. */
  const raw = async (method: string, path: string): Promise<string> => {
    const socket = connect(Number(port), hostname);
    const head = `authorization: Bearer ${ann}\r\nhost: x\r\ncontent-length: 0\r\nconnection: close`;
    socket.write(`${method} ${path} HTTP/1.1\r\n${head}\r\n\r\n`);
    return (await text(socket)).split("\r\n", 1)[0] ?? "";
  };
  assert.match(await raw("GET", "/whoami"), / 200 /);
  for (const [method, path] of [
    ["GET", "/status#"],
    ["GET", "http://x/status"],
    ["HEAD", "/status"],
    ["GET", "/orphans#x"],
    ["POST", "/orphans/tenancy#x"],
    ["POST", "/ha/release#x"],
    ["DELETE", "/images/tiny#x"],
    ["DELETE", "http://x/images/tiny"],
    ["GET", "/%73tatus"],
    ["GET", "//status"],
  ] as const)
    assert.match(await raw(method, path), / 40[03] /, `${method} ${path}`);
});

test("a session is one, however its header is written: there is one ticket of it for a cell", async () => {
  const ann = await inAs("ann");
  const tickets = async (): Promise<number> => {
    const response = await fetch(`${url}/metrics`, { headers: { authorization: `Bearer ${operator}` } });
    const said = /^cells_tenancy_records\{[^}]*kind="ticket"[^}]*\} (\d+)/m.exec(await response.text())?.[1];
    assert.ok(said !== undefined);
    return Number(said);
  };
  const before = await tickets();
  for (const scheme of ["Bearer ", "bearer ", "BEARER ", "beaReR ", "Bearer  ", "Bearer   ", "bearer    "]) {
    const response = await fetch(`${url}/cells/shop`, { headers: { authorization: scheme + ann } });
    assert.equal(response.status, 200, scheme);
  }
  assert.equal(await tickets(), before + 1);
});

test("a user may give no more than he has, to nobody stronger, and sees his own account alone", async () => {
  const ann = await inAs("ann");
  const all = (await done("GET", "/users", ann)) as unknown as readonly UserSummary[];
  assert.deepEqual(
    all.map(({ name }) => name),
    ["ann", "eve"],
  );
  const higher = { name: "mallory", account: "ROOT/acme/dev", role: "domain-admin", password: "long enough" };
  const refused = await ask("POST", "/users", ann, higher);
  assert.deepEqual([refused.status, codeOf(refused)], [403, "forbidden"], refused.text);
  const bob = await userOf("bob");
  assert.equal((await ask("PUT", `/users/${bob.uid}`, ann, { state: "disabled" })).status, 404);
  const boss = { name: "boss", account: "ROOT/acme/dev", role: "domain-admin", password: "a much better one" };
  await done("POST", "/users", operator, boss);
  const takeover = await ask("PUT", `/users/${(await userOf("boss")).uid}`, ann, { password: "now it is mine" });
  assert.equal(takeover.status, 403, takeover.text);
  await done("DELETE", `/users/${(await userOf("boss")).uid}`);
});

test("who is disabled is out at once: requests, streams of events, and the next login", async () => {
  const [ann, eve] = [await inAs("ann"), await inAs("eve")];
  const follow = (session: string): Promise<Response> =>
    fetch(`${url}/cells/shop/events?follow=true`, { headers: { authorization: `Bearer ${session}` } });
  const streams = [await follow(ann), await follow(eve)] as const;
  const [annEnds, eveEnds] = streams.map((stream) =>
    stream.text().then(
      () => true,
      () => true,
    ),
  );
  await done("GET", "/cells/shop", eve);
  await done("PUT", `/users/${(await userOf("eve")).uid}`, operator, { state: "disabled" });
  assert.equal(await eveEnds, true, "her stream has ended");
  assert.equal((await ask("GET", "/cells/shop", eve)).status, 401);
  assert.equal((await ask("GET", "/whoami", eve)).status, 401);
  const again = await logIn("eve", passwords.eve);
  assert.deepEqual([again.status, codeOf(again)], [403, "disabled"]);
  assert.equal((await ask("GET", "/cells/shop", ann)).status, 200, "the other goes on");
  await done("PUT", `/users/${(await userOf("eve")).uid}`, operator, { state: "enabled" });
  await done("GET", "/cells/shop", await inAs("eve"));
  assert.equal((await ask("GET", "/cells/shop", eve)).status, 401, "the session of before stays over");
  // Rights that are taken back in part end what rests on them.
  const changed = await done("PUT", `/users/${(await userOf("ann")).uid}`, operator, { role: "reader" });
  assert.equal(changed.role, "reader");
  await eventually(
    "the rule counts",
    async () => (await ask("PUT", "/cells/shop/model", ann, emptyCell("shop"))).status === 403,
  );
  await done("PUT", `/users/${(await userOf("ann")).uid}`, operator, { role: "account-admin" });
  await done("DELETE", "/logins/current", ann);
  assert.equal(await annEnds, true, "a logout ends what was opened");
});

test("what nobody has shown anything for yet is not read without end", async () => {
  const before = await ask("POST", "/logins", null, { user: "ann", domain, password: "x".repeat(100_000) });
  assert.equal(before.status, 400, "it is read, and is no password");
  const body = JSON.stringify({ user: "ann", password: "x".repeat(300_000) });
  const answer = await fetch(`${url}/logins`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body,
  });
  assert.equal(answer.status, 413, await answer.text());
});

test("wrong passwords slow down who tries, and nobody else; an unknown user is told the same", async () => {
  const [wrong, nobody] = [await logIn("bob", "wrong"), await logIn("zoe", "wrong")];
  assert.deepEqual([wrong.status, wrong.text], [401, nobody.text]);
  let slowed = await logIn("ann", "wrong");
  await eventually("one has to wait", async () => {
    slowed = await logIn("ann", "wrong");
    return slowed.status === 429;
  });
  assert.ok(Number(slowed.retryAfter) >= 1, `${slowed.retryAfter}`);
  await inAs("bob");
});

test("ten thousand wrong passwords a minute, from many addresses, keep out nobody who has the right one", () =>
  tryFlood(url, { user: "eve", domain, password: passwords.eve }));

test("a user gives himself another password by the one that he has, and his other sessions end", async () => {
  const [own, other] = [await inAs("bob"), await inAs("bob")];
  const next = "bob has thought of another one";
  secrets.push(next);
  const change = (password: string, newPassword: string, by = own) =>
    ask("PUT", "/whoami/password", by, { password, newPassword });
  assert.equal((await change(passwords.bob, "short")).status, 400);
  assert.equal((await change("not his", next)).status, 403);
  assert.equal((await change(passwords.bob, next, operator)).status, 409);
  assert.equal((await change(passwords.bob, next)).status, 200);
  assert.deepEqual(
    [(await ask("GET", "/whoami", own)).status, (await ask("GET", "/whoami", other)).status],
    [200, 401],
  );
  assert.equal((await logIn("bob", passwords.bob)).status, 401);
  assert.equal((await change(next, passwords.bob)).status, 200);
});

test("who changed what is told by each service, to each what he may see, and an altered store shows", async () => {
  const [ann, eve, bob] = [await inAs("ann"), await inAs("eve"), await inAs("bob")];
  await done("PUT", "/cells/shop/model", ann, { shop: { "x.type": "Cell", note: "of ann" } });
  assert.equal((await ask("PUT", "/cells/shop/model", eve, emptyCell("shop"))).status, 403);
  const audit = async (by: string, query = ""): Promise<AuditView> =>
    (await done("GET", `/audit${query}`, by)) as unknown as AuditView;
  const all = await audit(operator, "?limit=1000");
  assert.deepEqual([all.sources.map(({ service }) => service), all.silent], [["tenancy", "controller.shop"], []]);
  const last = all.records.findLast(({ service, outcome }) => service === "controller.shop" && outcome === "done");
  const { who, account, verb, target, before, after, door, source, by } = last ?? {};
  assert.deepEqual([who, account, verb, target], ["ann@ROOT/acme", "ROOT/acme/dev", "putModel", "shop"]);
  assert.deepEqual([Number(after) - Number(before), door, source], [1, "gateway", "127.0.0.1"]);
  assert.equal(by, `session ${hashCredential(ann).slice(0, 12)}`);
  const tried = all.records.findLast((record) => record.service === "controller.shop" && record.outcome === "refused");
  assert.deepEqual([tried?.who, tried?.verb, tried?.target], ["eve@ROOT/acme", "putModel", "shop"]);
  assert.match(tried?.why ?? "", /may not do this \(cell\.change\)/);
  // Whose session that was is in the record of his login.
  const login = all.records.findLast((record) => record.verb === "logIn" && record.by === by);
  assert.deepEqual([login?.who, login?.source], ["ann@ROOT/acme", "127.0.0.1"]);
  const mine = await audit(bob);
  assert.deepEqual([...new Set(mine.records.map((record) => record.who))], ["bob@ROOT/acme"]);
  assert.equal(mine.sources.map(({ service }) => service).join(), "tenancy");
  // She administers the account; eve, in it, sees what she did herself.
  assert.ok((await audit(ann, "?service=controller.shop")).records.length > 0);
  const hers = (await audit(eve, "?service=controller.shop")).records;
  assert.deepEqual([...new Set(hers.map((record) => `${record.who} ${record.outcome}`))], ["eve@ROOT/acme refused"]);
  assert.ok((await audit(ann, "?who=operator&verb=changeUser")).records.length > 0);
  assert.ok((await audit(ann, "?outcome=refused")).records.every(({ outcome }) => outcome === "refused"));
  for (const service of ["controller.shop", "controller.none"])
    assert.equal((await ask("GET", `/audit?service=${service}`, bob)).status, 404, service);
  assert.equal((await ask("GET", "/audit?after=3", operator)).status, 400);
  assert.equal((await ask("GET", "/audit?chain=refusals", operator)).status, 400);
  const text = JSON.stringify(all);
  for (const secret of secrets) assert.ok(!text.includes(secret), `${secret.slice(0, 8)}… is in the audit`);
  for (const { service, refusals, ...changes } of all.sources)
    for (const [ring, head] of [
      ["changes", changes] as const,
      ["refusals", refusals ?? assert.fail(service)] as const,
    ]) {
      const { records } = await audit(operator, `?service=${service}&chain=${ring}&after=0&limit=1000`);
      assert.deepEqual(faultsIn({ ...head, records: records.map(({ service: _, ...record }) => record) }), []);
      assert.equal(records.length, head.next - head.first);
      assert.equal(records.filter(({ outcome }) => (outcome === "refused") !== (ring === "refusals")).length, 0);
    }
  await tryVia(url, operator, ann);
});

test("a key signs for its user at every kind of door, late or altered requests open nothing, and with it ends what it opened", async () => {
  const ann = await inAs("ann");
  const person = { user: "ann", domain, password: passwords.ann };
  await tryKeys({ configuration: own, url, ask, session: ann, person, secrets });
});

test("a user gives himself his first password by a link, once", () => tryLink({ ask, secrets }));

test("users come in pages, and a change is held to what was seen", async () =>
  tryPages({ url, ask, session: await inAs("ann") }, operator));

test("the operator lets an administrator in anew, and nobody else does", async () =>
  tryWayBack({ ask, session: await inAs("ann"), secrets }));

test("a user gives himself a second factor, logs in with codes, and takes it away again", async () => {
  const bob = await inAs("bob");
  const person = { user: "bob", domain, password: passwords.bob };
  await trySecondFactor({ configuration: own, ask, session: bob, person, secrets });
});

test("with tenancy away who is in goes on, and logins say so; after that all is as before", async () => {
  const bob = await inAs("bob");
  await done("PUT", "/cells/bank/model", bob, emptyCell("bank"));
  await end("tenancy", "SIGKILL");
  assert.equal((await ask("GET", "/cells/bank", bob)).status, 200, "who is in goes on");
  const refused = await logIn("bob", passwords.bob);
  assert.deepEqual([refused.status, codeOf(refused)], [503, "tenancy-unreachable"]);
  assert.equal((await ask("GET", "/cells/shop")).status, 200, "the operator goes on");
  run("tenancy", join(installation.directory, "tenancy", "configuration.json"));
  await eventually("tenancy answers", async () => (await ask("GET", "/whoami", bob)).status === 200);
  assert.equal((await ask("GET", "/cells/bank", bob)).status, 200);
  await done("PUT", `/users/${(await userOf("bob")).uid}`, operator, { state: "disabled" });
  await eventually("he is out", async () => (await ask("GET", "/cells/bank", bob)).status === 401);
});

test("a cell's name is free when it has ended, and the operator's cells are nobody else's", async () => {
  const ann = await (async () => {
    await eventually("she may try again", async () => (await logIn("ann", passwords.ann)).status === 201);
    return inAs("ann");
  })();
  await done("DELETE", "/cells/shop/model?allowDestroy=x", ann);
  await eventually("its controller has ended", () => !cells.includes("shop"));
  assert.deepEqual(await done("GET", "/cells", ann), []);
  await done("PUT", "/cells/shop/model", operator, emptyCell("shop"));
  assert.equal((await ask("GET", "/cells/shop", ann)).status, 404, "the operator has it now");
  await done("PUT", "/owners/shop", operator, { account: "ROOT/acme/dev" });
  assert.equal((await ask("GET", "/cells/shop", ann)).status, 200);
  const account = (await done("GET", "/accounts")) as unknown as readonly JsonObject[];
  const dev = account.find(({ path }) => path === "ROOT/acme/dev");
  const kept = await ask("DELETE", `/accounts/${dev?.uid}`);
  assert.deepEqual([kept.status, messageOf(kept)], [409, "ROOT/acme/dev still has the cell shop: delete these first"]);
});

test("nothing that opens anything was logged", () => {
  assert.ok(said.includes("login/accepted"), "they have said something");
  for (const secret of secrets) assert.ok(!said.includes(secret), `${secret.slice(0, 8)}… was logged`);
});
