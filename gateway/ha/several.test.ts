import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type FastifyInstance, fastify } from "fastify";
import { createHaManager } from "../../core/ha/manager.ts";
import { peerName } from "../../model/cell/identifiers.ts";
import type { HaAlert, HaItem, HaReport } from "../../model/contract/operator/ha.ts";
import type { Json } from "../../model/json/json.ts";
import { haReleases } from "../../runtime/ha/release.ts";
import { servePeers } from "../../runtime/http/https.ts";
import { createTestInstallation, type TestInstallation } from "../../runtime/installation.testing.ts";
import { RefusedError } from "../requests/refused.ts";
import { registerHa } from "./ha.ts";
import { type Heard, joined } from "./join.ts";

/* Two real HA Managers with cells of their own, over mutual TLS: the operator sees and orders both as one. */
const [presence, h1] = [peerName("presence.1"), peerName("host.h1")];
let installation: TestInstallation;
let app: FastifyInstance;

/** One of them, with one VM of that cell at a lost host that nobody may start elsewhere yet. */
const start = async (name: string, cell: string) => {
  const self = peerName(name);
  const { configuration } = await installation.configure(self);
  const members = { presence: [presence], storageManagers: [peerName("storage-manager")], hosts: [h1] };
  const manager = createHaManager({ self, ...members });
  let state = manager.restore({ records: new Map(), desiredAt: new Map() });
  const give = (input: Parameters<typeof manager.step>[1]) => {
    const stepped = manager.step(state, input, { ms: 1000, wallMs: 1_700_000_000_000 });
    state = stepped.state;
    return stepped.effects;
  };
  /** What it was told to do. */
  const told: string[] = [];
  const request = async (asked: Json): Promise<Json> => {
    const { kind } = asked as { readonly kind?: string };
    if (kind !== "ha") told.push(kind ?? "");
    const reply = give({ kind: "request", id: 1, request: asked }).find((effect) => effect.kind === "reply");
    return reply?.kind === "reply" ? reply.response : null;
  };
  const asked = { service: { request } } as never;
  const words = haReleases.handler(asked);
  const { stop } = await servePeers(configuration, async (incoming, response) => {
    if (haReleases.answers(incoming.url)) return words(incoming, response);
    response.writeHead(200, { "content-type": "application/json" });
    response.end(JSON.stringify(await request({ kind: "ha" })));
  });
  give({ kind: "start" });
  const value = {
    vm: `${cell}-1`,
    cell: `${cell}.root`,
    path: `${cell}/web/vm`,
    incarnation: 1,
    host: "h1",
    boot: 7,
    lost: "restart",
    priority: 0,
    isolated: "keep",
    storageManager: "storage-manager",
  };
  give({ kind: "desired", from: peerName(`controller.${cell}.root`), key: `protected/${cell}-1`, value });
  give({ kind: "request", id: 1, request: { kind: "ha-pause" } });
  const dead = { host: "h1", generation: 1, incarnation: 0, declaredAt: 1, reporters: 1 };
  give({ kind: "actual", from: presence, key: "dead/h1", value: dead });
  return { told, stop };
};
type Started = Awaited<ReturnType<typeof start>>;
let [first, second] = [null, null] as unknown as [Started, Started];

before(async () => {
  installation = await createTestInstallation("gateway-has");
  first = await start("ha-manager", "shop");
  second = await start("ha-manager.2", "bank");
  app = fastify();
  app.setErrorHandler((error, _request, reply) =>
    error instanceof RefusedError
      ? reply.status(error.statusCode).send({ error: error.refusal })
      : reply.status(400).send(error),
  );
  registerHa(app, (await installation.configure(peerName("gateway"))).configuration);
});
after(async () => {
  await app.close();
  for (const { stop } of [first, second]) await stop();
  await installation.remove();
});

const ask = async (method: "GET" | "POST", url: string): Promise<{ status: number; body: HaReport; text: string }> => {
  const answer = await app.inject({ method, url });
  return { status: answer.statusCode, body: JSON.parse(answer.body), text: answer.body };
};
const steps = ({ items }: HaReport): readonly string[] => items.map(({ path, step }) => `${path} ${step}`).sort();
const vm = (cell: string): string => encodeURIComponent(`${cell}.root/web/vm`);

test("what both work on is one list, and a word about a VM goes to the one that works on it", async () => {
  const { body } = await ask("GET", "/ha");
  assert.deepEqual(steps(body), ["bank/web/vm Investigating", "shop/web/vm Investigating"]);
  assert.deepEqual([body.protected, body.storm?.asked, body.silent], [2, true, undefined]);
  assert.equal(body.alerts?.filter(({ kind }) => kind === "paused").length, 1, "one matter, however many are paused");
  const cancelled = await ask("POST", `/ha/cancel?vm=${vm("bank")}`);
  assert.equal(cancelled.status, 200, cancelled.text);
  assert.deepEqual(steps(cancelled.body), ["bank/web/vm Cancelled", "shop/web/vm Investigating"]);
  assert.deepEqual([first.told, second.told], [[], ["ha-cancel"]]);
  const nobodys = await ask("POST", `/ha/cancel?vm=${vm("farm")}`);
  assert.match(nobodys.text, /"ha\/nothing".*nothing is being done about farm\/web\/vm/);
  assert.equal(nobodys.status, 404);
  await ask("POST", `/ha/retry?vm=${vm("bank")}`);
});

test("an alert of both is acknowledged at both, and what is said of all is said to both", async () => {
  const { body } = await ask("POST", "/alerts/acknowledge?kind=paused");
  assert.ok(body.alerts?.find(({ kind }) => kind === "paused")?.acknowledged !== undefined);
  const released = await ask("POST", "/ha/release");
  assert.equal(released.body.storm, null);
  assert.deepEqual(steps(released.body), ["bank/web/vm Fencing", "shop/web/vm Fencing"]);
  for (const { told } of [first, second]) assert.deepEqual(told.slice(-2), ["ha-acknowledge", "ha-release"]);
});

test("of one that does not answer it is said that its part is missing, and nobody takes its VMs for nobody's", async () => {
  await second.stop();
  const { status, body } = await ask("GET", "/ha");
  assert.equal(status, 200);
  assert.deepEqual(steps(body), ["shop/web/vm Fencing"]);
  assert.deepEqual(
    body.silent?.map(({ manager }) => manager),
    ["ha-manager.2"],
  );
  const bank = await ask("POST", `/ha/retry?vm=${vm("bank")}`);
  assert.deepEqual([bank.status, /not all do: ha-manager\.2: /.test(bank.text)], [503, true], bank.text);
  const paused = await ask("POST", "/ha/pause");
  assert.deepEqual([paused.status, first.told.at(-1)], [503, "ha-pause"], "who answers has paused");
  assert.match(paused.text, /not every HA Manager has heard it: ha-manager\.2: .*; say it again/);
  assert.equal((await ask("POST", `/ha/retry?vm=${vm("shop")}`)).status, 200, "its own go on by word");
});

const nothing: HaReport = { protected: 1, storm: null, alerts: [], items: [] };
const at = (seconds: number): string => new Date(seconds * 1000).toISOString();
const alert = (subject: string, since: number, acknowledged?: number): HaAlert => ({
  kind: "isolated",
  subject,
  since: at(since),
  sentence: "it may run on",
  ...(acknowledged === undefined ? {} : { acknowledged: at(acknowledged) }),
});
const heard = (...reports: readonly HaReport[]): readonly Heard[] =>
  reports.map((said, index) => ({ manager: `ha-manager.${index + 1}`, said }));

test("a host is one matter of all, since the first time, and looked after only where it is so at all", () => {
  const [one, other] = [
    { ...nothing, alerts: [alert("h1", 5, 9)] },
    { ...nothing, alerts: [alert("h1", 3), alert("h2", 4)] },
  ];
  assert.deepEqual(joined(heard(one, other))?.alerts, [alert("h1", 3), alert("h2", 4)]);
  const both = joined(heard(one, { ...nothing, alerts: [alert("h1", 3, 8)] }));
  assert.deepEqual(both?.alerts, [alert("h1", 3, 8)]);
});

test("what is worked on comes first, then what has ended, the last one first; who tells outside and cuts power is the first one", () => {
  const item = (path: string, step: HaItem["step"], scheduled: number, since: number): HaItem => ({
    type: "HA",
    step,
    vm: path,
    cell: "shop.root",
    path,
    incarnation: 1,
    host: "h1",
    reason: "",
    outcome: null,
    held: null,
    fencedBy: null,
    scheduled: at(scheduled),
    since: at(since),
    investigators: [],
    fencers: [],
  });
  const one = { ...nothing, items: [item("b", "Fencing", 2, 2), item("d", "Done", 0, 3)] };
  const other = { ...nothing, items: [item("a", "Scheduled", 1, 1), item("c", "Error", 0, 4)] };
  const power = { host: "h1", kind: "ipmi" as const, address: "10.9.0.1", uuid: "u", said: null };
  const all = joined(heard({ ...one, power: [power] }, { ...other, power: [] }));
  assert.deepEqual(
    all?.items.map(({ path }) => path),
    ["a", "b", "c", "d"],
  );
  assert.deepEqual(all?.power, [power]);
  const storm = (since: number, hosts: readonly string[], asked?: true) => ({
    ...nothing,
    storm: { since: at(since), hosts, ...(asked === undefined ? {} : { asked }) },
  });
  assert.deepEqual(joined(heard(storm(2, ["h1", "h2"]), storm(1, ["h2"], true)))?.storm, {
    since: at(1),
    hosts: ["h2", "h1"],
  });
  assert.equal(joined([{ manager: "ha-manager", said: "it is starting" }]), null);
});
