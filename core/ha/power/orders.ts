import {
  type HostName,
  hostName,
  hostPeer,
  type PeerName,
  peerName,
  type Uid,
} from "../../../model/cell/identifiers.ts";
import type { Json } from "../../../model/json/json.ts";
import type { Instant } from "../../env.ts";
import { isObject, log, toJson, write } from "../../outbox.ts";
import { deathOf } from "../../presence/group/deaths.ts";
import { noteOff } from "../guards.ts";
import type { HaState } from "../state.ts";
import { isSuspected, suspectedHosts } from "../suspicions.ts";
import { afterFencingMs } from "./asked.ts";
import { isSamePlug, isSameUuid, type PowerAction, type RegisteredController } from "./controller.ts";
import { answerEnds, dueEnds } from "./ends.ts";
import { executorsFor, noteAnswered, noteNamed } from "./executors.ts";
import { begunBoot, isReadOff, type Order, type PowerOff, type Registered, showsLater } from "./power-state.ts";

/*
 * Orders to management controllers. The edge waits until something may be due, asks now and then which orders are, and has another host carry them out, as requests on live connections: none is
 * a document, so none is ever found on the way later. That an order was given is durable before anybody hears of it, and a start voids
 * it: a crash repeats none. What counts is the power that was read afterwards, under the UUID that was registered, for the boot that the
 * host was in when the order was given: whatever it boots into next is a later one.
 */

/** What the edge is to have carried out: by the first of these hosts; where that does not answer, the second reads. */
export interface DueOrder {
  readonly host: HostName;
  readonly nonce: number;
  readonly action: PowerAction;
  readonly controller: RegisteredController;
  readonly by: readonly PeerName[];
}

/** A power that is looked at is looked at this often. */
const readEveryMs = 10_000;
/** Nobody has an order to cut before him any more: the edge waits for 12 s for an answer, and a host tries for 10 s. */
export const voidAfterMs = 25_000;

/** Answers what the edge asks, at once or, where it waits, later. @returns whether it is such a request */
export function takePower(state: HaState, id: number, request: Json, now: Instant): boolean {
  if (isObject(request) && request.kind === "ha-power-wait") {
    answerWait(state);
    state.power.waiting = id;
    return true;
  }
  const response = answerEnds(state, request, now) ?? answerTo(state, request, now);
  if (response !== undefined) state.outbox.effects.push({ kind: "reply", id, response });
  return response !== undefined;
}
function answerTo(state: HaState, request: Json, now: Instant): Json | undefined {
  if (!isObject(request)) return undefined;
  const { kind, host } = request;
  if (kind === "ha-power-next") return toJson(nextOrders(state, now, hostsIn(request.under ?? null)));
  if (typeof host !== "string") return undefined;
  const name = hostName(host);
  if (kind === "ha-power-executors") return toJson(executorsFor(state, name));
  if (kind === "ha-power-register") {
    const registered = request.controller as unknown as Registered;
    const others = [...state.power.registered.values()].filter((other) => other.host !== name);
    const taken = others.find((other) => isSamePlug(other, registered));
    if (taken !== undefined) return { taken: taken.host };
    forget(state, name);
    write(state.outbox, `power/${name}`, registered);
    state.power.registered.set(name, registered);
    const { kind: by, address, uuid } = registered;
    log(state.outbox, "ha/power-registered", { host: name, by, address, uuid });
    return {};
  }
  if (kind === "ha-power-remove") {
    const wasThere = state.power.registered.has(name);
    forget(state, name);
    if (wasThere) log(state.outbox, "ha/power-removed", { host: name });
    return { wasThere };
  }
  if (kind !== "ha-power-read") return undefined;
  takeReading(state, name, request, now);
  return {};
}

/** The edge is told that there may be something for it to ask: something is done about a host that has a controller. */
export function settleWait(state: HaState, now: Instant): void {
  const { power, activeAt } = state;
  if (power.waiting === null) return;
  const isRegistered = (host: HostName): boolean => power.registered.has(host);
  const isAbout = [...suspectedHosts(state), ...activeAt.keys(), ...power.asked.keys()].some(isRegistered);
  if (isAbout || dueEnds(state, now).length > 0) answerWait(state);
}
function answerWait({ outbox, power }: HaState): void {
  if (power.waiting !== null) outbox.effects.push({ kind: "reply", id: power.waiting, response: {} });
  power.waiting = null;
}

function forget({ outbox, power }: HaState, host: HostName): void {
  for (const [records, kind] of [
    [power.registered, "power"],
    [power.orders, "order"],
  ] as const)
    if (records.delete(host)) write(outbox, `${kind}/${host}`, null);
  power.open.delete(host);
  power.unanswered.delete(host);
  power.executors.delete(host);
  power.said.delete(host);
}

const hostsIn = (said: Json): ReadonlySet<string> =>
  new Set(Array.isArray(said) ? said.filter((each) => typeof each === "string") : []);

/** @param under hosts of which the edge still has an order carried out: it would drop another one */
function nextOrders(state: HaState, now: Instant, under: ReadonlySet<string>): readonly DueOrder[] {
  const due: DueOrder[] = [];
  const { registered, orders } = state.power;
  const lastAt = ({ host }: Registered): number => orders.get(host)?.at ?? 0;
  // Whoever was asked longest ago comes first: where many are lost each has its turn.
  const turns = [...registered.values()].sort((one, other) => lastAt(one) - lastAt(other));
  for (const { host, uuid: _uuid, ...controller } of turns) {
    if (under.has(host)) continue;
    const wanted = whatIsDue(state, host, now);
    if (wanted === null || underWay(state, host, now) >= state.settings.workers) continue;
    const nonce = (state.power.orders.get(host)?.nonce ?? 0) + 1;
    const by = executorsFor(state, host);
    if (by.length === 0) continue;
    const before = state.power.orders.get(host);
    const offAt = wanted.action === "off" ? now.wallMs : before?.boot === wanted.boot ? before.offAt : undefined;
    const order: Order = { host, nonce, ...wanted, at: now.wallMs, ...(offAt === undefined ? {} : { offAt }) };
    write(state.outbox, `order/${host}`, order);
    state.power.orders.set(host, order);
    state.power.open.set(host, nonce);
    state.power.openedMs.set(host, now.ms);
    noteNamed(state, host, by);
    if (order.action === "off") state.power.unanswered.delete(host);
    if (order.action === "off") log(state.outbox, "ha/power-off", { host, boot: order.boot });
    due.push({ host, nonce, action: order.action, controller, by });
  }
  return due;
}

/** How many orders about other hosts somebody carries out. One that nobody has answered for so long makes way: a host gives up after that. */
const underWay = ({ power }: HaState, about: HostName, { wallMs }: Instant): number =>
  [...power.open.keys()].filter((host) => host !== about && wallMs - (power.orders.get(host)?.at ?? 0) < readEveryMs)
    .length;

function whatIsDue(state: HaState, host: HostName, now: Instant): Pick<Order, "action" | "boot"> | null {
  const { power } = state;
  const isLost = deathOf(state.deaths, host) !== null;
  // Who is heard is not asked about, and nobody's power is cut who is there again. That a suspect is not heard shows later.
  if (isLost ? state.reachable.get(hostPeer(host)) === true : !isSuspected(state, host)) return null;
  const items = [...(state.activeAt.get(host) ?? [])].flatMap((vm) => state.active.get(vm) ?? []);
  const vms = isLost ? items.map(({ vm }) => vm) : [...(state.at.get(host) ?? [])];
  const asked = [...(power.asked.get(host)?.values() ?? [])];
  const boots = [...vms.flatMap((vm) => state.wanted.get(vm)?.document.boot ?? []), ...asked.map((each) => each.boot)];
  const boot = begunBoot(power, host, boots);
  // What was placed for a later boot than the host has said is known only by a reading that was asked for since.
  const isKnown = (vm: Uid): boolean => {
    const { document, sinceMs } = state.wanted.get(vm) ?? {};
    return document?.boot === undefined || !showsLater(power, host) || isReadOff(power, host, document.boot, sinceMs);
  };
  if (boot === null || (isReadOff(power, host, boot) && vms.every(isKnown))) return null;
  const isFencing =
    isLost &&
    (asked.some(({ cut }) => cut === true) ||
      items.some(({ step, since }) => step === "Fencing" && now.wallMs - since >= afterFencingMs));
  const last = power.orders.get(host);
  const sinceMs = last === undefined ? Number.POSITIVE_INFINITY : now.wallMs - last.at;
  const sinceOffMs =
    last?.boot === boot ? now.wallMs - (last.offAt ?? Number.NEGATIVE_INFINITY) : Number.POSITIVE_INFINITY;
  // Where many hosts were lost at once nobody's power is cut before a person has looked.
  if (isFencing && state.storm === null && sinceOffMs >= state.settings.restartRetryMs) return { action: "off", boot };
  return sinceMs >= readEveryMs ? { action: "read", boot } : null;
}

/**
 * Off is what was read as off, of that machine, for an order that is open. Everything else is not known. An agent shows no machine: what it
 * reads counts once it was asked to cut the power in that boot, for a plug of a machine that was off all the time would read so as well.
 */
function takeReading(state: HaState, host: HostName, said: { readonly [name: string]: Json }, now: Instant): void {
  const { power } = state;
  const [order, registered] = [power.orders.get(host), power.registered.get(host)];
  if (order === undefined || registered === undefined || said.nonce !== order.nonce) return;
  if (power.open.get(host) !== order.nonce) return;
  power.open.delete(host);
  const isRead = said.power === "on" || said.power === "off";
  const isAgent = registered.kind === "agent";
  const isThat = isAgent
    ? said.power === "on" || order.offAt !== undefined
    : typeof said.uuid === "string" && isSameUuid(said.uuid, registered.uuid);
  const isOn = isThat && said.power === "on";
  const by = typeof said.by === "string" ? peerName(said.by) : null;
  // Null: certainly nobody has that order.
  const given = said.given === undefined ? by : said.given;
  const isUncut = order.action === "off" && said.power === "on" && by === given;
  if (!isRead) noteAnswered(state, host, null);
  else if (by !== null) noteAnswered(state, host, by, !isThat && !isAgent ? "other" : isUncut ? "uncut" : null);
  noteGiven(state, order, said.given === null ? "nobody" : said.isAnswered === false ? "silent" : "answered", isOn);
  const why = typeof said.reason === "string" ? said.reason : "the controller does not say";
  const sentence = !isRead
    ? why
    : !isThat
      ? isAgent
        ? `${registered.agent} at ${registered.address} reads off, which counts once it was asked to cut the power`
        : `the controller at ${registered.address} shows the UUID of another machine`
      : `its controller at ${registered.address} reads ${said.power}`;
  power.said.set(host, { sentence });
  for (const vm of state.at.get(host) ?? []) state.dirty.add(vm);
  if (said.power !== "off" || !isThat) return;
  const off: PowerOff = { host, boot: order.boot, at: now.wallMs };
  write(state.outbox, `off/${host}`, off);
  power.offs.set(host, off);
  power.readOffMs.set(host, now.ms);
  power.offAskedMs.set(host, power.openedMs.get(host) ?? now.ms);
  noteOff(state, host, now);
  // If it reads on again, somebody has switched it on, whoever had an order to cut it.
  power.unanswered.delete(host);
  log(state.outbox, "ha/power-is-off", { host, boot: order.boot });
}

/**
 * An order to cut that nobody was handed is as one that was not given. One that was handed to somebody who then said nothing is void after a while; where
 * somebody else is asked after that and reads the power as on, it was not carried out, and is given again. That it was carried out, and somebody has
 * switched the host on since, nobody here can tell: a host that is heard in a later boot is not asked about.
 */
function noteGiven(
  { outbox, power }: HaState,
  order: Order,
  given: "nobody" | "answered" | "silent",
  isOn: boolean,
): void {
  const { host, at, offAt } = order;
  const isCut = order.action === "off";
  if (isCut && given === "silent") power.unanswered.add(host);
  else if (isCut) power.unanswered.delete(host);
  const isVoid = isOn && offAt !== undefined && at - offAt >= voidAfterMs && power.unanswered.has(host);
  if (!isVoid && !(isCut && given === "nobody")) return;
  power.unanswered.delete(host);
  const { offAt: _offAt, ...rest } = order;
  write(outbox, `order/${host}`, rest);
  power.orders.set(host, rest);
  log(outbox, "ha/power-not-cut", { host, boot: order.boot });
}
