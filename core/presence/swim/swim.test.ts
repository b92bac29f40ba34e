import assert from "node:assert/strict";
import { test } from "node:test";
import { type HostName, hostName } from "../../../model/cell/identifiers.ts";
import { type SwimConfig, swimDefaults } from "./configuration.ts";
import { confirmationsNeeded, suspicionMs } from "./suspicion.ts";
import { createSwim, stepSwim } from "./swim.ts";
import type { Packet, SwimInput, Update } from "./types.ts";

const config: SwimConfig = { ...swimDefaults, confirmers: 0 };
const h = (number: number): HostName => hostName(`h${number}`);
const about = (
  status: Update["status"],
  host: number,
  incarnation = 0,
  from: number | null = null,
  generation = 1,
) => ({
  status,
  host: h(host),
  generation,
  incarnation,
  from: from === null ? null : h(from),
});

/** h1, which knows h2 to h<hosts>, and its clock. */
const member = (hosts: number, more: Partial<SwimConfig> = {}) => {
  const state = createSwim({ self: h(1), generation: 1, config: { ...config, ...more }, seed: 5 }, 0);
  let now = 0;
  const step = (input: SwimInput, at = now) => {
    now = at;
    return stepSwim(state, input, now);
  };
  const others = Array.from({ length: hosts - 1 }, (_, index) => about("alive", index + 2));
  step({ kind: "sync", from: h(2), updates: others, answer: true });
  const packet = (kind: Packet["kind"], from: number, more: Partial<Packet> = {}): SwimInput => ({
    kind: "packet",
    packet: {
      kind,
      seq: 1,
      from: h(from),
      generation: 1,
      incarnation: state.members.get(h(from))?.incarnation ?? 0,
      target: kind === "gossip" ? null : h(1),
      digest: state.digest,
      updates: [],
      ...more,
    },
  });
  const tell = (...updates: Update[]) => step(packet("gossip", 2, { updates }));
  /** Wakes it whenever it wants, until then; nobody answers. */
  const sleep = (ms: number) => {
    const until = now + ms;
    const outputs = [];
    while (state.wakeAt <= until) outputs.push(step({ kind: "wake" }, Math.max(state.wakeAt, now)));
    now = until;
    return outputs;
  };
  return { state, step, packet, tell, sleep, now: () => now, view: (host: number) => state.members.get(h(host)) };
};

test("a probe that is answered goes on to the next; each member has its turn in a round", () => {
  const { state, step, packet } = member(6);
  const probed = new Set<HostName>();
  for (let turn = 0; turn < 5; turn += 1) {
    const output = step({ kind: "wake" }, Math.max(state.probeAt, state.wakeAt));
    const ping = output.packets.find((sent) => sent.packet.kind === "ping");
    assert.ok(ping !== undefined);
    probed.add(ping.to);
    const number = Number(ping.to.slice(1));
    step(packet("ack", number, { seq: ping.packet.seq, target: ping.to }));
    assert.equal(state.probes.size, 0);
    assert.equal(state.localHealth, 0);
  }
  assert.equal(probed.size, 5);
});

test("who does not answer is doubted in private, asked again, and suspected in public only then; helpers are asked before", () => {
  const { state, sleep, view, step } = member(2);
  const outputs = [step({ kind: "wake" }, state.probeAt), ...sleep(config.doubtMs - 100)];
  assert.equal(view(2)?.status, "alive");
  assert.equal(state.doubts.size, 1);
  const packets = outputs.flatMap((output) => output.packets).map(({ packet }) => packet);
  assert.ok(packets.filter(({ kind }) => kind === "ping").length >= 4);
  assert.ok(
    packets.every(({ updates }) => updates.every(({ status }) => status === "alive")),
    "nobody is told yet",
  );
  const verdicts = sleep(20_000).flatMap((output) => output.verdicts.map(({ verdict }) => verdict));
  assert.deepEqual(verdicts, ["doubted", "failed"]);
  const many = member(6);
  const asked = [many.step({ kind: "wake" }, many.state.probeAt), ...many.sleep(config.probeTimeoutMs + 10)];
  const helpers = asked.flatMap((output) => output.packets).filter(({ packet }) => packet.kind === "ping-req");
  assert.equal(new Set(helpers.map(({ to }) => to)).size, config.indirectProbes);
});

test("each round has another order", () => {
  const { state, step, packet } = member(12);
  const turn = (): HostName => {
    const output = step({ kind: "wake" }, Math.max(state.probeAt, state.wakeAt));
    const ping = output.packets.find((sent) => sent.packet.kind === "ping");
    assert.ok(ping !== undefined);
    step(packet("ack", Number(ping.to.slice(1)), { seq: ping.packet.seq, target: ping.to }));
    return ping.to;
  };
  const rounds = [1, 2, 3].map(() => Array.from({ length: 11 }, turn).join());
  assert.equal(new Set(rounds).size, 3, rounds.join("\n"));
  assert.equal(new Set(rounds.map((round) => round.split(",").sort().join())).size, 1);
});

test("helpers who say that they are there and hear nothing either lay it on the one that does not answer", () => {
  const healthWith = (about: (target: HostName) => HostName): number => {
    const { state, step, packet, sleep } = member(6);
    const asked = [step({ kind: "wake" }, state.probeAt), ...sleep(config.probeTimeoutMs + 10)];
    const requests = asked.flatMap(({ packets }) => packets).filter((sent) => sent.packet.kind === "ping-req");
    assert.ok(requests.length > 0);
    for (const { to, packet: sent } of requests)
      step(packet("nack", Number(to.slice(1)), { seq: sent.seq, target: about(sent.target ?? to) }));
    sleep(config.probeEveryMs - config.probeTimeoutMs);
    return state.localHealth;
  };
  assert.equal(
    healthWith((target) => target),
    0,
  );
  assert.equal(
    healthWith(() => h(1)),
    config.indirectProbes,
    "a word about somebody else is none",
  );
});

test("while somebody is doubted, helpers are asked at first, and not again before the end", () => {
  const { state, step, sleep } = member(6);
  const outputs = [step({ kind: "wake" }, state.probeAt), ...sleep(config.doubtMs - 100)];
  const packets = outputs.flatMap((output) => output.packets);
  const target = packets.find((sent) => sent.packet.kind === "ping")?.to;
  const seqs = (kind: Packet["kind"]): number =>
    new Set(
      packets
        .filter(({ packet: sent }) => sent.kind === kind && sent.target === target)
        .map(({ packet: sent }) => sent.seq),
    ).size;
  assert.ok(seqs("ping") >= 3, String(seqs("ping")));
  assert.equal(seqs("ping-req"), 1);
});

test("an answer ends a doubt, and a late one of another probe does not count", () => {
  const { state, step, sleep, packet } = member(2);
  const [ping] = step({ kind: "wake" }, state.probeAt).packets;
  assert.ok(ping !== undefined);
  sleep(1500);
  assert.equal(state.doubts.size, 1);
  step(packet("ack", 2, { seq: ping.packet.seq, target: h(2) }));
  assert.equal(state.doubts.size, 1, "that probe is over");
  const running = [...state.probes.keys()].at(-1);
  step(packet("ack", 2, { seq: running ?? 0, target: h(3) }));
  assert.equal(state.doubts.size, 1, "an answer of somebody else");
  step(packet("ack", 2, { seq: running ?? 0, target: h(2) }));
  assert.equal(state.doubts.size, 0);
});

test("helpers are asked when a member does not answer; who helps probes, passes on the answer, or says that there is none", () => {
  const { state, step, packet, sleep } = member(6);
  const asked = step(packet("ping-req", 2, { seq: 77, target: h(3) }));
  const relayed = asked.packets.find(({ packet: sent }) => sent.kind === "ping");
  assert.equal(relayed?.to, h(3));
  const nacks = sleep(450).flatMap(({ packets }) => packets.filter(({ packet: sent }) => sent.kind === "nack"));
  assert.deepEqual(
    nacks.map(({ to, packet: sent }) => [to, sent.seq, sent.target]),
    [[h(2), 77, h(3)]],
  );
  const wrong = step(packet("ack", 4, { seq: relayed?.packet.seq ?? 0, target: h(3) }));
  assert.deepEqual(wrong.packets, [], "only the one that was probed can answer");
  const answer = step(packet("ack", 3, { seq: relayed?.packet.seq ?? 0, target: h(3) }));
  assert.deepEqual(
    answer.packets.map(({ to, packet: sent }) => [to, sent.kind, sent.seq, sent.target]),
    [[h(2), "ack", 77, h(3)]],
  );
  assert.equal(state.relays.size, 0);
});

test("words about a host: the later generation, the end of one, the later incarnation, the suspicion", () => {
  const { tell, view, step } = member(5);
  const of = (): string => `${view(3)?.status} ${view(3)?.generation}.${view(3)?.incarnation}`;
  const steps: readonly (readonly [Update, string])[] = [
    [about("suspect", 3, 0, 4), "suspect 1.0"],
    [about("alive", 3, 0), "suspect 1.0"],
    [about("alive", 3, 1), "alive 1.1"],
    [about("suspect", 3, 0, 4), "alive 1.1"],
    [about("suspect", 3, 1, 4), "suspect 1.1"],
    [about("suspect", 3, 2, 4), "suspect 1.2"],
    [about("dead", 3), "dead 1.0"],
    [about("alive", 3, 9), "dead 1.0"],
    [about("suspect", 3, 9, 4), "dead 1.0"],
    [about("alive", 3, 0, null, 2), "alive 2.0"],
    [about("dead", 3), "alive 2.0"],
    [about("left", 3, 0, null, 2), "left 2.0"],
    [about("alive", 3, 5, null, 2), "left 2.0"],
    [about("alive", 3, 0, null, 3), "alive 3.0"],
    [about("alive", 3, 7, null, 1), "alive 3.0"],
  ];
  for (const [update, expected] of steps) {
    // A death is the Presence group's to say.
    if (update.status === "dead") step({ kind: "declared", host: update.host, generation: update.generation });
    else tell(update);
    assert.equal(of(), expected, JSON.stringify(update));
  }
});

test("a suspicion lasts the longest time at first, and the shortest once enough others confirm it, each counted once", () => {
  const { tell, view, state } = member(40);
  tell(about("suspect", 3, 0, 4));
  const { startedAt, deadline } = view(3)?.suspicion ?? assert.fail();
  assert.equal(deadline - startedAt, suspicionMs(config, 40, 0));
  const deadlines = [deadline];
  for (const from of [4, 5, 5, 4, 6, 7, 8, 9]) {
    tell(about("suspect", 3, 0, from));
    deadlines.push(view(3)?.suspicion?.deadline ?? 0);
  }
  assert.deepEqual(
    deadlines.map((at, index) => (index === 0 ? false : at < (deadlines[index - 1] ?? 0))),
    [false, false, true, false, false, true, true, false, false],
  );
  assert.equal((deadlines.at(-1) ?? 0) - startedAt, suspicionMs(config, 40, confirmationsNeeded(config, 40)));
  assert.ok(state.suspicionAt <= (deadlines.at(-1) ?? 0));
});

test("who hears of a suspicion looks for itself, by chance, and asks nobody twice at a time", () => {
  const { tell, state, step } = member(5, { confirmers: 100 });
  // A probe of another one is on its way.
  step({ kind: "wake" }, state.wakeAt);
  const [probed] = [...state.probes.values()].map(({ target }) => Number(target.host.slice(1)));
  const other = probed === 3 ? 4 : 3;
  const asked = (host: number): number =>
    [...state.probes.values()].filter(({ target }) => target.host === h(host)).length;
  tell(about("suspect", other, 0, probed === 2 ? 5 : 2));
  assert.equal(asked(other), 1);
  tell(about("suspect", probed ?? 0, 0, other));
  assert.equal(asked(probed ?? 0), 1, "it is being asked already");
});

test("a suspicion by hearsay runs out without a report; one of own probes is reported, and taken back when it is refuted", () => {
  const { tell, view, sleep, step, packet, state } = member(5);
  tell(about("suspect", 3, 0, 4), about("suspect", 3, 0, 2));
  // Everyone answers but nobody asks h3 here.
  const answer = (ms: number) => {
    const until = state.wakeAt + ms;
    const verdicts = [];
    while (state.wakeAt < until) {
      const output = step({ kind: "wake" }, state.wakeAt);
      verdicts.push(...output.verdicts);
      for (const { to, packet: sent } of output.packets)
        if (sent.kind === "ping") step(packet("ack", Number(to.slice(1)), { seq: sent.seq, target: to }));
    }
    return verdicts;
  };
  assert.deepEqual(answer(20_000), []);
  assert.equal(view(3)?.suspicion?.expired, true);
  const verdicts = sleep(20_000).flatMap((output) => output.verdicts.filter(({ host }) => host === h(3)));
  assert.deepEqual(
    verdicts.map(({ verdict }) => verdict),
    ["failed"],
  );
  const refuted = tell(about("alive", 3, 1));
  assert.deepEqual(refuted.verdicts, [{ host: h(3), generation: 1, incarnation: 1, verdict: "alive" }]);
});

test("an answer takes back an own report, though only the suspect itself ends the suspicion", () => {
  const { state, sleep, step, packet, view } = member(2);
  sleep(12_000);
  assert.equal(view(2)?.told, "failed");
  const probe = [...state.probes.values()].find(({ target }) => target.host === h(2));
  assert.ok(probe !== undefined);
  const output = step(packet("ack", 2, { seq: probe.seq, target: h(2) }));
  assert.deepEqual(
    output.verdicts.map(({ verdict }) => verdict),
    ["suspect"],
  );
  assert.equal(view(2)?.status, "suspect");
});

test("who is suspected hears it first with the next packet, and refutes with a higher incarnation", () => {
  const { tell, step, packet, state } = member(4);
  tell(about("suspect", 3, 0, 4));
  const pong = step(packet("ping", 3));
  assert.deepEqual(pong.packets[0]?.packet.updates[0], about("suspect", 3, 0, 4));
  const accused = step(packet("ping", 2, { updates: [about("suspect", 1, 0, 4)] }));
  assert.equal(state.self.incarnation, 1);
  assert.equal(accused.incarnated, true);
  const ack = accused.packets.find((sent) => sent.packet.kind === "ack");
  assert.equal(ack?.packet.incarnation, 1);
  assert.ok(ack?.packet.updates.some((update) => update.host === h(1) && update.incarnation === 1));
  assert.equal(state.localHealth, 1, "it may be this host that is slow");
});

test("who is declared dead asks for a higher generation and begins again; a forged greatest incarnation does no harm", () => {
  const { tell, step, state } = member(4);
  const declared = step({ kind: "declared", host: h(1), generation: 1 });
  assert.equal(declared.above, 1);
  step({ kind: "enter", generation: 2 });
  assert.deepEqual([state.self.generation, state.self.incarnation, state.self.status], [2, 0, "alive"]);
  assert.equal(step({ kind: "declared", host: h(1), generation: 1 }).above, null, "that was the former life");
  assert.equal(tell(about("suspect", 1, 0xffff_ffff, 4, 2)).above, 2);
});

test("a host that the group misses is looked for in the life that is named, whatever was held of an earlier one", () => {
  const { step, sleep, view } = member(4);
  const missed = (host: number, generation: number, incarnation = 0) =>
    step({ kind: "missed", host: h(host), generation, incarnation });
  step({ kind: "declared", host: h(3), generation: 1 });
  missed(3, 1);
  assert.equal(view(3)?.status, "dead", "this life is over");
  missed(3, 2);
  assert.deepEqual([view(3)?.status, view(3)?.generation], ["alive", 2]);
  const verdicts = sleep(60_000).flatMap((output) => output.verdicts);
  const failed = verdicts.filter(({ verdict }) => verdict === "failed");
  assert.ok(failed.some(({ host, generation }) => host === h(3) && generation === 2));
  // It had answered a suspicion, and the answer was heard by the group alone.
  missed(2, 1, 5);
  const again = sleep(60_000).flatMap((output) => output.verdicts);
  assert.ok(again.some(({ host, incarnation, verdict }) => host === h(2) && incarnation === 5 && verdict === "failed"));
  missed(3, highest + 1);
  assert.equal(view(3)?.generation, 2, "no life has that number");
});

const highest = 2 ** 48 - 2;
test("no datagram ends a life, of this host or of another, nor does one host alone; two hosts do", () => {
  const { tell, step, state, view } = member(6);
  const says = (from: number, ...updates: Update[]) => step({ kind: "sync", from: h(from), updates, answer: true });
  for (const generation of [1, 2, highest]) {
    const heard = tell(about("dead", 1, 0, null, generation), about("dead", 3, 0, null, generation));
    const rumoured = [1, 3].map((host) => step({ kind: "rumour", host: h(host), generation }));
    const alone = says(2, about("dead", 1, 0, null, generation), about("dead", 3, 0, null, generation));
    const again = says(2, about("dead", 1, 0, null, generation), about("dead", 3, 0, null, generation));
    for (const output of [heard, ...rumoured, alone, again])
      assert.deepEqual([output.above, output.verdicts, output.deaths], [null, [], []]);
  }
  assert.deepEqual([view(3)?.status, view(3)?.generation, state.self.generation], ["alive", 1, 1]);
  const second = says(4, about("dead", 3), about("dead", 1));
  assert.deepEqual(second.deaths, [{ host: h(3), generation: 1 }]);
  assert.equal(second.above, 1);
  assert.equal(view(3)?.status, "dead");
});

test("a hint has this host compare views with those who answer, soon, and not for ever", () => {
  const { tell, step, packet, state } = member(6);
  /** Who is probed answers, and has another view. */
  const exchanges = (at: number): number => {
    step({ kind: "wake" }, at);
    const [probe] = state.probes.values();
    const { host } = probe?.target ?? assert.fail();
    const { seq } = probe ?? assert.fail();
    return step(packet("ack", Number(host.slice(1)), { seq, target: host, digest: 7 }), at).syncs.length;
  };
  const between = (from: number, to: number): number => {
    let count = 0;
    for (let at = from; at <= to; at += 1000) count += exchanges(at);
    return count;
  };
  state.syncedAt = 0;
  const before = between(1000, 9000);
  tell(about("dead", 3));
  const after = between(13_000, 22_000);
  assert.ok(after >= 5 && before <= 1, `${before} exchanges before the hint, ${after} after it`);
  const later = between(80_000, 89_000);
  assert.ok(later <= 2, `${later} exchanges when nobody had confirmed it for long`);
});

test("a number is believed of others as far as somebody may be behind, and of the own life as far as others may know it", () => {
  const { tell, step, state, view } = member(6);
  const refused = state.refused;
  tell(about("alive", 3, 0, null, highest), about("suspect", 3, 0, 4, 5000), about("alive", 1, 0, null, highest));
  assert.deepEqual([view(3)?.generation, view(3)?.status, state.refused - refused], [1, "alive", 3]);
  tell(about("alive", 3, 0, null, 900));
  assert.equal(view(3)?.generation, 900, "it may have lived that often while this host was away");
  assert.equal(tell(about("alive", 1, 0, null, 40)).above, null, "a datagram may be anybody's");
  // This host's store was lost, and the others know of later lives.
  const says = (from: number) =>
    step({ kind: "sync", from: h(from), updates: [about("alive", 1, 0, null, 40)], answer: true });
  assert.equal(says(2).above, null);
  assert.equal(says(3).above, 40);
  // Somebody has made this host meet another one at a number that was never its own: its own word sets that right.
  tell(about("alive", 9, 0, null, highest));
  assert.equal(view(9)?.generation, highest);
  step({ kind: "sync", from: h(9), updates: [about("alive", 9, 2, null, 7)], answer: true });
  assert.deepEqual([view(9)?.generation, view(9)?.incarnation, view(9)?.status], [7, 2, "alive"]);
});

test("a datagram in a host's name moves its number far only as the answer to a probe; another host's word never does", () => {
  const { step, state, view, packet } = member(6);
  const jumps: Partial<Packet> = { generation: highest, incarnation: 0 };
  for (const kind of ["ping", "gossip", "nack", "ping-req", "ack"] as const) {
    const { refused } = state;
    const target = { ping: h(1), gossip: null, nack: h(4), "ping-req": h(4), ack: h(3) }[kind];
    const forged = step(packet(kind, 3, { ...jumps, target, seq: 4_000_000 }));
    assert.deepEqual([view(3)?.generation, view(3)?.status, forged.verdicts], [1, "alive", []], kind);
    assert.equal(state.refused, refused + 1, kind);
  }
  const self = about("alive", 3, 0, null, highest);
  step({ kind: "sync", from: h(4), updates: [self], answer: true });
  assert.equal(view(3)?.generation, 1);
  step(packet("ping", 3, { incarnation: 1 }));
  assert.equal(view(3)?.incarnation, 1, "what it says itself is heard as before");
  // It answers with it.
  while (![...state.probes.values()].some(({ target }) => target.host === h(3)))
    step({ kind: "wake" }, Math.max(state.wakeAt, state.probeAt));
  const probe = [...state.probes.values()].find(({ target }) => target.host === h(3)) ?? assert.fail();
  step(packet("ack", 3, { generation: 5000, incarnation: 0, seq: probe.seq, target: h(3) }));
  assert.equal(view(3)?.generation, 5000);
});

test("a host that stood still draws no conclusion from what it did not hear", () => {
  const { tell, state, step, view, sleep } = member(3);
  sleep(600);
  tell(about("suspect", 3, 0, 2));
  step({ kind: "wake" }, Math.max(state.wakeAt, state.probeAt));
  assert.ok(state.probes.size > 0);
  const left = (view(3)?.suspicion?.deadline ?? 0) - state.wakeAt;
  const resumedAt = state.wakeAt + 60_000;
  const output = step({ kind: "wake" }, resumedAt);
  assert.deepEqual(output.verdicts, []);
  assert.ok((view(3)?.suspicion?.deadline ?? 0) >= resumedAt + left - 1);
  assert.equal(state.doubts.size, 0);
  assert.ok([...state.probes.values()].every(({ startedAt }) => startedAt === resumedAt));
});

test("a goodbye is told at once, and the one that leaves neither answers nor probes", () => {
  const { step, packet, state, sleep } = member(8);
  const output = step({ kind: "leave" });
  assert.ok(output.packets.length > 0);
  assert.ok(output.packets.every(({ packet: sent }) => sent.updates.some(({ status }) => status === "left")));
  assert.deepEqual(step(packet("ping", 2)).packets, []);
  assert.ok(sleep(5000).every(({ packets }) => packets.every(({ packet: sent }) => sent.kind === "gossip")));
  assert.equal(state.self.status, "left");
  const other = member(8);
  const left = other.tell(about("left", 3));
  assert.deepEqual(
    left.verdicts.map(({ verdict }) => verdict),
    ["left"],
  );
});

test("views that differ are exchanged in full, and a newcomer goes on asking until it knows everyone", () => {
  const { step, packet, state, sleep } = member(3);
  sleep(20_000);
  const [probe] = [...state.probes.values()];
  assert.ok(probe !== undefined);
  const [target, digest] = [probe.target.host, state.digest ^ 1];
  state.queue.byHost.clear();
  state.changedAt = 0;
  const output = step(packet("ack", Number(target.slice(1)), { seq: probe.seq, target, digest }));
  assert.deepEqual(
    output.syncs.map(({ to, answer, updates }) => [to, answer, updates.length]),
    [[target, false, 3]],
  );
  const newcomer = createSwim({ self: h(9), generation: 1, config, seed: 1 }, 0);
  const first = stepSwim(newcomer, { kind: "peers", hosts: [h(1), h(2), h(9)] }, 0);
  assert.equal(first.syncs.length, 1);
  stepSwim(newcomer, { kind: "sync", from: h(1), updates: [about("alive", 1)], answer: true }, 5);
  const syncs = [];
  for (let wakes = 0; wakes < 200; wakes += 1)
    syncs.push(...stepSwim(newcomer, { kind: "wake" }, newcomer.wakeAt).syncs);
  assert.ok(syncs.length > 0 && syncs.every(({ to }) => to === h(2)));
});

test("no more members than the limit, no more relays than the limit, and nothing for whom a packet is not meant", () => {
  const { tell, state, step, packet } = member(3, { maxMembers: 4 });
  tell(about("alive", 50), about("alive", 51), about("alive", 52));
  assert.equal(state.members.size, 4);
  assert.equal(state.refused, 2);
  assert.deepEqual(step(packet("ping", 2, { target: h(3) })).packets, []);
  assert.deepEqual(step(packet("ping", 1)).packets, []);
  assert.deepEqual(step(packet("ping", 60)).packets, [], "a sender for whom there is no place");
  for (let number = 0; number < 1000; number += 1) step(packet("ping-req", 2, { seq: number, target: h(3) }));
  assert.ok(state.relays.size <= 256);
});

test("gossip keeps off when the budget is used up, answers go on", () => {
  const { state, step, packet, tell } = member(10);
  for (let number = 0; number < 100; number += 1)
    assert.equal(step(packet("ping", 2)).packets.filter((sent) => sent.packet.kind === "ack").length, 1);
  tell(about("alive", 3, 1));
  assert.ok(state.gossipAt < Number.POSITIVE_INFINITY);
  const output = step({ kind: "wake" }, state.gossipAt);
  assert.ok(output.packets.every(({ packet: sent }) => sent.kind !== "gossip"));
  assert.ok(state.queue.byHost.size > 0, "it is told later");
});

test("hosts that hold each other for dead since an earlier life meet again", () => {
  const lives = [1, 2, 3].map((host) => {
    const state = createSwim({ self: h(host), generation: 3, config, seed: host }, 0);
    for (const other of [1, 2, 3])
      if (other !== host) stepSwim(state, { kind: "declared", host: h(other), generation: 2 }, 0);
    stepSwim(state, { kind: "peers", hosts: [h(1), h(2), h(3)] }, 0);
    return state;
  });
  // Nobody hears the first thing that is said.
  for (let now = 0; now < 300_000; now += 250) {
    for (const state of lives) {
      if (state.wakeAt > now) continue;
      for (const { to, updates, answer } of stepSwim(state, { kind: "wake" }, now).syncs) {
        const other = lives.find(({ self }) => self.host === to) ?? assert.fail();
        const { syncs } = stepSwim(other, { kind: "sync", from: state.self.host, updates, answer }, now);
        for (const back of syncs) stepSwim(state, { kind: "sync", from: to, updates: back.updates, answer: true }, now);
      }
    }
    if (lives.every(({ live }) => live === 3)) return;
  }
  assert.fail(`they hold ${lives.map(({ live }) => live).join(", ")} for alive`);
});
