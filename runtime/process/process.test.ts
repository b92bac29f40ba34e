import assert from "node:assert/strict";
import { type ChildProcess, fork } from "node:child_process";
import { stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { actualKey } from "../../core/documents/vocabulary.ts";
import { type Effect, readAnything, type Service } from "../../core/env.ts";
import { type PeerName, peerName } from "../../model/cell/identifiers.ts";
import type { Json } from "../../model/json/json.ts";
import { createEcho, type EchoRequest, type EchoView, echoClient, echoServer } from "../http/echo.testing.ts";
import { createTestInstallation, eventually, type TestInstallation } from "../installation.testing.ts";
import type { LogEvent } from "../observation/events.ts";
import { createObserver } from "../observation/observer.ts";
import { transportLimits } from "../transport/connections/connection.ts";
import { type RunningService, runService } from "./process.ts";

const childFile = join(import.meta.dirname, "../http/echo.testing.ts");
const alive = new Set<ChildProcess>();

const installations: TestInstallation[] = [];
after(async () => {
  for (const child of alive) child.kill("SIGKILL");
  for (const installation of installations) await installation.remove();
});
const createInstallation = async (label: string): Promise<TestInstallation> => {
  const installation = await createTestInstallation(label);
  installations.push(installation);
  return installation;
};

/** One service as an operating-system process that can be killed and asked. */
interface Worker {
  readonly child: ChildProcess;
  /** Null when the process ended before it answered. */
  ask(request: EchoRequest): Promise<Json | "gone">;
  kill(signal: NodeJS.Signals): Promise<number | null>;
}
const startWorker = async (file: string): Promise<Worker> => {
  const child = fork(childFile, [file], { stdio: ["ignore", "ignore", "inherit", "ipc"], execArgv: [] });
  alive.add(child);
  let nextId = 0;
  const waiting = new Map<number, (response: Json | "gone") => void>();
  const exited = new Promise<number | null>((resolve) => {
    child.once("exit", (code) => {
      alive.delete(child);
      for (const answer of waiting.values()) answer("gone");
      waiting.clear();
      resolve(code);
    });
  });
  const ready = new Promise<Json | "gone">((resolve) => waiting.set(0, resolve));
  child.on("message", ({ id, response }: { id: number; response: Json }) => {
    waiting.get(id)?.(response);
    waiting.delete(id);
  });
  assert.notEqual(await ready, "gone", "the service ended while it started");
  return {
    child,
    ask: (request) =>
      new Promise((resolve) => {
        if (child.exitCode !== null || child.signalCode !== null) return resolve("gone");
        nextId += 1;
        waiting.set(nextId, resolve);
        child.send({ id: nextId, request });
      }),
    kill: (signal) => {
      child.kill(signal);
      return exited;
    },
  };
};

const viewOf = async (worker: Worker): Promise<EchoView> => {
  const view = await worker.ask({ ask: "view" });
  assert.notEqual(view, "gone", "the service is not running");
  return view as EchoView;
};

const createRandom = (seed: number): ((below: number) => number) => {
  let state = seed >>> 0;
  return (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
};

const same = (a: Json, b: Json): boolean => {
  const sorted = (value: Json): string => JSON.stringify(Object.entries(value ?? {}).sort());
  return sorted(a) === sorted(b);
};

test("two processes over mutual TLS, killed at random, keep every promise", async (context) => {
  const seed = Number(process.env.CELLS_SEED ?? Math.floor(Math.random() * 2 ** 31));
  context.diagnostic(`CELLS_SEED=${seed}`);
  const random = createRandom(seed);
  const installation = await createInstallation("kill");
  const serverFile = (await installation.configure(echoServer)).file;
  const clientFile = (await installation.configure(echoClient)).file;
  let server = await startWorker(serverFile);
  let client = await startWorker(clientFile);

  // What the client was told is durable; and, per key, what it was asked last without an answer.
  const certain = new Map<string, number | null>();
  const possible = new Map<string, { readonly order: number; readonly value: number | null }[]>();
  let number = 0;
  const desire = async (): Promise<void> => {
    const key = `number/${random(12)}`;
    number += 1;
    const order = number;
    const value = random(4) === 0 ? null : number;
    possible.set(key, [...(possible.get(key) ?? []), { order, value }]);
    if ((await client.ask({ ask: "desire", key, value })) === "gone") return;
    certain.set(key, value);
    // What was asked earlier is settled with it; what was asked later is not.
    possible.set(
      key,
      (possible.get(key) ?? []).filter((desired) => desired.order > order),
    );
  };
  for (let round = 0; round < 12; round += 1) {
    for (let desires = random(12); desires > 0; desires -= 1) await desire();
    // Kill while desires are under way, so that every stage of their journey is hit now and then.
    const underWay = Promise.all([desire(), desire(), desire()]);
    if (random(2) === 0) await sleep(random(40));
    const victim = random(3);
    if (victim !== 0) await server.kill("SIGKILL");
    if (victim !== 1) await client.kill("SIGKILL");
    await underWay;
    if (victim !== 0) server = await startWorker(serverFile);
    if (victim !== 1) client = await startWorker(clientFile);
  }

  await eventually("both agree", async () => {
    const [mine, theirs] = [await viewOf(client), await viewOf(server)];
    return mine.reachable && same(mine.desired, theirs.desired) && same(mine.desired, mine.actual);
  });
  const mine = await viewOf(client);
  for (const key of new Set([...certain.keys(), ...possible.keys()])) {
    const found = (mine.desired[key] ?? null) as number | null;
    const allowed = new Set([certain.get(key) ?? null, ...(possible.get(key) ?? []).map(({ value }) => value)]);
    assert.ok(allowed.has(found), `seed ${seed}: ${key} is ${found}, would be one of ${[...allowed].join(", ")}`);
  }
  assert.deepEqual(mine.violations, [], `seed ${seed}`);
  assert.deepEqual((await viewOf(server)).violations, [], `seed ${seed}`);

  // A killed server's state stays, as old; one that says goodbye takes it along; a new life brings it back.
  await client.ask({ ask: "desire", key: "number/last", value: 1 });
  await eventually("the last desire is echoed", async () => (await viewOf(client)).actual["number/last"] === 1);
  await server.kill("SIGKILL");
  await eventually("the client knows", async () => !(await viewOf(client)).reachable);
  assert.equal((await viewOf(client)).actual["number/last"], 1);
  server = await startWorker(serverFile);
  await eventually("the server is back", async () => (await viewOf(client)).reachable);
  assert.equal(await server.kill("SIGTERM"), 0);
  await eventually("all is withdrawn", async () => same((await viewOf(client)).actual, {}));
  server = await startWorker(serverFile);
  await eventually("all is back", async () => {
    const { actual, desired, reachable } = await viewOf(client);
    return reachable && same(actual, desired);
  });
  assert.equal(await client.kill("SIGINT"), 0);
  assert.equal((await viewOf(server)).desired["number/last"], 1, "a client's goodbye takes nothing back");
  assert.equal(await server.kill("SIGTERM"), 0);
});

test("a certificate of another authority is refused by both sides", async () => {
  const installation = await createInstallation("foreign");
  const server = await installation.configure(echoServer);
  const client = await installation.configure(echoClient, { authority: installation.foreignAuthority });
  const serverLog: LogEvent[] = [];
  const clientLog: LogEvent[] = [];
  const serving = await runService({
    configuration: server.configuration,
    service: createEcho(echoServer),
    onLog: (event) => serverLog.push(event),
  });
  let asking = await runService({
    configuration: client.configuration,
    service: createEcho(echoClient),
    onLog: (event) => clientLog.push(event),
  });
  await asking.request({ ask: "desire", key: "number/1", value: 1 });
  await eventually("the client refuses the server", async () =>
    clientLog.some(({ event }) => event === "transport/unreachable"),
  );
  assert.deepEqual(((await serving.request({ ask: "view" })) as EchoView).desired, {});

  // Now the client trusts the server, and only the server can refuse.
  await asking.stop();
  const trusting = { ...client.configuration.certificate, caFile: server.configuration.certificate.caFile };
  asking = await runService({
    configuration: { ...client.configuration, certificate: trusting },
    service: createEcho(echoClient),
    onLog: (event) => clientLog.push(event),
  });
  serverLog.length = 0;
  await eventually("the server refuses the client", async () =>
    serverLog.some(({ event }) => event === "transport/refused"),
  );
  const view = (await asking.request({ ask: "view" })) as EchoView;
  assert.equal(view.reachable, false);
  assert.deepEqual(((await serving.request({ ask: "view" })) as EchoView).desired, {});
  await asking.stop();
  await serving.stop();
});

test("a silent peer is noticed, and found again", async () => {
  const installation = await createInstallation("silent");
  const { file } = await installation.configure(echoServer);
  const { configuration } = await installation.configure(echoClient);
  const server = await startWorker(file);
  // The other says something every 2 s, and at once when it hears this one.
  const limits = { ...transportLimits, aliveEveryMs: 500, silenceMs: 4000 };
  const running = await runService({ configuration, service: createEcho(echoClient), limits });
  const look = async (): Promise<EchoView> => (await running.request({ ask: "view" })) as EchoView;
  await eventually("they are connected", async () => (await look()).reachable);
  // A stopped process keeps its connections: only its silence shows.
  server.child.kill("SIGSTOP");
  await eventually("the silence is noticed", async () => !(await look()).reachable);
  for (let value = 1; value <= 500; value += 1) await running.request({ ask: "desire", key: "number/1", value });
  server.child.kill("SIGCONT");
  await eventually("the newest value is there", async () => (await look()).actual["number/1"] === 500);
  await running.stop();
  assert.equal(await server.kill("SIGTERM"), 0);
});

test("a restart at once withdraws nothing", async () => {
  const installation = await createInstallation("restart");
  const server = await installation.configure(echoServer);
  const client = await installation.configure(echoClient);
  let serving = await runService({ configuration: server.configuration, service: createEcho(echoServer) });
  const asking = await runService({ configuration: client.configuration, service: createEcho(echoClient) });
  const look = async (): Promise<EchoView> => (await asking.request({ ask: "view" })) as EchoView;
  await asking.request({ ask: "desire", key: "number/1", value: 1 });
  await eventually("the desire is echoed", async () => (await look()).actual["number/1"] === 1);
  await serving.stop({ goodbye: false });
  await eventually("the connection is gone", async () => !(await look()).reachable);
  assert.equal((await look()).actual["number/1"], 1);
  serving = await runService({ configuration: server.configuration, service: createEcho(echoServer) });
  await eventually("the connection is back", async () => (await look()).reachable);
  assert.equal((await look()).actual["number/1"], 1);
  await asking.stop();
  await serving.stop();
});

test("a server with the certificate of another peer is not taken for the wanted one", async () => {
  const installation = await createInstallation("impostor");
  const impostor = await installation.configure(peerName("placer2"));
  const client = await installation.configure(echoClient);
  const peers = { [echoServer]: `127.0.0.1:${impostor.configuration.distributionPort}` };
  await writeFile(client.configuration.peersFile, JSON.stringify({ peers }));
  const log: LogEvent[] = [];
  const other = await runService({ configuration: impostor.configuration, service: createEcho(echoServer) });
  const running = await runService({
    configuration: client.configuration,
    service: createEcho(echoClient),
    onLog: (event) => log.push(event),
  });
  await eventually("the client says why", async () =>
    log.some(({ fields }) => typeof fields.why === "string" && fields.why.includes('is "placer2", not "placer"')),
  );
  await running.stop();
  await other.stop();
});

/** Takes a burst of inputs, a millisecond each at least; a request is answered by how many it has taken. */
const createBusy = (burst: number, begun: () => void): Service<{ taken: number }> => ({
  restore: () => ({ taken: 0 }),
  step: (state, input) => {
    if (input.kind === "start")
      return {
        state,
        effects: Array.from({ length: burst }, (_, at) => ({ kind: "timer", name: `${at}`, afterMs: 0 }) as const),
      };
    if (input.kind === "request") return { state, effects: [{ kind: "reply", id: input.id, response: state.taken }] };
    if (state.taken === 0) begun();
    state.taken += 1;
    for (const begin = performance.now(); performance.now() - begin < 1; );
    return { state, effects: [] };
  },
  entitled: () => false,
  accepts: () => false,
  read: readAnything,
});

test("who asks in the middle of a burst of news has an answer before the last of it is taken", async (context) => {
  const installation = await createInstallation("burst");
  const { configuration } = await installation.configure(echoServer);
  const burst = 300;
  const begun = Promise.withResolvers<void>();
  const running = await runService({ configuration, service: createBusy(burst, begun.resolve) });
  context.after(() => running.stop());
  await begun.promise;
  const taken = await running.request({});
  assert.ok(Number(taken) > 0 && Number(taken) < burst, `${taken} of ${burst} were taken before the answer`);
  await eventually("all are taken", async () => (await running.request({})) === burst);
});

test("a store has one owner, its files are private, and requests end with the service", async () => {
  const installation = await createInstallation("owner");
  const { configuration } = await installation.configure(echoServer);
  const running = await runService({ configuration, service: createEcho(echoServer) });
  const answer = running.request({ ask: "view" });
  const stopped = running.stop();
  // Asked before the stop: answered with it.
  assert.notEqual(await answer, undefined);
  await stopped;
  await assert.rejects(running.request({ ask: "view" }), /stopped/);
  for (const file of [join(configuration.directory, "state.sqlite"), configuration.certificate.keyFile]) {
    assert.equal((await stat(file)).mode & 0o777, 0o600, file);
  }
});

const agent = peerName("agent.s1");
const one = peerName("host.h1");
const others = ["host.h2", "host.h3"].map(peerName);

/** Says back what is desired of it, and answers with what it has; of `beat` all but the first waits for others. */
const createGathering = (forMs: number): Service<Map<string, number>> => ({
  restore: () => new Map(),
  step: (state, input) => {
    if (input.kind === "request")
      return { state, effects: [{ kind: "reply", id: input.id, response: Object.fromEntries(state) }] };
    if (input.kind !== "desired") return { state, effects: [] };
    const key = actualKey(input.from, input.key);
    state.set(key, Number(input.value));
    return { state, effects: [{ kind: "publish", key, value: input.value }] };
  },
  entitled: (_state, peer, key) => key.startsWith(actualKey(peer, "")),
  accepts: () => true,
  read: readAnything,
  gathers: { forMs, isOne: (_state, _peer, key, value) => key === "beat" && Number(value) > 1 },
});
/** Desires what it is asked to, and answers with what it heard. */
const createBeating = (self: PeerName): Service<Map<string, number>> => ({
  restore: () => new Map(),
  step: (state, input) => {
    const effects: Effect[] = [];
    if (input.kind === "start") effects.push({ kind: "subscribe", to: agent, prefix: actualKey(self, "") });
    if (input.kind === "actual") state.set(input.key.slice(actualKey(self, "").length), Number(input.value));
    if (input.kind === "request") {
      for (const [key, value] of Object.entries(input.request as { readonly [key: string]: number }))
        effects.push({ kind: "desire", to: agent, key, value });
      effects.push({ kind: "reply", id: input.id, response: Object.fromEntries(state) });
    }
    return { state, effects };
  },
  entitled: () => false,
  accepts: () => false,
  read: readAnything,
});

interface Beating {
  readonly server: RunningService;
  readonly clients: readonly RunningService[];
  readonly first: RunningService;
  /** A number of the server's process, whatever its labels. */
  number(name: string): Promise<number>;
  /** The server ends as by a crash, and starts again. */
  again(): Promise<Beating>;
  stop(): Promise<void>;
}
const beating = async (label: string, forMs: number): Promise<Beating> => {
  const installation = await createInstallation(label);
  const { configuration } = await installation.configure(agent);
  const join = async (self: PeerName): Promise<RunningService> => {
    const { configuration: own } = await installation.configure(self);
    const observer = createObserver(self, () => undefined);
    return runService({ configuration: own, service: createBeating(self), observer });
  };
  const first = await join(one);
  const running = [first];
  for (const self of others) running.push(await join(self));
  const start = async (): Promise<Beating> => {
    const observer = createObserver(agent, () => undefined);
    const serving = await runService({ configuration, service: createGathering(forMs), observer });
    return {
      server: serving,
      clients: running,
      first,
      number: async (name) => {
        const found = (await observer.metrics()).find((each) => each.name === name);
        assert.ok(found, `there is no ${name}`);
        return found.samples.reduce(
          (sum, { suffix = "", value }) => (/^(_count)?$/.test(suffix) ? sum + value : sum),
          0,
        );
      },
      again: async () => {
        await serving.stop({ goodbye: false });
        return start();
      },
      stop: async () => {
        for (const each of running) await each.stop();
        await serving.stop();
      },
    };
  };
  return start();
};
const heardBy = async (client: RunningService, key = "beat"): Promise<number> =>
  ((await client.request({})) as { readonly [key: string]: number })[key] ?? 0;
const allHear = (room: Beating, value: number): Promise<boolean> =>
  eventually(`all hear ${value}`, async () => {
    const heard = await Promise.all(room.clients.map((client) => heardBy(client)));
    return heard.every((each) => each === value);
  });
const longMs = 3_600_000;

test("beats of many that wait for each other share a commit, and nobody is told of one before", async (context) => {
  const room = await beating("gathered", longMs);
  context.after(() => room.stop());
  for (const client of room.clients) await client.request({ beat: 1 });
  await allHear(room, 1);
  const commits = await room.number("cells_commit_duration_seconds");
  for (const [at, client] of room.clients.entries()) {
    await client.request({ beat: 2 });
    await eventually("it has come", async () => {
      return (await room.number("cells_queue_inputs")) > at || (await heardBy(client)) === 2;
    });
  }
  assert.equal(await room.number("cells_commit_duration_seconds"), commits, "no beat has a commit of its own");
  for (const client of room.clients) assert.equal(await heardBy(client), 1);
  assert.deepEqual(
    await room.server.request({}),
    Object.fromEntries([one, ...others].map((self) => [actualKey(self, "beat"), 1])),
    "what waits is not counted",
  );
  // What else one of them says comes behind its beat, and takes all along.
  await room.first.request({ other: 5 });
  await allHear(room, 2);
  await eventually("and that is heard", async () => (await heardBy(room.first, "other")) === 5);
});

test("what waited as its service crashed was not counted, and is said again", async (context) => {
  let room = await beating("gathered-crash", longMs);
  context.after(() => room.stop());
  for (const client of room.clients) await client.request({ beat: 1 });
  await allHear(room, 1);
  await room.first.request({ beat: 2 });
  await eventually("it has come", async () => (await room.number("cells_queue_inputs")) > 0);
  room = await room.again();
  assert.equal(
    ((await room.server.request({})) as { readonly [key: string]: number })[actualKey(one, "beat")],
    1,
    "as it was durable",
  );
  await room.first.request({ other: 1 });
  await eventually("it is heard", async () => (await heardBy(room.first)) === 2);
});

test("what waits is taken once its time is over, and again", async (context) => {
  const room = await beating("gathered-time", 5);
  context.after(() => room.stop());
  for (let value = 1; value <= 4; value += 1) {
    for (const client of room.clients) await client.request({ beat: value });
    await allHear(room, value);
  }
});
