import type { PeerName, Uid } from "../../model/cell/identifiers.ts";
import type { Json } from "../../model/json/json.ts";
import {
  type ActualWant,
  type DesiredPublic,
  type DesiredReach,
  type DesiredWant,
  directoryKey,
} from "../documents/cells.ts";
import { mayDesire, maySee } from "../documents/permissions.ts";
import { desiredPublic, desiredReach, desiredWant } from "../documents/readers/cells.ts";
import { documentsOf } from "../documents/readers/table.ts";
import { actualKey } from "../documents/vocabulary.ts";
import type { Input, Restored, Service } from "../env.ts";
import { cellOfController, createOutbox, log, type Outbox, sameJson, takeEffects, toJson } from "../outbox.ts";
import { gauge, sample } from "../telemetry/metrics.ts";
import { agreementOf, type Side } from "./agreement.ts";

/**
 * The directory: what cells may know of each other. Controllers cannot reach one another (LANGUAGE, step 2), so each tells
 * the directory what is `x.public` in its cell, and asks it for what its own references name.
 *
 * It answers each asking cell for itself. Whoever names an element by its cell's domain and its path is told of it while
 * it is public; of one that is private nothing is said, which is also what is said of one that does not exist. There is no
 * way to ask for all, so nothing can be listed. Order means nothing: a wish waits for what it names, however long.
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
  /** By path, for references. Two elements have one path only while one of them is being replaced: the newer counts. */
  readonly paths: Map<string, Uid>;
  readonly wants: Map<string, DesiredWant>;
  readonly reaches: Map<Uid, DesiredReach>;
}
export interface DirectoryState {
  readonly outbox: Outbox;
  readonly domain: string;
  started: boolean;
  readonly cells: Map<PeerName, CellView>;
  /** By domain: cells that name something there, and how many of their documents do. */
  readonly askers: Map<string, Map<PeerName, number>>;
  /** Cells of which something has changed in this step. */
  readonly touched: Set<PeerName>;
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
  askers: new Map(),
  touched: new Set(),
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

const newView = (): CellView => ({ publics: new Map(), paths: new Map(), wants: new Map(), reaches: new Map() });

function takeDesired(state: DirectoryState, client: PeerName, key: string, value: Json): void {
  const view = state.cells.get(client) ?? newView();
  state.cells.set(client, view);
  const slash = key.indexOf("/");
  const id = key.slice(slash + 1);
  const isFull = view.publics.size + view.wants.size + view.reaches.size >= mostDocuments;
  const kinds: Readonly<Record<string, () => boolean>> = {
    public: () => putPublic(view, id as Uid, value === null ? null : desiredPublic.of(value, id), isFull),
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
function putPublic(view: CellView, id: Uid, document: DesiredPublic | null, isFull: boolean): boolean {
  const before = view.publics.get(id);
  if (before !== undefined) {
    view.publics.delete(id);
    if (view.paths.get(before.path) === id) {
      view.paths.delete(before.path);
      // One that it stood in front of is there again.
      for (const [uid, { path }] of view.publics) if (path === before.path) view.paths.set(path, uid);
    }
  }
  if (document === null || (isFull && before === undefined)) return false;
  view.publics.set(id, document);
  view.paths.set(document.path, id);
  return true;
}
function putWant(
  state: DirectoryState,
  client: PeerName,
  view: CellView,
  id: string,
  document: DesiredWant | null,
  isFull: boolean,
): boolean {
  const before = view.wants.get(id);
  if (before !== undefined) {
    view.wants.delete(id);
    countAsker(state, before.domain, client, -1);
  }
  if (document === null || (isFull && before === undefined)) {
    say(state, client, `want/${id}`, null);
    return false;
  }
  view.wants.set(id, document);
  countAsker(state, document.domain, client, 1);
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
  const before = view.reaches.get(id);
  if (before !== undefined) {
    view.reaches.delete(id);
    countAsker(state, before.other.domain, client, -1);
  }
  if (document === null || (isFull && before === undefined)) {
    say(state, client, directoryKey.reach(id), null);
    return false;
  }
  view.reaches.set(id, document);
  countAsker(state, document.other.domain, client, 1);
  return true;
}
function countAsker(state: DirectoryState, domain: string, client: PeerName, by: 1 | -1): void {
  const clients = state.askers.get(domain) ?? new Map<PeerName, number>();
  state.askers.set(domain, clients);
  const count = (clients.get(client) ?? 0) + by;
  if (count > 0) clients.set(client, count);
  else clients.delete(client);
  if (clients.size === 0) state.askers.delete(domain);
}

const domainOf = (state: DirectoryState, client: PeerName): string => `${cellOfController(client)}.${state.domain}`;
/** Whose cell has this domain, or would have it; null: no cell of this installation can. */
const controllerOf = (state: DirectoryState, domain: string): PeerName | null =>
  domain.endsWith(`.${state.domain}`) ? (`controller.${domain.slice(0, -state.domain.length - 1)}` as PeerName) : null;

/** A reference names the whole path of the other's document, or one below its cell's component. */
function find(state: DirectoryState, { domain, path }: DesiredWant): DesiredPublic | null {
  const client = controllerOf(state, domain);
  const view = client === null ? undefined : state.cells.get(client);
  if (view === undefined) return null;
  const [first] = view.paths.keys();
  const uid = view.paths.get(path) ?? view.paths.get(`${first?.split("/")[0] ?? ""}/${path}`);
  return uid === undefined ? null : (view.publics.get(uid) ?? null);
}

/**
 * Says what has changed to the cells that are concerned: those that were touched, and those that name something in them. The
 * partner of a rule is among the latter, or has no rule that it could be told of.
 */
function settle(state: DirectoryState): void {
  const concerned = new Set<PeerName>();
  for (const client of state.touched) {
    concerned.add(client);
    for (const asker of state.askers.get(domainOf(state, client))?.keys() ?? []) concerned.add(asker);
  }
  state.touched.clear();
  for (const client of concerned) {
    const view = state.cells.get(client);
    if (view === undefined) continue;
    for (const [id, want] of view.wants) {
      const found = find(state, want);
      say(
        state,
        client,
        `want/${id}`,
        found === null ? null : ({ uid: found.uid, shows: found.shows } satisfies ActualWant),
      );
    }
    for (const [id, reach] of view.reaches)
      say(state, client, directoryKey.reach(id), answerReach(state, client, reach));
    if (view.publics.size + view.wants.size + view.reaches.size === 0) state.cells.delete(client);
  }
}

/** Null: what the rule names is not visible. */
function answerReach(state: DirectoryState, client: PeerName, reach: DesiredReach): object | null {
  const own = sideOf(state, reach);
  const partner = controllerOf(state, reach.other.domain);
  if (own === null || partner === null) return null;
  // A cell that names itself needs no directory, and agrees to nothing here.
  if (partner === client) return null;
  const domain = domainOf(state, client);
  const others = [...(state.cells.get(partner)?.reaches.values() ?? [])]
    .filter(({ other }) => other.domain === domain)
    .flatMap((each) => sideOf(state, each) ?? []);
  return agreementOf(own, others);
}

function sideOf(state: DirectoryState, reach: DesiredReach): Side | null {
  const found = find(state, reach.other);
  return found?.shows.kind === "addresses" ? { reach, names: found.shows.networks } : null;
}

function say(state: DirectoryState, client: PeerName, key: string, value: object | null): void {
  const { published, effects } = state.outbox;
  const full = actualKey(client, key);
  const before = published.get(full);
  if (value === null ? before === undefined : sameJson(before, toJson(value))) return;
  if (value === null) published.delete(full);
  else published.set(full, toJson(value));
  effects.push({ kind: "publish", key: full, value: value === null ? null : toJson(value) });
}
