import assert from "node:assert/strict";
import { once } from "node:events";
import { after, test } from "node:test";
import { connect } from "node:tls";
import { limits } from "../../core/distribution/limits.ts";
import { protocolVersion } from "../../core/distribution/node/frames.ts";
import { type Effect, readAnything, type Service } from "../../core/env.ts";
import { type PeerName, peerName } from "../../model/cell/identifiers.ts";
import type { Json } from "../../model/json/json.ts";
import { createTestInstallation, eventually } from "../installation.testing.ts";
import type { ProcessConfiguration } from "../installation.ts";
import type { LogEvent } from "../observation/events.ts";
import { type RunningService, runService } from "../process/process.ts";
import { readCredentials } from "./mutual-tls.ts";

/** A real service, a good client of it, and peers that behave badly one after the other (issue "Bad input"). */
const serverName = peerName("placer");
const badName = peerName("controller.bad");

interface Seen {
  readonly values: Map<string, Json>;
  readonly desired: string[];
}
const service = (to: PeerName | null, seen: Seen): Service<null> => ({
  restore: () => null,
  entitled: () => true,
  accepts: (_peer, key) => key.startsWith("desire/"),
  read: readAnything,
  audience: () => null,
  step: (state, input) => {
    if (input.kind === "start" && to !== null) return { state, effects: [{ kind: "subscribe", to, prefix: "" }] };
    if (input.kind === "actual") seen.values.set(input.key, input.value);
    if (input.kind === "desired") seen.desired.push(`${input.from} ${input.key}`);
    if (input.kind !== "request") return { state, effects: [] };
    if (Array.isArray(input.request)) {
      const reply: Effect = { kind: "reply", id: input.id, response: null };
      return { state, effects: [...(input.request as unknown as Effect[]), reply] };
    }
    const publish: Effect = { kind: "publish", key: "count", value: input.request };
    return { state, effects: [publish, { kind: "reply", id: input.id, response: null }] };
  },
});
const seenBy = (): Seen => ({ values: new Map(), desired: [] });

const running: RunningService[] = [];
const installation = await createTestInstallation("bad-peers");
after(async () => {
  for (const each of running) await each.stop();
  await installation.remove();
});
const begin = async (name: PeerName, to: PeerName | null, seen: Seen, log: LogEvent[]): Promise<RunningService> => {
  const { configuration } = await installation.configure(name);
  const each = await runService({
    configuration,
    service: service(to, seen),
    onLog: (event) => log.push(event),
  });
  running.push(each);
  return each;
};

const [serverSeen, goodSeen] = [seenBy(), seenBy()];
const [serverLog, goodLog]: [LogEvent[], LogEvent[]] = [[], []];
const server = await begin(serverName, null, serverSeen, serverLog);
const good = await begin(peerName("controller.good"), serverName, goodSeen, goodLog);
const bad = (await installation.configure(badName)).configuration;

const framed = (value: Json): Buffer => {
  const body = Buffer.from(JSON.stringify(value));
  const head = Buffer.alloc(4);
  head.writeUInt32BE(body.length);
  return Buffer.concat([head, body]);
};
let session = 0;
const hello = (version: number): Buffer => {
  session += 1;
  return framed({ frame: "hello", version, generation: 1, session, name: badName });
};

/** Says it and waits for the end of the connection, unless `until` comes first. */
const say = async (what: Buffer, until?: () => boolean, configuration: ProcessConfiguration = bad): Promise<void> => {
  const socket = connect({
    ...readCredentials(configuration),
    host: "127.0.0.1",
    port: server.distributionPort,
    checkServerIdentity: () => undefined,
  });
  socket.on("error", () => undefined);
  socket.resume();
  const ended = once(socket, "close");
  socket.write(what);
  if (until === undefined) await ended;
  else {
    await eventually("it was taken note of", until);
    assert.equal(socket.closed, false, "its connection stands");
    socket.destroy();
  }
};

const count = async (reason: string): Promise<number> => {
  const metrics = await server.observer.metrics();
  const samples = metrics
    .filter(({ name }) => name === "cells_distribution_refused_total")
    .flatMap((metric) => metric.samples);
  return samples.find(({ labels }) => labels.reason === reason)?.value ?? 0;
};

let published = 0;
/** Does it three times: counted each time, logged once, and the good client hears the next news after each. */
const check = async (reason: string, misbehave: () => Promise<void>, times = 1): Promise<void> => {
  for (let round = 1; round <= 3; round += 1) {
    await misbehave();
    await eventually(`"${reason}" is counted`, async () => (await count(reason)) === round * times);
    published += 1;
    await server.request(published);
    await eventually("the good client hears of it", () => goodSeen.values.get("count") === published);
  }
  const lines = serverLog.filter(({ fields }) => fields.reason === reason);
  assert.deepEqual(
    lines.map(({ fields }) => fields.count),
    [1],
    `"${reason}" is logged once`,
  );
  assert.deepEqual(
    goodLog.filter(({ event }) => event.startsWith("peer/")).map(({ event }) => event),
    ["peer/reachable"],
    "the good client was never cut off",
  );
};

test("versions that are too old and too new", async () => {
  await check("unsupported version", async () => {
    await say(hello(protocolVersion + 2));
  });
  await say(hello(protocolVersion - 2));
  assert.equal(await count("unsupported version"), 4);
});

test("garbage, and a frame that is too long", async () => {
  const long = Buffer.alloc(4);
  long.writeUInt32BE(limits.frameBytes + 1);
  await check(
    "no frame",
    async () => {
      await say(Buffer.concat([hello(protocolVersion), Buffer.from("GET / HTTP/1.1\r\n\r\n")]));
      await say(long);
    },
    2,
  );
});

test("frames that make no sense instead of a greeting, and none", async () => {
  await check("malformed frame", () => say(framed(7)));
  await check("out of order", () => say(framed({ frame: "subscribe", prefix: "" })));
  await check("name differs from certificate", () =>
    say(framed({ frame: "hello", version: protocolVersion, generation: 1, session: 1, name: "controller.good" })),
  );
});

test("a certificate of another installation, and none at all", async () => {
  const authority = installation.foreignAuthority;
  const { configuration } = await installation.configure(peerName("controller.foreign"), { authority });
  const { caFile } = bad.certificate;
  const trusting = { ...configuration, certificate: { ...configuration.certificate, caFile } };
  await check("no certificate of this installation", () => say(hello(protocolVersion), undefined, trusting));
  const nobody = connect({ host: "127.0.0.1", port: server.distributionPort, rejectUnauthorized: false });
  nobody.on("error", () => undefined);
  nobody.resume();
  await once(nobody, "close");
  await eventually("it is counted", async () => (await count("no certificate of this installation")) === 4);
});

test("documents that are not accepted here, and more subscriptions than there may be", async () => {
  let desire = 0;
  await check("not accepted here", async () => {
    desire += 1;
    const [bad_, allowed] = [
      { key: "order/1", seq: 1 },
      { key: `desire/${desire}`, seq: 2 },
    ].map((fields) => framed({ frame: "desire", ...fields, value: desire }));
    // The one behind it is taken: a refused document holds up nothing.
    await say(Buffer.concat([hello(protocolVersion), bad_ ?? Buffer.alloc(0), allowed ?? Buffer.alloc(0)]), () =>
      serverSeen.desired.includes(`${badName} desire/${desire}`),
    );
  });
  assert.ok(!serverSeen.desired.some((key) => key.includes("order/")));
  await check("too many subscriptions", async () => {
    const prefixes = Array.from({ length: limits.subscriptions + 1 }, (_, at) =>
      framed({ frame: "subscribe", prefix: `p${at}` }),
    );
    desire += 1;
    const last = framed({ frame: "desire", key: `desire/${desire}`, seq: 1, value: 1 });
    await say(Buffer.concat([hello(protocolVersion), ...prefixes, last]), () =>
      serverSeen.desired.includes(`${badName} desire/${desire}`),
    );
  });
});

test("a hello under another's name, and one that says another's instance and start under its own, harm nobody else", async () => {
  await good.request([{ kind: "desire", to: serverName, key: "desire/good", value: 1 }]);
  await eventually("the good client's desire is there", () =>
    serverSeen.desired.includes("controller.good desire/good"),
  );
  const history = [{ start: "a start", count: 900 }];
  const forged = { frame: "hello", version: protocolVersion, generation: Date.now() + 3_600_000, session: 1 };
  // Under its name nobody gets in who has not its certificate: what stands there is not even looked at.
  const before = await count("name differs from certificate");
  await say(framed({ ...forged, name: "controller.good", instance: "another", history }));
  assert.equal(await count("name differs from certificate"), before + 1);
  const named = async () => (await server.observer.leftovers?.list())?.clients.map(({ client }) => client);
  assert.deepEqual(await named(), []);
  // No later life of its own name can exceed this one.
  await check("generation ahead of time", () => say(framed({ ...forged, generation: 2 ** 52, name: badName })));
  // With a desire there, a start that is not its own makes it the one whose store was lost.
  const desire = (key: string) => framed({ frame: "desire", key, seq: 1, value: 1 });
  const own = { ...forged, name: badName };
  for (const [at, start] of ["one", "two"].entries()) {
    const hello_ = framed({ ...own, session: at + 1, history: [{ start, count: 3 }], instance: "controller.good" });
    const key = `desire/forged-${start}`;
    await say(Buffer.concat([hello_, desire(key)]), () => serverSeen.desired.includes(`${badName} ${key}`));
  }
  assert.deepEqual(await named(), [badName]);
  await good.request([{ kind: "desire", to: serverName, key: "desire/better", value: 1 }]);
  await eventually("the good client is heard", () => serverSeen.desired.includes("controller.good desire/better"));
});
