import type { PeerName } from "../../../model/cell/identifiers.ts";
import { type AuditEntry, rings } from "../../../model/contract/audit/audit.ts";
import type { Json } from "../../../model/json/json.ts";
import type { Effect, Instant, Service } from "../../env.ts";
import { toJson } from "../../outbox.ts";
import { fractionOf } from "../../random.ts";
import { deathIn } from "../deaths.ts";
import { recovered } from "../fork.ts";
import { asAnswered, createRecorder, type Recorder } from "./audit/recorded.ts";
import {
  clientConnected,
  clientDisconnected,
  createTarget,
  declaredDead,
  desire,
  flushClient,
  letGo,
  presenceChanged,
  receiveFromServer,
  registerInterest,
  subscribe,
  unsubscribe,
} from "./client.ts";
import { digestTimer, endWindow, publish, scanEntitlement, sendDigests, windowTimer } from "./followers.ts";
import { mayBeBehind } from "./hello.ts";
import { countCommit, createOwnHistory, writeTarget } from "./history.ts";
import { readDocument, refusedByService } from "./refuse.ts";
import { release } from "./release.ts";
import {
  createClient,
  flushServer,
  receiveFromClient,
  serverConnected,
  serverDisconnected,
  tellLife,
} from "./server.ts";
import { readStored, restoredOf, storeKey } from "./stored.ts";
import type { Distribution, NodeInput, NodeOutput, Turn } from "./types.ts";

/**
 * One service with its share of state distribution (decision 28), as a step function over its store and its connections.
 *
 * The hard part of "desired down, actual up" is that either side may vanish at any moment and come back with less or
 * more memory than the other. It rests on three things: each connection starts with a full snapshot and a complete mark,
 * so a receiver need not know what it missed; documents are durable at the receiver before their acknowledgement, so a
 * sender need not know whether it lives; generations order the lives of a service, so nobody goes back to an earlier one.
 *
 * Rejected: a log of changes with offsets. It must be trimmed, and a slow receiver decides how long it gets; here a slow
 * one costs at most the newest value of each key.
 */
export interface Node<State> {
  readonly service: Service<State>;
  readonly distribution: Distribution;
  readonly recorder: Recorder<State>;
  state: State;
}

/** Who may see what depends on the service's state, so after its steps this long passes at most until it is looked at again. */
const scanAfterMs = 100;
const scanTimer = "distribution/scan";
const serviceTimer = (name: string): string => `service/${name}`;

/**
 * @param content the service's store, as it was last durable
 * @param self the name in its own certificate
 * @param draw an id that no other start of any service has, at most 64 characters: its mark in the store's history
 * @param presence members of the Presence group: a host that they declare dead has said nothing any more
 * @param now its `wallMs` helps a service that lost its store to be newer than its former life; nothing safe rests on it,
 *   because a stored generation is always exceeded
 */
export const createNode = <State>(
  service: Service<State>,
  content: ReadonlyMap<string, Json>,
  self: PeerName,
  now: Instant,
  draw: string,
  presence: readonly PeerName[] = [],
): Node<State> => {
  const stored = readStored(content);
  const restored = restoredOf(stored);
  const node: Node<State> = {
    service,
    recorder: createRecorder(service, stored.chains),
    state: service.restore({ ...restored, drawn: fractionOf(draw) }),
    distribution: {
      self,
      instance: service.instance,
      history: createOwnHistory(stored.history, draw),
      newerMarks: new Set(),
      restored: stored.restored,
      generation: Math.max(stored.generation + 1, Math.floor(now.wallMs)),
      mayBeBehind: content.size === 0 || stored.restored !== null || stored.isRaised,
      life: 0,
      presence: new Set(presence),
      declared: new Map(),
      targets: new Map(),
      clients: new Map(),
      links: new Map(),
      published: new Map(),
      refusals: new Map(),
      refusalsLogged: new Map(),
      followers: new Map(),
      prefixLengths: new Map(),
      entitled: (peer, key) => service.entitled(node.state, peer, key),
      accepts: (peer, key) => service.accepts(peer, key),
      unclaimed: () => service.unclaimed?.(node.state) ?? new Map(),
      isLost: () => service.isLost?.(node.state) === true,
      read: (verb, from, key, value) => service.read(verb, from, key, value),
      seq: 0,
      restoredSeq: 0,
      scanning: false,
      audience: undefined,
      digestRound: new Set(),
      held: new Set(),
      timersSet: new Set(),
      phase: "created",
    },
  };
  const { distribution } = node;
  for (const [peer, documents] of stored.out) {
    const target = createTarget(peer);
    distribution.targets.set(peer, target);
    for (const [key, value] of documents) {
      distribution.seq += 1;
      target.documents.set(key, { seq: distribution.seq, value, text: JSON.stringify(value) });
    }
  }
  distribution.restoredSeq = distribution.seq;
  for (const [peer, mark] of stored.peerMarks) {
    const { at = null, instance = null, forked = false, itForked = false, seenLater = false } = mark;
    const target = distribution.targets.get(peer) ?? createTarget(peer);
    distribution.targets.set(peer, target);
    Object.assign(target, { at, instance, forked, itForked, seenLater });
  }
  for (const [peer, generation] of stored.clients) distribution.clients.set(peer, createClient(peer, generation));
  for (const [peer, documents] of stored.in) {
    const client = distribution.clients.get(peer) ?? createClient(peer, -1);
    distribution.clients.set(peer, client);
    for (const [key, document] of documents) {
      client.documents.set(key, document);
      client.characters += document.text.length;
    }
  }
  for (const [peer, mark] of stored.clientMarks) {
    const client = distribution.clients.get(peer) ?? createClient(peer, -1);
    distribution.clients.set(peer, client);
    client.mark = mark;
  }
  return node;
};

/** A member of the Presence group is one of those whose words it counts. */
const heardItself = (node: Distribution, turn: Turn, key: string, value: Json): void => {
  const death = deathIn(node, node.self, key, value);
  if (death !== null) declaredDead(node, turn, death.peer, death.life);
};

const apply = (node: Distribution, turn: Turn, effect: Effect): void => {
  switch (effect.kind) {
    case "write":
      turn.writes.push({ key: storeKey.own(effect.key), value: effect.value });
      return;
    case "let-go":
      letGo(node, turn, effect);
      return;
    case "desire":
      desire(node, turn, effect);
      return;
    case "publish":
      publish(node, turn, effect.key, effect.value);
      heardItself(node, turn, effect.key, effect.value);
      return;
    case "subscribe":
      subscribe(node, turn, effect.to, effect.prefix);
      return;
    case "unsubscribe":
      unsubscribe(node, turn, effect.to, effect.prefix);
      return;
    case "recovered": {
      const target = node.targets.get(effect.at);
      if (target !== undefined) recovered(node, turn, target);
      return;
    }
    case "counts-again":
      mayBeBehind(node, turn);
      return;
    case "timer":
      turn.timers.push({ name: serviceTimer(effect.name), afterMs: effect.afterMs });
      return;
    case "reply":
      turn.replies.push({ id: effect.id, response: effect.response });
      return;
    case "log":
      if (effect.event === "document/refused") refusedByService(node, turn, effect);
      else turn.logs.push({ event: effect.event, fields: effect.fields });
      return;
  }
};

const audienceChanged = <State>({ service, state, distribution }: Node<State>): boolean => {
  if (service.audience === undefined) return true;
  const audience = service.audience(state);
  if (audience === distribution.audience) return false;
  distribution.audience = audience;
  return true;
};

/** Steps the service through all that the layer below has for it; its effects may make more. */
const runService = <State>(node: Node<State>, turn: Turn): void => {
  const { distribution } = node;
  let stepped = false;
  for (let input = turn.inbox.shift(); input !== undefined; input = turn.inbox.shift()) {
    const step = node.service.step(node.state, input, turn.now);
    node.state = step.state;
    stepped = true;
    for (const effect of step.effects) apply(distribution, turn, effect);
  }
  if (!stepped || distribution.scanning || !audienceChanged(node)) return;
  distribution.scanning = true;
  turn.timers.push({ name: scanTimer, afterMs: scanAfterMs });
};

const start = (node: Distribution, turn: Turn): void => {
  node.phase = "running";
  turn.writes.push({ key: storeKey.generation, value: node.generation });
  if (node.restored !== null) {
    turn.writes.push({ key: storeKey.restored, value: null });
    turn.logs.push({ event: "store/restored", fields: { note: node.restored } });
  }
  turn.connects.push(...node.targets.keys());
  for (const peer of [...node.targets.keys()]) registerInterest(node, turn, peer);
  for (const client of node.clients.values()) {
    for (const [key, stored] of client.documents) {
      // One that cannot be read was written by another version. The service must know of it, or it would take it for taken back.
      const value = readDocument(node, turn, "desired", client.peer, key, stored.value) ?? stored.value;
      turn.inbox.push({ kind: "desired", from: client.peer, key, value });
    }
  }
  turn.inbox.push({ kind: "start" });
};

const stop = (node: Distribution, turn: Turn): void => {
  node.phase = "stopped";
  for (const link of node.links.values()) {
    const { connection } = link;
    // A connection that was not greeted yet is closed as it is.
    if (link.role === "client" || link.client !== null) turn.sends.push({ connection, frame: { frame: "goodbye" } });
    turn.closes.push(connection);
  }
  node.links.clear();
};

const connectionInput = (
  node: Distribution,
  turn: Turn,
  input: Extract<NodeInput, { readonly connection: number }>,
): void => {
  if (input.kind === "connected") {
    if (input.role === "client") clientConnected(node, turn, input.connection, input.peer);
    else serverConnected(node, input.connection, input.peer);
    return;
  }
  const link = node.links.get(input.connection);
  // Superseded or closed by this side, and heard of once more.
  if (link === undefined) return;
  switch (input.kind) {
    case "disconnected":
      link.role === "client" ? clientDisconnected(node, turn, link.target) : serverDisconnected(node, link);
      return;
    case "sendable":
      link.ready = true;
      turn.dirty.add(link.connection);
      return;
    case "frame":
      link.role === "client"
        ? receiveFromServer(node, turn, link, input.frame)
        : receiveFromClient(node, turn, link, input.frame);
      return;
  }
};

const timer = (node: Distribution, turn: Turn, name: string): void => {
  switch (name) {
    case scanTimer:
      node.scanning = false;
      scanEntitlement(node, turn);
      return;
    case digestTimer:
      sendDigests(node, turn);
      return;
    case windowTimer:
      endWindow(node, turn);
      return;
    default:
      turn.inbox.push({ kind: "timer", name: name.slice(serviceTimer("").length) });
  }
};

/**
 * The host begins a life. The first is noted, and told to those that were greeted before it was known: who does not know
 * which life is speaking could not tell its death from an earlier one's. A later one means that others were told of its death and have
 * withdrawn what was said before: it is said anew, as by a new start, on connections that know the new generation.
 */
const beginLife = (node: Distribution, turn: Turn, life: number): void => {
  if (life <= node.life) return;
  const first = node.life === 0;
  node.life = life;
  if (first) {
    tellLife(node, turn);
    return;
  }
  node.generation += 1;
  turn.writes.push({ key: storeKey.generation, value: node.generation });
  turn.logs.push({ event: "distribution/reborn", fields: { life, generation: node.generation } });
  for (const link of [...node.links.values()]) {
    turn.closes.push(link.connection);
    link.role === "client" ? clientDisconnected(node, turn, link.target) : serverDisconnected(node, link);
  }
};

const take = (node: Distribution, turn: Turn, input: NodeInput): void => {
  switch (input.kind) {
    case "start":
      start(node, turn);
      return;
    case "stop":
      stop(node, turn);
      return;
    case "unreachable": {
      const target = node.targets.get(input.peer);
      if (target !== undefined && target.link === null) clientDisconnected(node, turn, target);
      return;
    }
    case "timer":
      timer(node, turn, input.name);
      return;
    case "presence":
      presenceChanged(node, turn, input.members);
      return;
    case "declared-dead":
      declaredDead(node, turn, input.peer, input.life);
      return;
    case "life":
      beginLife(node, turn, input.life);
      return;
    case "request":
      turn.inbox.push({ kind: "request", id: input.id, request: input.request });
      return;
    case "release":
      release(node, turn, input);
      return;
    case "record":
      turn.replies.push({ id: input.id, response: null });
      return;
    default:
      connectionInput(node, turn, input);
      return;
  }
};

/** In the same step as what was asked. */
const recordIn = <State>(node: Node<State>, turn: Turn, input: NodeInput, by: AuditEntry): void => {
  const reply = input.kind === "request" ? turn.replies.find(({ id }) => id === input.id)?.response : undefined;
  const entry = asAnswered(by, reply);
  const before = node.recorder.chains();
  for (const effect of node.recorder.record(node.state, entry, turn.now)) apply(node.distribution, turn, effect);
  const chains = node.recorder.chains();
  if (chains === null) return;
  // With what is too old the other one begins later.
  for (const ring of rings)
    if (chains[ring] !== before?.[ring]) turn.writes.push({ key: storeKey.chains[ring], value: toJson(chains[ring]) });
};

/** What else is written with a step's writes: this store is one commit further. */
const closeCommit = (node: Distribution, turn: Turn, input: NodeInput): void => {
  for (const target of node.newerMarks) writeTarget(turn, target);
  node.newerMarks.clear();
  // Each start writes its generation. One that does no more than that is no mark in the history, unless it is the first.
  if (input.kind === "start" && turn.writes.length === 1 && node.history.marks.length > 0) return;
  countCommit(node, turn);
};

/**
 * One step. Changes `node` in place; carry out what is returned as `NodeOutput` says. The first input is `start`; after
 * `stop` every input is ignored.
 */
export const stepNode = <State>(node: Node<State>, input: NodeInput, now: Instant): NodeOutput => {
  const { distribution } = node;
  const turn: Turn = {
    now,
    inbox: [],
    dirty: new Set(),
    shared: new Map(),
    writes: [],
    sends: [],
    timers: [],
    logs: [],
    replies: [],
    connects: [],
    closes: [],
  };
  if (distribution.phase === "stopped") return turn;
  if ((distribution.phase === "created") !== (input.kind === "start")) {
    throw new Error(`a node starts once and first: "${input.kind}" while ${distribution.phase}`);
  }
  take(distribution, turn, input);
  runService(node, turn);
  if ("by" in input && input.by !== undefined) recordIn(node, turn, input, input.by);
  if (turn.writes.length > 0) closeCommit(distribution, turn, input);
  for (const connection of turn.dirty) {
    const link = distribution.links.get(connection);
    if (link?.role === "client") flushClient(distribution, turn, link);
    else if (link?.role === "server") flushServer(distribution, turn, link);
  }
  return turn;
};
