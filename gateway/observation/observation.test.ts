import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer as createHttpServer, type Server } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import type { FastifyInstance } from "fastify";
import type { EventName } from "../../core/telemetry/event-names.ts";
import { counter, sample } from "../../core/telemetry/metrics.ts";
import type { InstallationStatus, ServiceEvent } from "../../model/api.ts";
import { peerName } from "../../model/cell/identifiers.ts";
import type { FollowEvent } from "../../model/contract/follow/follow.ts";
import { type Followed, nothingFollowed, reduced } from "../../model/contract/follow/reduce.ts";
import { statusOfRows } from "../../model/contract/follow/rows.ts";
import { hashCredential } from "../../runtime/http/bearer.ts";
import { readEventStream } from "../../runtime/http/event-stream.ts";
import { type PeerServer, servePeers } from "../../runtime/http/https.ts";
import { createAuthority, issueCertificate } from "../../runtime/identity/certificates.ts";
import type { ProcessConfiguration } from "../../runtime/installation.ts";
import { serviceHeading, streamEvents } from "../../runtime/observation/events.ts";
import { parseMetrics } from "../../runtime/observation/metrics-text.ts";
import { createObserver, type Observer, observed } from "../../runtime/observation/observer.ts";
import { createGateway } from "../gateway.ts";

/*
 * The gateway over real sockets and certificates, between a client, services that really observe themselves, and a
 * stand-in for the supervisor that serves a real observer's events.
 */
const headers = { authorization: "Bearer open-sesame" };
const silent = (): void => undefined;
const observerOf = (name: string): Observer => createObserver(name, silent);
const peers: Record<string, string> = {};
const restarts = { placer: 0 };
let root = "";
let url = "";
let app: FastifyInstance;
let supervisor: Server;
const told = observerOf("supervisor");
const gatewayObserver = observerOf("gateway");
const services = new Map<string, { readonly server: PeerServer; readonly observer: Observer; readonly port: number }>();

const configure = async (name: string, role: ProcessConfiguration["role"]): Promise<ProcessConfiguration> => ({
  name: peerName(name),
  role,
  address: "127.0.0.1",
  directory: root,
  runDirectory: root,
  httpPort: 0,
  certificate: await issueCertificate(join(root, "ca"), peerName(name), ["127.0.0.1"]),
  peersFile: join(root, "peers.json"),
});
const serve = async (name: string, port = 0): Promise<Observer> => {
  const observer = observerOf(name);
  observer.measures(() => [counter("cells_test_total", "Test.", [sample(services.size, { kind: "x" })])]);
  const server = await servePeers({ ...(await configure(name, "placer")), httpPort: port }, observed(observer));
  services.set(name, { server, observer, port: server.port });
  peers[name] = `127.0.0.1:1:${server.port}`;
  await writeFile(join(root, "peers.json"), JSON.stringify({ peers }));
  return observer;
};
const say = (name: string, event: EventName, fields = {}, wallMs = Date.now()): void =>
  (name === "supervisor" ? told : (services.get(name)?.observer ?? gatewayObserver)).record({ event, fields, wallMs });

before(async () => {
  root = await mkdtemp(join(tmpdir(), `cells-observation-${process.pid}-`));
  await createAuthority(join(root, "ca"));
  for (const name of ["placer", "host.h1", "controller.shop"]) await serve(name);
  const socket = join(root, "supervisor.sock");
  supervisor = createHttpServer((request, response) => {
    if (request.url?.startsWith("/events")) {
      const follow = request.url.includes("follow=true") ? { follow: told.events.subscribe } : {};
      streamEvents(response, { past: told.events.past(), heading: serviceHeading, ...follow });
      return;
    }
    const placer = { name: "placer", peer: "placer", address: "127.0.0.1", running: true, pid: 1 };
    response.end(JSON.stringify({ services: [{ ...placer, restarts: restarts.placer }] }));
  });
  await new Promise<void>((resolve) => supervisor.listen(socket, resolve));
  const gateway = { listenFd: -1, supervisorSocket: socket, credentialHashes: [hashCredential("open-sesame")] };
  app = createGateway({ ...(await configure("gateway", "gateway")), gateway }, gatewayObserver);
  url = await app.listen({ host: "127.0.0.1", port: 0 });
});
after(async () => {
  await app.close();
  supervisor.closeAllConnections();
  supervisor.close();
  for (const { server } of services.values()) await server.stop();
  await rm(root, { recursive: true, force: true });
});

const get = (path: string): Promise<Response> => fetch(`${url}${path}`, { headers });
const eventsOf = async (path: string): Promise<readonly ServiceEvent[]> => {
  const response = await get(path);
  assert.equal(response.status, 200);
  assert.ok(response.body);
  const events: ServiceEvent[] = [];
  for await (const event of readEventStream<ServiceEvent>(response.body)) events.push(event);
  return events;
};
const names = (events: readonly ServiceEvent[]): readonly string[] =>
  events.map(({ service, event, path }) => [service, event, path].filter((part) => part !== null).join(" "));

const up = async (service: string): Promise<number | undefined> => {
  const read = parseMetrics(await (await get("/metrics")).text());
  assert.ok(read.ok, read.ok ? "" : read.error);
  return read.value.find(({ name }) => name === "up")?.samples.find(({ labels }) => labels.service === service)?.value;
};

test("one valid exposition over all services; one that does not answer is up 0, and 1 again", async () => {
  const text = await (await get("/metrics")).text();
  const read = parseMetrics(text);
  assert.ok(read.ok, read.ok ? "" : read.error);
  const counted = read.value.find(({ name }) => name === "cells_test_total");
  assert.deepEqual(counted?.samples.map(({ labels }) => labels.service).sort(), [
    "controller.shop",
    "host.h1",
    "placer",
  ]);
  for (const name of ["placer", "gateway", "host.h1"]) assert.equal(await up(name), 1, name);
  const { server, port } = services.get("placer") ?? assert.fail();
  await server.stop();
  restarts.placer = 1;
  assert.equal(await up("placer"), 0);
  assert.equal(await up("host.h1"), 1);
  await serve("placer", port);
  assert.equal(await up("placer"), 1);
  assert.match(await (await get("/metrics?service=h1")).text(), /^up\{service="host\.h1"\} 1$/m);
  assert.doesNotMatch(await (await get("/metrics?service=h1")).text(), /service="placer"/);
  assert.match(
    await (await get("/metrics?service=placer")).text(),
    /^cells_service_restarts_total\{service="placer"\} 1$/m,
  );
  const unknown = await get("/metrics?service=nobody");
  assert.equal(unknown.status, 404);
  assert.match(await unknown.text(), /there is no service "?.*see `cells status`/);
  const { services: known } = (await (await get("/status")).json()) as InstallationStatus;
  assert.ok(known.length > 0);
  for (const { name } of known) assert.equal((await get(`/metrics?service=${name}`)).status, 200, name);
});

test("the time line merges what all services know, names elements, and is cut to what is asked for", async () => {
  say("controller.shop", "element/state", { path: "shop/web/vm", uid: "ab-1", phase: "working", reason: null }, 1000);
  say("placer", "placement/reserved", { vm: "ab-1", host: "h1" }, 3000);
  say("host.h1", "machine/stage", { vm: "ab-1", stage: "running" }, 2000);
  say("supervisor", "service/ended", { peer: "placer", how: "SIGKILL" }, 4000);
  say("gateway", "cell/made", { cell: "shop" }, 500);
  const all = await eventsOf("/events");
  assert.deepEqual(names(all), [
    "gateway cell/made",
    "controller.shop element/state shop/web/vm",
    "host.h1 machine/stage shop/web/vm",
    "placer placement/reserved shop/web/vm",
    "supervisor service/ended",
  ]);
  assert.deepEqual(names(await eventsOf("/events?service=h1")), ["host.h1 machine/stage shop/web/vm"]);
  assert.equal((await eventsOf("/events?cell=shop")).length, 4);
  assert.equal((await eventsOf(`/events?since=${new Date(3000).toISOString()}`)).length, 2);
  assert.equal((await get("/events?since=yesterday")).status, 400);
});

test("who follows sees every event once, also of a service that is started again and of one that is new", async () => {
  const controller = new AbortController();
  const response = await fetch(`${url}/events?follow=true&since=${new Date(10_000).toISOString()}`, {
    headers,
    signal: controller.signal,
  });
  assert.ok(response.body);
  const events = readEventStream<ServiceEvent>(response.body);
  const next = async (): Promise<string> => {
    const { value, done } = await events.next();
    assert.equal(done, false);
    return names([value])[0] ?? "";
  };
  say("host.h1", "peer/reachable", { peer: "placer" });
  assert.equal(await next(), "host.h1 peer/reachable");
  const { server, port } = services.get("placer") ?? assert.fail();
  await server.stop();
  say("supervisor", "service/ended", { peer: "placer", how: "SIGKILL" });
  assert.equal(await next(), "supervisor service/ended");
  const again = await serve("placer", port);
  again.log("service/restored", { reservations: 1 });
  say("supervisor", "service/answers", { peer: "placer" });
  assert.deepEqual([await next(), await next()].sort(), ["placer service/restored", "supervisor service/answers"]);
  const fresh = await serve("controller.new");
  fresh.log("process/started", {});
  say("supervisor", "service/answers", { peer: "controller.new" });
  assert.deepEqual([await next(), await next()].sort(), [
    "controller.new process/started",
    "supervisor service/answers",
  ]);
  say("gateway", "cell/ended", { cell: "new" });
  assert.equal(await next(), "gateway cell/ended");
  controller.abort();
  await events.next().catch(() => undefined);
});

test("both are for the operator alone", async () => {
  for (const path of ["/metrics", "/events"]) {
    assert.equal((await fetch(`${url}${path}`)).status, 401);
    assert.equal((await fetch(`${url}${path}`, { headers: { authorization: "Bearer wrong" } })).status, 401);
  }
});

test("who follows the status gets what it is, and sees it change by what services say; nobody else gets it", async () => {
  const stop = new AbortController();
  const response = await fetch(`${url}/follow?topic=status`, { headers, signal: stop.signal });
  assert.equal(response.status, 200);
  let followed: Followed = nothingFollowed;
  const restartsSeen: number[] = [];
  try {
    for await (const event of readEventStream<FollowEvent>(response.body ?? assert.fail())) {
      followed = reduced(followed, event).followed;
      const placer = statusOfRows(followed.topics.get("status")?.rows ?? {}).services.find(
        ({ name }) => name === "placer",
      );
      if (placer !== undefined) restartsSeen.push(placer.restarts);
      if (restartsSeen.at(-1) === 7) break;
      restarts.placer = 7;
      say("supervisor", "service/ended", { peer: "placer", how: "SIGKILL" });
    }
  } finally {
    stop.abort();
  }
  assert.deepEqual([restartsSeen.at(-1), restartsSeen.length >= 2], [7, true]);
  for (const [authorization, status] of [
    ["Bearer shop.a1b2.c3", 401],
    ["Bearer wrong", 401],
    ["", 401],
  ] as const)
    assert.equal(
      (await fetch(`${url}/follow?topic=status`, { headers: { authorization } })).status,
      status,
      authorization,
    );
});
