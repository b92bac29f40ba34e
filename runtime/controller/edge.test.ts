import assert from "node:assert/strict";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { mkdir, mkdtemp, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { shop, World } from "../../core/controller/world.testing.ts";
import {
  bundleMediaType,
  type CellEvent,
  type Changed,
  type ConnectionAnswer,
  type CredentialSummary,
  type NewCredential,
  type Refusal,
} from "../../model/api.ts";
import { type PeerName, peerName } from "../../model/cell/identifiers.ts";
import type { AuditPart } from "../../model/contract/audit/audit.ts";
import { assertConforms } from "../../model/contract/testing/conforms.testing.ts";
import type { ModelSource, ModelVersions } from "../../model/contract/versions.ts";
import type { Json, JsonObject } from "../../model/json/json.ts";
import { hashCredential, newCredential } from "../http/bearer.ts";
import { type PeerResponse, type PeerServer, peerRequest, servePeers } from "../http/https.ts";
import { createAuthority, issueCertificate } from "../identity/certificates.ts";
import { eventually } from "../installation.testing.ts";
import type { ProcessConfiguration } from "../installation.ts";
import { runController } from "./edge.ts";
import { keptEvents, openEvents } from "./events.ts";
import { serveNames } from "./names/name-server.ts";
import { createRoutes } from "./routes.ts";

/** Loopback addresses of this process alone: the controller's name server needs port 53. */
const address = `127.${60 + (process.pid % 60)}.${(process.pid >> 6) % 250}.9`;
const credential = "a-credential-of-the-shop";
let root = "";
const peers: Record<string, string> = {};

before(async () => {
  root = await mkdtemp(join(tmpdir(), `cells-controller-${process.pid}-`));
  await createAuthority(join(root, "ca"));
});
after(() => rm(root, { recursive: true, force: true }));

let nextPort = 7_100;
async function configure(name: PeerName, role: ProcessConfiguration["role"]): Promise<ProcessConfiguration> {
  const directory = join(root, name);
  await mkdir(directory, { recursive: true });
  const [distributionPort, httpPort] = [nextPort, nextPort + 1];
  nextPort += 2;
  peers[name] = `${address}:${distributionPort}:${httpPort}`;
  const peersFile = join(root, "peers.json");
  await writeFile(peersFile, JSON.stringify({ peers }));
  return {
    name,
    role,
    address,
    directory,
    runDirectory: directory,
    certificate: await issueCertificate(join(root, "ca"), name, [address]),
    peersFile,
    distributionPort,
    httpPort,
    controller: {
      cell: "shop",
      cellUid: "c1",
      cellNumber: 7,
      domain: "cells.internal",
      mac: "02:00:00:00:00:01",
      credentialHashes: [hashCredential(credential)],
    },
  };
}

interface Call {
  readonly method?: string;
  readonly path: string;
  readonly body?: Json;
  readonly type?: string;
  readonly credential?: string;
  readonly headers?: Readonly<Record<string, string>>;
}
/** Holds answers to the table of routes when they are read. */
function caller(configuration: ProcessConfiguration): (call: Call) => Promise<PeerResponse> {
  return async ({ method = "GET", path, body, type = "application/json", headers = {}, ...call }) => {
    const answer = await peerRequest(configuration, peerName("controller.shop"), {
      method,
      path,
      headers: { authorization: `Bearer ${call.credential ?? credential}`, "content-type": type, ...headers },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = async (): Promise<string> => {
      const read = await answer.text();
      assertConforms(method, path, { status: answer.status, type: answer.headers["content-type"], text: read });
      return read;
    };
    return { ...answer, text };
  };
}
const jsonOf = async (response: PeerResponse): Promise<JsonObject> => JSON.parse(await response.text()) as JsonObject;

function eventsIn(stream: string): readonly CellEvent[] {
  return stream
    .split("\n")
    .filter((line) => line.startsWith("data: "))
    .map((line) => JSON.parse(line.slice(6)) as CellEvent);
}

test("a controller as a process: its model, its events and their past survive a restart", async () => {
  const configuration = await configure(peerName("controller.shop"), "controller");
  const call = caller(await configure(peerName("gateway"), "gateway"));
  const stranger = caller(await configure(peerName("placer"), "placer"));
  let running = await runController(configuration);
  try {
    assert.equal((await stranger({ path: "/cells/shop" })).status, 403);
    assert.equal((await call({ path: "/cells/shop", credential: "wrong" })).status, 401);
    assert.equal((await call({ path: "/cells/other" })).status, 404);
    assert.deepEqual(await jsonOf(await call({ path: "/cells/shop" })), {
      cell: "shop",
      version: 0,
      phases: {},
      elements: 0,
      waiting: [],
      empty: true,
      services: { placer: 1, storageManager: 1 },
    });
    const bundle = { main: "shop.json", files: { "shop.json": JSON.stringify(shop()) } };
    const path = "/cells/shop/model";
    assert.equal((await call({ method: "PUT", path, body: { main: "x" }, type: bundleMediaType })).status, 400);
    const put = await call({ method: "PUT", path, body: bundle, type: bundleMediaType });
    assert.deepEqual([put.status, put.headers.etag], [200, '"1"']);
    const source = (await jsonOf(await call({ path: "/cells/shop/source?version=1" }))) as unknown as ModelSource;
    assert.deepEqual([source.main, source.files, source.who], [bundle.main, bundle.files, "operator"]);
    const page = await call({ path: "/cells/shop/versions?limit=1" });
    const { versions } = (await jsonOf(page)) as unknown as ModelVersions;
    assert.equal((await call({ path: "/cells/shop/versions?after=1" })).status, 400, "no cursor of this list");
    assert.deepEqual([versions[0]?.version, versions[0]?.text?.main], [1, "shop.json"]);
    assert.equal((await call({ path: "/cells/shop/source?version=9" })).status, 404);
    assert.equal((await call({ path: "/cells/shop/source?version=x" })).status, 400);
    assert.equal((await call({ method: "PUT", path, body: shop(), headers: { "if-match": '"7"' } })).status, 412);
    for (const version of ['W/"1"', '"1", "2"', "one"])
      assert.equal((await call({ method: "DELETE", path, headers: { "if-match": version } })).status, 400, version);
    assert.deepEqual(await jsonOf(await call({ path })), JSON.parse(JSON.stringify(shop())));
    const patch = { method: "PATCH", path, type: "application/json-patch+json" };
    const failed = await jsonOf(await call({ ...patch, body: [{ op: "test", path: "/shop", value: 1 }] }));
    assert.equal((failed as unknown as Refusal).error.code, "patch/test-failed");
    const long = [{ op: "test", path: "/shop", value: "x".repeat(1024 * 1024) }];
    const tooLong = await call({ ...patch, body: long });
    assert.deepEqual(
      [tooLong.status, (await jsonOf(tooLong)).error],
      [400, { code: "patch/invalid", message: "the patch is longer than 1048576 bytes" }],
    );
    const tested = await call({ ...patch, body: [{ op: "test", path: "/shop/x.type", value: "Cell" }] });
    assert.deepEqual([tested.status, tested.headers.etag], [200, '"1"']);
    // JSON is YAML as well: the same model again changes nothing, and a fault has its place in the text.
    const yaml = { method: "PUT", path, type: "application/yaml" };
    const same = await jsonOf(await call({ ...yaml, body: shop() }));
    assert.ok((same as unknown as Changed).plan.steps.every(({ action }) => action === "none"));
    const fault = await call({
      ...yaml,
      path: `${path}?dryRun=true`,
      body: { shop: { "x.type": "Cell", "x.public": 1 } },
    });
    assert.equal(fault.status, 400);
    assert.match(await fault.text(), /"file":"model.yaml","line":1,"column":/);
    assert.equal((await call({ ...yaml, path: `${path}/shop/web?dryRun=true`, body: { "x.type": "VM" } })).status, 400);
    const web = await jsonOf(await call({ path: `${path}/shop/web?state=true` }));
    assert.equal((web.$state as JsonObject).uid?.toString().startsWith("c1-"), true);

    const live = await call({ path: "/cells/shop/events?follow=true" });
    let seen = "";
    live.body.setEncoding("utf8").on("data", (text: string) => {
      seen += text;
    });
    await call({ method: "DELETE", path: `${path}/shop/toDb` });
    while (!eventsIn(seen).some(({ event, path }) => event === "removed" && path === "shop/toDb")) {
      await once(live.body, "data");
    }
    live.body.destroy();
    const past = eventsIn(await (await call({ path: "/cells/shop/events" })).text());
    assert.equal(past[0]?.event, "accepted");
    assert.match(past[0]?.time ?? "", /^\d{4}-\d\d-\d\dT/);

    await running.stop();
    running = await runController(configuration);
    assert.equal((await jsonOf(await call({ path: "/cells/shop" }))).version, 2);
    const again = eventsIn(await (await call({ path: "/cells/shop/events" })).text());
    assert.deepEqual(again.slice(0, past.length), past);
    const [first, last] = [past[0]?.time ?? "", past.at(-1)?.time ?? ""];
    const sinceThen = eventsIn(await (await call({ path: `/cells/shop/events?since=${last}` })).text());
    assert.deepEqual(
      sinceThen.map(({ id }) => id),
      again.filter(({ time }) => time >= last).map(({ id }) => id),
    );
    assert.ok(first < last && sinceThen.length < again.length, "some of it happened before");
    const resumed = await call({ path: "/cells/shop/events", headers: { "last-event-id": String(past[1]?.id) } });
    assert.equal(eventsIn(await resumed.text())[0]?.id, past[2]?.id);
    // What the operator would have others do is recorded before it is known whether it comes to anything.
    assert.equal((await call({ method: "DELETE", path: "/cells/shop/hosts/h2" })).status, 404);
    const { records } = (await jsonOf(await call({ path: "/cells/shop/audit" }))) as unknown as AuditPart;
    const { who, verb, target } = records.at(-1) ?? {};
    assert.deepEqual([who, verb, target], ["operator", "removeHost", "h2"]);
  } finally {
    await running.stop();
  }
});

test("a cell's own credentials open it until they are revoked, and nothing else opens it", async () => {
  const world = new World();
  world.put(shop());
  const configuration = await configure(peerName("controller.shop"), "controller");
  const gateway = await configure(peerName("gateway"), "gateway");
  const call = caller(gateway);
  const { controller } = configuration;
  assert.ok(controller !== undefined);
  const events = openEvents(configuration.directory, "shop");
  const request = async (asked: Json): Promise<Json> => world.ask(asked as JsonObject) as unknown as Json;
  const server = await servePeers(configuration, createRoutes({ configuration, controller, events, request }));
  const as = (credential: string) =>
    peerRequest(gateway, peerName("controller.shop"), {
      method: "GET",
      path: "/cells/shop/model",
      headers: { authorization: `Bearer ${credential}` },
    }).then(async (answer) => [answer.status, await answer.text()] as const);
  try {
    const made = await jsonOf(await call({ method: "POST", path: "/cells/shop/credentials", body: { note: "team" } }));
    const { id, credential } = made as unknown as NewCredential;
    assert.equal((await as(credential))[0], 200);
    const [status, text] = await as(newCredential("shop").credential);
    assert.equal(status, 401);
    assert.match(text, /no credential of the cell shop: ask its operator/);
    assert.equal((await as(newCredential("other").credential))[0], 401);
    assert.ok(!JSON.stringify([...world.records]).includes(credential), "only its hash is kept");
    world.crash();
    assert.equal((await as(credential))[0], 200, "it outlives the controller's process");
    const [listed] = (await jsonOf(await call({ path: "/cells/shop/credentials" }))) as unknown as CredentialSummary[];
    assert.deepEqual([listed?.id, listed?.note], [id, "team"]);
    assert.equal((await call({ method: "DELETE", path: "/cells/shop/credentials/00000000" })).status, 404);
    assert.equal((await call({ method: "DELETE", path: `/cells/shop/credentials/${id}` })).status, 200);
    assert.equal((await as(credential))[0], 401);
  } finally {
    await server.stop();
    events.close();
  }
});

test("a change under a key is made once, whoever asks again; what is not made once takes none", async () => {
  const world = new World();
  world.put(shop());
  const configuration = await configure(peerName("controller.shop"), "controller");
  const call = caller(await configure(peerName("gateway"), "gateway"));
  const { controller } = configuration;
  assert.ok(controller !== undefined);
  const events = openEvents(configuration.directory, "shop");
  const request = async (asked: Json): Promise<Json> => world.ask(asked as JsonObject) as unknown as Json;
  const server = await servePeers(configuration, createRoutes({ configuration, controller, events, request }));
  try {
    const once = { "idempotency-key": "7f1c" };
    const note = { method: "PUT", path: "/cells/shop/model/shop/note", body: "one", headers: once };
    const made = await call(note);
    assert.deepEqual([made.status, made.headers.etag, made.headers["idempotency-replayed"]], [200, '"2"', undefined]);
    const again = await call({ ...note, headers: { ...once, "if-match": '"1"' } });
    assert.deepEqual([again.status, again.headers.etag, again.headers["idempotency-replayed"]], [200, '"2"', "true"]);
    assert.equal((await jsonOf(again)).version, (await jsonOf(made)).version);
    const credentials = { method: "POST", path: "/cells/shop/credentials", body: {} };
    const added = (await jsonOf(await call(credentials))) as unknown as NewCredential;
    const revoke = {
      method: "DELETE",
      path: `/cells/shop/credentials/${added.id}`,
      headers: { "idempotency-key": "r" },
    };
    for (const replayed of [undefined, "true"])
      assert.equal((await call(revoke)).headers["idempotency-replayed"], replayed);
    const wrong = [
      [{ ...note, body: "two" }, 422, "idempotency/other-request"],
      [{ ...note, path: `${note.path}2` }, 422, "idempotency/other-request"],
      [{ ...note, method: "DELETE", body: undefined }, 422, "idempotency/other-request"],
      [{ ...note, headers: { "idempotency-key": "a b" } }, 400, "bad-request"],
      [{ ...note, headers: { "idempotency-key": "" } }, 400, "bad-request"],
      [{ ...note, headers: { "idempotency-key": "k".repeat(201) } }, 400, "bad-request"],
      [{ ...credentials, headers: once }, 400, "idempotency/not-taken"],
    ] as const;
    for (const [asked, status, code] of wrong) {
      const { body, ...rest } = asked;
      const answer = await call({ ...rest, ...(body === undefined ? {} : { body }) });
      const { error } = (await jsonOf(answer)) as unknown as Partial<Refusal>;
      assert.deepEqual([answer.status, error?.code], [status, code]);
    }
    assert.equal((await call({ path: "/cells/shop/model", headers: once })).headers.etag, '"2"');
  } finally {
    await server.stop();
    events.close();
  }
});

test("why and exec reach the hosts, and say what decides", async () => {
  const world = new World();
  world.put(shop());
  const configuration = await configure(peerName("controller.shop"), "controller");
  const call = caller(await configure(peerName("gateway"), "gateway"));
  const servers: PeerServer[] = [];
  const asked: JsonObject[] = [];
  let opens = true;
  const host = await servePeers(await configure(peerName("host.h1"), "host"), async ({ url, body }, response) => {
    let text = "";
    for await (const chunk of body) text += String(chunk);
    const question = JSON.parse(text) as JsonObject;
    asked.push({ url, ...question });
    const rule = [{ check: "rule", passes: opens, detail: opens ? "rule 5 lets it pass" : "no rule lets it out" }];
    const answer = url === "/exec" ? { exitCode: 0, stdout: "hello\n", stderr: "" } : rule;
    response.end(JSON.stringify(answer));
  });
  const events = openEvents(configuration.directory, "shop");
  const { controller } = configuration;
  assert.ok(controller !== undefined);
  const request = async (asked: Json): Promise<Json> => world.ask(asked as JsonObject) as unknown as Json;
  servers.push(host, await servePeers(configuration, createRoutes({ configuration, controller, events, request })));
  try {
    const path = "/cells/shop/why?from=shop/web&to=shop/db&port=5432";
    const open = (await jsonOf(await call({ path }))) as unknown as ConnectionAnswer;
    assert.deepEqual([open.allowed, open.from, open.protocol, open.port], [true, "shop/web", "tcp", 5432]);
    assert.match(open.verdict, /opened by shop\/toDb$/);
    assert.deepEqual(
      asked.find(({ side }) => side === "sender"),
      {
        url: "/examine",
        side: "sender",
        source: "10.64.0.2",
        destination: "10.64.0.10",
        protocol: "tcp",
        port: 5432,
      },
    );
    opens = false;
    const closed = (await jsonOf(await call({ path }))) as unknown as ConnectionAnswer;
    assert.equal(closed.allowed, false);
    const rule =
      'allow extends NetworkRule { x.address1 "<ref:/shop/web>"; x.address2 "<ref:/shop/db>"; x.protocol "tcp"; x.port2 5432; x.direction "1to2"; }';
    assert.ok(closed.verdict.endsWith(rule), closed.verdict);
    assert.equal((await call({ path: "/cells/shop/why?from=shop/web&to=shop/none" })).status, 404);
    assert.equal((await call({ path: "/cells/shop/why?from=shop/web" })).status, 400);
    const exec = await call({
      method: "POST",
      path: "/cells/shop/exec",
      body: { vm: "web", command: ["echo", "hello"] },
    });
    assert.deepEqual(await jsonOf(exec), { exitCode: 0, stdout: "hello\n", stderr: "" });
    assert.deepEqual(asked.at(-1), {
      url: "/exec",
      vm: world.uidOf("shop/web"),
      incarnation: 1,
      command: ["echo", "hello"],
      timeoutMs: 30_000,
    });
  } finally {
    for (const server of servers) await server.stop();
    events.close();
  }
});

test("what the table of routes does not have is refused, with the place and what would be right", async () => {
  const world = new World();
  world.put(shop());
  const configuration = await configure(peerName("controller.shop"), "controller");
  const call = caller(await configure(peerName("gateway"), "gateway"));
  const { controller } = configuration;
  assert.ok(controller !== undefined);
  const events = openEvents(configuration.directory, "shop");
  const request = async (asked: Json): Promise<Json> => world.ask(asked as JsonObject) as unknown as Json;
  const server = await servePeers(configuration, createRoutes({ configuration, controller, events, request }));
  try {
    const wrong: readonly (readonly [Call, RegExp])[] = [
      [{ path: "/cells/shop/model?state=1" }, /state in the query: found "1", must be true or false/],
      [{ path: "/cells/shop/model?state=true&until=soon" }, /until in the query: .* "ready" or "gone"/],
      [{ path: "/cells/shop/model?until=ready" }, /until is ready or gone, and needs state=true/],
      [{ method: "DELETE", path: "/cells/shop/model?dryRun=yes" }, /dryRun in the query: found "yes"/],
      [{ path: "/cells/shop/events?follow=" }, /follow in the query/],
      [{ path: "/cells/shop/why?from=a&to=b&port=http" }, /port in the query: .* a whole number from 1 to 65535/],
      [{ path: "/cells/shop/why?from=a&to=b&protocol=sctp" }, /protocol in the query/],
      [{ path: "/cells/shop/why?from=a&to=b&protocol=icmp&port=8" }, /icmp has no ports/],
      [
        { method: "POST", path: "/cells/shop/exec", body: { vm: "web", command: ["ls", 1] } },
        /at command\[1\]: found 1/,
      ],
      [{ method: "POST", path: "/cells/shop/credentials", body: { note: "x".repeat(201) } }, /at note: .* 200 char/],
      [
        { method: "PUT", path: "/cells/shop/model", type: bundleMediaType, body: { main: "a", files: { a: 7 } } },
        /a bundle is .*at files.a: found 7, must be text/,
      ],
    ];
    for (const [asked, why] of wrong) {
      const answer = await call(asked);
      const text = await answer.text();
      assert.equal(answer.status, 400, asked.path);
      assert.match((JSON.parse(text) as Refusal).error.message, why);
    }
    assert.equal(world.ask({ method: "GET", path: "shop/web", state: false }).status, 200, "nothing was changed");
    for (const path of ["/cells/shop/sessions", "/cells/shop/events/x", "/cells/shop/nothing", "/cells/shop/hosts"]) {
      const answer = await call({ path });
      assert.equal(answer.status, 404, path);
      assert.match(await answer.text(), new RegExp(`there is no GET of ${path}; see the API reference`));
    }
  } finally {
    await server.stop();
    events.close();
  }
});

test("the suggested rule is a valid one", async () => {
  const world = new World();
  world.put(shop());
  const rule = { "x.type": "NetworkRule", "x.address1": "<ref:/shop/web>", "x.address2": "<ref:/shop/db>" };
  const more = { "x.protocol": "tcp", "x.port2": 5432, "x.direction": "1to2" };
  assert.equal(world.ask({ method: "PUT", path: "shop/allow", json: { ...rule, ...more } }).status, 200);
});

test("events are a ring that keeps the newest", async () => {
  const directory = await mkdtemp(join(root, "ring-"));
  const events = openEvents(directory, "shop");
  for (let index = 0; index < keptEvents + 5; index += 1) {
    events.record({
      event: "element/state",
      fields: { path: "shop/a", type: "VM", phase: "ready", reason: null },
      wallMs: index,
    });
  }
  events.record({ event: "peer/reachable", fields: { peer: "placer" }, wallMs: 0 });
  const kept = events.since(0);
  assert.deepEqual([kept.length, kept[0]?.id, kept.at(-1)?.id], [keptEvents, 6, keptEvents + 5]);
  events.close();
});

test("an event keeps its causes as data beside the sentence, and is the same line of log again", async () => {
  const events = openEvents(await mkdtemp(join(root, "causes-")), "shop");
  const causes = [{ kind: "waits-for", element: "shop/disk" }];
  const fields = { path: "shop/a", type: "VM", phase: "waiting", reason: "waits for shop/disk", causes };
  const line = { event: "element/state", fields, wallMs: 1000 } as const;
  events.record(line);
  const [kept] = events.since(0);
  assert.deepEqual([kept?.reason, kept?.causes, kept?.fields], ["waits for shop/disk", causes, undefined]);
  assert.deepEqual(events.lines(), [line]);
  events.close();
});

test("names: the answer is the DNS Manager's, silence stays silence, and one asker cannot flood it", async () => {
  const manager = createSocket("udp4");
  let received = 0;
  manager.on("message", (query, from) => {
    received += 1;
    if (query[12] === 1)
      manager.send(Buffer.concat([query.subarray(0, 2), Buffer.from("answer from there")]), from.port, from.address);
  });
  manager.bind(0, address);
  await once(manager, "listening");
  const upstream = () => ({ address, port: manager.address().port });
  const names = await serveNames({ listen: { address, port: 0 }, upstream, perSecond: 5, timeoutMs: 200 });
  const asker = createSocket("udp4");
  asker.bind(0, address);
  await once(asker, "listening");
  const query = (first: number, kind: number): Buffer => Buffer.from([first, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, kind]);
  asker.send(query(9, 1), names.port, address);
  const [answer] = (await once(asker, "message")) as [Buffer];
  assert.equal(answer.toString("latin1"), "\x09\x01answer from there");
  const response = query(8, 1);
  response[2] = 0x80;
  asker.send(response, names.port, address);
  for (let index = 0; index < 60; index += 1) asker.send(query(index, 0), names.port, address);
  // The last is behind all others in the same socket's queue; the bucket of this asker is empty by then.
  await new Promise((resolve) => setTimeout(resolve, 300));
  assert.ok(received > 1 && received < 40, `${received} queries passed`);
  asker.close();
  manager.close();
  await names.close();
});

test("names are asked for where the DNS Manager is by now", async () => {
  const places = [address.replace(/9$/, "10"), address.replace(/9$/, "11")];
  const managers = await Promise.all(
    places.map(async (place) => {
      const socket = createSocket("udp4");
      socket.on("message", (query, from) =>
        socket.send(Buffer.concat([query.subarray(0, 2), Buffer.from(place)]), from.port, from.address),
      );
      socket.bind(53, place);
      await once(socket, "listening");
      return socket;
    }),
  );
  const configuration = await configure(peerName("controller.shop"), "controller");
  const manager = (place: string): Promise<void> => {
    peers["dns-manager"] = place;
    return writeFile(configuration.peersFile, JSON.stringify({ peers }));
  };
  await manager(places[0] ?? "");
  const { controller } = configuration;
  assert.ok(controller);
  const authority = { address: "10.0.0.31", fingerprint: "0".repeat(64) };
  const root = { management: "10.0.0.0/16", authority };
  const directory = join(configuration.directory, "root");
  await mkdir(directory);
  const running = await runController({ ...configuration, directory, controller: { ...controller, root } });
  const asker = createSocket("udp4");
  const heard: string[] = [];
  asker.on("message", (answer) => heard.push(answer.subarray(2).toString()));
  asker.bind(0, address);
  await once(asker, "listening");
  const saidBy = (place: string) => async (): Promise<boolean> => {
    asker.send(Buffer.from([9, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1]), 53, address);
    await new Promise((resolve) => setTimeout(resolve, 30));
    return heard.at(-1) === place;
  };
  await eventually("the first one answers", saidBy(places[0] ?? ""));
  await manager(`${places[1]}:7114:7115`);
  await eventually("the other one does", saidBy(places[1] ?? ""));
  assert.equal((await stat(join(directory, "root-secret"))).size, 65, "a root controller has a secret");
  asker.close();
  for (const socket of managers) socket.close();
  await running.stop();
});
