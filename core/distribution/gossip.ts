import type { Json } from "../../model/json/json.ts";
import { below, nextRandom } from "../random.ts";
import { bucketOf, type Digest, differing, isBuckets, isDigest, RunningDigest } from "./node/digest.ts";
import { isCount, isKey, textOf } from "./node/frames.ts";

/**
 * Broadcast: what everyone of a group is to know, and nobody needs a connection for (decision 28, Gossip).
 *
 * An item is told to a few members at random, each of which tells it on, a number of times that grows with the logarithm of
 * the group (Demers et al. 1987, "rumor mongering"); that brings it nearly everywhere within a second or two and leaves out
 * somebody now and then. So each member also compares digests with one other at random from time to time ("anti-entropy"),
 * which brings everything everywhere in the end, also to who was away.
 *
 * Of each (source, key) the item with the greatest (generation, sequence) counts, so nobody goes back, and it does not
 * matter by whom or how often something was told. A source that is gone is withdrawn up to a generation by whoever
 * learns of it; what that generation said is not taken any more.
 *
 * Any member could forge what others say: the packets' key admits members of the group, and these trust one another with
 * what is broadcast. What not everyone may know, or what only one may say, does not belong here.
 */
export interface Item {
  readonly source: string;
  readonly generation: number;
  readonly sequence: number;
  readonly key: string;
  /** Null: taken back. Kept, so that the older value cannot come again. */
  readonly value: Json;
}
export type GossipPacket =
  | { readonly kind: "tell"; readonly items: readonly Item[] }
  /** What the sender has amounts to this; `answer`: it wants the other's in return. */
  | { readonly kind: "digest"; readonly digest: Digest; readonly answer: boolean }
  /** Please tell all that is in these buckets. */
  | { readonly kind: "want"; readonly buckets: readonly number[] };

export interface GossipOptions {
  readonly self: string;
  readonly seed: number;
  readonly config?: GossipConfig;
  /** What may be broadcast in this group at all; anything by default. The rest is not kept and not passed on. */
  readonly accepts?: (item: Item) => boolean;
}
export interface GossipConfig {
  /** Time between two rounds, in milliseconds. */
  readonly roundMs: number;
  /** Members told in a round. */
  readonly fanout: number;
  /** An item is told `spread` × log10(members + 1) times by each member that has it. */
  readonly spread: number;
  /** Time between two comparisons, in milliseconds. */
  readonly compareMs: number;
  /** Characters of JSON in a packet, so that it fits into a datagram. */
  readonly packetLength: number;
  /** Packets of one answer; the rest comes with the next comparison. */
  readonly answerPackets: number;
  /** Items that one source may have. */
  readonly itemsPerSource: number;
}
export const gossipDefaults: GossipConfig = {
  roundMs: 200,
  fanout: 3,
  spread: 3,
  compareMs: 30_000,
  packetLength: 1200,
  answerPackets: 32,
  itemsPerSource: 1000,
};

export type GossipInput =
  | { readonly kind: "members"; readonly members: readonly string[] }
  | { readonly kind: "packet"; readonly from: string; readonly packet: Json }
  /** This member has something to say, or (by its own knowledge) something of another source. */
  | { readonly kind: "say"; readonly item: Item }
  /** A source's life is over: nothing of that generation or before counts any more. */
  | { readonly kind: "withdraw"; readonly source: string; readonly generation: number }
  | { readonly kind: "wake" };
export interface GossipOutput {
  readonly packets: { readonly to: string; readonly packet: GossipPacket }[];
  /** Items that are new here; a null value also for what was withdrawn. */
  readonly news: Item[];
  /** What was sent and not taken. */
  readonly refused: string[];
}

export interface GossipState {
  readonly self: string;
  readonly config: GossipConfig;
  readonly accepts: (item: Item) => boolean;
  members: readonly string[];
  /** By source, then by key. */
  readonly items: Map<string, Map<string, Item>>;
  readonly withdrawn: Map<string, number>;
  /** What is still to be told, and how often; in the order in which it came. */
  readonly hot: Map<string, { readonly item: Item; left: number }>;
  readonly digest: RunningDigest;
  random: number;
  /** Of the input's clock; infinite: nothing to do before the next input. */
  wakeAt: number;
  nextRound: number;
  nextCompare: number;
}

const never = Number.POSITIVE_INFINITY;
/** An item that does not fit into a packet alone is refused where it is said. */
const overhead = 24;

export const createGossip = (options: GossipOptions, now: number): GossipState => {
  const { self, seed, config = gossipDefaults, accepts = () => true } = options;
  const state: GossipState = {
    self,
    config,
    accepts,
    members: [],
    items: new Map(),
    withdrawn: new Map(),
    hot: new Map(),
    digest: new RunningDigest(),
    random: Math.imul((seed | 0) ^ 0x5bd1e995, 0x9e3779b1) || 1,
    wakeAt: never,
    nextRound: now,
    nextCompare: now,
  };
  // Members that start together do not all compare at once.
  state.nextCompare = now + config.compareMs * nextRandom(state);
  state.wakeAt = state.nextCompare;
  return state;
};

/** One step. Changes `state` in place. The owner calls again with `wake` at `state.wakeAt`. */
export const stepGossip = (state: GossipState, input: GossipInput, now: number): GossipOutput => {
  const output: GossipOutput = { packets: [], news: [], refused: [] };
  switch (input.kind) {
    case "members":
      state.members = input.members.filter((member) => member !== state.self);
      break;
    case "say":
      if (!isItem(input.item) || lengthOf(input.item) === null || lengthIn(input.item) > state.config.packetLength)
        output.refused.push("an item that does not fit into a packet");
      else learn(state, input.item, output);
      break;
    case "packet":
      receive(state, input.from, input.packet, output);
      break;
    case "withdraw":
      withdraw(state, input.source, input.generation, output);
      break;
    case "wake":
      break;
  }
  if (now >= state.nextRound && state.hot.size > 0) {
    round(state, output);
    state.nextRound = now + state.config.roundMs;
  }
  if (now >= state.nextCompare) {
    compare(state, output);
    state.nextCompare = now + state.config.compareMs * (0.5 + nextRandom(state));
  }
  state.wakeAt = Math.min(state.nextCompare, state.hot.size > 0 ? state.nextRound : never);
  return output;
};

/** The newest value of everything that is known, taken back or not. */
export function* itemsOf(state: GossipState): Iterable<Item> {
  for (const items of state.items.values()) yield* items.values();
}

const idOf = ({ source, key }: Item): string => `${source} ${key}`;
/** One number for (generation, sequence), for the digest: what matters is that another pair gives another. */
const stampOf = ({ generation, sequence }: Item): number => (generation * 1_000_003 + sequence) % 2 ** 52;
const lengthOf = (item: Item): number | null => textOf(item.value)?.length ?? null;
const lengthIn = (item: Item): number => JSON.stringify(item).length + overhead;

function learn(state: GossipState, item: Item, output: GossipOutput): void {
  const { source, key, generation, sequence } = item;
  if (!state.accepts(item)) {
    output.refused.push("an item that nobody here broadcasts");
    return;
  }
  if (generation <= (state.withdrawn.get(source) ?? -1)) return;
  const items = state.items.get(source) ?? new Map<string, Item>();
  const known = items.get(key);
  if (known && (known.generation > generation || (known.generation === generation && known.sequence >= sequence)))
    return;
  if (!known && items.size >= state.config.itemsPerSource) {
    output.refused.push(`more than ${state.config.itemsPerSource} items of one source`);
    return;
  }
  const id = idOf(item);
  if (known) state.digest.toggle(id, stampOf(known));
  state.digest.toggle(id, stampOf(item));
  items.set(key, item);
  state.items.set(source, items);
  // Behind what is being told already.
  state.hot.delete(id);
  const left = Math.ceil(state.config.spread * Math.log10(state.members.length + 2));
  state.hot.set(id, { item, left });
  output.news.push(item);
}

function withdraw(state: GossipState, source: string, generation: number, output: GossipOutput): void {
  if (generation <= (state.withdrawn.get(source) ?? -1)) return;
  state.withdrawn.set(source, generation);
  const items = state.items.get(source);
  for (const [key, item] of [...(items ?? [])]) {
    if (item.generation > generation) continue;
    items?.delete(key);
    state.digest.toggle(idOf(item), stampOf(item));
    state.hot.delete(idOf(item));
    if (item.value !== null) output.news.push({ ...item, value: null });
  }
  if (items?.size === 0) state.items.delete(source);
}

/** Tells a few members what is hot, the least told first. */
function round(state: GossipState, output: GossipOutput): void {
  const items: Item[] = [];
  let length = overhead;
  const told = [...state.hot].sort(([, a], [, b]) => b.left - a.left);
  for (const [id, hot] of told) {
    const more = lengthIn(hot.item);
    if (length + more > state.config.packetLength) continue;
    length += more;
    items.push(hot.item);
    hot.left -= 1;
    if (hot.left <= 0) state.hot.delete(id);
  }
  for (const to of chosen(state, state.config.fanout)) output.packets.push({ to, packet: { kind: "tell", items } });
}

function compare(state: GossipState, output: GossipOutput): void {
  for (const to of chosen(state, 1))
    output.packets.push({ to, packet: { kind: "digest", digest: state.digest.value(), answer: true } });
}

function receive(state: GossipState, from: string, json: Json, output: GossipOutput): void {
  const packet = parsePacket(json);
  if (packet === null) {
    output.refused.push("malformed packet");
    return;
  }
  switch (packet.kind) {
    case "tell":
      for (const item of packet.items) learn(state, item, output);
      return;
    case "digest": {
      const own = state.digest.value();
      const buckets = differing(own, packet.digest);
      if (buckets.length === 0) return;
      output.packets.push({ to: from, packet: { kind: "want", buckets } });
      if (packet.answer) output.packets.push({ to: from, packet: { kind: "digest", digest: own, answer: false } });
      return;
    }
    case "want":
      tellAll(state, from, new Set(packet.buckets), output);
      return;
  }
}

/** In as many packets as an answer may have, beginning anywhere: what is left out is not always the same. */
function tellAll(state: GossipState, to: string, buckets: ReadonlySet<number>, output: GossipOutput): void {
  const wanted = [...itemsOf(state)].filter((item) => buckets.has(bucketOf(idOf(item))));
  const start = below(state, wanted.length);
  let items: Item[] = [];
  let length = overhead;
  let packets = 0;
  const send = (): void => {
    if (items.length === 0) return;
    output.packets.push({ to, packet: { kind: "tell", items } });
    packets += 1;
    items = [];
    length = overhead;
  };
  for (let index = 0; index < wanted.length && packets < state.config.answerPackets; index += 1) {
    const item = wanted[(start + index) % wanted.length];
    if (item === undefined) continue;
    const more = lengthIn(item);
    if (length + more > state.config.packetLength) send();
    items.push(item);
    length += more;
  }
  if (packets < state.config.answerPackets) send();
}

function chosen(state: GossipState, count: number): readonly string[] {
  const { members } = state;
  const found = new Set<string>();
  for (let attempt = 0; found.size < Math.min(count, members.length) && attempt < 8 * count; attempt += 1) {
    const member = members[below(state, members.length)];
    if (member !== undefined) found.add(member);
  }
  return [...found];
}

type Fields = { readonly [key: string]: Json | undefined };
const fieldsOf = (json: Json | undefined): Fields =>
  typeof json === "object" && json !== null && !Array.isArray(json) ? (json as Fields) : {};

const isItem = (json: unknown): json is Item => {
  const { source, generation, sequence, key, value } = fieldsOf(json as Json);
  return isKey(source) && isCount(generation) && isCount(sequence) && isKey(key) && value !== undefined;
};

function parsePacket(json: Json): GossipPacket | null {
  const { kind, items, digest, answer, buckets } = fieldsOf(json);
  switch (kind) {
    case "tell":
      return Array.isArray(items) && items.every(isItem) ? { kind, items: items.map(cleaned) } : null;
    case "digest":
      return isDigest(digest) && typeof answer === "boolean" ? { kind, digest, answer } : null;
    case "want":
      return isBuckets(buckets) ? { kind, buckets } : null;
    default:
      return null;
  }
}
/** Without fields of later versions, which would make the same item longer at some. */
const cleaned = ({ source, generation, sequence, key, value }: Item): Item => ({
  source,
  generation,
  sequence,
  key,
  value,
});
