import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { takeDeclared } from "../../core/documents/declaration.ts";
import type { ActualHost } from "../../core/documents/vocabulary.ts";
import type { Effect } from "../../core/env.ts";
import { createPresence, type HostPresence as Seen } from "../../core/presence/group/group.ts";
import { swimDefaults } from "../../core/presence/swim/configuration.ts";
import { viewFromJson, viewToJson } from "../../core/presence/view.ts";
import { hostName, ipv4, mac, type PeerName, peerName } from "../../model/cell/identifiers.ts";
import type { Json } from "../../model/json/json.ts";
import { servePeers } from "../../runtime/http/https.ts";
import { createTestInstallation, eventually } from "../../runtime/installation.testing.ts";
import { runService } from "../../runtime/process/process.ts";
import { createHostManager } from "../service/manager.ts";
import { passedOn } from "./passed-on.ts";
import { startHostPresence } from "./presence.ts";
import { answerCall, handlePresence, hearMissed, type PresenceState, restorePresence } from "./presence-state.ts";

/** Many times as fast as in an installation. */
const config = {
  ...swimDefaults,
  probeEveryMs: 60,
  probeTimeoutMs: 30,
  gossipEveryMs: 20,
  doubtMs: 300,
  syncQuietMs: 300,
  stallMs: 2000,
};
type Installation = Awaited<ReturnType<typeof createTestInstallation>>;

const startHost = async (installation: Installation, name: string, gossipKeyFile: string) => {
  const { configuration } = await installation.configure(peerName(`host.${name}`), {
    change: { role: "host", presence: { gossipKeyFile } },
  });
  const host: ActualHost = {
    host: hostName(name),
    state: "up",
    address: ipv4("127.0.0.1"),
    mac: mac("02:00:00:00:00:01"),
    memoryMiB: 1000,
    reservedMiB: 100,
    cpus: 1,
    cpuSpeedMHz: 1000,
    accelerator: "tcg",
  };
  const group = passedOn();
  const service = createHostManager({
    host,
    wake: () => undefined,
    ...group.heard,
  });
  const running = await runService({ configuration, service, goodbye: false });
  const { request, beginLife, declaredDead } = running;
  const started = await startHostPresence({
    configuration,
    host: host.host,
    request,
    beginLife,
    declaredDead,
    log: () => undefined,
    config,
  });
  group.begin(started);
  const server = await servePeers(configuration, started.view);
  const stop = async (): Promise<void> => {
    await started.close();
    await server.stop();
    await running.stop({ goodbye: false });
  };
  return { member: started.member, stop };
};

test("hosts find each other, the group declares the one that is gone, and the others are told", {
  timeout: 120_000,
}, async () => {
  const installation = await createTestInstallation("presence");
  const stops: (() => Promise<void>)[] = [];
  try {
    const key = join(installation.directory, "gossip.key");
    await writeFile(key, randomBytes(32), { mode: 0o600 });
    const names = ["h1", "h2", "h3"];
    const hosts = names.map((name) => peerName(`host.${name}`));
    const self = peerName("presence.1");
    const { configuration } = await installation.configure(self, { change: { role: "presence" } });
    const all: Awaited<ReturnType<typeof startHost>>[] = [];
    for (const name of names) {
      const host = await startHost(installation, name, key);
      all.push(host);
      stops.push(host.stop);
    }
    const group = await runService({ configuration, service: createPresence({ self, members: [self], hosts }) });
    stops.push(() => group.stop({ goodbye: false }));
    const seen = async (): Promise<readonly Seen[]> =>
      ((await group.request({ kind: "hosts" })) as unknown as { hosts: readonly Seen[] }).hosts;
    const [first, second, third] = all;
    assert.ok(first !== undefined && second !== undefined && third !== undefined);
    await eventually("they know each other", () => all.every(({ member }) => member.state.live === 3));
    await eventually("the group knows them", async () => (await seen()).every(({ state }) => state === "alive"));
    await third.stop();
    stops.splice(stops.indexOf(third.stop), 1);
    await eventually("it is declared", async () => (await seen())[2]?.state === "dead");
    const isDead = ({ member }: typeof first): boolean => member.state.members.get(hostName("h3"))?.status === "dead";
    await eventually("the others are told", () => isDead(first) && isDead(second));
    const again = await startHost(installation, "h3", key);
    stops.push(again.stop);
    await eventually(
      "it is back, as another",
      () => again.member.state.live === 3 && !isDead(first) && !isDead(second),
    );
    assert.ok(again.member.state.self.generation > third.member.state.self.generation);
    await eventually("the group knows it again", async () => (await seen())[2]?.state === "alive");
  } finally {
    for (const stop of stops.toReversed()) await stop();
    await installation.remove();
  }
});

test("a generation is above every earlier one and durable; only declarations of the group are taken", () => {
  const state: PresenceState = {
    generation: 4,
    boot: null,
    isSameBoot: false,
    self: null,
    members: new Set(),
    declared: new Map(),
    ended: new Map(),
    lifeEndedMs: null,
  };
  const declarationIn = (...said: readonly [ReadonlySet<PeerName>, PeerName, string, Json]) =>
    takeDeclared(new Map(), ...said);
  const effects: Effect[] = [];
  assert.equal(handlePresence(state, { kind: "presence-enter", above: 9 }, effects), 10);
  assert.equal(handlePresence(state, { kind: "presence-enter", above: 0 }, effects), 11);
  assert.deepEqual(effects.at(-1), { kind: "write", key: "presence/generation", value: 11 });
  for (const above of [2 ** 48 - 1, 2 ** 48, 2 ** 53 - 1, Number.NaN, -1])
    handlePresence(state, { kind: "presence-enter", above }, effects);
  assert.equal(state.generation, 16, "a number that has no next one is nobody's");
  assert.equal(restorePresence(new Map([["presence/generation", 2 ** 48]])).generation, 0);
  const member = peerName("presence.1");
  const death = { host: "h2", generation: 3, incarnation: 0, declaredAt: 1, reporters: 2 };
  assert.equal(declarationIn(state.members, member, "dead/h2", death), null, "not followed");
  handlePresence(state, { kind: "presence-follow", members: [member] }, effects);
  assert.deepEqual(effects.at(-1), { kind: "subscribe", to: member, prefix: "dead/" });
  assert.deepEqual(declarationIn(state.members, member, "dead/h2", death), { host: "h2", generation: 3 });
  assert.equal(declarationIn(state.members, member, "dead/h1", death), null);
  assert.equal(declarationIn(state.members, peerName("host.h1"), "dead/h2", death), null);
  const before = effects.length;
  handlePresence(state, { kind: "presence-said", publications: [{ key: "host", value: 1 }] }, effects);
  assert.equal(effects.length, before, "nothing but what is of Presence");
});

test("a call of a member that is followed is answered to that member, and nothing else is", () => {
  const state: PresenceState = {
    generation: 1,
    boot: null,
    isSameBoot: false,
    self: null,
    members: new Set(),
    declared: new Map(),
    ended: new Map(),
    lifeEndedMs: null,
  };
  const effects: Effect[] = [];
  const [member, other] = [peerName("presence.1"), peerName("presence.2")];
  handlePresence(state, { kind: "presence-follow", members: [member] }, effects);
  assert.deepEqual(effects[0], { kind: "subscribe", to: member, prefix: "call" });
  effects.length = 0;
  answerCall(state, other, "call", { call: 7 }, effects);
  answerCall(state, member, "dead/h2", { call: 7 }, effects);
  for (const nothing of [null, 7, { call: "7" }]) answerCall(state, member, "call", nothing, effects);
  assert.deepEqual(effects, []);
  answerCall(state, member, "call", { call: 7, more: 1 }, effects);
  assert.deepEqual(effects, [{ kind: "publish", key: "presence.1/call", value: { call: 7 } }]);
});

test("hosts that a member misses are passed on, but this one, and what is taken back, malformed or a stranger's is not", () => {
  const state = restorePresence(new Map());
  const [member, other] = [peerName("presence.1"), peerName("presence.2")];
  const effects: Effect[] = [];
  handlePresence(state, { kind: "presence-follow", members: [member] }, effects);
  assert.ok(effects.some((effect) => effect.kind === "subscribe" && effect.prefix === "missed/"));
  const missed: unknown[] = [];
  const say = (from: PeerName, key: string, value: Json): void =>
    hearMissed(state, "h1", { from, key, value }, (said) => missed.push(said));
  const life = { host: "h2", generation: 3, incarnation: 1 };
  say(other, "missed/h2", life);
  say(member, "missed/h1", { ...life, host: "h1" });
  say(member, "missed/h3", life);
  say(member, "missed/h2", null);
  say(member, "missed/h2", { ...life, generation: 2 ** 48 });
  say(member, "dead/h2", life);
  assert.deepEqual(missed, []);
  say(member, "missed/h2", life);
  assert.deepEqual(missed, [life]);
});

test("a view is read again as it was, without what makes no sense", () => {
  const update = {
    status: "suspect" as const,
    host: hostName("h1"),
    generation: 1,
    incarnation: 2,
    from: hostName("h2"),
  };
  const view = { updates: [update], answer: true };
  assert.deepEqual(viewFromJson(viewToJson(view)), view);
  const broken = [{ ...update, from: null }, { ...update, host: "H 1" }, { ...update, generation: -1 }, 7];
  assert.deepEqual(viewFromJson({ updates: [...broken, { ...update }], answer: true }), view);
  for (const nothing of [null, 7, {}, { updates: 1, answer: true }, { updates: [] }])
    assert.equal(viewFromJson(nothing), null);
});
