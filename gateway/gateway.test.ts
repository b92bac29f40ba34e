import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer as createHttpServer, type IncomingMessage, request, type Server } from "node:http";
import { type AddressInfo, createServer, type Server as NetServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { bundleMediaType, type Changed, type Refusal } from "../model/api.ts";
import { peerName } from "../model/cell/identifiers.ts";
import { hashCredential } from "../runtime/http/bearer.ts";
import { type PeerServer, servePeers } from "../runtime/http/https.ts";
import type { PeerHandler } from "../runtime/http/peer-handler.ts";
import { createAuthority, issueCertificate } from "../runtime/identity/certificates.ts";
import type { ProcessConfiguration } from "../runtime/installation.ts";

/*
 * The gateway's own process, over real certificates, between a client and a supervisor. Controllers are stand-ins that
 * record what reaches them: what a controller answers is tested with the controller.
 */
const authorization = "Bearer open-sesame";
let root = "";
let peersFile = "";
let url = "";
let supervisor: Server;
let gateway: ChildProcess;
let listener: NetServer;
const peers: Record<string, string> = {};
const servers: PeerServer[] = [];

/** Of one cell's stand-in controller. */
interface StandIn {
  readonly server: PeerServer;
  readonly requests: string[];
  version: number;
  empty: boolean;
}
const controllers = new Map<string, StandIn>();
/** What the next controller answers to a PUT. */
let putStatus = 200;
const made: string[] = [];
/** The supervisor ends a controller once this has come. */
let mayRemove: Promise<unknown> = Promise.resolve();

const configure = async (name: string, role: ProcessConfiguration["role"]): Promise<ProcessConfiguration> => ({
  name: peerName(name),
  role,
  address: "127.0.0.1",
  directory: root,
  runDirectory: root,
  certificate: await issueCertificate(join(root, "ca"), peerName(name), ["127.0.0.1"]),
  peersFile,
  httpPort: 0,
});
const publishPeers = () => writeFile(peersFile, JSON.stringify({ peers }));

async function serve(name: string, role: ProcessConfiguration["role"], handler: PeerHandler): Promise<PeerServer> {
  const server = await servePeers(await configure(name, role), handler);
  servers.push(server);
  peers[name] = `127.0.0.1:1:${server.port}`;
  await publishPeers();
  return server;
}

async function makeController(cell: string): Promise<void> {
  made.push(cell);
  const requests: string[] = [];
  const server = await serve(`controller.${cell}`, "controller", async (incoming, response) => {
    const { headers, method, url: asked } = incoming;
    assert.equal(incoming.peer, "gateway");
    // In place of the operator's credential.
    assert.match(headers.authorization ?? "", /^Bearer ticket\.[\w-]{43}$/);
    const body = await text(incoming.body);
    requests.push(`${method} ${asked} ${headers["content-type"] ?? ""} ${body.length}`.trim());
    const state = controllers.get(cell);
    assert.ok(state);
    const json = (status: number, value: unknown) =>
      response.writeHead(status, { "content-type": "application/json", etag: '"7"' }).end(JSON.stringify(value));
    if (asked === `/cells/${cell}`) {
      json(200, { cell, version: state.version, phases: {}, elements: 0, empty: state.empty });
    } else if (asked.includes("/events")) {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.write("id: 1\n\n");
      response.on("close", () => requests.push("left"));
    } else if (asked.endsWith("/page")) {
      response.writeHead(200, { "content-type": "text/html", "content-security-policy": "script-src *" });
      response.end("<script>alert(1)</script>");
    } else if (asked.includes("/full")) {
      json(503, { error: { code: "busy", message: "too many wait here" } });
    } else if (method === "PUT") {
      if (putStatus === 200) Object.assign(state, { version: state.version + 1, empty: false });
      json(putStatus, { seen: true });
    } else {
      if (method === "DELETE") state.empty = true;
      json(200, { seen: true });
    }
  });
  controllers.set(cell, { server, requests, version: 0, empty: true });
}

const startSupervisor = async (path: string): Promise<Server> => {
  const server = createHttpServer(async (incoming, response) => {
    const cell = incoming.url?.split("/")[2] ?? "";
    if (incoming.method === "POST" && !controllers.has(cell)) await makeController(cell);
    if (incoming.method === "DELETE") {
      await mayRemove;
      await controllers.get(cell)?.server.stop();
      controllers.delete(cell);
    }
    const services = [{ name: "placer", address: "127.0.0.1", running: true, pid: 1, restarts: 0 }];
    const body = incoming.url === "/status" ? { services } : [...controllers.keys()];
    response.end(JSON.stringify(body));
  });
  server.listen(path);
  await once(server, "listening");
  return server;
};

before(async () => {
  root = await mkdtemp(join(tmpdir(), `cells-gateway-${process.pid}-`));
  peersFile = join(root, "peers.json");
  await mkdir(join(root, "ca"));
  await createAuthority(join(root, "ca"));
  const supervisorSocket = join(root, "supervisor.sock");
  supervisor = await startSupervisor(supervisorSocket);
  await serve("host.h1", "host", (_request, response) => {
    const unused = { address: "10.0.0.1", memoryMiB: 1024, usedMiB: 0, cpus: 2, accelerator: "tcg" };
    response.end(JSON.stringify({ host: "h1", state: "up", vms: 2, ...unused }));
  });
  // Accepts and never answers.
  await serve("agent.s1", "agent", () => {});
  peers["host.h2"] = "127.0.0.1:1:1";
  await publishPeers();
  const configuration: ProcessConfiguration = {
    ...(await configure("gateway", "gateway")),
    gateway: { listenFd: 3, supervisorSocket, credentialHashes: [hashCredential("open-sesame")] },
  };
  await writeFile(join(root, "gateway.json"), JSON.stringify(configuration));
  listener = createServer().listen(0, "127.0.0.1");
  await once(listener, "listening");
  url = `http://127.0.0.1:${(listener.address() as AddressInfo).port}`;
  const { fd } = (listener as unknown as { _handle: { fd: number } })._handle;
  gateway = spawn(process.execPath, [join(import.meta.dirname, "./main.ts"), join(root, "gateway.json")], {
    stdio: ["ignore", "pipe", "inherit", fd],
  });
  assert.ok(gateway.stdout);
  await once(gateway.stdout, "data");
  // Only the gateway may take connections from here on.
  listener.close();
});
after(async () => {
  const ended = once(gateway, "exit");
  gateway.kill("SIGTERM");
  assert.deepEqual(await ended, [0, null]);
  supervisor.close();
  await Promise.all(servers.map((server) => server.stop()));
  await rm(root, { recursive: true, force: true });
});

const ask = async (method: string, path: string, body?: string, headers: Record<string, string> = {}) => {
  const options = { method, headers: { authorization, ...headers }, ...(body === undefined ? {} : { body }) };
  const response = await fetch(url + path, options);
  return { status: response.status, headers: response.headers, json: (await response.json()) as unknown };
};
const bundle = (main: string) => JSON.stringify({ main: "a.sf", files: { "a.sf": main } });
const bundleHeaders = { "content-type": bundleMediaType };
const messageOf = ({ json }: { json: unknown }) => (json as Refusal).error.message;
const until = async (holds: () => boolean) => {
  while (!holds()) await sleep(20);
};
/** The smallest specification of a cell. */
const specification = (cell: string) => `${cell} extends Cell { net extends Subnet { x.size 16; } }`;

test("without a valid credential nothing is said", async () => {
  for (const header of ["", "Bearer wrong", "Basic open-sesame"]) {
    const response = await fetch(`${url}/cells`, { headers: { authorization: header } });
    assert.equal(response.status, 401);
    assert.match(((await response.json()) as Refusal).error.message, /valid credential is needed/);
  }
});

test("every refusal has the contract's shape and says what would be right", async () => {
  assert.match(messageOf(await ask("GET", "/nothing")), /no GET of \/nothing/);
  const unknown = await ask("GET", "/cells/nope/model");
  assert.equal(unknown.status, 404);
  assert.match(messageOf(unknown), /there is no cell "nope"; there are: /);
  assert.equal((await ask("GET", "/cells/UPPER/model")).status, 400);
  // Refused by its length, before any of it is sent.
  const headers = { authorization, "content-type": "application/json", "content-length": 17 * 1024 * 1024 };
  const large = request(`${url}/cells/shop/model`, { method: "PUT", headers });
  large.flushHeaders();
  const [answer] = (await once(large, "response")) as [IncomingMessage];
  assert.equal(answer.statusCode, 413);
  assert.match(messageOf({ json: JSON.parse(await text(answer)) }), /larger than 16 MiB/);
  large.on("error", () => {}).destroy();
});

test("neither a mistake nor a dry run of a first model makes a controller", async () => {
  made.length = 0;
  const put = (body: string, query = "", headers: Record<string, string> = bundleHeaders) =>
    ask("PUT", `/cells/first/model${query}`, body, headers);
  const broken = await put(bundle("first extends Cell {"));
  assert.equal(broken.status, 400);
  assert.ok(((broken.json as Refusal).error.diagnostics ?? []).length > 0);
  assert.match(messageOf(await put("{")), /not JSON/);
  assert.match(messageOf(await put("{}")), /a bundle is/);
  assert.match(messageOf(await put(bundle(specification("other")))), /of the cell "other", .* "first"/);
  const dry = await put(bundle(specification("first")), "?dryRun=true");
  assert.equal(dry.status, 200, JSON.stringify(dry.json));
  const { plan, dryRun } = dry.json as Changed;
  assert.ok(dryRun);
  assert.deepEqual(
    plan.steps.map(({ path, action }) => [path, action]),
    [["first/net", "create"]],
  );
  assert.deepEqual(made, []);
});

test("a name that means something else is no new cell's, also not in a dry run", async () => {
  made.length = 0;
  for (const name of ["root", "primary", "controller"]) {
    for (const query of ["", "?dryRun=true"]) {
      const answer = await ask("PUT", `/cells/${name}/model${query}`, bundle(specification(name)), bundleHeaders);
      assert.equal(answer.status, 409);
      assert.match(
        messageOf(answer),
        new RegExp(`no new cell can be called "${name}", which names .*: give the cell an`),
      );
    }
  }
  const dotted = await ask("PUT", "/cells/web.shop/model", bundle(specification("web")), bundleHeaders);
  assert.equal(dotted.status, 404);
  assert.match(messageOf(dotted), /there is no cell "web\.shop", .* made by a CellController in its parent's spec/);
  assert.deepEqual(made, []);
});

test("a first model that could never be had is refused by the dry run, and what is not known is said", async () => {
  made.length = 0;
  const machine = (memory: number): string => bundle(`vast extends Cell { vm extends VM { x.memory ${memory}; } }`);
  const dry = (body: string) => ask("PUT", "/cells/vast/model?dryRun=true", body, bundleHeaders);
  assert.deepEqual(((await dry(machine(8192))).json as Changed).unchecked, ["hosts", "storage", "addresses"]);
  const hosts = [{ host: "h1", memoryMiB: 4096, cpus: 8, cpuSpeedMHz: 2400 }];
  await serve("placer", "placer", ({ peer, url: asked }, response) => {
    assert.deepEqual([peer, asked], ["gateway", "/offers"]);
    response.end(JSON.stringify({ hosts, complete: true }));
  });
  const refused = await dry(machine(8192));
  assert.equal(refused.status, 400);
  assert.deepEqual(
    (refused.json as Refusal).error.diagnostics?.map(({ code }) => code),
    ["cell/no-host"],
  );
  assert.equal((await ask("PUT", "/cells/vast/model", machine(8192), bundleHeaders)).status, 400);
  const fits = await dry(machine(2048));
  assert.equal(fits.status, 200);
  assert.deepEqual((fits.json as Changed).unchecked, ["storage", "addresses"]);
  assert.deepEqual(made, []);
});

test("a first model makes the controller, and everything else passes through unchanged", async () => {
  const body = bundle(specification("shop"));
  const created = await ask("PUT", "/cells/shop/model", body, bundleHeaders);
  assert.equal(created.status, 200);
  assert.equal(created.headers.get("etag"), '"7"');
  await ask("GET", "/cells/shop/model/shop/net?state=true");
  await ask("POST", "/cells/shop/exec", "{}", { "content-type": "application/json" });
  assert.deepEqual(controllers.get("shop")?.requests, [
    `PUT /cells/shop/model ${bundleMediaType} ${body.length}`,
    "GET /cells/shop/model/shop/net?state=true  0",
    "POST /cells/shop/exec application/json 2",
  ]);
  assert.deepEqual((await ask("GET", "/cells")).json, [{ cell: "shop", version: 1, phases: {}, elements: 0 }]);
  // This controller is of a version that lists no elements.
  const listed = await ask("GET", "/elements");
  assert.deepEqual([listed.status, listed.json, listed.headers.get("cells-missing")], [200, [], "shop"]);
  for (const [query, status] of [
    ["?type=Vm", 400],
    ["?limit=0", 400],
    ["?after=1", 400],
    ["?cell=other", 200],
    ["?account=ROOT", 503],
  ] as const) {
    const { status: said, headers } = await ask("GET", `/elements${query}`);
    assert.deepEqual([said, headers.get("retry-after")], [status, status === 503 ? "5" : null], query);
  }
  const full = await ask("GET", "/cells/shop/model/shop/full");
  assert.deepEqual(
    [full.status, full.headers.get("retry-after")],
    [503, "5"],
    "also where a controller has not said when",
  );
  const first = await ask("GET", "/cells?limit=1");
  assert.deepEqual([(first.json as readonly object[]).length, first.headers.get("cells-next")], [1, null]);
  assert.equal((await ask("GET", "/cells?after=00")).status, 400);
});

test("what a controller calls a page is none to a browser, nor is a stream", async () => {
  for (const [path, type] of [
    ["model/page", "text/html"],
    ["events?follow=true", "text/event-stream"],
  ]) {
    const abort = new AbortController();
    const { headers } = await fetch(`${url}/cells/shop/${path}`, { headers: { authorization }, signal: abort.signal });
    abort.abort();
    assert.deepEqual(
      ["content-type", "x-content-type-options", "content-security-policy"].map((name) => headers.get(name)),
      [type, "nosniff", "default-src 'none'; sandbox; frame-ancestors 'none'"],
    );
  }
});

test("events pass one by one, and the controller sees when the client leaves", async () => {
  const abort = new AbortController();
  const response = await fetch(`${url}/cells/shop/events?follow=true`, {
    headers: { authorization },
    signal: abort.signal,
  });
  assert.equal(response.headers.get("content-type"), "text/event-stream");
  const { value } = (await response.body?.getReader().read()) ?? {};
  assert.equal(Buffer.from(value ?? []).toString(), "id: 1\n\n");
  abort.abort();
  await until(() => controllers.get("shop")?.requests.includes("left") === true);
});

test("a cell that was deleted loses its controller once nothing is left", async () => {
  assert.equal((await ask("DELETE", "/cells/shop/model?dryRun=true")).status, 200);
  const shop = controllers.get("shop");
  assert.ok(shop);
  shop.empty = false;
  const supervisor = Promise.withResolvers<void>();
  mayRemove = supervisor.promise;
  assert.equal((await ask("DELETE", "/cells/shop/model")).status, 200);
  assert.deepEqual((await ask("GET", "/cells")).json, [], "there is none any more, and its controller runs");
  await shop.server.stop();
  assert.deepEqual((await ask("GET", "/cells")).json, [], "nor while it is being ended");
  supervisor.resolve();
  await until(() => !controllers.has("shop"));
  assert.equal((await ask("GET", "/cells/shop/model")).status, 404);
});

test("a controller whose first model it refuses does not stay, and one that is gone is a 502", async () => {
  putStatus = 409;
  made.length = 0;
  const answer = await ask("PUT", "/cells/shop/model", bundle(specification("shop")), bundleHeaders);
  assert.equal(answer.status, 409);
  assert.deepEqual([made, [...controllers.keys()]], [["shop"], []]);
  putStatus = 200;
  await ask("PUT", "/cells/shop/model", bundle(specification("shop")), bundleHeaders);
  await controllers.get("shop")?.server.stop();
  const gone = await ask("GET", "/cells/shop/model");
  assert.equal(gone.status, 502);
  assert.match(messageOf(gone), /the controller of the cell "shop" does not answer/);
  assert.deepEqual((await ask("GET", "/cells")).json, [
    { cell: "shop", version: 0, phases: { unreachable: 1 }, elements: 0 },
  ]);
});

test("the status shows who answers and who does not", async () => {
  const { json } = await ask("GET", "/status");
  const { services, hosts, servers: storage } = json as Record<string, { state?: string }[]>;
  assert.equal(services?.length, 1);
  assert.deepEqual(
    hosts?.map(({ state }) => state),
    ["up", "unreachable"],
  );
  const unknown = { totalMiB: 0, freeMiB: 0, volumes: 0, state: "unreachable" };
  assert.deepEqual(storage, [{ server: "s1", address: "127.0.0.1", ...unknown }]);
});
