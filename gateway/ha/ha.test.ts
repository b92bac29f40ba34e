import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type FastifyInstance, fastify } from "fastify";
import { createHaManager } from "../../core/ha/manager.ts";
import { peerName } from "../../model/cell/identifiers.ts";
import type { AuditEntry } from "../../model/contract/audit/audit.ts";
import type { HaReport } from "../../model/contract/ha.ts";
import type { Json } from "../../model/json/json.ts";
import { haReleases } from "../../runtime/ha/release.ts";
import { servePeers } from "../../runtime/http/https.ts";
import { createTestInstallation, type TestInstallation } from "../../runtime/installation.testing.ts";
import { RefusedError } from "../requests/refused.ts";
import { registerHa } from "./ha.ts";

/* The operator's words on their way: from the gateway over mutual TLS to a real HA Manager, and its refusals back. */
let installation: TestInstallation;
let app: FastifyInstance;
const closers: (() => Promise<void>)[] = [];
const [presence, h1] = [peerName("presence.1"), peerName("host.h1")];
const manager = createHaManager({
  ...{ self: peerName("ha-manager"), presence: [presence], storageManagers: [peerName("storage-manager")] },
  hosts: [h1, peerName("host.h2")],
});
let state = manager.restore({ records: new Map(), desiredAt: new Map() });
const give = (input: Parameters<typeof manager.step>[1]) => {
  const stepped = manager.step(state, input, { ms: 1000, wallMs: 1_700_000_000_000 });
  state = stepped.state;
  return stepped.effects;
};

/** Who had something done. */
const had: string[] = [];

before(async () => {
  installation = await createTestInstallation("gateway-ha");
  const { configuration } = await installation.configure(peerName("ha-manager"));
  const request = async (asked: Json, by?: AuditEntry): Promise<Json> => {
    if (by !== undefined) had.push(`${by.who} ${by.source} ${by.verb} ${by.target}`);
    const reply = give({ kind: "request", id: 1, request: asked }).find((effect) => effect.kind === "reply");
    return reply?.kind === "reply" ? reply.response : null;
  };
  const asked = { service: { request } } as never;
  closers.push((await servePeers(configuration, haReleases.handler(asked))).stop);
  app = fastify();
  app.setErrorHandler((error, _request, reply) =>
    error instanceof RefusedError
      ? reply.status(error.statusCode).send({ error: error.refusal })
      : reply.status(400).send(error),
  );
  registerHa(app, (await installation.configure(peerName("gateway"))).configuration);
  give({ kind: "start" });
  const value = {
    ...{ vm: "a-1", cell: "shop.root", path: "shop/web/vm", incarnation: 1, host: "h1", boot: 7, lost: "restart" },
    ...{ priority: 0, isolated: "keep", storageManager: "storage-manager" },
  };
  give({ kind: "desired", from: peerName("controller.shop.root"), key: "protected/a-1", value });
  give({ kind: "request", id: 1, request: { kind: "ha-pause" } });
  const dead = { host: "h1", generation: 1, incarnation: 0, declaredAt: 1, reporters: 1 };
  give({ kind: "actual", from: presence, key: "dead/h1", value: dead });
});
after(async () => {
  await app.close();
  for (const close of closers) await close();
  await installation.remove();
});

const post = async (url: string): Promise<{ readonly status: number; readonly body: HaReport & { error?: Json } }> => {
  const answer = await app.inject({ method: "POST", url });
  return { status: answer.statusCode, body: JSON.parse(answer.body) };
};
const vm = encodeURIComponent("shop.root/web/vm");

test("a VM is left alone and taken up again by its path with its cell's whole name, and refusals come back as they were said", async () => {
  const cancelled = await post(`/ha/cancel?vm=${vm}`);
  assert.equal(cancelled.status, 200);
  assert.deepEqual(had, ["operator 127.0.0.1 cancelHa shop.root/web/vm"]);
  assert.deepEqual(
    cancelled.body.items.map(({ path, step }) => [path, step]),
    [["shop/web/vm", "Cancelled"]],
  );
  const unknown = await post(`/ha/retry?vm=${encodeURIComponent("shop/web/vm")}`);
  assert.equal(unknown.status, 404);
  assert.match(JSON.stringify(unknown.body), /"ha\/nothing".*nothing is being done about shop\/web\/vm/);
  assert.equal((await post(`/ha/retry?vm=${vm}`)).body.items[0]?.step, "Investigating");
  await post("/ha/release");
  const begun = await post(`/ha/cancel?vm=${vm}`);
  assert.equal(begun.status, 409);
  assert.match(JSON.stringify(begun.body), /"ha\/begun".*is at Fencing/);
  assert.equal((await post("/ha/cancel")).status, 400, "which one is to be said");
});
