import assert from "node:assert/strict";
import { test } from "node:test";
import { hostName, type PeerName, peerName } from "../../../model/cell/identifiers.ts";
import type { Json } from "../../../model/json/json.ts";
import { type ActualPresenceDeath, presenceKey } from "../../documents/presence.ts";
import type { Effect, Input } from "../../env.ts";
import { type EndAnswer, mergeEnds, readEndAnswer } from "./end.ts";
import { createPresence, type HostPresence } from "./group.ts";

const members = [1, 2, 3].map((number) => peerName(`presence.${number}`));
const hosts = [1, 2, 3, 4].map((number) => peerName(`host.h${number}`));
const h1 = hostName("h1");
const peer = (number: number): PeerName => peerName(`host.h${number}`);
const life = (number: number, generation = 3) => ({ host: `h${number}`, generation, incarnation: 0 });

/** A member that has heard four hosts, each in the boot of its number times a hundred. */
class Member {
  readonly records = new Map<string, Json>();
  readonly published = new Map<string, Json>();
  readonly service = createPresence({ self: members[0] ?? peerName(""), members, hosts });
  state = this.service.restore({ records: this.records, desiredAt: new Map() });

  constructor() {
    this.input({ kind: "start" });
    for (const number of [1, 2, 3, 4]) {
      this.say(peer(number), presenceKey.self, { ...life(number), answers: true, boot: number * 100 });
      this.hear(number, true);
    }
  }
  restart(): void {
    this.published.clear();
    this.state = this.service.restore({ records: new Map(this.records), desiredAt: new Map() });
    this.input({ kind: "start" });
  }
  input(input: Input): readonly Effect[] {
    const { effects, state } = this.service.step(this.state, input, { ms: 0, wallMs: 77 });
    this.state = state;
    for (const effect of effects) {
      if (effect.kind !== "write" && effect.kind !== "publish") continue;
      const map = effect.kind === "write" ? this.records : this.published;
      if (effect.value === null) map.delete(effect.key);
      else map.set(effect.key, effect.value);
    }
    return effects;
  }
  say(from: PeerName, key: string, value: Json): void {
    this.input({ kind: "actual", from, key, value });
  }
  hear(number: number, reachable: boolean): void {
    this.input({ kind: "reachable", peer: peer(number), reachable });
  }
  report(by: number, of: number): void {
    this.say(peer(by), presenceKey.report(`h${of}`), life(of));
  }
  end(end: { readonly generation: number; readonly boot: number } | null = { generation: 3, boot: 100 }): EndAnswer {
    const effects = this.input({ kind: "request", id: 1, request: { kind: "host-end", host: "h1", end } });
    const reply = effects.find((effect) => effect.kind === "reply");
    assert.ok(reply?.kind === "reply");
    return reply.response as unknown as EndAnswer;
  }
  status(number: number): readonly [string | undefined, boolean] {
    const effects = this.input({ kind: "request", id: 2, request: { kind: "hosts" } });
    const reply = effects.find((effect) => effect.kind === "reply");
    assert.ok(reply?.kind === "reply");
    const { hosts: all } = reply.response as unknown as { readonly hosts: readonly HostPresence[] };
    const host = all.find((each) => each.host === `h${number}`);
    return [host?.state, host?.powerIsOff === true];
  }
  get death(): ActualPresenceDeath | undefined {
    return this.published.get(presenceKey.death("h1")) as unknown as ActualPresenceDeath | undefined;
  }
  get missed(): boolean {
    return this.published.has(presenceKey.missed("h1"));
  }
  /** Nobody hears it any more. */
  lose(): void {
    this.hear(1, false);
    for (const by of [2, 3]) this.report(by, 1);
  }
}

test("a host that is heard, here or by other hosts, has not ended, whatever is said", () => {
  const member = new Member();
  assert.match(member.end().against ?? "", /host h1 is being heard: it runs/);
  member.hear(1, false);
  assert.match(member.end().against ?? "", /h2, h3, h4 may hear host h1 still/);
  member.report(2, 1);
  assert.match(member.end().against ?? "", /h3, h4 may hear host h1 still/);
  assert.ok(!member.published.has("dead/h1"));
  member.report(3, 1);
  assert.equal(member.end(null).against, null, "only asked");
  assert.ok(!member.published.has("dead/h1"));
  assert.deepEqual(member.end(), { known: { generation: 3, boot: 100 }, against: null, ended: 100 });
  assert.deepEqual([member.death?.generation, member.death?.ended], [3, 100]);
});

test("hosts that are gone themselves are not waited for, and one that was just lost may be in a moment", () => {
  const member = new Member();
  for (const number of [1, 3, 4]) member.hear(number, false);
  assert.match(member.end().against ?? "", /h2 may hear/);
  member.report(2, 1);
  assert.equal(member.end().against, null, "most hosts are gone, and a majority of them declares nobody");
  const fresh = new Member();
  fresh.lose();
  fresh.restart();
  assert.match(fresh.end().against ?? "", /not known yet/);
  fresh.hear(1, false);
  assert.deepEqual(fresh.end().known, { generation: 3, boot: 100 }, "what it knew of it is durable");
  assert.equal(fresh.death?.ended, 100);
});

test("the end is durable, never taken back, and taken over by the others; a later life is none of its business", () => {
  const member = new Member();
  member.lose();
  member.end();
  assert.deepEqual(member.status(1), ["dead", true]);
  member.restart();
  assert.deepEqual([member.death?.ended, member.death?.endedIn], [100, 3]);
  assert.deepEqual(member.status(1), ["dead", true]);
  member.say(peer(1), presenceKey.self, { ...life(1, 4), answers: true, boot: 101 });
  member.hear(1, true);
  assert.deepEqual([member.death?.returned, member.death?.ended], [4, 100]);
  assert.deepEqual(member.status(1), ["alive", false]);
  assert.match(member.end().against ?? "", /being heard/);
  // It dies again, and nobody says that its power is off.
  const death = { ...life(1, 4), declaredAt: 5, reporters: 2 };
  const others = members.slice(1);
  for (const other of others) member.say(other, presenceKey.death("h1"), death);
  assert.deepEqual([member.death?.generation, member.death?.ended, member.death?.endedIn], [4, 100, 3]);
  member.say(members[1] ?? peerName(""), presenceKey.death("h1"), {
    ...life(1, 3),
    declaredAt: 5,
    reporters: 2,
    ended: 99,
  });
  assert.deepEqual([member.death?.generation, member.death?.ended], [4, 100]);
  const end = { ...death, ended: 101, endedIn: 4 };
  member.say(members[2] ?? peerName(""), presenceKey.death("h1"), end);
  assert.equal(member.death?.ended, 100, "this member hears the host");
  member.lose();
  assert.deepEqual([member.death?.generation, member.death?.ended], [4, 101], "taken over when nobody hears it");
  // A boot that never was: it would end those that are to come.
  member.say(members[2] ?? peerName(""), presenceKey.death("h1"), { ...end, ended: 2 ** 48 - 2 });
  assert.equal(member.death?.ended, 101);
  assert.match(member.end({ generation: 4, boot: 102 }).against ?? "", /never heard in boot 102/);
  member.restart();
  assert.deepEqual([member.death?.ended, member.death?.endedIn], [101, 4]);
});

test("several members know together what one of them does, and what speaks against it for one does for all", () => {
  const answer = (generation: number | null, boot: number | null, against: string | null = null): EndAnswer => ({
    known: generation === null ? null : { generation, boot },
    against,
    ended: null,
  });
  assert.deepEqual(mergeEnds(h1, [answer(null, null), answer(3, 100), answer(2, 90)]), answer(3, 100));
  assert.equal(mergeEnds(h1, [answer(3, 100), answer(3, 100, "it runs")]).against, "it runs");
  assert.match(mergeEnds(h1, [answer(null, null)]).against ?? "", /nobody knows of any life/);
  assert.match(mergeEnds(h1, [answer(3, null)]).against ?? "", /does not say when its machine started/);
});

test("what a member answers is taken with numbers that a life can have, and otherwise as no answer", () => {
  const known = { generation: 7, boot: 3 };
  const sound = { known, against: null, ended: 2 };
  assert.deepEqual(readEndAnswer(sound), sound);
  assert.deepEqual(readEndAnswer({ known: null, against: "x", ended: null }), {
    known: null,
    against: "x",
    ended: null,
  });
  const wrong: readonly Json[] = [
    null,
    5,
    [],
    {},
    { ...sound, ended: 2 ** 53 },
    { ...sound, ended: "2" },
    { ...sound, against: 5 },

    { ...sound, known: 5 },
    { ...sound, known: { ...known, generation: 2 ** 53 } },
    { ...sound, known: { boot: 1 } },
    { ...sound, known: { ...known, boot: -1 } },
  ];
  for (const answer of wrong) assert.equal(readEndAnswer(answer), null, JSON.stringify(answer));
});

test("that the power was off is told once, and not again for a later death that says the same boot", () => {
  const member = new Member();
  const told = (...inputs: readonly Input[]): readonly string[] =>
    inputs.flatMap((input) =>
      member
        .input(input)
        .flatMap((effect) => (effect.kind === "log" && effect.event.startsWith("presence/") ? [effect.event] : [])),
    );
  member.hear(1, false);
  for (const by of [2, 3]) member.report(by, 1);
  const end = { generation: 3, boot: 100 };
  const first = told({ kind: "request", id: 1, request: { kind: "host-end", host: "h1", end } });
  assert.equal(first.filter((event) => event === "presence/power-off").length, 1, first.join());
  const later = { ...life(1, 4), declaredAt: 5, reporters: 2 };
  const claims = members
    .slice(1)
    .map((from): Input => ({ kind: "actual", from, key: presenceKey.death("h1"), value: later }));
  assert.deepEqual(told(...claims), ["presence/declared"]);
});

test("a host that has ended is not missed any more, whoever reported it", () => {
  const member = new Member();
  for (const number of [1, 2, 3, 4]) member.hear(number, false);
  assert.ok(member.missed);
  assert.deepEqual([member.end().against, member.missed], [null, false]);
});
