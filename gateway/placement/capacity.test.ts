import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type FastifyInstance, fastify } from "fastify";
import { host } from "../../core/placer/placer.testing.ts";
import { createPlacer } from "../../core/placer/placer.ts";
import { sliceTimer, unitsOfSlice } from "../../core/placer/what-if/questions.ts";
import { hostName, peerName } from "../../model/cell/identifiers.ts";
import type { RebalanceAnswer } from "../../model/contract/operator/placement.ts";
import type { Json, JsonObject } from "../../model/json/json.ts";
import { servePeers } from "../../runtime/http/https.ts";
import { createTestInstallation, type TestInstallation } from "../../runtime/installation.testing.ts";
import {
  type Asked,
  answering,
  capacityQuestion,
  rebalanceQuestion,
  trialQuestion,
} from "../../runtime/process/asked.ts";
import type { Person } from "../requests/credentials.ts";
import { RefusedError } from "../requests/refused.ts";
import { registerCapacity } from "./capacity.ts";
import { createQuestions } from "./questions.ts";
import { registerRebalance } from "./rebalance.ts";
import { registerTrial } from "./trial.ts";

/* How many more fit, asked of the gateway, over mutual TLS of a Placer that has two hosts. */
let installation: TestInstallation;
let app: FastifyInstance;
let stop: () => Promise<void>;
const asked: Asked = { service: null };

const placer = createPlacer({ self: peerName("placer"), hosts: [peerName("host.h1"), peerName("host.h2")] });
let state = placer.restore({ records: new Map(), desiredAt: new Map() });
const input = (what: Parameters<typeof placer.step>[1]) => {
  const step = placer.step(state, what, { ms: 0, wallMs: 0 });
  state = step.state;
  return step.effects;
};

before(async () => {
  installation = await createTestInstallation("gateway-capacity");
  const { configuration } = await installation.configure(peerName("placer"));
  ({ stop } = await servePeers(
    configuration,
    answering(asked, "placer", [capacityQuestion, rebalanceQuestion, trialQuestion], undefined),
  ));
  app = fastify();
  app.setErrorHandler((error, _request, reply) =>
    error instanceof RefusedError
      ? reply.status(error.statusCode).send({ error: error.refusal })
      : reply.status(500).send(error),
  );
  const gateway = (await installation.configure(peerName("gateway"))).configuration;
  const whoIs = (authorization: string): Person => ({ person: authorization, scope: { kind: "operator" } });
  const asking = { configuration: gateway, questions: createQuestions(), whoIs };
  registerCapacity(app, asking);
  registerRebalance(app, asking);
  registerTrial(app, asking);
  input({ kind: "start" });
  for (const name of ["h1", "h2"]) {
    input({ kind: "actual", from: peerName(`host.${name}`), key: "host", value: host(name, 4000) });
    input({ kind: "reachable", peer: peerName(`host.${name}`), reachable: true });
  }
  const about = { vm: "v1", path: "shop/web", cell: "shop", incarnation: 1, memoryMiB: 1000, cpus: 1, cpuSpeedMHz: 0 };
  const value: JsonObject = { ...about, placement: {} };
  input({ kind: "desired", from: peerName("controller.shop"), key: "placement/v1", value });
});
after(async () => {
  await app.close();
  await stop();
  await installation.remove();
});

/** The Placer's process: what is asked is answered in some step or other. While it stands still nothing is. */
const pending = new Map<number, (response: Json) => void>();
let [isStill, next] = [false, 0];
const said: string[] = [];
function run(what: Parameters<typeof placer.step>[1]): void {
  let isDue = false;
  for (const effect of input(what)) {
    if (effect.kind === "timer") isDue = true;
    if (effect.kind === "reply") pending.get(effect.id)?.(effect.response);
  }
  if (isDue && !isStill) run({ kind: "timer", name: sliceTimer });
}
const request = (about: Json): Promise<Json> =>
  new Promise((resolve) => {
    next += 1;
    pending.set(next, resolve);
    said.push(String((about as JsonObject).kind));
    run({ kind: "request", id: next, request: about });
  });
const until = async (isSo: () => boolean): Promise<void> => {
  for (let times = 0; !isSo(); times += 1) {
    assert.ok(times < 5_000, `it is not so after all: ${said.join(", ")}`);
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
};

const ask = async (query: string): Promise<[number, Json]> => {
  const answer = await app.inject({ method: "GET", url: `/placement/capacity${query}` });
  return [answer.statusCode, JSON.parse(answer.body)];
};
const message = async (query: string): Promise<readonly [number, unknown]> => {
  const [status, body] = await ask(query);
  return [status, (body as { error: { message: string } }).error.message] as const;
};

test("how many more of a VM fit is asked of the Placer, by the VM's path or by its room", async () => {
  assert.deepEqual(await message("?memoryMiB=100"), [503, "no Placer answers"]);
  asked.service = { request } as never;
  const common = { memoryMiB: 1000, cpus: 1, away: [] };
  assert.deepEqual(await ask("?like=shop/web"), [
    200,
    { ...common, like: "shop/web", more: 5, hosts: 2, runsOut: "memory" },
  ]);
  const after = { hosts: 1, more: 2, lost: ["h1"], stranded: 0, every: true };
  assert.deepEqual(await ask("?memoryMiB=1000&failures=1"), [
    200,
    { ...common, like: null, more: 5, hosts: 2, runsOut: "memory", failures: after },
  ]);
});

test("what is no question is refused, and a VM that nobody knows is said to be none", async () => {
  for (const query of ["", "?like=shop/web&memoryMiB=100", "?like=shop/web&cpus=1", "?cpus=2"])
    assert.match((await message(query)).join(" "), /^400 say the path of a VM/);
  for (const query of ["?memoryMiB=15", "?memoryMiB=1000&failures=9", "?memoryMiB=x", "?memoryMiB=100&cpus=0"])
    assert.equal((await ask(query))[0], 400, query);
  assert.match((await message("?like=shop/none")).join(" "), /^404 no Placer knows a VM shop\/none/);
  assert.equal((await ask("?memoryMiB=1000&cpus=1"))[0], 200);
});

test("a plan of moves comes from the Placer, and what is no goal or no host is refused", async () => {
  const plan = async (query: string): Promise<[number, Json]> => {
    const answer = await app.inject({ method: "GET", url: `/placement/rebalance${query}` });
    return [answer.statusCode, JSON.parse(answer.body)];
  };
  const [status, body] = await plan("?goal=empty&host=h1");
  const { plans } = body as unknown as RebalanceAnswer;
  assert.deepEqual(
    [status, plans[0]?.moves.map(({ vm, from, to }) => [vm, from, to])],
    [200, [["shop/web", "h1", "h2"]]],
  );
  assert.deepEqual(plans[0]?.left, []);
  for (const [query, why] of [
    ["?goal=none", /goal/],
    ["", /goal/],
    ["?goal=even&host=h1", /a host is named with the goal "empty"/],
    ["?goal=empty", /a host is named with the goal "empty"/],
    ["?goal=empty&host=h9", /there is no host h9: there are h1, h2/],
  ] as const) {
    const [refusedWith, said] = await plan(query);
    assert.equal(refusedWith, 400, query);
    assert.match((said as { error: { message: string } }).error.message, why);
  }
});

test("what a move would come to is said by the Placer of the VM, and nothing is moved", async () => {
  const tried = async (query: string): Promise<[number, Json]> => {
    const answer = await app.inject({ method: "GET", url: `/placement/try${query}` });
    return [answer.statusCode, JSON.parse(answer.body)];
  };
  const all = { vm: "shop/web", from: "h1", hosts: [{ host: "h2", alerts: [] }] };
  assert.deepEqual(await tried("?vm=shop/web"), [200, all]);
  assert.deepEqual(await tried("?vm=shop/web&host=h2"), [200, all]);
  assert.deepEqual(await tried("?vm=shop/web&host=h1"), [200, { ...all, hosts: [] }]);
  for (const [query, status, why] of [
    ["", 400, /vm/],
    ["?vm=shop/web&host=h9", 400, /there is no host h9: there are h1, h2/],
    ["?vm=shop/none", 404, /no Placer knows a VM shop\/none/],
  ] as const) {
    const [refusedWith, body] = await tried(query);
    assert.equal(refusedWith, status, query);
    assert.match((body as { error: { message: string } }).error.message, why);
  }
});

test("who leaves has the Placer stop, and one person asks two things at a time at most", async () => {
  // More hosts than are looked at in one slice, so that the question is being worked at.
  for (let at = 0; at < 2 * unitsOfSlice; at += 1) {
    const peer = peerName(`host.x${at}`);
    state.hosts.set(peer, { host: hostName(`x${at}`), reachable: false, actual: null });
  }
  isStill = true;
  said.length = 0;
  await app.listen({ host: "127.0.0.1", port: 0 });
  const { port } = app.server.address() as { readonly port: number };
  const from = (person: string, signal?: AbortSignal): Promise<Response> =>
    fetch(`http://127.0.0.1:${port}/placement/capacity?memoryMiB=100`, {
      headers: { authorization: person },
      ...(signal === undefined ? {} : { signal }),
    });
  const leaving = [new AbortController(), new AbortController()];
  const gone = leaving.map(({ signal }) => from("one", signal).catch(() => "gone"));
  await until(() => said.length === 2);
  const third = await from("one", AbortSignal.timeout(10_000)).catch(() =>
    assert.fail("it is taken, and not answered"),
  );
  assert.equal(third.status, 503);
  assert.equal(third.headers.get("retry-after"), "5");
  assert.match(await third.text(), /at most 2 of one person, 4 in all/);
  for (const each of leaving) each.abort();
  assert.deepEqual(await Promise.all(gone), ["gone", "gone"]);
  await until(() => said.filter((kind) => kind === "withdrawn").length === 2);
  assert.equal(state.questions.current, null);
  assert.deepEqual(state.questions.waiting, []);
  isStill = false;
  await until(() => said.length === 4);
  assert.equal((await from("one")).status, 200);
});
