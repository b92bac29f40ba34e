import assert from "node:assert/strict";
import { test } from "node:test";
import { hostName, type PeerName, peerName } from "../../../model/cell/identifiers.ts";
import type { Json } from "../../../model/json/json.ts";
import { presenceKey } from "../../documents/presence.ts";
import { life, member, members, peer, second, self, third } from "./group.testing.ts";
import { thresholdOf } from "./state.ts";

test("so many reports are not enough: a few of many hosts, less than half of few", () => {
  assert.deepEqual(
    [1, 2, 3, 4, 5, 6, 7, 10, 1000].map((hosts) => thresholdOf(hosts, 3)),
    [0, 0, 1, 1, 2, 2, 3, 3, 3],
  );
});

test("a member votes when more hosts than the threshold report one that it does not hear itself", () => {
  const { report, hear, voted, dead, say } = member(10);
  hear(1, false);
  for (const by of [2, 3, 4]) report(by, 1);
  assert.ok(!voted(1));
  report(4, 1);
  assert.ok(!voted(1), "the same host once more");
  report(5, 1);
  assert.ok(voted(1));
  assert.ok(!dead(1), "one vote is no majority");
  say(peer(5), presenceKey.report("h1"), null);
  assert.ok(!voted(1), "it took its report back");
});

test("who is heard is alive, whatever others say, also when it is heard again", () => {
  const { report, hear, voted, dead, vote } = member(10);
  for (const by of [2, 3, 4, 5, 6]) report(by, 1);
  assert.ok(!voted(1));
  hear(1, false);
  assert.ok(voted(1));
  hear(1, true);
  assert.ok(!voted(1));
  vote(second, 1);
  assert.ok(!dead(1));
});

test("reports of hosts that are not heard, are dead themselves, or speak of an earlier life do not count", () => {
  const { report, hear, voted, refute, vote, hearMember } = member(12);
  hear(1, false);
  for (const by of [2, 3, 4, 5]) report(by, 1);
  assert.ok(voted(1));
  hear(5, false);
  assert.ok(!voted(1), "h5 is not heard");
  hear(5, true);
  assert.ok(voted(1));
  refute(1, 1);
  assert.ok(!voted(1), "all reports are of incarnation 0");
  for (const by of [2, 3, 4]) report(by, 1, 1);
  assert.ok(!voted(1));
  report(5, 1, 1);
  assert.ok(voted(1));
  hearMember(second, true);
  vote(second, 5);
  vote(third, 5);
  assert.ok(!voted(1), "a majority declared h5 dead");
});

test("a member that hears less than half of the hosts may be the one that is cut off, and votes for nobody", () => {
  const { report, hear, voted } = member(10);
  for (const by of [2, 3, 4, 5, 6]) report(by, 1);
  for (const lost of [1, 7, 8, 9, 10]) hear(lost, false);
  assert.ok(voted(1));
  hear(6, false);
  assert.ok(!voted(1));
  hear(10, true);
  assert.ok(voted(1));
});

test("a majority of the group declares: durable first, told to all, and its own vote is over", () => {
  const { report, hear, vote, voted, dead, records, published, status } = member(10);
  hear(1, false);
  for (const by of [2, 3, 4, 5]) report(by, 1);
  assert.ok(!dead(1));
  vote(second, 1);
  assert.ok(dead(1) && !voted(1));
  assert.deepEqual(published.get(presenceKey.death("h1")), { ...life(1), declaredAt: 1234, reporters: 4 });
  assert.deepEqual(
    [...records.keys()].filter((key) => !key.startsWith("life/")),
    ["presence/starts", "dead/h1"],
  );
  assert.equal(status()[0]?.state, "dead");
});

test("votes count for the same life only, and only of members that are heard", () => {
  const { report, hear, vote, dead, hearMember, refute } = member(10);
  hear(1, false);
  for (const by of [2, 3, 4, 5]) report(by, 1);
  hearMember(second, false);
  vote(second, 1);
  assert.ok(!dead(1), "it is not heard: its vote may be old");
  vote(third, 1, 0, 0);
  assert.ok(!dead(1), "of an earlier generation");
  refute(1, 1);
  hearMember(second, true);
  vote(third, 1);
  assert.ok(!dead(1), "two votes of a refuted incarnation");
  const other = member(10);
  other.hear(1, false);
  for (const by of [2, 3, 4, 5]) other.report(by, 1);
  other.hearMember(second, false);
  other.vote(second, 1);
  other.hearMember(second, true);
  assert.ok(other.dead(1));
});

const highest = 2 ** 48 - 2;
test("a declaration of other members is taken over when a majority stands behind it, for good; a new generation is another life", () => {
  const { say, dead, published, status, refute, records } = member(5);
  const death = { ...life(2), declaredAt: 99, reporters: 3 };
  say(second, presenceKey.death("h2"), { ...death, generation: highest, ended: highest });
  assert.ok(!dead(2), "one member alone makes up what it likes");
  say(third, presenceKey.death("h2"), death);
  assert.ok(dead(2), "with the word of two it is the majority's");
  assert.deepEqual(records.get("dead/h2"), death);
  refute(2, 7);
  assert.equal(status()[1]?.state, "dead", "that generation is over");
  say(peer(2), presenceKey.self, life(2, 0, 2));
  assert.equal(status()[1]?.state, "alive");
  say(third, presenceKey.death("h2"), { ...life(2, 0, 0), declaredAt: 1, reporters: 3 });
  assert.deepEqual(
    published.get(presenceKey.death("h2")),
    { ...death, returned: 2 },
    "nor does an earlier one come back",
  );
});

test("with its own evidence a member takes one other's declaration over, as it would its vote", () => {
  const { say, dead, report, hear } = member(5);
  say(second, presenceKey.death("h2"), { ...life(2), declaredAt: 99, reporters: 3 });
  assert.ok(!dead(2));
  hear(2, false);
  for (const by of [1, 3, 4]) report(by, 2);
  assert.ok(dead(2));
});

test("a report of a life that a host never said it was in is refused, and hides no true one", () => {
  const { report, hear, vote, dead, status, say } = member(6);
  const lied = report(3, 2, 0, highest);
  assert.ok(lied.some((effect) => effect.kind === "log" && effect.event === "document/refused"));
  say(peer(3), presenceKey.self, { ...life(3), generation: 2 ** 53 - 1 });
  assert.deepEqual(
    status().map(({ generation }) => generation),
    [1, 1, 1, 1, 1, 1],
  );
  hear(2, false);
  for (const by of [1, 4, 5]) report(by, 2);
  vote(second, 2);
  assert.ok(dead(2));
});

test("after a restart the declarations are there, and the votes are not", () => {
  const { report, hear, vote, records, voted } = member(10);
  hear(1, false);
  for (const by of [2, 3, 4, 5]) report(by, 1);
  vote(second, 1);
  hear(9, false);
  for (const by of [2, 3, 4, 5]) report(by, 9);
  assert.ok(voted(9));
  records.set("dead/h99", { ...life(99), declaredAt: 1, reporters: 4 });
  const again = member(10, records);
  assert.ok(again.dead(1));
  assert.ok(!again.voted(9));
  assert.ok(!records.has("dead/h99"), "h99 is no host of the installation any more");
});

test("a goodbye is no death: what is still reported of it is not voted on", () => {
  const { report, hear, voted, say, status } = member(10);
  for (const by of [2, 3, 4, 5]) report(by, 1);
  say(peer(1), presenceKey.self, null);
  hear(1, false);
  assert.ok(!voted(1));
  assert.equal(status()[0]?.state, "gone");
});

test("strangers, hosts that speak for themselves and what has no form are refused, and change nothing", () => {
  const { say, input, service, state, published } = member(4);
  const before = published.size;
  const effects = [
    ...say(peerName("host.h77"), presenceKey.report("h1"), life(1)),
    ...say(peer(2), presenceKey.report("h2"), life(2)),
    ...say(peer(2), presenceKey.report("h1"), { generation: -1, incarnation: "x" }),
    ...say(second, presenceKey.death("h1"), "dead"),
    ...say(peerName("placer"), presenceKey.vote("h1"), life(1)),
  ];
  assert.equal(published.size, before);
  assert.ok(effects.some((effect) => effect.kind === "log" && effect.event === "document/refused"));
  assert.equal(state.refused, 5);
  assert.deepEqual(input({ kind: "desired", from: peer(2), key: "x", value: 1 }), []);
  assert.ok(!service.accepts(peer(2), "anything"));
  assert.ok(service.entitled(state, peerName("controller.shop"), presenceKey.death("h1")));
  assert.ok(!service.entitled(state, peerName("gateway"), presenceKey.death("h1")));
  assert.ok(service.entitled(state, second, presenceKey.vote("h1")));
  assert.ok(!service.entitled(state, peer(1), presenceKey.vote("h1")));
  assert.ok(!service.entitled(state, peerName("presence.4"), presenceKey.vote("h1")), "no member of this group");
});

test("it follows every host and every other member", () => {
  const { subscribed } = member(2);
  const expected = ["h1", "h2"].flatMap((host) => [`host.${host} presence/`, `host.${host} presence.1/call`]);
  for (const other of [second, third]) expected.push(`${other} vote/`, `${other} dead/`);
  assert.deepEqual(subscribed, expected);
  assert.equal(hostName("h1"), "h1");
});

test("a host that comes back in a later generation is said to be back, for good and by every member", () => {
  const { report, hear, vote, say, published, records, status, input } = member(4);
  report(1, 4);
  report(2, 4);
  hear(4, false);
  vote(second, 4);
  const death = { ...life(4), declaredAt: 1234, reporters: 2 };
  assert.deepEqual(published.get("dead/h4"), death);
  assert.equal(status()[3]?.state, "dead");
  const names = (effects: ReturnType<typeof input>) =>
    effects.flatMap((effect) => (effect.kind === "log" ? [effect.event] : []));
  assert.deepEqual(names(say(peer(4), presenceKey.self, life(4, 5))), [], "the same generation is over");
  assert.deepEqual(names(say(peer(4), presenceKey.self, life(4, 0, 2))), ["presence/returned"]);
  assert.deepEqual(published.get("dead/h4"), { ...death, returned: 2 });
  assert.deepEqual(records.get("dead/h4"), { ...death, returned: 2 });
  assert.deepEqual([status()[3]?.state, status()[3]?.generation], ["alive", 2]);
  assert.deepEqual(names(say(peer(4), presenceKey.self, life(4, 0, 3))), [], "said once");
  // One that has just started and hears of the death from another after it has heard the host itself.
  const late = member(4);
  late.say(peer(4), presenceKey.self, life(4, 0, 2));
  for (const from of [second, third]) late.say(from, presenceKey.death("h4"), death);
  assert.deepEqual(late.published.get("dead/h4"), { ...death, returned: 2 });
});

test("a member that is left alone says once that it declares nothing, and once that it can again", () => {
  const { hearMember } = member(4);
  const names = (of: PeerName, reachable: boolean) =>
    hearMember(of, reachable).flatMap((effect) => (effect.kind === "log" ? [effect.event] : []));
  assert.deepEqual(names(second, false), []);
  assert.deepEqual(names(third, false), ["presence/no-majority"]);
  assert.deepEqual(names(third, false), []);
  assert.deepEqual(names(second, true), ["presence/majority"]);
});

test("members that come while it runs are followed, may know its votes, and count for what a majority is", () => {
  const alone = member(10, new Map(), [], [self]);
  const { service, state, subscribed, input, hear, report, vote, voted, dead, hearMember } = alone;
  assert.ok(!service.entitled(state, second, presenceKey.vote("h1")));
  const audience = service.audience?.(state);
  const before = subscribed.length;
  input({ kind: "request", id: 1, request: { kind: "members", members: [...members] } });
  assert.deepEqual(
    subscribed.slice(before),
    [second, third].flatMap((each) => [`${each} ${presenceKey.vote("")}`, `${each} ${presenceKey.death("")}`]),
  );
  assert.ok(service.entitled(state, second, presenceKey.vote("h1")));
  assert.notEqual(service.audience?.(state), audience, "so that who follows already is given what it may know now");
  hear(1, false);
  for (const by of [2, 3, 4, 5]) report(by, 1);
  assert.ok(voted(1) && !dead(1), "one of three");
  hearMember(second, true);
  vote(second, 1);
  assert.ok(dead(1));
  input({ kind: "request", id: 2, request: { kind: "members", members: [...members] } });
  assert.equal(subscribed.length, before + 4, "the same once more is no news");
});

test("a member is not alone while those that came are dialled, and is when none of them answers", () => {
  const { input, hearMember } = member(4, new Map(), [], [self, second]);
  const names = (of: PeerName, reachable: boolean) =>
    hearMember(of, reachable).flatMap((effect) => (effect.kind === "log" ? [effect.event] : []));
  const fourth = peerName("presence.4");
  input({ kind: "request", id: 1, request: { kind: "members", members: [...members, fourth] } });
  assert.deepEqual([names(second, true), names(third, false)], [[], []]);
  assert.deepEqual(names(fourth, false), ["presence/no-majority"]);
  assert.deepEqual(names(third, true), ["presence/majority"]);
});

test("a member that starts after a host's death has the reports alone to go by, and votes on them", () => {
  const { hear, report, vote, voted, dead } = member(4, new Map(), [4]);
  hear(4, false);
  report(1, 4, 2, 7);
  assert.ok(!voted(4), "one of three is not enough");
  report(2, 4, 2, 7);
  assert.ok(voted(4));
  vote(second, 4, 2, 7);
  assert.ok(dead(4));
  // One that is heard is alive; one that said goodbye is not voted on, whatever is still reported.
  const other = member(4, new Map(), [4]);
  other.report(1, 4);
  other.report(2, 4);
  assert.ok(!other.voted(4), "nothing was said about its connection yet");
  other.say(peer(4), presenceKey.self, life(4));
  other.say(peer(4), presenceKey.self, null);
  other.hear(4, false);
  assert.ok(!other.voted(4));
});

test("a member votes when half of the hosts have answered a call that it made when it had all the evidence", () => {
  const { report, hear, voted, answer, answerBy, published, say } = member(10);
  answerBy(false);
  for (const by of [2, 3, 4, 5]) report(by, 1);
  assert.equal(published.get(presenceKey.call), undefined, "it hears the host: there is nothing to ask");
  hear(1, false);
  assert.ok(published.has(presenceKey.call) && !voted(1), "all connections stand, and nobody has answered");
  for (const by of [2, 3, 4, 5]) answer(by);
  assert.ok(!voted(1), "four of ten, as in a part that is cut off together with this member");
  answer(6);
  assert.ok(voted(1));
  say(peer(6), presenceKey.answer(self), null);
  assert.ok(!voted(1));
  answer(7);
  assert.ok(voted(1));
  // The evidence was not whole for a moment: what was answered before says nothing of what it is now.
  const before = published.get(presenceKey.call);
  say(peer(5), presenceKey.report("h1"), null);
  report(5, 1);
  assert.notDeepEqual(published.get(presenceKey.call), before);
  assert.ok(!voted(1));
  for (const by of [2, 3, 4, 5, 6]) answer(by);
  assert.ok(voted(1));
});

test("an answer to a call of an earlier life is none, however many calls this life makes", () => {
  const first = member(10);
  const call = (of: ReturnType<typeof member>) => of.published.get(presenceKey.call) ?? null;
  const evidence = (of: ReturnType<typeof member>): void => {
    of.hear(1, false);
    for (const by of [2, 3, 4, 5]) of.report(by, 1);
  };
  evidence(first);
  const old = call(first);
  const again = member(10, first.records);
  again.answerBy(false);
  // The hosts say still what they answered to the life before.
  for (const by of [2, 3, 4, 5, 6]) again.say(peer(by), presenceKey.answer(self), old);
  evidence(again);
  assert.notDeepEqual(call(again), old);
  assert.ok(first.voted(1) && !again.voted(1));
  for (const by of [2, 3, 4, 5, 6]) again.answer(by);
  assert.ok(again.voted(1));
  // Its store was lost: numbers above its own were not answers to it.
  const lost = member(10);
  lost.answerBy(false);
  for (const by of [2, 3, 4, 5, 6]) lost.say(peer(by), presenceKey.answer(self), call(again));
  evidence(lost);
  assert.ok(!lost.voted(1));
  const [refused] = lost.say(peer(2), presenceKey.answer(self), { call: "all" });
  assert.equal(refused?.kind === "log" && refused.event, "document/refused");
});

test("a host of the version before this one does not answer calls, and counts while its connection stands", () => {
  const { say, report, hear, voted, answerBy } = member(10);
  answerBy(false);
  for (const old of [2, 3, 4, 5]) say(peer(old), presenceKey.self, life(old));
  hear(1, false);
  for (const by of [2, 3, 4, 5]) report(by, 1);
  assert.ok(!voted(1), "four of ten");
  say(peer(6), presenceKey.self, life(6));
  assert.ok(voted(1));
  hear(6, false);
  assert.ok(!voted(1));
});

test("a host that enough others report is suspected, also while its own connection counts as heard, until it is refuted or over", () => {
  const { report, refute, hear, published, vote, hearMember } = member(10);
  const suspected = (): Json | undefined => published.get(presenceKey.suspected("h1"));
  for (const by of [2, 3, 4]) report(by, 1);
  assert.equal(suspected(), undefined, "these are no more than the threshold");
  report(5, 1);
  assert.deepEqual(suspected(), life(1));
  refute(1, 1);
  assert.equal(suspected(), undefined);
  for (const by of [2, 3, 4, 5]) report(by, 1, 1);
  assert.deepEqual(suspected(), life(1, 1));
  hear(5, false);
  assert.equal(suspected(), undefined, "a report of a host that is not heard may be old");
  hear(5, true);
  hear(1, false);
  hearMember(second, true);
  vote(second, 1, 1);
  assert.ok(published.has(presenceKey.death("h1")));
  assert.equal(suspected(), undefined, "what is declared is more than suspected");
});

test("a host that enough others doubt or report is suspected as well, and that is no vote", () => {
  const { say, report, refute, hear, published, voted, dead, vote } = member(10);
  const suspected = (): Json | undefined => published.get(presenceKey.suspected("h1"));
  const doubt = (by: number, incarnation = 0) => say(peer(by), presenceKey.doubt("h1"), life(1, incarnation));
  hear(1, false);
  report(2, 1);
  for (const by of [2, 3, 4]) doubt(by);
  assert.equal(suspected(), undefined, "who reports it and doubts it is one host");
  doubt(1);
  assert.equal(suspected(), undefined, "nor does anybody doubt itself");
  doubt(5);
  assert.deepEqual(suspected(), life(1));
  assert.ok(!voted(1), "a doubt is no report");
  vote(second, 1);
  assert.ok(!dead(1));
  say(peer(5), presenceKey.doubt("h1"), null);
  assert.equal(suspected(), undefined, "it took its doubt back");
  doubt(5);
  hear(5, false);
  assert.equal(suspected(), undefined, "nor of who is not heard");
  hear(5, true);
  refute(1, 1);
  assert.equal(suspected(), undefined, "all are of incarnation 0");
  for (const by of [3, 4, 5]) report(by, 1, 1);
  assert.equal(suspected(), undefined);
  report(2, 1, 1);
  assert.ok(voted(1));
});

test("a host that this member alone heard in its last life is missed, until enough others report it there, it is heard, or over", () => {
  const { report, say, hear, published, vote } = member(4);
  const missed = (): Json | undefined => published.get(presenceKey.missed("h1"));
  assert.equal(missed(), undefined, "it is heard");
  hear(1, false);
  assert.deepEqual(missed(), life(1));
  hear(1, true);
  assert.equal(missed(), undefined);
  for (const by of [2, 3]) report(by, 1);
  hear(1, false);
  assert.equal(missed(), undefined, "they look for it themselves");
  vote(second, 1);
  assert.ok(published.has(presenceKey.death("h1")));
  hear(1, true);
  say(peer(1), presenceKey.self, { ...life(1, 0, 2), answers: true });
  assert.equal(missed(), undefined);
  // Lost again: what the others report is its former life.
  hear(1, false);
  assert.deepEqual(missed(), life(1, 0, 2));
  for (const by of [2, 3]) report(by, 1, 0, 2);
  assert.equal(missed(), undefined);
  say(peer(2), presenceKey.report("h1"), null);
  assert.deepEqual(missed(), life(1, 0, 2));
  say(peer(1), presenceKey.self, null);
  assert.equal(missed(), undefined, "it said goodbye, and is still reported");
});

test("a host that only another member heard again is missed in that life, and is over once more where it stays away", () => {
  const { say, report, hear, vote, published } = member(4);
  const missed = (): Json | undefined => published.get(presenceKey.missed("h1"));
  const returns = (returned: number | null, by = third): void => {
    const dead = { ...life(1), declaredAt: 1, reporters: 2, ...(returned === null ? {} : { returned }) };
    say(by, presenceKey.death("h1"), dead);
  };
  returns(2);
  assert.equal(missed(), undefined, "it was never declared dead here");
  for (const by of [2, 3]) report(by, 1);
  hear(1, false);
  vote(second, 1);
  assert.ok(published.has(presenceKey.death("h1")));
  assert.deepEqual(missed(), life(1, 0, 2), "nobody else would look for it");
  returns(5000);
  assert.equal(missed(), undefined, "it never said anything near that life");
  returns(2);
  assert.deepEqual(missed(), life(1, 0, 2));
  returns(5000, second);
  assert.deepEqual(missed(), life(1, 0, 2), "nor does such a word hide another member's");
  returns(null, second);
  returns(null);
  assert.equal(missed(), undefined, "it takes that back");
  returns(2);
  hear(1, true);
  assert.equal(missed(), undefined, "it is heard");
  hear(1, false);
  assert.deepEqual(missed(), life(1, 0, 2));
  for (const by of [2, 3]) report(by, 1, 0, 2);
  assert.equal(missed(), undefined, "they look for it");
  vote(second, 1, 0, 2);
  const { generation } = published.get(presenceKey.death("h1")) as { readonly generation: number };
  assert.equal(generation, 2);
});

test("hosts are counted by what is thought of them", () => {
  const { service, state, report, vote, hear, say } = member(10, new Map(), [10]);
  hear(1, false);
  for (const by of [2, 3, 4, 5]) report(by, 1);
  vote(second, 1);
  report(2, 6);
  say(peer(7), presenceKey.self, null);
  const counted = (service.measure?.(state) ?? []).find(({ name }) => name === "cells_presence_hosts");
  const values = counted?.samples.map(({ labels, value }) => [labels?.state, value]);
  assert.deepEqual(values, [
    ["alive", 6],
    ["reported", 1],
    ["dead", 1],
  ]);
});
