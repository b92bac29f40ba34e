import { type CellName, cellName, type PeerName, peerName, type Uid } from "../../model/cell/identifiers.ts";
import { noUsage } from "../../model/check/check-limits.ts";
import type { Json } from "../../model/json/json.ts";
import {
  type ActualCell,
  type ActualLife,
  type CellServices,
  childName,
  type DesiredCell,
  type DesiredLife,
  lifeKey,
  rootCell,
} from "../documents/cells.ts";
import { mayDesire, maySee } from "../documents/permissions.ts";
import { actualLife, desiredCell, desiredLife } from "../documents/readers/cells.ts";
import { documentsOf } from "../documents/readers/table.ts";
import { actualKey, type Progress } from "../documents/vocabulary.ts";
import type { AdoptRequest, Input, Restored, Service } from "../env.ts";
import {
  cellOfController,
  createOutbox,
  desire,
  isObject,
  log,
  type Outbox,
  progress,
  publishValue,
  sameJson,
  takeEffects,
  toJson,
  write,
} from "../outbox.ts";
import { gauge, sample } from "../telemetry/metrics.ts";
import { bind, firstInstances, firstServices, type Instances } from "./binding.ts";
import { adopt } from "./found.ts";
import { guardAnew, guardKnown, guardOf, guardSaid, isUnguarded, servicesNow } from "./guard.ts";
import { type CellRecord, controllerOf, recordKey, recordKinds, servicesOf } from "./record.ts";
import { lifeOf } from "./told.ts";
import { adopted, nameIsTaken, rivalOf } from "./unclaimed.ts";
import type { CellReport, FoundController, WantedController } from "./work.ts";

/**
 * The Cell Manager: which child cells there are, and the life of their controllers (decision 30). Controllers cannot
 * reach one another, so it also stands between a parent and its child: it hands the parent's document down and what the
 * child says of itself up, and reads neither.
 *
 *   making → running → (tombstone) → emptying → releasing → ending → (forgotten)
 *
 * A name belongs to the cell that had it first, until that is gone. A cell that is to end goes on being told so until its
 * controller says that nothing is left of it; only then is the controller itself taken away, so a cell never loses the one
 * who knows what it has. The stages after that are durable, one at a time, so a crash finds them where they were.
 *
 * A parent says that its child is to end (`ending`) until it hears that it has, and then takes its document back: a tombstone alone
 * would mean nothing to a Cell Manager that has lost its store. What that does not know it hears first (found.ts).
 */
export interface CellManagerOptions {
  readonly self: PeerName;
  /** Numbers of cells are given from here upward, and never twice. */
  readonly firstNumber: number;
  /** Absent: the first of each. Changed by a report. */
  readonly instances?: Instances;
}

export interface CellManagerState {
  readonly options: CellManagerOptions;
  readonly outbox: Outbox;
  started: boolean;
  /** It was said since the start which controllers there are. */
  hasFound: boolean;
  nextNumber: number;
  instances: Instances;
  readonly wanted: Map<Uid, { readonly client: PeerName; readonly document: DesiredCell }>;
  readonly cells: Map<Uid, CellRecord>;
  /** Desires under UIDs that others named first, until it is known whose the cells are. */
  readonly rivals: Map<string, { readonly client: PeerName; readonly key: string; readonly value: Json }>;
  /** Stored desires that cannot be read: their cells stay as they are. */
  readonly unread: Set<Uid>;
  /** What its controller says of each. */
  readonly lives: Map<PeerName, ActualLife>;
  readonly silent: Set<PeerName>;
  /** Controllers that are in step now. */
  readonly answering: Set<PeerName>;
  /** Why a controller could not be made, until it was. */
  readonly troubles: Map<Uid, string>;
  readonly subscribed: Set<PeerName>;
  work: { readonly version: number; readonly controllers: readonly WantedController[] };
  /** Questions for work that wait for news: id and the version that is known. */
  readonly waiting: Map<number, number>;
}

/** Clients: `controller.<cell>`, each for children of its own. Records: `cell/<uid>`, `found/<uid>`, `numbers`. Requests: `CellReport`. */
export function createCellManager(options: CellManagerOptions): Service<CellManagerState> {
  return {
    restore: (restored) => restore(options, restored),
    step: (state, input) => {
      take(state, input);
      if (state.started) settle(state);
      return { state, effects: takeEffects(state.outbox) };
    },
    audience: () => null,
    entitled: (_state, peer, key) => maySee("cell-manager", peer, key),
    accepts: (peer, key) => mayDesire("cell-manager", peer, key),
    read: documentsOf("cell-manager"),
    unclaimed: unclaimedIn,
    measure: ({ cells }) => [
      gauge("cells_child_cells", "Child cells, those that are ending included.", [sample(cells.size)]),
    ],
  };
}

function restore(options: CellManagerOptions, restored: Restored): CellManagerState {
  const numbers = restored.records.get("numbers");
  const state: CellManagerState = {
    options,
    outbox: createOutbox(restored),
    started: false,
    hasFound: false,
    nextNumber: isObject(numbers) ? Number(numbers.next) : options.firstNumber,
    instances: options.instances ?? firstInstances,
    wanted: new Map(),
    cells: new Map(),
    rivals: new Map(),
    unread: new Set(),
    lives: new Map(),
    silent: new Set(),
    answering: new Set(),
    troubles: new Map(),
    subscribed: new Set(),
    work: { version: 0, controllers: [] },
    waiting: new Map(),
  };
  for (const kind of recordKinds)
    for (const [key, value] of restored.records) {
      if (!key.startsWith(`${kind}/`)) continue;
      const record = value as unknown as CellRecord;
      state.cells.set(record.uid, record);
    }
  return state;
}

function take(state: CellManagerState, input: Input): void {
  switch (input.kind) {
    case "start":
      state.started = true;
      log(state.outbox, "service/restored", { cells: state.cells.size });
      return;
    case "desired":
      takeCell(state, input.from, input.key, input.value);
      return;
    case "actual":
      if (!input.key.endsWith(`/${lifeKey}`)) return;
      takeLife(state, input.from, input.value);
      return;
    case "reachable":
      if (input.reachable) {
        state.silent.delete(input.peer);
        state.answering.add(input.peer);
      } else {
        state.silent.add(input.peer);
        state.answering.delete(input.peer);
      }
      return;
    case "released":
      released(state, input.peer, input.key);
      return;
    case "request":
      takeReport(state, input.id, input.request);
      return;
    case "ended":
      for (const key of input.keys) endUnclaimed(state, input.peer, key);
      return;
    case "timer":
      return;
  }
}

function takeLife(state: CellManagerState, controller: PeerName, value: Json): void {
  const life = actualLife.of(value);
  if (value === null) state.lives.delete(controller);
  else if (life !== null) state.lives.set(controller, life);
}

function takeCell(state: CellManagerState, client: PeerName, key: string, value: Json): void {
  const id = key.slice("cell/".length) as Uid;
  const owner = state.cells.get(id)?.client ?? state.wanted.get(id)?.client ?? client;
  state.rivals.delete(`${client}/${key}`);
  if (owner !== client) {
    if (!state.hasFound) state.rivals.set(`${client}/${key}`, { client, key, value });
    log(state.outbox, "document/refused", { from: client, key, why: `the UID ${id} belongs to another cell` });
    return;
  }
  state.unread.delete(id);
  if (value === null) {
    state.wanted.delete(id);
    if (!state.cells.has(id)) say(state, client, id, null);
    return;
  }
  const document = childOf(client, desiredCell.of(value, id));
  if (document !== null) state.wanted.set(id, { client, document });
  else {
    if (!state.wanted.has(id)) state.unread.add(id);
    const why = "the document is malformed, or its cell is no child of its client; see core/documents/readers/cells.ts";
    log(state.outbox, "document/refused", { from: client, key, why });
  }
}

/** A child is named below its parent, and one of the root cell by its label alone. */
function childOf(client: PeerName, document: DesiredCell | null): DesiredCell | null {
  const parent = cellOfController(client);
  if (document === null || parent === null) return null;
  const [label = ""] = document.cell.split(".");
  // Whoever were called like the root cell's controller would have its rights.
  if (document.cell !== childName(cellName(parent), label) || document.cell === rootCell) return null;
  // Only the root cell lets a child have a gateway of the operator's.
  return document.gateway !== undefined && parent !== rootCell ? null : document;
}

function save(state: CellManagerState, record: CellRecord): void {
  state.cells.set(record.uid, record);
  write(state.outbox, recordKey(record), record);
}

/**
 * Cells that were found, and that their parents say nothing of. A parent whose own store was lost as well does not know its
 * child, and what it makes under that name is another cell, which has to wait.
 */
function unclaimedIn(state: CellManagerState): ReadonlyMap<PeerName, readonly string[]> {
  const found = [...state.cells.values()].filter(({ unclaimed, uid }) => unclaimed === true && !state.unread.has(uid));
  return new Map(
    [...Map.groupBy(found, ({ client }) => client)].map(([client, all]) => [
      client,
      all.map(({ uid }) => `cell/${uid}`),
    ]),
  );
}
/** An operator says that nobody desires it. */
function endUnclaimed(state: CellManagerState, client: PeerName, key: string): void {
  const record = state.cells.get(key.slice("cell/".length) as Uid);
  if (record?.unclaimed !== true || record.client !== client) return;
  const { unclaimed: _unclaimed, ...claimed } = record;
  write(state.outbox, recordKey(record), null);
  save(state, { ...claimed, stage: "emptying" });
}

function released(state: CellManagerState, peer: PeerName, key: string): void {
  state.outbox.releasing.get(peer)?.delete(key);
  if (key !== lifeKey) return;
  for (const record of state.cells.values())
    if (controllerOf(record) === peer && record.stage === "releasing") save(state, { ...record, stage: "ending" });
}

function takeReport(state: CellManagerState, id: number, request: Json): void {
  const report = request as unknown as CellReport;
  if (isObject(request) && report.kind === "work") {
    state.waiting.set(id, report.known);
    return;
  }
  if (isObject(request) && request.kind === "adopt") {
    state.outbox.effects.push({ kind: "reply", id, response: give(state, request as unknown as AdoptRequest) });
    return;
  }
  if (isObject(request) && report.kind === "instances") state.instances = report.instances;
  if (isObject(request) && report.kind === "found") takeFound(state, report.controllers);
  const record = isObject(request) && typeof request.uid === "string" ? state.cells.get(request.uid as Uid) : undefined;
  if (record !== undefined) {
    if (report.kind === "made") {
      state.troubles.delete(record.uid);
      if (record.address !== report.address) {
        save(state, { ...record, address: report.address });
        log(state.outbox, "cell/made", { cell: record.cell, uid: record.uid, address: report.address });
      }
    } else if (report.kind === "making") state.troubles.delete(record.uid);
    else if (report.kind === "failed") state.troubles.set(record.uid, report.reason);
    else if (report.kind === "ended" && record.stage === "ending") {
      forget(state, record);
      log(state.outbox, "cell/ended", { cell: record.cell, uid: record.uid });
    }
  }
  state.outbox.effects.push({ kind: "reply", id, response: { ok: true } });
}

/** @returns null, or a sentence: why not */
function give(state: CellManagerState, word: AdoptRequest): string | null {
  const record = adopted(state, word);
  if (typeof record === "string") return record;
  save(state, record);
  log(state.outbox, "cell/given", { cell: record.cell, uid: record.uid, client: record.client });
  return null;
}

function takeFound(state: CellManagerState, found: readonly FoundController[]): void {
  const { saved, replaced, nextNumber } = adopt(state.cells, state.nextNumber, found);
  state.hasFound = true;
  if (nextNumber > state.nextNumber) {
    state.nextNumber = nextNumber;
    write(state.outbox, "numbers", { next: nextNumber });
  }
  for (const record of replaced) forget(state, record);
  for (const record of saved) {
    save(state, record);
    log(state.outbox, "cell/found", { cell: record.cell, uid: record.uid, number: record.number });
  }
  hearParents(state);
}

/** Whose a cell is stands where it was found. Who named its UID before that, by mistake or not, has no word in it. */
function hearParents(state: CellManagerState): void {
  for (const [id, { client }] of state.wanted) {
    if ((state.cells.get(id)?.client ?? client) === client) continue;
    state.wanted.delete(id);
    say(state, client, id, null);
  }
  const rivals = [...state.rivals.values()];
  for (const { client, key, value } of rivals) takeCell(state, client, key, value);
  state.rivals.clear();
}

function forget(state: CellManagerState, record: CellRecord): void {
  state.cells.delete(record.uid);
  state.troubles.delete(record.uid);
  for (const kind of recordKinds) write(state.outbox, `${kind}/${record.uid}`, null);
  const controller = controllerOf(record);
  state.lives.delete(controller);
  state.silent.delete(controller);
  state.answering.delete(controller);
  if (state.subscribed.delete(controller))
    state.outbox.effects.push({ kind: "unsubscribe", to: controller, prefix: `${state.options.self}/` });
  say(state, record.client, record.uid, null);
}

/** One pass over all cells: brings each as far as it goes now. */
function settle(state: CellManagerState): void {
  for (const record of [...state.cells.values()]) {
    // Its parent has taken the UID for its child's.
    const { given, ...rest } = record;
    const isTaken = given === true && rivalOf(state, record) === undefined;
    if (isTaken) save(state, rest);
    advance(state, isTaken ? rest : record);
  }
  for (const [id, { client, document }] of state.wanted) {
    if (state.cells.has(id)) continue;
    if (!state.hasFound || document.ending === true) {
      const reason = "waits until the root cell's controller has said which cells there are";
      if (!state.hasFound) say(state, client, id, notMade(document.cell, progress("waiting", reason)));
      else say(state, client, id, { ...notMade(document.cell, progress("deleting")), ended: true });
      continue;
    }
    const holder = [...state.cells.values()].find(({ cell }) => cell === document.cell);
    const services = bindingOf(state, client, document);
    const is = holder?.given === true && holder.client === client ? { is: holder.uid } : {};
    if (holder !== undefined) say(state, client, id, { ...notMade(document.cell, nameIsTaken(holder)), ...is });
    else if (!services.ok) say(state, client, id, notMade(document.cell, progress("failed", services.error)));
    else advance(state, create(state, client, document, services.value));
  }
  offerWork(state);
}

/** A child of the root cell goes where the fewest are, another one where its parent is. */
function bindingOf(state: CellManagerState, client: PeerName, { services }: DesiredCell): ReturnType<typeof bind> {
  const records = [...state.cells.values()];
  const above = records.find((record) => controllerOf(record) === client);
  const parent = above === undefined ? null : servicesNow(above);
  return bind(services, parent, state.instances, boundIn(state));
}
const boundIn = ({ cells }: CellManagerState): readonly CellServices[] => [
  firstServices,
  ...[...cells.values()].map(servicesNow),
];

function create(
  state: CellManagerState,
  client: PeerName,
  { uid, cell }: DesiredCell,
  services: CellServices,
): CellRecord {
  const number = state.nextNumber;
  state.nextNumber += 1;
  write(state.outbox, "numbers", { next: state.nextNumber });
  const record: CellRecord = { uid, client, cell: cellName(cell), number, stage: "living", address: null, services };
  save(state, record);
  log(state.outbox, "cell/bound", { cell: record.cell, uid, number, ...services });
  return record;
}

const notMade = (cell: CellName, { phase, reason }: Progress): ActualCell => ({
  ...progress(phase, reason),
  controller: peerName(`controller.${cell}`),
  address: null,
  version: 0,
  quota: null,
  ended: false,
});

function advance(state: CellManagerState, before: CellRecord): void {
  const controller = controllerOf(before);
  if (state.unread.has(before.uid)) return;
  const wanted = state.wanted.get(before.uid);
  let record = before;
  if (record.unclaimed === true) {
    // Nobody has said that it is to end. What it was told before, it has.
    if (wanted === undefined) {
      follow(state, controller);
      say(state, record.client, record.uid, stateOf(state, record, state.lives.get(controller)));
      return;
    }
    const { unclaimed: _unclaimed, ...claimed } = record;
    record = claimed;
    write(state.outbox, recordKey(before), null);
    save(state, record);
  }
  if ((wanted === undefined || wanted.document.ending === true) && record.stage === "living") {
    record = { ...record, stage: "emptying" };
    save(state, record);
  }
  const life = state.lives.get(controller);
  const ofOther =
    guardSaid(record, life) ?? guardAnew(record, wanted?.document.services?.haManager, state.instances, boundIn(state));
  if (ofOther !== null) {
    record = ofOther;
    save(state, record);
    const { cell, uid, number } = record;
    log(state.outbox, "cell/bound", { cell, uid, number, ...servicesNow(record) });
  }
  const guard = guardOf(record, state.instances);
  const told = desiredLife.of(state.outbox.desired.get(controller)?.get(lifeKey));
  if (record.stage === "emptying" && told?.ending === true && life?.empty === true) {
    record = { ...record, stage: "releasing" };
    save(state, record);
  }
  follow(state, controller);
  if (record.stage === "living" && wanted !== undefined) {
    desire(state.outbox, controller, lifeKey, {
      ...lifeOf(wanted.document),
      ...guard,
      ending: false,
    } satisfies DesiredLife);
  } else if (record.stage === "emptying") {
    // A cell whose controller was never told anything is told at least that: it says that it is empty.
    const nothing = { amount: noUsage, serial: 0, answered: 0, refusal: null };
    const initial = wanted === undefined ? { uid: record.uid, model: {}, grant: nothing } : lifeOf(wanted.document);
    const { unguarded: _unguarded, pools: _before, ...last } = told ?? initial;
    // It waits for what its pools have. Where its parent does not know it any more nobody says a word of that again.
    const pools = wanted?.document.pools === undefined ? {} : { pools: wanted.document.pools };
    desire(state.outbox, controller, lifeKey, { ...last, ...pools, ...guard, ending: true });
  } else desire(state.outbox, controller, lifeKey, null);
  say(state, record.client, record.uid, stateOf(state, record, life));
}

function follow(state: CellManagerState, controller: PeerName): void {
  if (state.subscribed.has(controller)) return;
  state.subscribed.add(controller);
  state.outbox.effects.push({ kind: "subscribe", to: controller, prefix: `${state.options.self}/` });
}

function stateOf(state: CellManagerState, record: CellRecord, life: ActualLife | undefined): ActualCell {
  const controller = controllerOf(record);
  const known = guardKnown(record, life);
  const common = {
    controller,
    address: record.address,
    version: life?.version ?? 0,
    quota: life?.quota ?? null,
    ...(life?.pools === undefined ? {} : { pools: life.pools }),
    services: servicesNow(known),
    ...(isUnguarded(known, state.instances) ? { unguarded: true as const } : {}),
    ended: false,
  };
  const trouble = state.troubles.get(record.uid);
  if (record.stage !== "living") {
    const why =
      record.stage === "emptying" ? (life?.reason ?? "waits for its controller to say that nothing is left") : null;
    return { ...common, ...progress("deleting", trouble ?? why ?? "its controller is being ended") };
  }
  if (record.unclaimed === true)
    return {
      ...common,
      ...progress("waiting", "the Cell Manager had lost its store, and waits for its parent's desire"),
    };
  if (trouble !== undefined)
    return { ...common, ...progress("waiting", `its controller could not be made: ${trouble}`) };
  if (record.address === null) return { ...common, ...progress("working", "its controller is being made") };
  if (life === undefined) return { ...common, ...progress("working", "its controller starts") };
  if (state.silent.has(controller)) return { ...common, ...progress("waiting", "its controller does not answer") };
  return { ...common, ...progress(life.phase, life.reason) };
}

/** Tells the parent; null takes it back. */
function say(state: CellManagerState, client: PeerName, id: Uid, value: ActualCell | null): void {
  publishValue(state.outbox, actualKey(client, `cell/${id}`), value);
}

function offerWork(state: CellManagerState): void {
  const controllers = [...state.cells.values()].map(
    (record): WantedController => ({
      uid: record.uid,
      cell: record.cell,
      controller: controllerOf(record),
      cellNumber: record.number,
      services: servicesOf(record),
      state: record.stage === "ending" ? "end" : "run",
      answers: state.answering.has(controllerOf(record)),
    }),
  );
  if (state.work.version === 0 || !sameJson(toJson(state.work.controllers), toJson(controllers)))
    state.work = { version: state.work.version + 1, controllers };
  for (const [id, known] of [...state.waiting]) {
    if (known === state.work.version) continue;
    state.waiting.delete(id);
    state.outbox.effects.push({ kind: "reply", id, response: toJson(state.work) });
  }
}
