import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { type FastifyInstance, fastify } from "fastify";
import type { BinList, ImageSummary, InstallationStatus, OrphanList, ServiceEvent } from "../../model/api.ts";
import { peerName } from "../../model/cell/identifiers.ts";
import type { Json } from "../../model/json/json.ts";
import { readEventStream } from "../../runtime/http/event-stream.ts";
import { servePeers } from "../../runtime/http/https.ts";
import { createTestInstallation, type TestInstallation } from "../../runtime/installation.testing.ts";
import { createObserver } from "../../runtime/observation/observer.ts";
import { serveRoute } from "../requests/serve.ts";
import { registerBin } from "../storage/bin.ts";
import { registerImages } from "../storage/images.ts";
import { registerOrphans } from "../storage/orphans.ts";
import { createConnections } from "./connections.ts";
import { registerObservation } from "./observation.ts";
import { createStatus } from "./status.ts";

/*
 * What services answer the gateway over HTTP. One of them is in somebody else's hands and answers anything at all: the operator sees
 * what the others say as ever, nothing is said in another's name, and the gateway goes on.
 */
let installation: TestInstallation;
let app: FastifyInstance;
let url = "";
const closers: (() => Promise<void>)[] = [];
const clean = { clients: [], receivers: [] };
const host = (name: string) => ({
  host: name,
  address: "10.0.0.1",
  state: "up",
  memoryMiB: 4096,
  usedMiB: 0,
  cpus: 2,
  accelerator: "tcg",
  vms: 0,
});
const file = { file: "v.1", volume: "c1-1", path: null, sizeMiB: 1, usedMiB: 1, deleted: "2026-11-26T00:00:00.000Z" };
const binned = { ...file, overlay: false, offered: false };
const event = (id: number, more: object = {}): Json => ({
  id: `a-${id}`,
  time: "2026-11-26T00:00:00.000Z",
  service: "host.h1",
  event: "vm/started",
  cell: null,
  path: null,
  fields: {},
  ...more,
});
const leaving = { cell: "shop", path: "shop/web/vm", to: null, reason: "h9: it is full" };
const image = { name: "tiny", digest: "d", sizeMiB: 64, provided: true };
/** By `<who> <path>`. */
const said = new Map<string, string>();
const streamOf = (events: readonly unknown[]): string =>
  events.map((each) => `data: ${JSON.stringify(each)}\n\n`).join("");
const honest: readonly (readonly [string, Json])[] = [
  ["host.h1 /status", host("h1")],
  ["agent.s1 /status", { server: "s1", address: "10.0.0.2", totalMiB: 9, freeMiB: 9, volumes: 1 }],
  ["agent.s1 /bin", [binned]],
  ["agent.s1 /images", [image]],
  ["presence.1 /hosts", { hosts: [] }],
  ["placer /rooms", { hosts: [{ host: "h1", closed: "maintenance", leaving: [leaving] }] }],
];
const liars = ["host.h9", "agent.s9", "presence.9", "placer.9", "controller.shop"];

before(async () => {
  installation = await createTestInstallation("gateway-liars");
  for (const name of ["host.h1", "agent.s1", "presence.1", "placer", ...liars]) {
    const { configuration } = await installation.configure(peerName(name));
    const server = await servePeers(configuration, ({ url: asked }, response) => {
      const path = asked.split("?")[0] ?? "";
      const known = said.get(`${name} ${path}`) ?? said.get(`${name} *`);
      response.end(known ?? (path === "/events" ? streamOf([event(1, { service: name })]) : JSON.stringify(clean)));
    });
    closers.push(server.stop);
  }
  for (const [key, answer] of honest) said.set(key, JSON.stringify(answer));
  app = fastify({ forceCloseConnections: true });
  const { configuration } = await installation.configure(peerName("gateway"));
  const connections = createConnections(configuration);
  app.addHook("onClose", async () => connections.close());
  const status = createStatus(configuration, null, connections);
  serveRoute(app, "readStatus", () => status());
  registerOrphans(app, configuration);
  registerBin(app, configuration);
  registerImages(app, configuration);
  registerObservation(
    app,
    configuration,
    null,
    createObserver("gateway", () => undefined),
    connections,
  );
  url = await app.listen({ host: "127.0.0.1", port: 0 });
});
after(async () => {
  await app.close();
  for (const close of closers) await close();
  await installation.remove();
});

const ask = async <T>(path: string): Promise<T> => {
  const answer = await app.inject({ method: "GET", url: path });
  assert.equal(answer.statusCode, 200, answer.body);
  return JSON.parse(answer.body) as T;
};
const lie = (text: string): void => {
  for (const name of liars) said.set(`${name} *`, text);
};
const nonsense: readonly unknown[] = [
  null,
  5,
  "x",
  [],
  [null],
  {},
  { hosts: 5 },
  { hosts: [null] },
  { clients: 5, receivers: null },

  { clients: [null], receivers: [5] },
  { clients: [{ client: 5, forked: true, kept: 0, orphans: 1, keys: 7 }], receivers: [] },
  { hosts: [{ host: "h1", generation: 1, incarnation: 1, reports: 0, state: "dead", sinceMs: 1e300 }] },
];

test("what one service answers that makes no sense hides nothing of the others, and is named", async () => {
  for (const each of nonsense) {
    lie(JSON.stringify(each));
    const { hosts, servers } = await ask<InstallationStatus>("/status");
    const told = JSON.stringify(each);
    assert.deepEqual(
      hosts.map(({ host: name, state, administration, leaving: going }) => [name, state, administration, going]),
      [
        ["h1", "up", "maintenance", [leaving]],
        ["h9", "unreachable", undefined, undefined],
      ],
      told,
    );
    assert.deepEqual(
      servers.map(({ server, state }) => [server, state]),
      [
        ["s1", "up"],
        ["s9", "unreachable"],
      ],
      told,
    );
    const bins = await ask<BinList>("/bin");
    assert.deepEqual(
      bins.files.filter(({ server }) => server === "s1").map(({ file: name }) => name),
      ["v.1"],
    );
    const images = await ask<readonly ImageSummary[]>("/images");
    assert.deepEqual(
      images.map(({ name, servers: having }) => [name, having]),
      [["tiny", ["s1"]]],
      told,
    );
    const orphans = await ask<OrphanList>("/orphans");
    assert.deepEqual(
      orphans.missing
        .map(({ service }) => service)
        .filter((service) => service !== "gateway")
        .sort(),
      [...liars].sort(),
      told,
    );
  }
});

test("nobody answers in another's name", async () => {
  const own = { administration: "disabled", leaving: [leaving] };
  said.set("host.h9 *", JSON.stringify({ ...host("h1"), ...own, memoryMiB: 1 }));
  said.set("agent.s9 *", JSON.stringify({ server: "s1", address: "x", totalMiB: 1, freeMiB: 1, volumes: 9 }));
  said.set("agent.s9 /bin", JSON.stringify([{ ...binned, server: "s1" }]));
  const { hosts, servers } = await ask<InstallationStatus>("/status");
  assert.deepEqual(
    hosts.map(({ host: name, memoryMiB, administration }) => [name, memoryMiB, administration]),
    [
      ["h1", 4096, "maintenance"],
      ["h9", 1, undefined],
    ],
  );
  assert.deepEqual(
    servers.map(({ server, volumes }) => [server, volumes]),
    [
      ["s1", 1],
      ["s9", 9],
    ],
  );
  const { files } = await ask<BinList>("/bin");
  assert.deepEqual(files.map(({ server }) => server).sort(), ["s1", "s9"]);
});

test("an event that makes no sense ends its source's part of the time line, and not the gateway", async () => {
  const wrong: readonly unknown[] = [
    null,
    5,
    {},
    event(2, { fields: null }),
    event(2, { service: 5, time: 7 }),
    event(2, { id: 7 }),
  ];
  for (const each of wrong) {
    said.set("host.h9 /events", streamOf([event(1), each, event(3)]));
    const stop = new AbortController();
    const answer = await fetch(`${url}/events?follow=true`, { signal: stop.signal });
    assert.equal(answer.status, 200);
    // What is followed is told in order after a moment.
    const told: ServiceEvent[] = [];
    const reading = (async () => {
      for await (const one of readEventStream<ServiceEvent>(answer.body as AsyncIterable<Uint8Array>)) told.push(one);
    })().catch(() => undefined);
    await sleep(400);
    stop.abort();
    await reading;
    assert.ok(
      told.some(({ service }) => service === "host.h1"),
      JSON.stringify(told),
    );
    const silent = told.find(({ event: name }) => name === "timeline/incomplete")?.fields.silent;
    assert.match(String(silent), /host\.h9/, JSON.stringify(each));
  }
  said.set("host.h9 /events", streamOf([event(1, { service: "dns-manager" })]));
  const past = await app.inject({ method: "GET", url: "/events" });
  assert.ok(!past.body.includes('"service":"dns-manager"'), "an event is of who says it");
});

test("an event without an end is given up", async () => {
  async function* endless(): AsyncGenerator<Uint8Array> {
    for (;;) yield new Uint8Array(1024 * 1024).fill(97);
  }
  await assert.rejects(async () => {
    for await (const _ of readEventStream(endless())) assert.fail("there is none");
  }, /characters/);
});
