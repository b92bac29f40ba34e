import { refusedText } from "../../model/cause/words.ts";
import { type HostName, hostName, type PeerName, peerName, type Uid } from "../../model/cell/identifiers.ts";
import type { Json } from "../../model/json/json.ts";
import { rootCell } from "../documents/cells.ts";
import { settingsKey, spareKey } from "../documents/ha.ts";
import { mayDesire, maySee } from "../documents/permissions.ts";
import { desiredSpare } from "../documents/readers/ha.ts";
import {
  actualHost,
  actualTaken,
  desiredHost,
  desiredPlacement,
  desiredPlacementSettings,
} from "../documents/readers/placement.ts";
import { documentsOf } from "../documents/readers/table.ts";
import { isOffersRequest } from "../documents/supply.ts";
import { marksKey } from "../documents/tenancy.ts";
import {
  type ActualHost,
  actualKey,
  type DesiredPlacement,
  type HostOffers,
  hostKey,
  takenKey,
} from "../documents/vocabulary.ts";
import type { Input, Restored, Service } from "../env.ts";
import { createOutbox, isObject, log, publish, sameJson, takeEffects, toJson } from "../outbox.ts";
import {
  createDeaths,
  deathOf,
  diedAt,
  followDeaths,
  followOthers,
  membersIn,
  takeDeath,
} from "../presence/group/deaths.ts";
import { adviceFor } from "./advice/advice.ts";
import { noteTaken, type Ratios, type Reservation, release, reservationOf, reserve, UsageTable } from "./candidate.ts";
import type { Given } from "./filters/wishes.ts";
import { takeGroup } from "./groups.ts";
import { choose } from "./index/choose.ts";
import { createIndex } from "./index/classes.ts";
import { OwnerTable } from "./index/owner-table.ts";
import { knownVms } from "./index/vms.ts";
import { waitingInOrder, whoIsTried } from "./index/waiting.ts";
import { measurePlacer } from "./measure.ts";
import { askerOf, isUnread, sayStandings, takeOwners } from "./owners.ts";
import { defaultRatios, type Placed, place, placedAt } from "./place.ts";
import { placeBefore, whyNotKnown } from "./room/before.ts";
import { continueAnew, crossedBy } from "./room/crossings.ts";
import { giveUp, nextKey, settleLeaving } from "./room/leaving.ts";
import { offerOf, offersOf } from "./room/offers.ts";
import { rooms } from "./room/rooms.ts";
import { isSparing, placeSparing } from "./room/spare.ts";
import { noRefusals, placedActual, someOf, toActual, toldOf } from "./room/told.ts";
import type { PlacerState, Wanted } from "./state.ts";
import { HostTable } from "./tables.ts";
import { termsOf } from "./terms.ts";
import { createQuestions, sliceTimer, takeQuestion, workOn } from "./what-if/questions.ts";

/*
 * The Placer keeps a reservation per VM incarnation. A reservation never moves by itself: the VM may be running there. A new incarnation is placed anew;
 * its controller mints one only when the old cannot run any more. What fits nowhere waits, and is tried again when a host changes or a reservation goes.
 *
 * Several Placers may place at the same hosts, each for cells of its own (decisions/0037). Each host says what it has of whomever, and a Placer counts that beside its own reservations.
 * What two of them promise before the host has said so is decided by the host, which refuses what does not fit; the VM's controller then asks for another place.
 */

export interface PlacerOptions {
  readonly self: PeerName;
  /** `host.<name>` of each host. */
  readonly hosts: readonly PeerName[];
  /** Members of the Presence group; none: no host is ever declared dead. */
  readonly presence?: readonly PeerName[];
  readonly ratios?: Ratios;
}

/** Clients: `controller.<cell>`. Records: `reservation/<vm uid>`. */
export function createPlacer(options: PlacerOptions): Service<PlacerState> {
  return {
    restore: (restored) => restore(restored, options),
    step: (state, input) => {
      take(state, input);
      if (state.started) sayStandings(state);
      state.outbox.quiet = false;
      return { state, effects: takeEffects(state.outbox) };
    },
    audience: () => null,
    entitled: (_state, peer, key) => maySee("placer", peer, key),
    accepts: (peer, key) => mayDesire("placer", peer, key),
    read: documentsOf("placer"),
    measure: measurePlacer,
  };
}

const rootController = peerName("controller.root");
const hostOf = (peer: PeerName): HostName => hostName(peer.slice("host.".length));
const isOther = ([key]: readonly [string, Json]): boolean => !key.startsWith("reservation/");
function restore(restored: Restored, { hosts, ratios, presence }: PlacerOptions): PlacerState {
  const { wanted, reservations, places, said } = knownVms();
  const state: PlacerState = {
    // Reservations are kept once, and not among the records that were written, too.
    outbox: createOutbox({ ...restored, records: new Map([...restored.records].filter(isOther)) }, undefined, said),
    ratios: ratios ?? defaultRatios,
    started: false,
    hosts: new HostTable(),
    index: createIndex(),
    deaths: createDeaths(presence),
    owners: new OwnerTable(),
    groups: new Map(),
    groupsByName: new Map(),
    wanted,
    unread: new Set(),
    reservations,
    usage: new UsageTable(places),
    silent: new Set(hosts),
    heard: new Set(),
    hasQuorum: false,
    isToldAll: false,
    waiting: new Set(),
    refused: new Set(),
    retries: 0,
    advised: { round: 0, count: 0, last: new Map() },
    maintained: new Set(),
    asked: new Set(),
    leaving: new Map(),
    next: new Map(),
    spareHosts: 0,
    settings: {},
    offerings: [],
    continuing: new Map(),
    wereHeld: new Set(),
    told: new Set(),
    questions: createQuestions(),
  };
  for (const peer of hosts) state.hosts.set(peer, { host: hostOf(peer), reachable: false, actual: null });
  for (const [key, value] of restored.records) {
    const reservation = value as unknown as Reservation;
    (key === nextKey(reservation.vm) ? state.next : state.reservations).set(reservation.vm, reservation);
    reserve(state.usage, reservation);
  }
  return state;
}

function take(state: PlacerState, input: Input): void {
  if (input.kind === "start") start(state);
  else if (input.kind === "desired") takeDesired(state, input.from, input.key, input.value);
  else if (input.kind === "actual" && input.key === "host") takeHost(state, input.from, input.value);
  else if (input.kind === "actual" && input.key.startsWith(takenKey("" as Uid))) takeTaken(state, input);
  else if (input.kind === "actual") noteDeath(state, takeDeath(state.deaths, input.from, input.key, input.value));
  else if (input.kind === "timer" && input.name === sliceTimer) workOn(state);
  else if (input.kind === "complete") state.isToldAll ||= input.peer === rootController;
  else if (input.kind === "reachable") {
    const view = state.hosts.get(input.peer);
    const first = state.silent.delete(input.peer);
    if (view === undefined || (view.reachable === input.reachable && !first)) return;
    state.hosts.set(input.peer, { ...view, reachable: input.reachable });
    if (first && state.silent.size === 0) publishOffers(state);
    retry(state);
  } else if (input.kind === "request" && !takeQuestion(state, input.id, input.request)) {
    state.outbox.effects.push({ kind: "reply", id: input.id, response: replyTo(state, input.request) });
  }
}

function noteDeath(state: PlacerState, host: HostName | null): void {
  const peer = peerName(`host.${host}`);
  const view = state.hosts.get(peer);
  if (host === null || view === undefined) return;
  const death = deathOf(state.deaths, host);
  state.hosts.set(peer, { ...view, died: death === null ? null : diedAt(death) });
  retry(state);
}

function replyTo(state: PlacerState, request: Json): Json {
  const members = membersIn(request);
  if (members !== null) {
    state.outbox.effects.push(...followOthers(state.deaths, members));
    return toJson({ members });
  }
  if (isOffersRequest(request)) return toJson(saidOffers(state));
  if (isObject(request) && request.kind === "hosts") return rooms(state);
  return {
    error: 'the Placer answers requests of the kinds "hosts", "offers", "capacity", "rebalance" and "try" only',
  };
}

function start(state: PlacerState): void {
  state.started = true;
  state.outbox.quiet = true;
  // In this order: a host is known to be there only when it is known what it has.
  for (const prefix of [takenKey("" as Uid), "host"])
    for (const to of state.hosts.keys()) state.outbox.effects.push({ kind: "subscribe", to, prefix });
  state.outbox.effects.push(...followDeaths(state.deaths));
  log(state.outbox, "service/restored", { reservations: state.reservations.size });
  // All that ended first, so that the new ones find its room.
  for (const reservation of [...state.reservations.values()]) {
    const wanted = state.wanted.get(reservation.vm);
    if (state.unread.has(reservation.vm) || isOf(reservation, wanted?.document)) continue;
    drop(state, reservation);
    if (wanted !== undefined) continueAnew(state, reservation, wanted.document);
  }
  for (const vm of state.wanted.keys()) reconcile(state, vm);
  sayLeaving(state);
  sayOffers(state);
}

const saidOffers = ({ hosts, ratios, settings, offerings }: PlacerState): HostOffers =>
  offersOf(hosts.values(), ratios, settings, offerings);
const sayOffers = (state: PlacerState): void => {
  const value = toJson(saidOffers(state));
  state.outbox.effects.push({ kind: "publish", key: "hosts", value });
};
/** What all hosts offer, anew: of thousands that are heard one after the other at a start once, when all have been, and nothing is placed before. */
const publishOffers = (state: PlacerState): void => {
  if (state.silent.size === 0) sayOffers(state);
};

function takeHost(state: PlacerState, peer: PeerName, value: Json): void {
  const view = state.hosts.get(peer);
  const actual = actualHost.of(value);
  if (view === undefined || (actual === null && value !== null)) return;
  if (actual !== null && actual.host !== view.host) {
    log(state.outbox, "document/refused", { peer, key: "host", why: `it is about ${actual.host}` });
    return;
  }
  if (sameJson(value, view.actual === null ? null : toJson(view.actual)) && view.reachable) return;
  // What a host says itself shows that it is there, before or after the notice that its connection is in step.
  if (view.actual === null && actual !== null) {
    const { host, memoryMiB, cpus, accelerator } = actual;
    log(state.outbox, "host/joined", { host, state: actual.state, memoryMiB, cpus, accelerator });
  } else if (actual === null) {
    if (view.actual !== null) log(state.outbox, "host/left", { host: view.host });
  } else if (!sameJson(value, toJson(view.actual ?? {}))) {
    log(state.outbox, "host/changed", { host: actual.host, state: actual.state, memoryMiB: actual.memoryMiB });
  }
  if (actual !== null) state.heard.add(peer);
  state.hosts.set(peer, { ...view, actual, reachable: actual !== null || view.reachable });
  const offered = (of: ActualHost | null): Json => (of === null ? null : toJson(offerOf(of, state.ratios)));
  if (!sameJson(offered(view.actual), offered(actual))) publishOffers(state);
  retry(state);
}

/** What a host has, of this Placer's clients and of others'. */
function takeTaken(state: PlacerState, { from, key, value }: Extract<Input, { kind: "actual" }>): void {
  const view = state.hosts.get(from);
  if (view === undefined) return;
  const vm = key.slice(takenKey("" as Uid).length) as Uid;
  const said = value === null ? null : actualTaken.of(value);
  if (isUnread(state, from, key, said, value)) return;
  noteTaken(state.usage, view.host, vm, said);
  if (state.waiting.size > 0) retry(state);
}

/** What the operator says of a host. One that is malformed changes nothing. */
function takeAdministered(state: PlacerState, key: string, value: Json): void {
  const host = hostName(key.slice(hostKey("" as HostName).length));
  const peer = peerName(`host.${host}`);
  const view = state.hosts.get(peer);
  const document = value === null ? null : desiredHost.of(value, host);
  if (view === undefined || (document === null && value !== null)) return;
  const { closed: before, ...open } = view;
  if (before === document?.state) return;
  state.hosts.set(peer, document === null ? open : { ...open, closed: document.state });
  if (document?.state === "maintenance") state.maintained.add(host);
  else state.maintained.delete(host);
  log(state.outbox, "host/administered", { host, state: document?.state ?? "enabled" });
  retry(state);
}

function takeDesired(state: PlacerState, client: PeerName, key: string, value: Json): void {
  if (key.startsWith(hostKey("" as HostName))) {
    takeAdministered(state, key, value);
    return;
  }
  if (key === spareKey) {
    const said = value === null ? null : desiredSpare.of(value);
    if (isUnread(state, client, key, said, value)) return;
    state.spareHosts = said?.hosts ?? 0;
    retry(state, true);
    return;
  }
  if (key === settingsKey) {
    const said = value === null ? null : desiredPlacementSettings.of(value);
    if (isUnread(state, client, key, said, value)) return;
    state.settings = said?.settings ?? {};
    state.offerings = said?.offerings ?? [];
    if (state.started) publishOffers(state);
    retry(state, true);
    return;
  }
  const isOther = takeOwners(state, key, value) ?? takeGroup(state, client, key, value);
  if (isOther === true && state.started && key.startsWith(marksKey("" as HostName))) publishOffers(state);
  if (isOther === true) retry(state, true);
  if (isOther !== null) return;
  const vm = key.slice("placement/".length) as Uid;
  const owner = state.wanted.get(vm)?.client ?? state.reservations.get(vm)?.client ?? client;
  const refuse = (reason: string) =>
    publish(state.outbox, actualKey(client, key), toActual("failed", reason, 0, null, noRefusals));
  if (owner !== client) {
    if (value === null) publish(state.outbox, actualKey(client, key), null);
    else refuse(`the UID ${vm} belongs to an element of another cell`);
    return;
  }
  state.unread.delete(vm);
  state.asked.delete(vm);
  state.refused.delete(vm);
  state.advised.last.delete(vm);
  if (value === null) {
    state.wanted.delete(vm);
    state.waiting.delete(vm);
    publish(state.outbox, actualKey(client, key), null);
  } else {
    const document = desiredPlacement.of(value, vm);
    if (document === null) {
      if (!state.wanted.has(vm)) state.unread.add(vm);
      refuse("the placement document is malformed; see core/documents/readers/placement.ts for its fields");
      return;
    }
    // Of the root controller's VM alone hosts choose the place themselves; nobody else may choose it past the Placer.
    const kept = document.on === undefined || client === rootController ? document : anywhere(document);
    state.wanted.set(document.vm, { client, document: kept });
    if (document.moveTo !== undefined) state.asked.add(vm);
  }
  if (state.started) reconcile(state, vm);
}
const anywhere = ({ on: _on, ...document }: DesiredPlacement): DesiredPlacement => document;

/** Brings one VM's reservation in line with its desire; what that frees goes to those that wait. */
function reconcile(state: PlacerState, vm: Uid): void {
  if (state.unread.has(vm)) return;
  const wanted = state.wanted.get(vm);
  const reservation = state.reservations.get(vm);
  const ended = reservation !== undefined && !isOf(reservation, wanted?.document);
  let freed = false;
  if (ended) drop(state, reservation);
  if (wanted === undefined) state.continuing.delete(vm);
  else if (ended) continueAnew(state, reservation, wanted.document);
  if (wanted !== undefined) {
    if (reservation !== undefined && !ended) {
      const now = renamed(state, reservation, wanted.document);
      freed = now.off === true && reservation.off === undefined;
      sayPlaced(state, now);
    } else tryPlace(state, wanted);
  }
  if (wanted === undefined) giveUp(state, vm);
  if ((ended || freed) && state.started) retry(state);
  else sayLeaving(state);
}

const isOf = ({ incarnation, host }: Reservation, document: DesiredPlacement | undefined): boolean =>
  incarnation === document?.incarnation && host === (document.on ?? document.at ?? host);

/** Under the path that its cell calls it now, by which others keep apart from it; and without its room once it has been stopped. */
function renamed(state: PlacerState, reservation: Reservation, document: DesiredPlacement): Reservation {
  if (reservation.path === document.path && reservation.off === document.off) return reservation;
  const { memoryMiB, cpus, off } = reservation;
  const has = off === true ? document.has : { memoryMiB, cpus };
  const changed = reservationOf(reservation.client, { ...document, ...has }, reservation);
  state.reservations.set(changed.vm, changed);
  reserve(state.usage, changed);
  writeReservation(state, changed.vm, changed);
  return changed;
}

const writeReservation = ({ outbox }: PlacerState, vm: Uid, value: Reservation | null): void => {
  outbox.effects.push({ kind: "write", key: `reservation/${vm}`, value: value === null ? null : toJson(value) });
};
function drop(state: PlacerState, reservation: Reservation): void {
  release(state.usage, reservation);
  state.reservations.delete(reservation.vm);
  state.leaving.delete(reservation.vm);
  writeReservation(state, reservation.vm, null);
  log(state.outbox, "placement/released", {
    vm: reservation.vm,
    path: reservation.path,
    incarnation: reservation.incarnation,
    host: reservation.host,
  });
}

/** @param isAll something else has changed than what is known of single hosts */
function retry(state: PlacerState, isAll = false): void {
  if (!state.started) return;
  const isTried = whoIsTried(state, isAll);
  for (const wanted of waitingInOrder(state)) if (isTried(wanted)) tryPlace(state, wanted);
  sayLeaving(state);
}

/** VMs that are to leave their hosts, and where to. */
function sayLeaving(state: PlacerState): void {
  if (!state.started) return;
  for (const vm of settleLeaving(state)) {
    const reservation = state.reservations.get(vm);
    if (reservation !== undefined) sayPlaced(state, reservation);
  }
}

/** Why nothing is placed at all now, whatever room there is; null: it is. */
function whyNotYet(state: PlacerState, { cell }: DesiredPlacement): string | null {
  if (state.silent.size > 0)
    return `the Placer has just started and waits to hear from ${someOf(state.silent, hostOf)}`;
  if (cell !== rootCell || state.hasQuorum) return null;
  const living = [...state.hosts].filter(([, { died = null }]) => died === null).map(([peer]) => peer);
  const heard = living.filter((peer) => state.heard.has(peer)).length;
  state.hasQuorum = heard * 2 > living.length;
  if (state.hasQuorum) return null;
  return `the cloud's own VMs wait for a quorum of its hosts: ${heard} of ${living.length} have been heard, and ${Math.floor(living.length / 2) + 1} are needed`;
}

/** By the index; why there is none is said by looking at each host. */
function placeAnywhere(state: PlacerState, { client, document }: Wanted): Placed {
  const asker = askerOf(state, client);
  const chosen = choose(state, document, asker);
  if (chosen !== null) return placedAt(chosen);
  return place([...state.hosts.values()], state.usage, document, state.ratios, asker);
}

/** Where room was kept for this one while the incarnation before it ran elsewhere; null: nowhere, or it is good no more. */
function placeKept(state: PlacerState, { client, document }: Wanted): Placed | null {
  const kept = giveUp(state, document.vm);
  const view = kept === null ? undefined : state.hosts.get(peerName(`host.${kept.host}`));
  const placed = view === undefined ? null : place([view], state.usage, document, state.ratios, askerOf(state, client));
  return placed === null || "refusals" in placed ? null : placed;
}

function tryPlace(state: PlacerState, wanted: Wanted): void {
  const { client, document } = wanted;
  const { vm, incarnation, off, on = off === true ? document.at : undefined } = document;
  if (on !== undefined) {
    keepPlace(state, client, document, { host: on });
    return;
  }
  const reason = whyNotYet(state, document) ?? whyNotKnown(state, document);
  if (reason !== null) {
    state.waiting.add(vm);
    publish(
      state.outbox,
      actualKey(client, `placement/${vm}`),
      toActual("waiting", reason, incarnation, null, noRefusals),
    );
    return;
  }
  const isMoved = state.next.has(vm);
  const placed =
    placeBefore(state, document) ??
    placeKept(state, wanted) ??
    (isSparing(state, document) ? placeSparing(state, wanted) : placeAnywhere(state, wanted));
  if ("refusals" in placed) {
    state.waiting.add(vm);
    state.refused.add(vm);
    const { refusals, said = "there is no host" } = placed;
    const told = toldOf(refusals);
    const reason = refusals.length === 0 ? said : `no host can hold it (${refusedText(told)})`;
    const advice = adviceFor(state, wanted, refusals);
    publish(state.outbox, actualKey(client, `placement/${vm}`), {
      ...toActual("waiting", reason, incarnation, null, told.refusals),
      ...(told.counts === undefined ? {} : { counts: told.counts }),
      ...(advice === undefined ? {} : { advice }),
    });
    return;
  }
  keepPlace(state, client, document, { ...placed, ...crossedBy(state, wanted, placed.host, isMoved) });
}

function keepPlace(
  state: PlacerState,
  client: PeerName,
  document: DesiredPlacement,
  at: Pick<Reservation, "host" | "boot" | "crossed"> & Given,
): void {
  const { vm, path, incarnation } = document;
  state.waiting.delete(vm);
  state.refused.delete(vm);
  state.advised.last.delete(vm);
  state.continuing.delete(vm);
  const terms = termsOf(state, client, document, at.host);
  const { host, boot, so: nice, given = document.has, crossed } = at;
  state.wereHeld.delete(host);
  const place = {
    host,
    ...(boot === undefined ? {} : { boot }),
    ...(nice === undefined ? {} : { nice }),
    ...(crossed === undefined ? {} : { crossed }),
    ...terms,
  };
  const reservation = reservationOf(client, { ...document, ...given }, place);
  state.reservations.set(vm, reservation);
  reserve(state.usage, reservation);
  writeReservation(state, vm, reservation);
  log(state.outbox, "placement/reserved", { vm, path, incarnation, host: at.host });
  sayPlaced(state, reservation);
}

const sayPlaced = (state: PlacerState, reservation: Reservation): void => {
  const { client, vm } = reservation;
  const actual = placedActual(reservation, state.wanted.get(vm)?.document, state.leaving.get(vm));
  publish(state.outbox, actualKey(client, `placement/${vm}`), actual);
};
