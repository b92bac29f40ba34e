import assert from "node:assert/strict";
import { readdir, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { type FastifyInstance, fastify } from "fastify";
import { createDnsManager } from "../../core/dns/manager.ts";
import { peerName } from "../../model/cell/identifiers.ts";
import type { Json } from "../../model/json/json.ts";
import { openZoneSeal, zoneKeysOf, zoneQuestions } from "../../runtime/dns/zone-keys.ts";
import { peerRequest, servePeers } from "../../runtime/http/https.ts";
import { createTestInstallation, type TestInstallation } from "../../runtime/installation.testing.ts";
import { createObserver } from "../../runtime/observation/observer.ts";
import { type Asked, runAsked } from "../../runtime/process/asked.ts";
import type { RunningService } from "../../runtime/process/process.ts";
import { RefusedError } from "../requests/refused.ts";
import { registerZone } from "./zone.ts";

/* The secret of a zone's transfers on its way: from the gateway over mutual TLS to a DNS Manager with its own store and directory. */
let installation: TestInstallation;
let app: FastifyInstance;
let running: RunningService;
let directory: string;
let stop: () => Promise<void>;
const logged: unknown[] = [];
const secret = Buffer.from("no one but the two ends has this").toString("base64");
const dnsManager = peerName("dns-manager");

before(async () => {
  installation = await createTestInstallation("gateway-zone");
  const { configuration } = await installation.configure(dnsManager);
  ({ directory } = configuration);
  const observer = createObserver(dnsManager);
  const seal = await openZoneSeal(directory);
  const asked: Asked = { service: null };
  const server = await servePeers(configuration, zoneQuestions(seal).handler(asked));
  stop = server.stop;
  running = await runAsked(asked, {
    configuration,
    observer,
    service: createDnsManager({ self: dnsManager }),
    onLog: (event) => logged.push(event),
  });
  app = fastify();
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("*", { parseAs: "buffer" }, (_request, body, done) => done(null, body));
  app.setErrorHandler((error, _request, reply) =>
    error instanceof RefusedError
      ? reply.status(error.statusCode).send({ error: error.refusal })
      : reply.status(500).send(error),
  );
  registerZone(app, (await installation.configure(peerName("gateway"))).configuration);
});
after(async () => {
  await app.close();
  await stop();
  await running.stop();
  await installation.remove();
});

const ask = async (method: "GET" | "PUT" | "DELETE", url: string, body?: Json): Promise<[number, Json]> => {
  const payload = body === undefined ? {} : { payload: JSON.stringify(body) };
  const answer = await app.inject({ method, url, headers: { "content-type": "application/json" }, ...payload });
  return [answer.statusCode, JSON.parse(answer.body)];
};

test("a secret is given once and shown to nobody; what is none is refused before anything is touched", async () => {
  const empty = { zones: [], serial: null, secondaries: [], key: null, keys: [] };
  assert.deepEqual(await ask("GET", "/zone"), [200, empty]);
  for (const [name, body] of [
    ["transfer", {}],
    ["transfer", { secret: "short" }],
    ["transfer", { secret: Buffer.alloc(31).toString("base64") }],
    ["transfer", { secret: Buffer.alloc(65).toString("base64") }],
    ["transfer", { secret: `${secret}\n` }],
    ["Transfer", { secret }],
    ["a..b", { secret }],
  ] as const)
    assert.equal((await ask("PUT", `/zone/keys/${name}`, body))[0], 400, JSON.stringify([name, body]));
  assert.deepEqual(await ask("GET", "/zone"), [200, empty]);
  for (const bytes of [32, 33, 34, 63, 64])
    assert.equal((await ask("PUT", "/zone/keys/other", { secret: Buffer.alloc(bytes).toString("base64") }))[0], 200);
  const given = { name: "transfer", wasThere: false, declared: false };
  assert.deepEqual(await ask("PUT", "/zone/keys/transfer", { secret }), [200, given]);
  assert.deepEqual(await ask("GET", "/zone"), [200, { ...empty, keys: [{ name: "other" }, { name: "transfer" }] }]);
  assert.deepEqual(await ask("DELETE", "/zone/keys/other"), [200, { name: "other", wasThere: true, declared: false }]);
  const entries = running.audit("changes", 0, 100).map(({ who, verb, target }) => `${who} ${verb} ${target}`);
  assert.deepEqual(entries.slice(-2), ["operator giveZoneKey transfer", "operator forgetZoneKey other"]);
});

test("no file, no event and no record of who did it has the secret, and nobody but the gateway gives one", async () => {
  const bare = Buffer.from(secret, "base64");
  const kept: string[] = [];
  for (const file of await readdir(directory, { recursive: true })) {
    const bytes = await readFile(join(directory, file)).catch(() => Buffer.alloc(0));
    assert.ok(!bytes.includes(secret) && !bytes.includes(bare), file);
    if (bytes.includes("zone-key/transfer")) kept.push(file);
  }
  assert.notEqual(kept.length, 0, "a positive control");
  assert.ok(!JSON.stringify([logged, running.audit("changes", 0, 100)]).includes(secret));
  const { configuration } = await installation.configure(peerName("controller.shop"));
  const asked = { method: "PUT", path: "/zone/keys/transfer", body: JSON.stringify({ secret }) };
  assert.equal((await peerRequest(configuration, dnsManager, asked)).status, 403);
  const read = await peerRequest(configuration, dnsManager, { method: "GET", path: "/zone" });
  assert.equal(read.status, 403);
});

test("the key counts while the root cell names it, and where its secret cannot be opened that is said", async () => {
  const zone = { zone: "cloud.example.org", servers: ["ns1.example.org"], secondaries: ["10.0.0.9"] };
  const service = createDnsManager({ self: dnsManager });
  const seal = await openZoneSeal(directory);
  let state = service.restore({ records: new Map(), desiredAt: new Map() });
  const say = (value: Json): void => {
    const from = peerName("controller.root");
    ({ state } = service.step(state, { kind: "desired", from, key: "zone", value }, { ms: 0, wallMs: 0 }));
  };
  const request = async (asked: Json): Promise<Json> => {
    const { effects } = service.step(state, { kind: "request", id: 1, request: asked }, { ms: 0, wallMs: 0 });
    const reply = effects.find((effect) => effect.kind === "reply");
    return reply?.kind === "reply" ? reply.response : null;
  };
  const current = zoneKeysOf(request, seal).current;
  await request({ zone: "key", name: "transfer", sealed: seal.seal(secret) });
  assert.equal(await current(), null, "the root cell names none");
  say({ ...zone, key: "other" });
  assert.equal(await current(), "missing");
  say({ ...zone, key: "transfer" });
  assert.deepEqual(await current(), { name: "transfer", secret: Buffer.from(secret, "base64") });
  await rm(join(directory, "zone.key"));
  const another = await openZoneSeal(directory);
  assert.equal(await zoneKeysOf(request, another).current(), "missing", "its directory is another one");
});
