import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type FastifyInstance, fastify } from "fastify";
import { readAnything, type Service } from "../../core/env.ts";
import { type PeerName, peerName } from "../../model/cell/identifiers.ts";
import type { AuditEntry, AuditView } from "../../model/contract/audit/audit.ts";
import { assertConforms } from "../../model/contract/testing/conforms.testing.ts";
import { hashCredential } from "../../runtime/http/bearer.ts";
import { type PeerServer, servePeers } from "../../runtime/http/https.ts";
import { createTestInstallation, type TestInstallation } from "../../runtime/installation.testing.ts";
import { createObserver, observed } from "../../runtime/observation/observer.ts";
import { type RunningService, runService } from "../../runtime/process/process.ts";
import type { Way } from "../requests/forward.ts";
import { registerAudit } from "./audit.ts";

/* Records of services that have no users: of each as it keeps them, merged for the operator, and for nobody else. */
const operator = "open-sesame-of-the-operator";
const by: AuditEntry = { who: "operator", door: "gateway", verb: "removeImage", target: "debian", outcome: "done" };
let installation: TestInstallation;
let app: FastifyInstance;
const running = new Map<string, RunningService>();
const servers: PeerServer[] = [];
const service: Service<null> = {
  restore: () => null,
  step: (_state, input) => ({
    state: null,
    effects: input.kind === "request" ? [{ kind: "reply", id: input.id, response: null }] : [],
  }),
  entitled: () => true,
  accepts: () => true,
  read: readAnything,
};
const start = async (name: PeerName): Promise<void> => {
  const { configuration } = await installation.configure(name);
  const observer = createObserver(name, () => undefined);
  running.set(name, await runService({ configuration, observer, service }));
  servers.push(await servePeers(configuration, observed(observer)));
};

before(async () => {
  installation = await createTestInstallation("audit");
  for (const name of ["agent.s1", "ha-manager", "placer"]) await start(peerName(name));
  await installation.configure(peerName("agent.s2"));
  const gateway = { listenFd: -1, credentialHashes: [hashCredential(operator)] };
  const { configuration } = await installation.configure(peerName("gateway"), { change: { role: "gateway", gateway } });
  app = fastify();
  registerAudit(app, { configuration } as Way, async () => []);
  await running.get("agent.s1")?.observer.audit?.record(by);
  await running.get("ha-manager")?.request({}, { ...by, verb: "pauseHa", target: "all" });
});
after(async () => {
  await app?.close();
  for (const each of running.values()) await each.stop();
  for (const server of servers) await server.stop();
  await installation?.remove();
});

const read = async (credential: string, query = ""): Promise<{ readonly status: number; readonly view: AuditView }> => {
  const headers = { authorization: `Bearer ${credential}` };
  const { statusCode, body } = await app.inject({ method: "GET", url: `/audit${query}`, headers });
  if (statusCode === 200)
    assertConforms("GET", "/audit", { status: statusCode, type: "application/json; charset=utf-8", text: body });
  return { status: statusCode, view: JSON.parse(body) };
};

test("the operator sees who had what done at any service; one that has nothing is left out, one that is away is named", async () => {
  const { view } = await read(operator);
  assert.deepEqual(view.records.map(({ service: at, verb, target }) => `${at} ${verb} ${target}`).sort(), [
    "agent.s1 removeImage debian",
    "ha-manager pauseHa all",
  ]);
  assert.deepEqual(view.sources.map((each) => each.service).sort(), ["agent.s1", "ha-manager"]);
  assert.deepEqual(view.silent, ["agent.s2"]);
  const { view: one } = await read(operator, "?service=agent.s1&verb=removeImage");
  assert.equal(one.records.length, 1);
  const { view: empty } = await read(operator, "?service=placer");
  assert.deepEqual([empty.sources.length, empty.records.length], [1, 0]);
});

test("nobody else sees that such services are there", async () => {
  assert.equal((await read("session.somebody")).status, 404);
  assert.equal((await read("session.somebody", "?service=agent.s1")).status, 404);
});
