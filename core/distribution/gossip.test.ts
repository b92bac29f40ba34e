import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { Json } from "../../model/json/json.ts";
import {
  createGossip,
  type GossipInput,
  type GossipState,
  gossipDefaults,
  type Item,
  itemsOf,
  stepGossip,
} from "./gossip.ts";

/** Members over a network that loses, repeats and delays packets, and takes its time in rounds of a hundredth of a second. */
class Group {
  readonly members = new Map<string, GossipState>();
  readonly #flying: { at: number; to: string; from: string; packet: Json }[] = [];
  readonly told = new Map<string, Map<string, Item>>();
  readonly refused: string[] = [];
  packets = 0;
  bytes = 0;
  now = 0;
  readonly #random: () => number;
  readonly loss: number;
  cut: (from: string, to: string) => boolean = () => false;

  constructor(count: number, seed: number, loss: number) {
    let state = seed | 1;
    this.#random = () => {
      state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
      return state / 2 ** 32;
    };
    this.loss = loss;
    const names = Array.from({ length: count }, (_, at) => `h${at}`);
    for (const [at, self] of names.entries()) {
      this.members.set(self, createGossip({ self, seed: seed + at * 7919 }, 0));
      this.told.set(self, new Map());
      this.input(self, { kind: "members", members: names });
    }
  }
  input(name: string, input: GossipInput): void {
    const state = this.members.get(name);
    assert.ok(state);
    const { packets, news, refused } = stepGossip(state, input, this.now);
    this.refused.push(...refused);
    for (const item of news) {
      const id = `${item.source} ${item.key}`;
      const before = this.told.get(name)?.get(id);
      const stamp = ({ generation, sequence }: Item): number => generation * 1e6 + sequence;
      if (before && item.value !== null) assert.ok(stamp(before) < stamp(item), `${name} went back: ${id}`);
      this.told.get(name)?.set(id, item);
    }
    for (const { to, packet } of packets) {
      this.packets += 1;
      const text = JSON.stringify(packet);
      if (packet.kind === "tell") assert.ok(text.length <= gossipDefaults.packetLength, `${text.length}`);
      this.bytes += text.length;
      const copies = this.#random() < 0.02 ? 2 : 1;
      for (let copy = 0; copy < copies; copy += 1)
        if (this.#random() >= this.loss)
          this.#flying.push({
            at: this.now + 1 + 40 * this.#random(),
            to,
            from: name,
            packet: JSON.parse(text) as Json,
          });
    }
  }
  run(ms: number): void {
    for (const until = this.now + ms; this.now < until; this.now += 10) {
      const due = this.#flying.filter(({ at }) => at <= this.now);
      const later = this.#flying.filter(({ at }) => at > this.now);
      this.#flying.splice(0, this.#flying.length, ...later);
      for (const { to, from, packet } of due) if (!this.cut(from, to)) this.input(to, { kind: "packet", from, packet });
      for (const [name, { wakeAt }] of this.members) if (wakeAt <= this.now) this.input(name, { kind: "wake" });
    }
  }
  valueAt(name: string, source: string, key: string): Json | undefined {
    return this.members.get(name)?.items.get(source)?.get(key)?.value;
  }
  knowing(source: string, key: string, value: Json): number {
    return [...this.members.keys()].filter((name) => this.valueAt(name, source, key) === value).length;
  }
}
const item = (source: string, generation: number, sequence: number, key: string, value: Json): Item => ({
  source,
  generation,
  sequence,
  key,
  value,
});

test("an item is everywhere soon, and then nothing is said but now and then a digest", () => {
  const group = new Group(60, 7, 0.05);
  group.input("h0", { kind: "say", item: item("h0", 1, 1, "address", "10.0.1.1") });
  group.run(4000);
  assert.ok(group.knowing("h0", "address", "10.0.1.1") >= 58, `${group.knowing("h0", "address", "10.0.1.1")} of 60`);
  group.run(120_000);
  assert.equal(group.knowing("h0", "address", "10.0.1.1"), 60);
  const before = group.packets;
  group.run(60_000);
  const each = (group.packets - before) / 60;
  assert.ok(each > 0.5 && each < 6, `${each} packets a minute of each member`);
  assert.deepEqual(group.refused, []);
});

test("newer wins whatever the order, what was taken back stays so, and a withdrawn generation does not come again", () => {
  const group = new Group(8, 3, 0);
  const say = (by: string, ...rest: Parameters<typeof item>): void =>
    group.input(by, { kind: "say", item: item(...rest) });
  say("h0", "h0", 1, 5, "k", "new");
  say("h1", "h0", 1, 4, "k", "old");
  say("h2", "h0", 0, 9, "k", "older still");
  group.run(100_000);
  assert.equal(group.knowing("h0", "k", "new"), 8);
  say("h0", "h0", 1, 6, "k", null);
  say("h0", "h0", 1, 7, "other", 1);
  group.run(100_000);
  say("h3", "h0", 1, 5, "k", "new");
  group.run(100_000);
  assert.equal(group.knowing("h0", "k", null), 8);
  for (const name of group.members.keys()) group.input(name, { kind: "withdraw", source: "h0", generation: 1 });
  say("h4", "h0", 1, 9, "other", 2);
  group.run(100_000);
  assert.equal(group.knowing("h0", "other", 2) + group.knowing("h0", "other", 1), 0);
  say("h0", "h0", 2, 1, "other", 3);
  group.run(100_000);
  assert.equal(group.knowing("h0", "other", 3), 8);
});

test("after healing all have the same, whatever was lost, repeated, reordered and cut off", (context) => {
  const seed = Number(process.env.CELLS_SEED ?? Math.floor(Math.random() * 2 ** 31));
  context.diagnostic(`CELLS_SEED=${seed}`);
  const change = fc.record({ who: fc.nat(9), key: fc.nat(3), back: fc.boolean(), cut: fc.nat(9), ms: fc.nat(3000) });
  fc.assert(
    fc.property(fc.array(change, { minLength: 5, maxLength: 40 }), fc.nat(), (changes, chance) => {
      const group = new Group(10, chance, 0.3);
      const newest = new Map<string, Json>();
      for (const [index, { who, key, back, cut, ms }] of changes.entries()) {
        // Some hear nobody, others are not heard.
        group.cut = (from, to) => from === `h${cut}` || to === `h${(cut * 3) % 10}`;
        const value = back ? null : index;
        newest.set(`h${who} k${key}`, value);
        group.input(`h${who}`, { kind: "say", item: item(`h${who}`, 1, index + 1, `k${key}`, value) });
        group.run(ms);
      }
      group.cut = () => false;
      group.run(1_500_000);
      for (const [name, state] of group.members) {
        const found = [...itemsOf(state)].map(({ source, key, value }) => [`${source} ${key}`, value]);
        assert.deepEqual(found.sort(), [...newest].sort(), `at ${name}`);
      }
    }),
    { seed, numRuns: Number(process.env.CELLS_RUNS ?? 12) },
  );
});

test("what is malformed, too long or too much is refused and harms nobody", () => {
  const group = new Group(3, 1, 0);
  const wrong: Json[] = [null, 7, {}, { kind: "tell", items: [{ source: "h1" }] }, { kind: "tell" }, { kind: "order" }];
  wrong.push({ kind: "digest", digest: [1], answer: true }, { kind: "want", buckets: [64] });
  for (const packet of wrong) group.input("h0", { kind: "packet", from: "h1", packet });
  assert.equal(group.refused.length, wrong.length);
  group.input("h0", { kind: "say", item: item("h0", 1, 1, "k", "x".repeat(2000)) });
  assert.equal(group.refused.length, wrong.length + 1);
  for (let at = 0; at < gossipDefaults.itemsPerSource + 5; at += 1)
    group.input("h0", {
      kind: "packet",
      from: "h1",
      packet: { kind: "tell", items: [{ ...item("h1", 1, 1, `k${at}`, 1) }] },
    });
  assert.equal([...itemsOf(group.members.get("h0") ?? assert.fail())].length, gossipDefaults.itemsPerSource);
});

test("however much is asked for, an answer has so many packets", () => {
  const asked = createGossip({ self: "h0", seed: 1 }, 0);
  for (let at = 0; at < gossipDefaults.itemsPerSource; at += 1)
    stepGossip(asked, { kind: "say", item: item("h0", 1, at + 1, `k${at}`, "x".repeat(400)) }, 0);
  const buckets = [...Array(64).keys()];
  const want: GossipInput = { kind: "packet", from: "h1", packet: { kind: "want", buckets } };
  assert.equal(stepGossip(asked, want, 0).packets.length, gossipDefaults.answerPackets);
});
