import type { PeerName } from "../../model/identifiers.ts";
import type { Json } from "../../model/json.ts";
import { type ClientFrame, isKey, limits, parseClientFrame, protocolVersion, textOf } from "./frames.ts";
import type { Client, Distribution, ServerLink, Turn } from "./node-types.ts";
import { burst, refuse } from "./refuse.ts";
import { storeKey } from "./stored.ts";

/**
 * A service as the server of others: it keeps what they desire, and tells them what is so.
 *
 * Of each client one connection counts, the one with the highest (generation, session). Documents of an earlier
 * generation stay until the new one's snapshot is complete: a client that starts again and breaks off halfway has taken
 * nothing back.
 */
export const createClient = (peer: PeerName, generation: number): Client => ({
  peer,
  documents: new Map(),
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
    pending: new Set(),
    sent: new Map(),
    seen: new Set(),
    client: null,
    seq: 0,
    ack: null,
    ready: true,
  });
};

export const serverDisconnected = (node: Distribution, link: ServerLink): void => {
  node.links.delete(link.connection);
  if (link.client?.link === link) link.client.link = null;
};

const closeServer = (node: Distribution, turn: Turn, link: ServerLink): void => {
  turn.closes.push(link.connection);
  serverDisconnected(node, link);
};

const matches = (link: ServerLink, key: string): boolean => {
  for (const prefix of link.prefixes) if (key.startsWith(prefix)) return true;
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
  for (const link of node.links.values()) {
    if (link.role !== "server" || !matches(link, key)) continue;
    link.pending.add(key);
    turn.dirty.add(link.connection);
  }
};

/** Finds what a client may see now and was not given, or was given and may see no more. */
export const scanEntitlement = (node: Distribution, turn: Turn): void => {
  for (const link of node.links.values()) {
    if (link.role !== "server" || link.prefixes.size === 0) continue;
    for (const key of node.published.keys()) {
      if (!matches(link, key) || node.entitled(link.peer, key) === link.sent.has(key)) continue;
      link.pending.add(key);
      turn.dirty.add(link.connection);
    }
  }
};

const receiveHello = (
  node: Distribution,
  turn: Turn,
  link: ServerLink,
  hello: Extract<ClientFrame, { frame: "hello" }>,
): void => {
  const { peer } = link;
  if (hello.name !== peer) {
    refuse(node, turn, peer, "name differs from certificate", null);
    closeServer(node, turn, link);
    return;
  }
  const client = node.clients.get(peer) ?? createClient(peer, -1);
  const { generation, session } = hello;
  if (generation < client.generation || (generation === client.generation && session <= client.session)) {
    refuse(node, turn, peer, "old generation", null);
    closeServer(node, turn, link);
    return;
  }
  if (client.link !== null) closeServer(node, turn, client.link);
  if (generation !== client.generation) turn.writes.push({ key: storeKey.client(peer), value: generation });
  client.generation = generation;
  client.session = session;
  client.link = link;
  node.clients.set(peer, client);
  link.client = client;
  link.control.push({
    frame: "hello",
    version: protocolVersion,
    generation: node.generation,
    session,
    name: node.self,
  });
};

const remove = (turn: Turn, client: Client, key: string): void => {
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
  if (value === null) {
    link.seen?.delete(key);
    remove(turn, client, key);
    return;
  }
  link.seen?.add(key);
  const text = textOf(value);
  if (text === null) {
    refuse(node, turn, link.peer, "value too long", key);
    return;
  }
  const { generation } = client;
  const unchanged = client.documents.get(key)?.text === text;
  client.documents.set(key, { generation, seq, value, text });
  if (unchanged) return;
  turn.writes.push({ key: storeKey.in(link.peer, key), value: { generation, seq, value } });
  turn.inbox.push({ kind: "desired", from: link.peer, key, value });
};

const receiveComplete = (turn: Turn, link: ServerLink, client: Client): void => {
  const { seen } = link;
  link.seen = null;
  if (seen === null) return;
  for (const key of [...client.documents.keys()]) if (!seen.has(key)) remove(turn, client, key);
};

const receiveSubscribe = (node: Distribution, turn: Turn, link: ServerLink, prefix: string): void => {
  if (link.prefixes.size >= limits.subscriptions) {
    refuse(node, turn, link.peer, "too many subscriptions", prefix);
    return;
  }
  link.prefixes.add(prefix);
  link.completing.add(prefix);
  for (const key of node.published.keys()) if (key.startsWith(prefix)) link.pending.add(key);
};

/**
 * The retraction of what is no longer followed goes out even though the client has forgotten it: should it subscribe
 * again while older frames are on their way, these come first and the retraction makes them void.
 */
const receiveUnsubscribe = (node: Distribution, link: ServerLink, prefix: string): void => {
  link.prefixes.delete(prefix);
  link.completing.delete(prefix);
  for (const key of [...link.sent.keys()]) {
    if (matches(link, key)) continue;
    link.sent.delete(key);
    node.seq += 1;
    link.control.push({ frame: "actual", key, seq: node.seq, value: null });
  }
};

/** A frame from a client. */
export const receiveFromClient = (node: Distribution, turn: Turn, link: ServerLink, json: Json): void => {
  const parsed = parseClientFrame(json);
  turn.dirty.add(link.connection);
  if (!parsed.ok) {
    refuse(node, turn, link.peer, parsed.error, null);
    if (parsed.error === "unsupported version") closeServer(node, turn, link);
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
    case "subscribe":
      receiveSubscribe(node, turn, link, frame.prefix);
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

const sendActual = (node: Distribution, turn: Turn, link: ServerLink, key: string): number => {
  const { connection } = link;
  const entry = matches(link, key) ? node.published.get(key) : undefined;
  if (entry !== undefined && node.entitled(link.peer, key)) {
    if (link.sent.get(key) === entry.seq) return 0;
    link.sent.set(key, entry.seq);
    turn.sends.push({ connection, frame: { frame: "actual", key, seq: entry.seq, value: entry.value } });
    return entry.text.length;
  }
  if (!link.sent.delete(key)) return 0;
  node.seq += 1;
  turn.sends.push({ connection, frame: { frame: "actual", key, seq: node.seq, value: null } });
  return 0;
};

/** Hands the connection what is due, up to one burst. */
export const flushServer = (node: Distribution, turn: Turn, link: ServerLink): void => {
  if (!link.ready || link.client === null) return;
  const { connection } = link;
  const before = turn.sends.length;
  for (const frame of link.control.splice(0)) turn.sends.push({ connection, frame });
  let characters = 0;
  for (const key of link.pending) {
    if (turn.sends.length - before >= burst.frames || characters > burst.characters) break;
    link.pending.delete(key);
    characters += sendActual(node, turn, link, key);
  }
  // What follows from the documents is said before them, so that a client that hears either knows what became of these.
  if (link.pending.size === 0 && link.ack !== null) {
    turn.sends.push({ connection, frame: { frame: "ack", seq: link.ack } });
    link.ack = null;
  }
  if (link.pending.size === 0) {
    for (const prefix of link.completing) turn.sends.push({ connection, frame: { frame: "actual-complete", prefix } });
    link.completing.clear();
  }
  if (turn.sends.length > before) link.ready = false;
};
