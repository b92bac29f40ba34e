import type { PeerName } from "../../../model/cell/identifiers.ts";
import type { Json } from "../../../model/json/json.ts";
import {
  advanceClient,
  hasForked,
  isKept,
  judgeClient,
  keep,
  keepOut,
  releaseClient,
  tellWithinShare,
} from "../fork.ts";
import { RunningDigest } from "./digest.ts";
import {
  allowance,
  complete,
  receiveRepair,
  receiveSubscribe,
  receiveUnsubscribe,
  sendActual,
  unfollow,
} from "./followers.ts";
import { type ClientFrame, parseClientFrame, spokenWith, textOf } from "./frames.ts";
import { forgedIn, helloOf, raisedFloor } from "./hello.ts";
import { markOf } from "./history.ts";
import { burst, readDocument, refuse } from "./refuse.ts";
import { beyond } from "./share/share.ts";
import { storeKey } from "./stored.ts";
import type { Client, Distribution, ServerLink, Turn } from "./types.ts";
/**
 * A service as the server of others: it keeps what they desire, and tells them what is so.
 *
 * Of each client one connection counts, the one with the highest (generation, session). A document stays until its
 * client's tombstone. What a snapshot lacks is an orphan: it goes on as before, and is counted and named.
 */
export const createClient = (peer: PeerName, generation: number): Client => ({
  peer,
  documents: new Map(),
  orphans: new Set(),
  characters: 0,
  mark: null,
  floor: 0,
  generation,
  session: -1,
  link: null,
});

export const serverConnected = (node: Distribution, connection: number, peer: PeerName): void => {
  node.links.set(connection, {
    role: "server",
    connection,
    peer,
    control: [],
    prefixes: new Set(),
    completing: new Set(),
    same: new Map(),
    pending: new Set(),
    sent: new Map(),
    digest: new RunningDigest(),
    repairs: new Set(),
    windowMs: 0,
    windowFrames: 0,
    draining: false,
    version: 0,
    seen: new Set(),
    speaksHistory: false,
    telling: new Map(),
    client: null,
    seq: 0,
    ack: null,
    ready: true,
  });
};

export const serverDisconnected = (node: Distribution, link: ServerLink): void => {
  node.links.delete(link.connection);
  node.digestRound.delete(link);
  node.held.delete(link);
  for (const prefix of link.prefixes) unfollow(node, link, prefix);
  if (link.client?.link === link) link.client.link = null;
};

export const closeServer = (node: Distribution, turn: Turn, link: ServerLink): void => {
  turn.closes.push(link.connection);
  serverDisconnected(node, link);
};

const receiveHello = (
  node: Distribution,
  turn: Turn,
  link: ServerLink,
  hello: Extract<ClientFrame, { frame: "hello" }>,
): void => {
  const { peer } = link;
  const forged = forgedIn(turn, peer, hello);
  const client = node.clients.get(peer) ?? createClient(peer, -1);
  const { generation, session } = hello;
  const isOld = generation < client.generation;
  if (forged === null && isOld) turn.sends.push(laterSeen(node, link, client, session));
  if (forged !== null || isOld || (generation === client.generation && session <= client.session)) {
    refuse(node, turn, peer, forged ?? "old generation", null);
    closeServer(node, turn, link);
    return;
  }
  if (client.link !== null) closeServer(node, turn, client.link);
  judgeClient(node, turn, client, hello);
  if (generation !== client.generation) turn.writes.push({ key: storeKey.client(peer), value: generation });
  client.generation = generation;
  client.session = session;
  client.link = link;
  node.clients.set(peer, client);
  link.client = client;
  link.version = spokenWith(hello.version) ?? 0;
  link.speaksHistory = hello.history !== undefined;
  if (!link.speaksHistory) turn.inbox.push({ kind: "earlier", peer });
  client.floor = raisedFloor(node, turn, client.floor, hello.seen) ?? client.floor;
  const seenLater = client.mark?.seenLater === true ? { seenLater: true as const } : {};
  link.control.push(helloOf(node, client, { ...(hasForked(client) ? { forked: true } : {}), ...seenLater }));
};
const laterSeen = (node: Distribution, { connection }: ServerLink, { floor, generation }: Client, session: number) => ({
  connection,
  frame: helloOf(node, { session, floor }, { seen: generation }),
});

/** To everybody who was greeted without it. */
export const tellLife = (node: Distribution, turn: Turn): void => {
  for (const link of node.links.values()) {
    if (link.role !== "server" || link.client === null) continue;
    link.control.push({ frame: "life", life: node.life });
    turn.dirty.add(link.connection);
  }
};

export const remove = (turn: Turn, client: Client, key: string): void => {
  client.orphans.delete(key);
  client.characters -= client.documents.get(key)?.text.length ?? 0;
  if (!client.documents.delete(key)) return;
  turn.writes.push({ key: storeKey.in(client.peer, key), value: null });
  turn.inbox.push({ kind: "desired", from: client.peer, key, value: null });
};

const receiveDesire = (
  node: Distribution,
  turn: Turn,
  link: ServerLink,
  client: Client,
  frame: Extract<ClientFrame, { frame: "desire" }>,
): void => {
  const { key, seq, value } = frame;
  if (seq <= link.seq) {
    refuse(node, turn, link.peer, "out of order", key);
    return;
  }
  // A refused document is acknowledged too: to wait for it would hold up all others of this client.
  link.seq = seq;
  link.ack = seq;
  if (!node.accepts(link.peer, key)) {
    refuse(node, turn, link.peer, "not accepted here", key);
    return;
  }
  const before = client.documents.get(key);
  const text = value === null ? null : textOf(value);
  // Of a key that is not here nothing need be known: so this holds no more than the client's share.
  if (value !== null && before !== undefined) link.seen?.add(key);
  else link.seen?.delete(key);
  if (before !== undefined && isKept(client, before)) {
    client.orphans.delete(key);
    if (text !== before.text) keep(node, turn, link, key, seq);
    return;
  }
  if (value !== null && before === undefined && frame.restored === true && hasForked(client)) {
    keepOut(node, turn, link, key, seq);
    return;
  }
  if (value === null) {
    if (before === undefined && !hasForked(client)) turn.inbox.push({ kind: "unknown-end", from: client.peer, key });
    if (before !== undefined) advanceClient(turn, client, frame.at);
    remove(turn, client, key);
    return;
  }
  if (text === null) {
    refuse(node, turn, link.peer, "value too long", key);
    return;
  }
  const tooMuch = before?.text === text ? null : beyond(client, before, text);
  if (tooMuch !== null) {
    refuse(node, turn, link.peer, tooMuch, key);
    tellWithinShare(link, key, seq);
    return;
  }
  const { generation } = client;
  const unchanged = before?.text === text;
  const document = unchanged ? null : readDocument(node, turn, "desired", link.peer, key, value);
  // The last good one stays.
  if (!unchanged && document === null) return;
  client.characters += text.length - (before?.text.length ?? 0);
  client.documents.set(key, { generation, seq, value, text });
  link.seen?.add(key);
  client.orphans.delete(key);
  // That it was said in this start is worth a record: from a copy of before, the client would be an older one.
  if (!unchanged || frame.at?.start !== client.mark?.start) advanceClient(turn, client, frame.at);
  if (unchanged) return;
  turn.writes.push({ key: storeKey.in(link.peer, key), value: { generation, seq, value } });
  turn.inbox.push({ kind: "desired", from: link.peer, key, value: document });
};

/** Documents of an orphans' line of log that are named. */
const orphansNamed = 10;

/**
 * What the snapshot lacks stays in force. A client keeps each tombstone until it is acknowledged here, so one that ended a
 * document says so; one that is silent about it has lost its store, or has an older one.
 */
const receiveComplete = (turn: Turn, link: ServerLink, client: Client): void => {
  const { seen } = link;
  link.seen = null;
  if (seen === null) return;
  turn.inbox.push({ kind: "complete", peer: client.peer });
  const before = client.orphans.size;
  client.orphans.clear();
  for (const key of client.documents.keys()) if (!seen.has(key)) client.orphans.add(key);
  if (link.speaksHistory) for (const key of client.orphans) if (!link.telling.has(key)) link.telling.set(key, null);
  const count = client.orphans.size;
  if (count === before) return;
  const keys = [...client.orphans].slice(0, orphansNamed);
  turn.logs.push({ event: "distribution/orphans", fields: { peer: client.peer, count, keys } });
};

/** A frame from a client. */
export const receiveFromClient = (node: Distribution, turn: Turn, link: ServerLink, json: Json): void => {
  const parsed = parseClientFrame(json);
  turn.dirty.add(link.connection);
  if (!parsed.ok) {
    refuse(node, turn, link.peer, parsed.error, null);
    // Who did not begin with a hello that makes sense has nothing to say later either.
    if (link.client === null || parsed.error === "unsupported version") closeServer(node, turn, link);
    return;
  }
  const frame = parsed.value;
  const { client } = link;
  if (frame.frame === "hello" && client === null) {
    receiveHello(node, turn, link, frame);
    return;
  }
  if (frame.frame === "hello" || client === null) {
    refuse(node, turn, link.peer, "out of order", null);
    closeServer(node, turn, link);
    return;
  }
  switch (frame.frame) {
    case "desire":
      receiveDesire(node, turn, link, client, frame);
      return;
    case "desired-complete":
      receiveComplete(turn, link, client);
      return;
    case "recovered":
      // What a controller desires is somebody's desire, which nothing but its model or a person can know.
      if (client.peer.startsWith("controller.")) refuse(node, turn, link.peer, "not accepted here", null);
      else releaseClient(turn, client, "client");
      return;
    case "subscribe":
      receiveSubscribe(node, turn, link, frame.prefix, frame.holds);
      return;
    case "repair":
      receiveRepair(node, link, frame.buckets);
      return;
    case "unsubscribe":
      receiveUnsubscribe(node, link, frame.prefix);
      return;
    case "goodbye":
      // What it desires stays: only a tombstone takes it back.
      closeServer(node, turn, link);
      return;
  }
};

const sendKept = (turn: Turn, { connection, client }: ServerLink, key: string, seq: number | null): number => {
  const document = client?.documents.get(key);
  const value = document?.value ?? null;
  turn.sends.push({ connection, frame: { frame: "kept", key, value, ...(seq === null ? {} : { seq }) } });
  return document?.text.length ?? 0;
};

/** Hands the connection what is due, up to one burst. */
export const flushServer = (node: Distribution, turn: Turn, link: ServerLink): void => {
  if (!link.ready || link.client === null) return;
  const { connection } = link;
  const before = turn.sends.length;
  for (const frame of link.control.splice(0)) turn.sends.push({ connection, frame });
  let characters = 0;
  const first = turn.sends.length;
  const last = first + allowance(node, turn, link);
  for (const key of link.pending) {
    if (turn.sends.length >= last || turn.sends.length - before >= burst.frames || characters > burst.characters) break;
    link.pending.delete(key);
    characters += sendActual(node, turn, link, key);
  }
  link.windowFrames += turn.sends.length - first;
  for (const [key, seq] of link.telling) {
    if (turn.sends.length - before >= burst.frames || characters > burst.characters) break;
    link.telling.delete(key);
    characters += sendKept(turn, link, key, seq);
  }
  if (link.pending.size === 0) {
    // What follows from the documents is said before them, so that a client that hears it knows what became of these.
    if (link.ack !== null && link.telling.size === 0) {
      const at = markOf(node);
      turn.sends.push({ connection, frame: { frame: "ack", seq: link.ack, ...(at === null ? {} : { at }) } });
      link.ack = null;
    }
    complete(turn, link);
  }
  if (turn.sends.length > before) link.ready = false;
};
