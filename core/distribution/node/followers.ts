import type { Json } from "../../../model/json/json.ts";
import { limits } from "../limits.ts";
import { bucketOf, type Digest, differing, digestBuckets, digestOf } from "./digest.ts";
import { type Holds, isKey, type ServerFrame, textOf } from "./frames.ts";
import { generationAt } from "./hello.ts";
import { burst, refuse } from "./refuse.ts";
import type { Distribution, OutgoingDocument, ServerLink, Turn } from "./types.ts";

/*
 * Who follows, and what followers are given of what a service says is so: changes as they come, many of them coalesced
 * within a window. What they have already is not sent, and a digest of what they were given shows them what they lack.
 */

export const digestTimer = "distribution/digest";
export const windowTimer = "distribution/window";
/** Digests every 30 s, changes coalesced within 100 ms (decision 28). */
const digestEveryMs = 30_000;
/** Followers that are sent their digest in one step. Of many, some at a time: all at once would hold up everything else. */
const digestsAtOnce = 64;
const windowMs = 100;
/** Changes to one follower within a window that leave at once. */
const eagerFrames = 64;

/**
 * Who follows a key? Prefixes are found by the beginnings of the key that have the length of some prefix, so a
 * publication costs its followers and not all connections.
 */
export const follow = (node: Distribution, link: ServerLink, prefix: string): void => {
  link.prefixes.add(prefix);
  const links = node.followers.get(prefix);
  if (links !== undefined) {
    links.add(link);
    return;
  }
  node.followers.set(prefix, new Set([link]));
  node.prefixLengths.set(prefix.length, (node.prefixLengths.get(prefix.length) ?? 0) + 1);
};

export const unfollow = (node: Distribution, link: ServerLink, prefix: string): void => {
  link.prefixes.delete(prefix);
  const links = node.followers.get(prefix);
  if (links === undefined || !links.delete(link) || links.size > 0) return;
  node.followers.delete(prefix);
  const left = (node.prefixLengths.get(prefix.length) ?? 1) - 1;
  if (left > 0) node.prefixLengths.set(prefix.length, left);
  else node.prefixLengths.delete(prefix.length);
};

export const followersOf = (node: Distribution, key: string): ReadonlySet<ServerLink> => {
  const found = new Set<ServerLink>();
  for (const length of node.prefixLengths.keys()) {
    if (length > key.length) continue;
    for (const link of node.followers.get(key.slice(0, length)) ?? []) found.add(link);
  }
  return found;
};

/** Whether one of the link's prefixes covers the key. */
export const follows = (link: ServerLink, key: string): boolean => {
  if (link.prefixes.size <= key.length) {
    for (const prefix of link.prefixes) if (key.startsWith(prefix)) return true;
    return false;
  }
  for (let length = 0; length <= key.length; length += 1) if (link.prefixes.has(key.slice(0, length))) return true;
  return false;
};

/** Sets or (null) takes back actual state. The same value again costs nothing. */
export const publish = (node: Distribution, turn: Turn, key: string, value: Json): void => {
  const text = textOf(value);
  if (!isKey(key) || text === null) {
    const fields = { effect: "publish", key: key.slice(0, 200), why: "the key or the value is too long" };
    turn.logs.push({ event: "distribution/misuse", fields });
    return;
  }
  const known = node.published.get(key);
  if (value === null ? known === undefined : known?.text === text) return;
  node.seq += 1;
  if (value === null) node.published.delete(key);
  else node.published.set(key, { seq: node.seq, value, text });
  for (const link of followersOf(node, key)) {
    link.pending.add(key);
    turn.dirty.add(link.connection);
  }
};

/** Finds what a client may see now and was not given, or was given and may see no more. */
export const scanEntitlement = (node: Distribution, turn: Turn): void => {
  for (const link of node.links.values()) {
    if (link.role !== "server" || link.prefixes.size === 0) continue;
    for (const key of node.published.keys()) {
      if (!follows(link, key) || node.entitled(link.peer, key) === link.sent.has(key)) continue;
      link.pending.add(key);
      turn.dirty.add(link.connection);
    }
  }
};

export const receiveSubscribe = (
  node: Distribution,
  turn: Turn,
  link: ServerLink,
  prefix: string,
  holds: Holds | undefined,
): void => {
  if (link.prefixes.size >= limits.subscriptions) {
    refuse(node, turn, link.peer, "too many subscriptions", prefix);
    return;
  }
  if (!link.prefixes.has(prefix)) follow(node, link, prefix);
  link.completing.add(prefix);
  node.digestRound.add(link);
  setTimer(node, turn, "digest", digestEveryMs);
  const same = new Set(
    holds?.generation === generationAt(node, link.client?.floor ?? 0)
      ? heldAlready(node, link, prefix, holds.digest)
      : [],
  );
  link.same.set(prefix, [...same]);
  for (const [key, { seq }] of node.published) {
    if (!key.startsWith(prefix)) continue;
    if (!same.has(bucketOf(key))) link.pending.add(key);
    else if (node.entitled(link.peer, key)) give(link, key, seq);
  }
};

/** Buckets of a prefix in which the client has what it may have, and nothing else. */
const heldAlready = (node: Distribution, link: ServerLink, prefix: string, held: Digest): readonly number[] => {
  const pairs: [key: string, seq: number][] = [];
  for (const [key, { seq }] of node.published)
    if (key.startsWith(prefix) && node.entitled(link.peer, key)) pairs.push([key, seq]);
  const different = new Set(differing(digestOf(pairs), held));
  return Array.from({ length: digestBuckets }, (_, bucket) => bucket).filter((bucket) => !different.has(bucket));
};

/** Notes what the client has, or (null) has no longer. True if that is news. */
const give = (link: ServerLink, key: string, seq: number | null): boolean => {
  const before = link.sent.get(key);
  if (before === (seq ?? undefined)) return false;
  if (before !== undefined) link.digest.toggle(key, before);
  if (seq === null) link.sent.delete(key);
  else {
    link.sent.set(key, seq);
    link.digest.toggle(key, seq);
  }
  return true;
};

const setTimer = (node: Distribution, turn: Turn, timer: "digest" | "window", afterMs: number): void => {
  if (node.timersSet.has(timer)) return;
  node.timersSet.add(timer);
  turn.timers.push({ name: timer === "digest" ? digestTimer : windowTimer, afterMs });
};

/**
 * Says to followers what they were given amounts to: to those whose turn it is, so that everyone's comes once in the
 * period. One that takes nothing at the moment is left alone.
 */
export const sendDigests = (node: Distribution, turn: Turn): void => {
  node.timersSet.delete("digest");
  const rounds = Math.ceil(node.digestRound.size / digestsAtOnce);
  let left = Math.ceil(node.digestRound.size / Math.max(rounds, 1));
  for (const link of node.digestRound) {
    if (left === 0) break;
    left -= 1;
    node.digestRound.delete(link);
    if (link.prefixes.size === 0) continue;
    // Behind all others, and not to be met again in this loop.
    node.digestRound.add(link);
    if (link.version < 2 || !link.ready || link.repairs.size > 0) continue;
    link.control.push({ frame: "digest", digest: link.digest.value() });
    turn.dirty.add(link.connection);
  }
  if (node.digestRound.size > 0) setTimer(node, turn, "digest", digestEveryMs / rounds);
};

/** The client has something else than it was given. */
export const receiveRepair = (node: Distribution, link: ServerLink, buckets: readonly number[]): void => {
  for (const bucket of buckets) link.repairs.add(bucket);
  for (const key of [...link.sent.keys()]) if (link.repairs.has(bucketOf(key))) give(link, key, null);
  for (const key of node.published.keys())
    if (link.repairs.has(bucketOf(key)) && follows(link, key)) link.pending.add(key);
};

/** Sends what was held back until the end of its window. */
export const endWindow = (node: Distribution, turn: Turn): void => {
  node.timersSet.delete("window");
  for (const link of node.held) {
    if (link.pending.size === 0) continue;
    link.draining = true;
    turn.dirty.add(link.connection);
  }
  node.held.clear();
};

/**
 * How many more changes may leave at once. Few changes leave as they come. Of many, what comes beyond the first in a
 * window waits for its end, so that a value which changes again and again is sent once; a snapshot never waits.
 */
export const allowance = (node: Distribution, turn: Turn, link: ServerLink): number => {
  if (link.draining || link.completing.size > 0 || link.repairs.size > 0) return burst.frames;
  if (turn.now.ms - link.windowMs >= windowMs) {
    link.windowMs = turn.now.ms;
    link.windowFrames = 0;
  }
  const left = Math.max(eagerFrames - link.windowFrames, 0);
  if (link.pending.size > left) {
    node.held.add(link);
    setTimer(node, turn, "window", Math.max(windowMs - (turn.now.ms - link.windowMs), 1));
  }
  return left;
};

/**
 * The retraction of what is no longer followed goes out even though the client has forgotten it: should it subscribe
 * again while older frames are on their way, these come first and the retraction makes them void.
 */
export const receiveUnsubscribe = (node: Distribution, link: ServerLink, prefix: string): void => {
  unfollow(node, link, prefix);
  link.completing.delete(prefix);
  for (const key of [...link.sent.keys()]) {
    if (follows(link, key)) continue;
    give(link, key, null);
    node.seq += 1;
    link.control.push({ frame: "actual", key, seq: node.seq, value: null });
  }
};

/** The same for all followers that are told in this step: it is turned into bytes once. */
const sharedFrame = (turn: Turn, key: string, { seq, value }: OutgoingDocument): ServerFrame => {
  const made = turn.shared.get(key);
  if (made !== undefined) return made;
  const frame: ServerFrame = { frame: "actual", key, seq, value };
  turn.shared.set(key, frame);
  return frame;
};

export const sendActual = (node: Distribution, turn: Turn, link: ServerLink, key: string): number => {
  const { connection } = link;
  const entry = follows(link, key) ? node.published.get(key) : undefined;
  if (entry !== undefined && node.entitled(link.peer, key)) {
    if (!give(link, key, entry.seq)) return 0;
    turn.sends.push({ connection, frame: sharedFrame(turn, key, entry) });
    return entry.text.length;
  }
  if (!give(link, key, null)) return 0;
  node.seq += 1;
  turn.sends.push({ connection, frame: { frame: "actual", key, seq: node.seq, value: null } });
  return 0;
};

/** Nothing is left to send: says of what that is all. */
export const complete = (turn: Turn, link: ServerLink): void => {
  const { connection } = link;
  if (link.draining) {
    link.draining = false;
    link.windowMs = turn.now.ms;
  }
  for (const prefix of link.completing) {
    const same = link.same.get(prefix) ?? [];
    const kept = same.length === 0 || link.version < 2 ? {} : { same };
    turn.sends.push({ connection, frame: { frame: "actual-complete", prefix, ...kept } });
  }
  link.completing.clear();
  link.same.clear();
  if (link.repairs.size === 0) return;
  turn.sends.push({ connection, frame: { frame: "repaired", buckets: [...link.repairs] } });
  link.repairs.clear();
};
