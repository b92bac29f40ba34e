import type { PeerName, Uid } from "../../model/cell/identifiers.ts";
import type { Json } from "../../model/json/json.ts";
import {
  type ActualWant,
  type DesiredPublic,
  type DesiredReach,
  type DesiredWant,
  directoryKey,
  type WantHeld,
} from "../documents/cells.ts";
import { mayDesire, maySee } from "../documents/permissions.ts";
import { desiredPublic, desiredReach, desiredWant } from "../documents/readers/cells.ts";
import { documentsOf } from "../documents/readers/table.ts";
import { actualKey } from "../documents/vocabulary.ts";
import { mostHeldFor } from "../documents/volumes.ts";
import type { Input, Restored, Service } from "../env.ts";
import { cellOfController, createOutbox, log, type Outbox, publishValue, takeEffects } from "../outbox.ts";
import { gauge, sample } from "../telemetry/metrics.ts";
import { agreementOf, type Side } from "./agreement.ts";
import { Sides } from "./sides.ts";

/**
 * The directory: what cells may know of each other. Controllers cannot reach one another (decision 30), so each tells the
 * directory what is `x.public` in its cell, and asks it for what its own references name.
 *
 * It answers each asking cell for itself. Whoever names an element by its cell's domain and its path is told of it while
 * it is public; of one that is private nothing is said, which is also what is said of one that does not exist. There is no
 * way to ask for all, so nothing can be listed. Order means nothing: a desire waits for what it names, however long.
 *
 * Where rules of two cells name each other's public elements, and open the same, both are told the hosts that the other's
 * ends are at, and nobody else is (agreement.ts).
 *
 * It decides from the documents that its clients keep here and has no records: what it says after a start follows from
 * them again. Rejected: passing on whole elements (a cell would see what its neighbour did not mean to show); an answer
 * "there is, but it is private" (it tells that it is there); that the cells' controllers tell each other (a way from
 * tenant to tenant, and each would have to judge the other).
 */
export interface DirectoryOptions {
  readonly self: PeerName;
  /** Domain below which every cell has its own; `cells.internal` if absent. */
  readonly domain?: string;
}

interface CellView {
  readonly publics: Map<Uid, DesiredPublic>;
  /** By path, for references. Two elements have one path while one of them is being replaced, or is held: the last one counts that is not. */
  readonly paths: Map<string, Set<Uid>>;
  readonly wants: Map<string, DesiredWant>;
  readonly reaches: Map<Uid, DesiredReach>;
  /** By domain, those that have their other end there, where what they name is visible. */
  readonly sides: Map<string, Sides>;
}
/** A document that names something in another cell. */
interface Ask {
  readonly client: PeerName;
  readonly kind: "want" | "reach";
  readonly id: string;
}
export interface DirectoryState {
  readonly outbox: Outbox;
  readonly domain: string;
  started: boolean;
  readonly cells: Map<PeerName, CellView>;
  /** By domain and path: who names that. */
  readonly asks: Map<string, Map<string, Map<string, Ask>>>;
  /** Cells of which something has changed in this step. */
  readonly touched: Set<PeerName>;
  /** Documents whose answer may be another now. */
  readonly concerned: Map<string, Ask>;
  /** By client, rules that may be agreed on otherwise now. */
  readonly answering: Map<PeerName, Set<Uid>>;
  /** So many times one rule was looked at because of another, which is what rules of two cells cost. */
  compared: number;
}

/** Of one cell. Whatever is beyond it is refused, so that no cell can fill what all share. */
const mostDocuments = 20_000;

/** A path is any text, a domain is not. */
const isDirectoryKey = (key: string): boolean => /^((public|reach)\/[A-Za-z0-9-]+|want\/[a-z0-9.-]+\/.+)$/.test(key);

/** Clients: `controller.<cell>`. No records. */
export function createDirectory({ domain = "cells.internal" }: DirectoryOptions): Service<DirectoryState> {
  return {
    restore: (restored) => restore(restored, domain),
    step: (state, input) => {
      take(state, input);
      if (state.started) settle(state);
      return { state, effects: takeEffects(state.outbox) };
    },
    audience: () => null,
    entitled: (_state, peer, key) => maySee("directory", peer, key),
    accepts: (peer, key) => mayDesire("directory", peer, key) && isDirectoryKey(key),
    read: documentsOf("directory"),
    measure: ({ cells }) => {
      const count = (of: (cell: CellView) => number): number =>
        [...cells.values()].reduce((sum, each) => sum + of(each), 0);
      return [
        gauge("cells_directory_public", "Elements that other cells may refer to.", [
          sample(count((c) => c.publics.size)),
        ]),
        gauge("cells_directory_wants", "References into other cells.", [sample(count((c) => c.wants.size))]),
        gauge("cells_directory_reaches", "Rules with an end in another cell.", [sample(count((c) => c.reaches.size))]),
      ];
    },
  };
}

const restore = (restored: Restored, domain: string): DirectoryState => ({
  outbox: createOutbox(restored),
  domain,
  started: false,
  cells: new Map(),
  asks: new Map(),
  touched: new Set(),
  concerned: new Map(),
  answering: new Map(),
  compared: 0,
});

function take(state: DirectoryState, input: Input): void {
  if (input.kind === "desired") takeDesired(state, input.from, input.key, input.value);
  else if (input.kind === "start") {
    state.started = true;
    log(state.outbox, "service/restored", { cells: state.cells.size });
  } else if (input.kind === "request") {
    const cells = [...state.cells].map(([client, { publics, wants, reaches }]) => ({
      cell: cellOfController(client),
      public: publics.size,
      wants: wants.size,
      reaches: reaches.size,
    }));
    state.outbox.effects.push({ kind: "reply", id: input.id, response: { cells } });
  }
}

const newView = (): CellView => ({
  publics: new Map(),
  paths: new Map(),
  wants: new Map(),
  reaches: new Map(),
  sides: new Map(),
});

function takeDesired(state: DirectoryState, client: PeerName, key: string, value: Json): void {
  const view = state.cells.get(client) ?? newView();
  state.cells.set(client, view);
  const slash = key.indexOf("/");
  const id = key.slice(slash + 1);
  const isFull = view.publics.size + view.wants.size + view.reaches.size >= mostDocuments;
  const kinds: Readonly<Record<string, () => boolean>> = {
    public: () =>
      putPublic(state, client, view, id as Uid, value === null ? null : desiredPublic.of(value, id), isFull),
    want: () => putWant(state, client, view, id, value === null ? null : desiredWant.of(value, id), isFull),
    reach: () => putReach(state, client, view, id as Uid, value === null ? null : desiredReach.of(value, id), isFull),
  };
  const isTaken = kinds[key.slice(0, slash)]?.() ?? false;
  state.touched.add(client);
  if (value === null || isTaken) return;
  const why = isFull
    ? `this cell has ${mostDocuments} documents here already, and no more are taken`
    : "the document is malformed; see core/documents/vocabulary.ts for its fields";
  log(state.outbox, "document/refused", { from: client, key, why });
}

/** Each takes the place of what was there before; false: nothing was put there. */
function putPublic(
  state: DirectoryState,
  client: PeerName,
  view: CellView,
  id: Uid,
  document: DesiredPublic | null,
  isFull: boolean,
): boolean {
  const before = view.publics.get(id);
  const component = componentOf(view);
  if (before !== undefined) {
    view.publics.delete(id);
    removeFrom(view.paths, before.path, id);
  }
  const isTaken = document !== null && !(isFull && before === undefined);
  if (isTaken) {
    view.publics.set(id, document);
    addTo(view.paths, document.path, id);
  }
  const named = state.asks.get(domainOf(state, client));
  if (named === undefined) return isTaken;
  if (component !== componentOf(view)) for (const path of named.keys()) concern(state, named, path);
  for (const path of [before?.path, document?.path]) {
    if (path === undefined) continue;
    concern(state, named, path);
    concern(state, named, path.slice(path.indexOf("/") + 1));
  }
  return isTaken;
}
function concern({ concerned }: DirectoryState, named: ReadonlyMap<string, Map<string, Ask>>, path: string): void {
  for (const [key, ask] of named.get(path) ?? []) concerned.set(key, ask);
}
function putWant(
  state: DirectoryState,
  client: PeerName,
  view: CellView,
  id: string,
  document: DesiredWant | null,
  isFull: boolean,
): boolean {
  const ask: Ask = { client, kind: "want", id };
  const before = view.wants.get(id);
  if (before !== undefined) {
    view.wants.delete(id);
    unname(state, before, ask);
  }
  if (document === null || (isFull && before === undefined)) {
    say(state, client, `want/${id}`, null);
    return false;
  }
  view.wants.set(id, document);
  name(state, document, ask);
  return true;
}
function putReach(
  state: DirectoryState,
  client: PeerName,
  view: CellView,
  id: Uid,
  document: DesiredReach | null,
  isFull: boolean,
): boolean {
  const ask: Ask = { client, kind: "reach", id };
  const before = view.reaches.get(id);
  if (before !== undefined) {
    view.reaches.delete(id);
    unname(state, before.other, ask);
    placeSide(state, client, before, null);
  }
  if (document === null || (isFull && before === undefined)) {
    say(state, client, directoryKey.reach(id), null);
    return false;
  }
  view.reaches.set(id, document);
  name(state, document.other, ask);
  return true;
}

const askKey = ({ client, kind, id }: Ask): string => `${client} ${kind}/${id}`;
function name(state: DirectoryState, { domain, path }: DesiredWant, ask: Ask): void {
  const named = state.asks.get(domain) ?? new Map<string, Map<string, Ask>>();
  state.asks.set(domain, named);
  const there = named.get(path) ?? new Map<string, Ask>();
  named.set(path, there.set(askKey(ask), ask));
  state.concerned.set(askKey(ask), ask);
}
function unname(state: DirectoryState, { domain, path }: DesiredWant, ask: Ask): void {
  const named = state.asks.get(domain);
  const there = named?.get(path);
  there?.delete(askKey(ask));
  if (there?.size === 0) named?.delete(path);
  if (named?.size === 0) state.asks.delete(domain);
}
function addTo<Key, Item>(map: Map<Key, Set<Item>>, key: Key, item: Item): void {
  map.set(key, (map.get(key) ?? new Set()).add(item));
}
function removeFrom<Key, Item>(map: Map<Key, Set<Item>>, key: Key, item: Item): void {
  const items = map.get(key);
  items?.delete(item);
  if (items?.size === 0) map.delete(key);
}

const domainOf = (state: DirectoryState, client: PeerName): string => `${cellOfController(client)}.${state.domain}`;
/** Whose cell has this domain, or would have it; null: no cell of this installation can. */
const controllerOf = (state: DirectoryState, domain: string): PeerName | null =>
  domain.endsWith(`.${state.domain}`) ? (`controller.${domain.slice(0, -state.domain.length - 1)}` as PeerName) : null;

/** A reference names the whole path of the other's document, or one below its cell's component. */
function allAt(state: DirectoryState, { domain, path }: DesiredWant): readonly DesiredPublic[] {
  const client = controllerOf(state, domain);
  const view = client === null ? undefined : state.cells.get(client);
  if (view === undefined) return [];
  const uids = view.paths.get(path) ?? view.paths.get(`${componentOf(view)}/${path}`);
  return [...(uids ?? [])].flatMap((uid) => view.publics.get(uid) ?? []);
}
const find = (state: DirectoryState, want: DesiredWant): DesiredPublic | null =>
  allAt(state, want).findLast(({ heldFor }) => heldFor === undefined) ?? null;

/**
 * What a cell is told of what it names. A volume that is held may have left its model, and another one have its path: that is found by
 * everybody, and what is held by those elements alone for which it is (decision 142). A controller of the version before takes the first that is told.
 */
function answerTo(state: DirectoryState, client: PeerName, want: DesiredWant): ActualWant | null {
  const all = allAt(state, want);
  const domain = domainOf(state, client);
  const heldFor = all
    .flatMap(({ uid, shows, heldFor = [] }) =>
      heldFor.filter((each) => each.domain === domain).map(({ path }): WantHeld => ({ path, uid, shows })),
    )
    .slice(0, mostHeldFor);
  const found = find(state, want);
  const more = heldFor.length === 0 ? {} : { heldFor };
  if (found !== null) return { uid: found.uid, shows: found.shows, ...more };
  const last = heldFor.at(-1);
  return last === undefined ? null : { uid: last.uid, shows: last.shows, ...more, onlyHeld: true };
}
/** Of the cell itself, with which all of its paths begin. */
function componentOf({ paths }: CellView): string {
  const [first] = paths.keys();
  return first?.split("/")[0] ?? "";
}

/**
 * Says what has changed to whoever named it. What a rule is agreed on rests on its counterparts in the other cell, as they are
 * and as they were.
 */
function settle(state: DirectoryState): void {
  const { concerned, answering, touched, cells } = state;
  for (const { client, kind, id } of concerned.values()) {
    const view = cells.get(client);
    const want = kind === "want" ? view?.wants.get(id) : undefined;
    const reach = kind === "reach" ? view?.reaches.get(id as Uid) : undefined;
    if (want !== undefined) {
      say(state, client, `want/${id}`, answerTo(state, client, want));
    }
    if (reach === undefined) continue;
    placeSide(state, client, reach, sideOf(state, client, reach));
    addTo(answering, client, reach.uid);
  }
  concerned.clear();
  for (const [client, uids] of answering) for (const uid of uids) answerReach(state, client, uid);
  answering.clear();
  for (const client of touched) {
    const view = cells.get(client);
    if (view !== undefined && view.publics.size + view.wants.size + view.reaches.size === 0) cells.delete(client);
  }
  touched.clear();
}

/** Null is said where what a rule names is not visible. */
function answerReach(state: DirectoryState, client: PeerName, uid: Uid): void {
  const view = state.cells.get(client);
  const reach = view?.reaches.get(uid);
  if (reach === undefined) return;
  const side = view?.sides.get(reach.other.domain)?.get(uid);
  const others = side === undefined ? [] : counterparts(state, client, side);
  const answer =
    side === undefined
      ? null
      : agreementOf(
          side,
          [...others].map((other) => other.side),
        );
  say(state, client, directoryKey.reach(uid), answer);
}

/** Puts a rule where the other cell's rules find it, or (null) takes it away; its counterparts then and now are concerned. */
function placeSide(state: DirectoryState, client: PeerName, { uid, other }: DesiredReach, side: Side | null): void {
  const view = state.cells.get(client);
  if (view === undefined) return;
  const sides = view.sides.get(other.domain) ?? new Sides();
  const partner = controllerOf(state, other.domain);
  for (const each of [sides.get(uid) ?? null, side]) {
    if (each === null || partner === null) continue;
    for (const found of counterparts(state, client, each)) addTo(state.answering, partner, found.uid);
  }
  if (side === null) sides.delete(uid);
  else sides.set(uid, side);
  if (sides.isEmpty) view.sides.delete(other.domain);
  else view.sides.set(other.domain, sides);
}
function counterparts(state: DirectoryState, client: PeerName, side: Side): ReturnType<Sides["counterpartsOf"]> {
  const partner = controllerOf(state, side.reach.other.domain);
  const theirs = partner === null ? undefined : state.cells.get(partner)?.sides.get(domainOf(state, client));
  const looked = (): void => {
    state.compared += 1;
  };
  return theirs?.counterpartsOf(side, looked) ?? [];
}

function sideOf(state: DirectoryState, client: PeerName, reach: DesiredReach): Side | null {
  // A cell that names itself needs no directory, and agrees to nothing here.
  if (controllerOf(state, reach.other.domain) === client) return null;
  const found = find(state, reach.other);
  return found?.shows.kind === "addresses" ? { reach, names: found.shows.networks } : null;
}

function say(state: DirectoryState, client: PeerName, key: string, value: object | null): void {
  publishValue(state.outbox, actualKey(client, key), value);
}
