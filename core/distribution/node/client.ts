import type { PeerName } from "../../../model/cell/identifiers.ts";
import type { Json } from "../../../model/json/json.ts";
import type { Effect } from "../../env.ts";
import { deathIn, interestIn, isForService, isOfService, lastDeath } from "../deaths.ts";
import { judgeServer, takeKept } from "../fork.ts";
import type { Mark } from "../marks.ts";
import { bucketOf, type Digest, differing, digestOf, RunningDigest } from "./digest.ts";
import { type Holds, isKey, isPrefix, parseServerFrame, type ServerFrame, textOf } from "./frames.ts";
import { forgedIn, helloOf, raisedFloor } from "./hello.ts";
import { markOf } from "./history.ts";
import { burst, readDocument, refuse } from "./refuse.ts";
import { storeKey } from "./stored.ts";
import type { ClientLink, Distribution, Target, Turn } from "./types.ts";

/**
 * A service as the client of others: what it desires there, and what it follows.
 *
 * Each connection begins with a snapshot of all own documents in the order of their `seq`, and later changes go behind
 * it, so `seq` only grows on a connection and one number acknowledges everything before it. A tombstone stays in the
 * store until its acknowledgement. The snapshot costs bytes at a reconnect, and in return no digest, no per-key
 * acknowledgement and no memory of what a lost connection may have carried is needed.
 */
export const createTarget = (peer: PeerName): Target => ({
  peer,
  documents: new Map(),
  subscriptions: new Map(),
  interests: new Set(),
  actual: new Map(),
  floor: 0,
  generation: 0,
  withdrawn: -1,
  deadLife: 0,
  deadGeneration: -1,
  life: 0,
  at: null,
  instance: null,
  forked: false,
  seenLater: false,
  itForked: false,
  orphans: new Set(),
  session: 0,
  reachable: null,
  link: null,
});

const targetOf = (node: Distribution, turn: Turn, peer: PeerName): Target => {
  const found = node.targets.get(peer);
  if (found !== undefined) return found;
  const target = createTarget(peer);
  target.deadLife = lastDeath(node, peer);
  node.targets.set(peer, target);
  turn.connects.push(peer);
  registerInterest(node, turn, peer);
  return target;
};

/** Asks to be told if the peer's host is declared dead. Also for those that were targets before this start. */
export const registerInterest = (node: Distribution, turn: Turn, peer: PeerName): void => {
  const prefix = interestIn(peer);
  if (prefix === null) return;
  for (const member of node.presence) if (member !== node.self) addSubscription(node, turn, member, prefix, true);
};

/** Who is new is asked for every host that is followed; what others declare does not count any more. */
export const presenceChanged = (node: Distribution, turn: Turn, members: readonly PeerName[]): void => {
  for (const member of node.presence) {
    if (members.includes(member)) continue;
    const target = node.targets.get(member);
    for (const prefix of [...(target?.interests ?? [])]) {
      target?.interests.delete(prefix);
      unsubscribe(node, turn, member, prefix);
    }
  }
  node.presence = new Set(members);
  for (const peer of [...node.targets.keys()]) registerInterest(node, turn, peer);
};

const addSubscription = (node: Distribution, turn: Turn, to: PeerName, prefix: string, interest: boolean): void => {
  const target = targetOf(node, turn, to);
  if (target.subscriptions.has(prefix)) {
    // The service wants it too now, or did before.
    if (!interest && target.interests.delete(prefix)) retell(node, turn, target, prefix);
    return;
  }
  const known = isOfService(target);
  if (interest) target.interests.add(prefix);
  target.subscriptions.set(prefix, false);
  if (!known && !interest) tellReachable(turn, target);
  if (target.link === null) return;
  target.link.control.push({ frame: "subscribe", prefix });
  turn.dirty.add(target.link.connection);
};

/** What this layer had for itself is news to the service. */
const retell = (node: Distribution, turn: Turn, target: Target, prefix: string): void => {
  for (const [key, { text }] of target.actual) {
    if (!key.startsWith(prefix) || text === "") continue;
    const value = readDocument(node, turn, "actual", target.peer, key, JSON.parse(text) as Json);
    if (value !== null) turn.inbox.push({ kind: "actual", from: target.peer, key, value });
  }
  tellReachable(turn, target);
};
const tellReachable = (turn: Turn, { peer, reachable }: Target): void => {
  if (reachable !== null) turn.inbox.push({ kind: "reachable", peer, reachable });
};

const misuse = (turn: Turn, effect: string, to: PeerName, key: string, why: string): void => {
  turn.logs.push({ event: "distribution/misuse", fields: { effect, to, key: key.slice(0, 200), why } });
};

/** Puts or (null) removes a desired document at a peer. A document that is as it was costs nothing. */
export const desire = (
  node: Distribution,
  turn: Turn,
  { to, key, value, again }: Extract<Effect, { kind: "desire" }>,
): void => {
  const text = textOf(value);
  if (to === node.self) {
    misuse(turn, "desire", to, key, "a service cannot be its own client");
    return;
  }
  if (!isKey(key) || text === null) {
    misuse(turn, "desire", to, key, "the key or the value is too long");
    return;
  }
  const known = node.targets.get(to);
  const isKnown = known?.documents.get(key) !== undefined || known?.orphans.has(key) === true;
  if (value === null && !isKnown && again !== true) return;
  const target = targetOf(node, turn, to);
  if (target.documents.get(key)?.text === text) return;
  node.seq += 1;
  target.documents.set(key, { seq: node.seq, value, text });
  target.orphans.delete(key);
  turn.writes.push({ key: storeKey.out(to, key), value: { value } });
  if (target.link === null) return;
  // Behind what is pending already, so that `seq` grows from frame to frame.
  target.link.pending.delete(key);
  target.link.pending.add(key);
  turn.dirty.add(target.link.connection);
};

/** Forgets a desired document without a tombstone. On its next connection the peer names it as one that only it knows. */
export const letGo = (node: Distribution, turn: Turn, { at, key }: Extract<Effect, { kind: "let-go" }>): void => {
  const target = node.targets.get(at);
  if (target === undefined || !target.documents.delete(key)) return;
  turn.writes.push({ key: storeKey.out(at, key), value: null });
  target.link?.pending.delete(key);
};

export const subscribe = (node: Distribution, turn: Turn, to: PeerName, prefix: string): void => {
  if (to === node.self) {
    misuse(turn, "subscribe", to, prefix, "a service cannot be its own client");
    return;
  }
  if (!isPrefix(prefix)) {
    misuse(turn, "subscribe", to, prefix, "the prefix is too long");
    return;
  }
  addSubscription(node, turn, to, prefix, false);
};

const covered = (prefixes: Iterable<string>, key: string): boolean => {
  for (const prefix of prefixes) if (key.startsWith(prefix)) return true;
  return false;
};

/** Ends a subscription. What it alone had brought is forgotten without a further word to the service, which asked for it. */
export const unsubscribe = (node: Distribution, turn: Turn, to: PeerName, prefix: string): void => {
  const target = node.targets.get(to);
  if (target === undefined || target.interests.has(prefix) || !target.subscriptions.delete(prefix)) return;
  for (const key of [...target.actual.keys()]) {
    if (covered(target.subscriptions.keys(), key)) continue;
    target.actual.delete(key);
    if (target.link !== null) forget(target.link, key);
  }
  if (target.link === null) return;
  target.link.control.push({ frame: "unsubscribe", prefix });
  turn.dirty.add(target.link.connection);
  // It may have been the only one whose snapshot was not there yet.
  if (target.subscriptions.size > 0) inStep(turn, target.link);
};

/** A connection that this service dialled stands: greet, subscribe, and send every document. */
export const clientConnected = (node: Distribution, turn: Turn, connection: number, peer: PeerName): void => {
  const target = targetOf(node, turn, peer);
  if (target.link !== null) closeClient(node, turn, target.link);
  target.session += 1;
  const { subscriptions } = target;
  const seen = target.generation === 0 ? {} : { seen: target.generation };
  const knew = target.at === null ? {} : { knew: { start: target.at.start, count: target.at.count } };
  const link: ClientLink = {
    role: "client",
    connection,
    target,
    control: [helloOf(node, target, { ...seen, ...knew })],
    pending: new Set([...target.documents].sort(([, a], [, b]) => a.seq - b.seq).map(([key]) => key)),
    kept: new Map(),
    recoveredAt: 0,
    seen: new Map(),
    digest: new RunningDigest(),
    holding: new Set(),
    repairing: null,
    completed: false,
    greeted: false,
    ready: true,
  };
  for (const prefix of subscriptions.keys()) {
    subscriptions.set(prefix, false);
    const holds = holdsUnder(target, prefix);
    if (holds !== null) link.holding.add(prefix);
    link.control.push({ frame: "subscribe", prefix, ...(holds === null ? {} : { holds }) });
  }
  target.link = link;
  node.links.set(connection, link);
  turn.dirty.add(connection);
};

/** What is still here of the source's last generation, so that it need not be sent again; null: nothing. */
const holdsUnder = (target: Target, prefix: string): Holds | null => {
  const { generation } = target;
  const pairs: [key: string, seq: number][] = [];
  for (const [key, known] of target.actual)
    if (known.generation === generation && key.startsWith(prefix)) pairs.push([key, known.seq]);
  return pairs.length === 0 ? null : { generation, digest: digestOf(pairs) };
};

/** Notes what a connection has given of a key. */
const remember = (link: ClientLink, key: string, seq: number): void => {
  forget(link, key);
  link.seen.set(key, seq);
  link.digest.toggle(key, seq);
};
const forget = (link: ClientLink, key: string): void => {
  const seq = link.seen.get(key);
  if (seq === undefined) return;
  link.seen.delete(key);
  link.digest.toggle(key, seq);
};

const setReachable = (turn: Turn, target: Target, reachable: boolean): void => {
  if (target.reachable === reachable) return;
  target.reachable = reachable;
  turn.logs.push({ event: reachable ? "peer/reachable" : "peer/unreachable", fields: { peer: target.peer } });
  if (isOfService(target)) turn.inbox.push({ kind: "reachable", peer: target.peer, reachable });
};

/** The connection is gone or could not be made: what the source last said stays, and the service knows it is old. */
export const clientDisconnected = (node: Distribution, turn: Turn, target: Target): void => {
  if (target.link !== null) node.links.delete(target.link.connection);
  target.link = null;
  setReachable(turn, target, false);
  // It had not said which life it was, and now it is silent.
  if (target.life === 0 && target.deadLife > 0) end(node, turn, target);
};

const closeClient = (node: Distribution, turn: Turn, link: ClientLink): void => {
  turn.closes.push(link.connection);
  clientDisconnected(node, turn, link.target);
};

const inStep = (turn: Turn, link: ClientLink): void => {
  if (!link.greeted) return;
  for (const complete of link.target.subscriptions.values()) if (!complete) return;
  setReachable(turn, link.target, true);
};

const withdraw = (turn: Turn, target: Target, gone: (key: string) => boolean): void => {
  for (const key of [...target.actual.keys()]) if (gone(key)) withdrawKey(turn, target, key);
};
const withdrawKey = (turn: Turn, target: Target, key: string): void => {
  if (target.actual.delete(key) && isForService(target, key))
    turn.inbox.push({ kind: "actual", from: target.peer, key, value: null });
};

const receiveActual = (
  node: Distribution,
  turn: Turn,
  link: ClientLink,
  frame: Extract<ServerFrame, { frame: "actual" }>,
): void => {
  const { target } = link;
  const { key, seq, value } = frame;
  // On its way while this service unsubscribed.
  if (!covered(target.subscriptions.keys(), key)) return;
  const known = target.actual.get(key);
  if (known !== undefined && known.generation === target.generation && seq < known.seq) {
    refuse(node, turn, target.peer, "out of order", key);
    return;
  }
  if (value === null) {
    forget(link, key);
    withdrawKey(turn, target, key);
    return;
  }
  const text = textOf(value);
  if (text === null) {
    refuse(node, turn, target.peer, "value too long", key);
    return;
  }
  remember(link, key, seq);
  const unchanged = known?.text === text;
  const document = unchanged ? null : readDocument(node, turn, "actual", target.peer, key, value);
  // Of what cannot be read the number counts alone, so that both sides agree on what was sent.
  const lastText = document === null ? (known?.text ?? "") : text;
  target.actual.set(key, { generation: target.generation, seq, text: lastText });
  if (document === null) return;
  if (isForService(target, key)) turn.inbox.push({ kind: "actual", from: target.peer, key, value: document });
  const death = deathIn(node, target.peer, key, document);
  if (death !== null) declaredDead(node, turn, death.peer, death.life);
};

const acknowledged = (node: Distribution, turn: Turn, link: ClientLink, seq: number, at: Mark | undefined): void => {
  const { target, kept } = link;
  if (at !== undefined) {
    target.at = at;
    node.newerMarks.add(target);
  }
  for (const [key, document] of target.documents) {
    if (document.value !== null || document.seq > seq || kept.get(key) === document.seq) continue;
    target.documents.delete(key);
    turn.writes.push({ key: storeKey.out(target.peer, key), value: null });
    turn.inbox.push({ kind: "released", peer: target.peer, key });
  }
};

const receiveHello = (
  node: Distribution,
  turn: Turn,
  link: ClientLink,
  hello: Extract<ServerFrame, { frame: "hello" }>,
): void => {
  const { target } = link;
  const forged = forgedIn(turn, target.peer, hello);
  if (forged !== null) {
    refuse(node, turn, target.peer, forged, null);
    closeClient(node, turn, link);
    return;
  }
  const { life } = hello;
  if (hello.seen !== undefined) {
    // It refuses this service as one of an earlier life than it has seen. Who was not refused before is one.
    if (target.generation === 0) target.floor = raisedFloor(node, turn, target.floor, hello.seen) ?? target.floor;
    refuse(node, turn, target.peer, "old generation", null);
    closeClient(node, turn, link);
    return;
  }
  const isDead = life === undefined ? hello.generation <= target.deadGeneration : life <= target.deadLife;
  if (hello.generation < target.generation || hello.generation <= target.withdrawn || isDead) {
    refuse(node, turn, target.peer, "old generation", null);
    closeClient(node, turn, link);
    return;
  }
  // What is here is of an earlier life, and nothing in the new one is the same.
  if (target.generation !== hello.generation) link.holding.clear();
  target.generation = hello.generation;
  target.life = hello.life ?? 0;
  link.greeted = true;
  judgeServer(node, turn, target, hello);
  inStep(turn, link);
};

/** It had said hello before it knew. */
const receiveLife = (node: Distribution, turn: Turn, { target }: ClientLink, life: number): void => {
  if (target.life > 0) return;
  target.life = life;
  // That this life is over was heard first.
  if (life <= target.deadLife) end(node, turn, target);
};

const completed = (turn: Turn, link: ClientLink, prefix: string, same: readonly number[]): void => {
  const { target } = link;
  if (!target.subscriptions.has(prefix)) return;
  target.subscriptions.set(prefix, true);
  const kept = new Set(link.holding.has(prefix) ? same : []);
  for (const [key, { generation, seq }] of [...target.actual]) {
    if (!key.startsWith(prefix) || link.seen.has(key)) continue;
    if (generation === target.generation && kept.has(bucketOf(key))) remember(link, key, seq);
    else withdrawKey(turn, target, key);
  }
  inStep(turn, link);
};

/**
 * The server's digest of what it gave, at its place between what it gave: the same as of what is here, or something was
 * lost on either side by a mistake. That is named, and asked for once more.
 */
const compare = (turn: Turn, link: ClientLink, digest: Digest): void => {
  const { target } = link;
  if (link.repairing !== null || target.reachable !== true) return;
  const buckets = differing(link.digest.value(), digest);
  if (buckets.length === 0) return;
  const wanted = new Set(buckets);
  for (const key of [...link.seen.keys()]) if (wanted.has(bucketOf(key))) forget(link, key);
  link.repairing = buckets;
  link.control.push({ frame: "repair", buckets });
  turn.dirty.add(link.connection);
  turn.logs.push({ event: "distribution/repaired", fields: { peer: target.peer, buckets: buckets.length } });
};

/** Presence says that a source's life is over: what it said in it goes, and does not come back. */
export const declaredDead = (node: Distribution, turn: Turn, peer: PeerName, life: number): void => {
  const target = node.targets.get(peer);
  // It has begun a new life meanwhile.
  if (target === undefined || target.life > life) return;
  target.deadLife = Math.max(target.deadLife, life);
  // It speaks and did not say in which life: it will as soon as it knows, unless the connection breaks before.
  if (target.life > 0 || target.link === null) end(node, turn, target);
};

/** The source's newest generation is over, unless it says that it is of a later life than the one that was declared over. */
const end = (node: Distribution, turn: Turn, target: Target): void => {
  target.deadGeneration = target.generation;
  if (target.link === null) setReachable(turn, target, false);
  else closeClient(node, turn, target.link);
  withdraw(turn, target, () => true);
};

/** A frame from a server. */
export const receiveFromServer = (node: Distribution, turn: Turn, link: ClientLink, json: Json): void => {
  const { target } = link;
  const parsed = parseServerFrame(json);
  if (!parsed.ok) {
    refuse(node, turn, target.peer, parsed.error, null);
    if (!link.greeted || parsed.error === "unsupported version") closeClient(node, turn, link);
    return;
  }
  const frame = parsed.value;
  if (link.greeted === (frame.frame === "hello")) {
    refuse(node, turn, target.peer, "out of order", null);
    closeClient(node, turn, link);
    return;
  }
  switch (frame.frame) {
    case "hello":
      receiveHello(node, turn, link, frame);
      return;
    case "life":
      receiveLife(node, turn, link, frame.life);
      return;
    case "ack":
      acknowledged(node, turn, link, frame.seq, frame.at);
      return;
    case "kept":
      takeKept(node, turn, link, frame);
      return;
    case "actual":
      receiveActual(node, turn, link, frame);
      return;
    case "actual-complete":
      completed(turn, link, frame.prefix, frame.same ?? []);
      return;
    case "digest":
      compare(turn, link, frame.digest);
      return;
    case "repaired": {
      if (link.repairing === null || link.repairing.join() !== frame.buckets.join()) return;
      const buckets = new Set(link.repairing);
      link.repairing = null;
      withdraw(turn, target, (key) => buckets.has(bucketOf(key)) && !link.seen.has(key));
      return;
    }
    case "goodbye":
      target.withdrawn = target.generation;
      // Unreachable first: while a source counts as in step, what it says nothing of is taken to be gone.
      closeClient(node, turn, link);
      withdraw(turn, target, () => true);
      return;
  }
};

/** Hands the connection what is due, up to one burst. */
export const flushClient = (node: Distribution, turn: Turn, link: ClientLink): void => {
  if (!link.ready) return;
  const { connection, target } = link;
  const before = turn.sends.length;
  for (const frame of link.control.splice(0)) turn.sends.push({ connection, frame });
  let characters = 0;
  const mark = markOf(node);
  const at = mark === null ? {} : { at: mark };
  for (const key of link.pending) {
    if (turn.sends.length - before >= burst.frames || characters > burst.characters) break;
    link.pending.delete(key);
    const document = target.documents.get(key);
    // Gone: its tombstone was acknowledged on this connection after it had been put here.
    if (document === undefined) continue;
    const { seq, value } = document;
    const restored = seq <= node.restoredSeq ? { restored: true as const } : {};
    turn.sends.push({ connection, frame: { frame: "desire", key, seq, value, ...restored, ...at } });
    characters += document.text.length;
  }
  if (link.pending.size === 0 && !link.completed) {
    link.completed = true;
    turn.sends.push({ connection, frame: { frame: "desired-complete" } });
  }
  if (turn.sends.length > before) link.ready = false;
};
