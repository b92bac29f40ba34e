import assert from "node:assert/strict";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { type FastifyInstance, fastify } from "fastify";
import { type AdoptRequest, type Effect, readAnything, type Service } from "../../core/env.ts";
import type { OrphanList, Refusal, ServiceOrphans } from "../../model/api.ts";
import { type PeerName, peerName } from "../../model/cell/identifiers.ts";
import type { Json } from "../../model/json/json.ts";
import { type PeerServer, servePeers } from "../../runtime/http/https.ts";
import { createAuthority, issueCertificate } from "../../runtime/identity/certificates.ts";
import type { ProcessConfiguration } from "../../runtime/installation.ts";
import { createObserver, observed } from "../../runtime/observation/observer.ts";
import { type RunningService, runService } from "../../runtime/process/process.ts";
import { RefusedError } from "../requests/refused.ts";
import { registerOrphans } from "./orphans.ts";

/** A controller that loses its store, its receiver, and the gateway: real processes' parts over loopback. */
let root = "";
let app: FastifyInstance;
const servers: PeerServer[] = [];
const running: RunningService[] = [];
const receiver = peerName("placer");
const client = peerName("controller.shop");

const emptyHanded = { clients: [], receivers: [] };
const asked: Json[] = [];
const answerOf = (request: Json): Json => {
  asked.push(request);
  return (request as unknown as AdoptRequest).key === "cell/a" ? null : "there is no such thing";
};
const service = (): Service<null> => ({
  restore: () => null,
  step: (_state, input) => {
    if (input.kind !== "request") return { state: null, effects: [] };
    const effects = Array.isArray(input.request) ? (input.request as unknown as Effect[]) : [];
    const response = Array.isArray(input.request) ? null : answerOf(input.request);
    return { state: null, effects: [...effects, { kind: "reply", id: input.id, response }] };
  },
  unclaimed: () => new Map(),
  entitled: () => true,
  read: readAnything,
  accepts: () => true,
});

async function configure(name: PeerName, role: ProcessConfiguration["role"]): Promise<ProcessConfiguration> {
  const directory = join(root, name);
  await mkdir(directory, { recursive: true });
  return {
    name,
    role,
    address: "127.0.0.1",
    distributionPort: 0,
    httpPort: 0,
    directory,
    runDirectory: directory,
    peersFile: join(root, "peers.json"),
    certificate: await issueCertificate(join(root, "ca"), name, ["127.0.0.1"]),
  };
}

const startReceiver = async (): Promise<RunningService> => {
  const configuration = await configure(receiver, "placer");
  const observer = createObserver(receiver, () => undefined);
  const placer = await runService({ configuration, observer, service: service() });
  running.push(placer);
  const server = await servePeers(configuration, observed(observer));
  servers.push(server);
  const peers = { [receiver]: `127.0.0.1:${placer.distributionPort}:${server.port}`, "agent.s9": "127.0.0.1:1:1" };
  await writeFile(join(root, "peers.json"), JSON.stringify({ peers }));
  return placer;
};

before(async () => {
  root = await mkdtemp(join(tmpdir(), "gateway-orphans-"));
  await mkdir(join(root, "ca"));
  await createAuthority(join(root, "ca"));
  await writeFile(join(root, "peers.json"), JSON.stringify({ peers: {} }));
  await startReceiver();
  app = fastify();
  app.setErrorHandler((error, _request, reply) => {
    if (error instanceof RefusedError) reply.code(error.statusCode).send({ error: error.refusal });
    else reply.code(500).send({ error: { code: "internal", message: String(error) } });
  });
  registerOrphans(app, await configure(peerName("gateway"), "gateway"));
});
after(async () => {
  await app?.close();
  for (const each of running) await each.stop();
  for (const server of servers) await server.stop();
  await rm(root, { recursive: true, force: true });
});

async function ask<T>(method: "GET" | "POST" | "DELETE", url: string): Promise<{ status: number; body: T & Refusal }> {
  const { statusCode, body } = await app.inject({ method, url });
  return { status: statusCode, body: JSON.parse(body) };
}
const start = async (): Promise<RunningService> => {
  const observer = createObserver(client, () => undefined);
  const configuration = await configure(client, "controller");
  const controller = await runService({ configuration, observer, service: service() });
  running.push(controller);
  return controller;
};
const desire = (controller: RunningService, key: string): Promise<Json> =>
  controller.request([{ kind: "desire", to: receiver, key, value: { a: 1 } }] as unknown as Json);
const until = async (holds: (list: OrphanList) => boolean): Promise<OrphanList> => {
  for (let round = 0; round < 500; round += 1) {
    const { body } = await ask<OrphanList>("GET", "/orphans");
    if (holds(body)) return body;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  return assert.fail("the services never say so");
};

test("an operator sees what a controller without its store has left, lets it count, and ends what it does not know", async () => {
  const first = await start();
  await desire(first, "placement/a");
  await desire(first, "placement/b");
  const stored = async (): Promise<boolean> => (await running[0]?.request([])) === null;
  assert.ok(await stored());
  // Both are there once a later document of the same connection has been taken.
  const { promise: taken, resolve } = Promise.withResolvers<void>();
  const forget = first.subscribeLog(({ event }) => event === "peer/reachable" && resolve());
  await first.request([{ kind: "subscribe", to: receiver, prefix: "" }] as unknown as Json);
  await taken;
  forget();
  await first.stop();
  await rm(join(root, client), { recursive: true, force: true });
  const second = await start();
  await desire(second, "placement/c");
  const list = await until(({ services }) => services.length === 1);
  assert.deepEqual((await ask<OrphanList>("GET", "/orphans?limit=1")).body.services, list.services);
  assert.equal((await ask("GET", "/orphans?after=00")).status, 400);
  assert.deepEqual(list.services[0]?.clients, [
    { client, forked: true, kept: 2, keys: ["placement/a", "placement/b"], orphans: 2 },
  ]);
  assert.deepEqual(
    list.missing.map((each) => each.service),
    ["agent.s9"],
  );
  const ended = await ask<ServiceOrphans>(
    "DELETE",
    `/orphans/${receiver}/${client}?key=placement%2Fa&key=placement%2Fc`,
  );
  assert.deepEqual(ended.body.clients[0]?.keys, ["placement/b"], "one that is in use stays");
  assert.equal((await ask("DELETE", `/orphans/${receiver}/${client}`)).status, 400);
  const released = await ask<OrphanList>("POST", `/orphans/${client}`);
  assert.equal(released.body.services[0]?.clients[0]?.forked, false);
  assert.equal((await ask<ServiceOrphans>("DELETE", `/orphans/${receiver}/${client}?all=true`)).status, 200);
  assert.deepEqual((await until(({ services }) => services.length === 0)).services, []);
  assert.equal((await ask("POST", "/orphans/nobody")).status, 404);
  for (const gone of ["host.h9", "agent.s7"])
    assert.equal(
      (await ask("POST", `/orphans/${gone}`)).status,
      200,
      "it is in no book any more, and what it said may last",
    );
  assert.equal((await ask("DELETE", "/orphans/agent.s9/controller.shop?all=true")).status, 503);
});

test("what a service has of a client, and that one desires anew, is given back to it by an operator's word", async () => {
  const at = `/orphans/${receiver}/${client}`;
  const refused = await ask("POST", `${at}?key=cell%2Fc`);
  assert.deepEqual([refused.status, refused.body.error.message], [409, "there is no such thing"]);
  assert.equal((await ask("POST", at)).status, 400, "the key is said");
  assert.equal((await ask("POST", `${at}?key=cell%2Fa`)).status, 200);
  assert.deepEqual(asked, [
    { kind: "adopt", client, key: "cell/c" },
    { kind: "adopt", client, key: "cell/a" },
  ]);
});

test("who had something counted, ended or given back is in the audit of the service that did it, with what came of it", async () => {
  const records = (await running[0]?.observer.audit?.read({}))?.records ?? [];
  const told = records.map(({ who, source, verb, target, outcome }) => `${who} ${source} ${verb} ${target} ${outcome}`);
  for (const verb of ["endOrphans", "releaseOrphans"])
    assert.ok(told.includes(`operator 127.0.0.1 ${verb} ${client} done`), told.join("\n"));
  for (const outcome of ["done", "refused"])
    assert.ok(
      told.some((each) => each.startsWith("operator 127.0.0.1 adoptOrphan") && each.endsWith(outcome)),
      told.join("\n"),
    );
});

test("what a service that was put back still has of an ended cell is listed, and ends by an operator's word", async () => {
  // It starts again with what its client desired, and no book names that one any more.
  for (const each of running.splice(0).reverse()) await each.stop();
  await startReceiver();
  const list = await until(({ services }) => services.length === 1);
  assert.deepEqual(list.services[0]?.clients, [{ client, forked: false, kept: 0, keys: ["placement/c"], orphans: 1 }]);
  assert.equal((await ask("DELETE", `/orphans/${receiver}/${client}?all=true`)).status, 200);
  assert.deepEqual((await until(({ services }) => services.length === 0)).services, []);
});

test("the root cell's controller is not let count before its store knows the cloud", async () => {
  const root = peerName("controller.root");
  let version = 0;
  const server = await servePeers(await configure(root, "controller"), async ({ url }, response) => {
    const answer =
      url === "/cells/root" ? { cell: "root", version, phases: {}, elements: 0, empty: true } : emptyHanded;
    response.end(JSON.stringify(answer));
  });
  servers.push(server);
  const peers = join((await configure(root, "controller")).directory, "..", "peers.json");
  const { peers: others } = JSON.parse(await readFile(peers, "utf8"));
  await writeFile(peers, JSON.stringify({ peers: { ...others, [root]: `127.0.0.1:1:${server.port}` } }));
  const blank = await ask("POST", `/orphans/${root}`);
  assert.equal(blank.status, 409);
  assert.equal(blank.body.error.code, "orphans/blank");
  assert.match(blank.body.error.message, /second management.*cells management return/);
  version = 7;
  assert.equal((await ask("POST", `/orphans/${root}`)).status, 200);
  await server.stop();
  assert.equal((await ask("POST", `/orphans/${root}`)).status, 503);
});
