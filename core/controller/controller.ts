import { said } from "../../model/cause/cause.ts";
import type { Cell } from "../../model/cell/cell.ts";
import { cellName, type PeerName, peerName, type Uid, uid } from "../../model/cell/identifiers.ts";
import { acceptedBefore } from "../../model/check/check-supply.ts";
import type { Json, JsonObject } from "../../model/json/json.ts";
import { checkDocument } from "../../model/specification/specification.ts";
import { lifeKey } from "../documents/cells.ts";
import { mayDesire, maySee } from "../documents/permissions.ts";
import { documentsOf } from "../documents/readers/table.ts";
import { cellOwnerKey, tenancy } from "../documents/tenancy.ts";
import { actualKey } from "../documents/vocabulary.ts";
import type { Input, Restored, Service } from "../env.ts";
import { audit, type Collections, createOutbox, isObject, type Outbox, takeEffects } from "../outbox.ts";
import { createDeaths, followDeaths, followOthers, hearMember, takeDeath } from "../presence/group/deaths.ts";
import { leaveFormer, restoredGuard } from "./cells/guard.ts";
import { inUseDue, inUseTimer } from "./cells/in-use.ts";
import { heldInitial } from "./cells/life.ts";
import { checkDue, checkTimer, setCheck } from "./changes/check.ts";
import { indexesOf } from "./changes/indexes.ts";
import { Changes, type Pass } from "./changes/pass.ts";
import { takeInput } from "./changes/slices.ts";
import { TrackedMap, TrackedSet, Tracking, trackFields } from "./changes/tracked.ts";
import { noWork, type Work } from "./changes/work.ts";
import { measureController } from "./explain/measure.ts";
import { noteForgotten } from "./histories/forgotten.ts";
import { goOnBeyondLost, olderDue, olderTimer, takeAnother, takeFork, takeKept, watchOlder } from "./histories/fork.ts";
import { hearingDue, hearingTimer, noteLost, restoredHearing, watchHearing } from "./histories/hearing.ts";
import { grantOf } from "./histories/kept-grants.ts";
import { noteMachines } from "./histories/machines.ts";
import { goOnAbove } from "./histories/put-back.ts";
import { followGranted, noLimits, takeLimits } from "./model/account-limits.ts";
import { auditPutBack } from "./model/audited.ts";
import { noRoom } from "./model/quota.ts";
import { answerResolvers } from "./network/resolvers.ts";
import { reconcile } from "./reconcile.ts";
import type { CredentialRecord, ElementRecord, ForeignRecord, VmRecord } from "./records.ts";
import { foreignKeyOf, isForeignRecord, releasedForeign } from "./references/foreign.ts";
import { isCredentialRecord } from "./requests/credentials/credentials.ts";
import { restoredAnswers } from "./requests/once.ts";
import { answer } from "./requests/requests.ts";
import {
  answered,
  answerWaiting,
  givenUp,
  hearLife,
  initialId,
  offersHeard,
  offersTimer,
  resumeRoom,
  roomTimer,
  submit,
} from "./requests/submitted.ts";
import { createTickets, dropStale, takeTicketInput } from "./requests/tickets.ts";
import { createAudiences } from "./rules/audiences.ts";
import { controllerIdentity } from "./rules/cell-policy.ts";
import { createDerived } from "./rules/derived.ts";
import { createTurns, notePlaces, turnDue, turnTimer } from "./rules/told-places.ts";
import { readClaim } from "./services/claims.ts";
import type { PooledRecord } from "./services/pools/pooled-record.ts";
import {
  type ControllerOptions,
  type ControllerState,
  type CountersRecord,
  cellManager,
  directory,
  isChild,
  type ModelRecord,
  noReservation,
  type PolicyPart,
  type PolicyRecord,
  type RoomRecord,
} from "./state.ts";
import { upgradeDue, upgradeTimer } from "./upgrade/upgrade.ts";
import { afterRestoreOf } from "./vm/after-restore.ts";
import { noMembers, noteMember, reservationDue, reservationTimer, resumeReservation } from "./vm/all-or-none.ts";
import { delayRetry, retryTimer } from "./vm/life-cycle.ts";
import { restedTimer, restIsOver, resumeRests } from "./vm/places/rested.ts";
import { hostIsLost, lostTimer, watchHost } from "./vm/silent-hosts.ts";
import { restoredStarts, startTimer } from "./vm/start-limit.ts";

/**
 * The Cell Controller: owns a cell's model and makes it real (paper, II.A and III.A).
 *
 * A reconciler. An input only changes what is known; then one pass works out what should be desired where and how far each
 * element is, of whatever rests on what changed, and only differences become effects. Nothing is ordered by remembering what was
 * asked last: which step is next follows from the records and from what peers say, so a crash, a repetition or a
 * delay of any input ends the same.
 */
export function createController(
  options: ControllerOptions,
  passOf: PassOf = (tracking, outbox) => new Changes(tracking, outbox),
): Service<ControllerState> {
  return {
    instance: options.cellUid,
    restore: (restored) => restore(options, restored, passOf),
    step: (state, input, now) => {
      const ofTickets = takeTicketInput(state.tickets, input, now);
      if (ofTickets !== null) return { state, effects: ofTickets };
      const ofNames = answerResolvers(state, input);
      if (ofNames !== null) return { state, effects: ofNames };
      takeInput(state, input, now, {
        take: (next) => {
          noteMachines(state, next);
          return take(state, next);
        },
        read: (next) => {
          if (next.kind === "request") answered(state, next.id, answer(state, next.request));
        },
      });
      return { state, effects: takeEffects(state.outbox) };
    },
    // What a controller knows is read through its edge. Only whoever made it as a child cell's hears how that is.
    audience: () => null,
    entitled: (_state, peer, key) =>
      maySee("controller", peer, key) &&
      (peer === tenancy || key === actualKey(cellManager, lifeKey) || key.startsWith(cellOwnerKey(cellName("")))),
    accepts: (peer, key) => mayDesire("controller", peer, key),
    read: documentsOf("controller"),
    record: (state, entry, now) => {
      audit(state.outbox, now, entry);
      return takeEffects(state.outbox);
    },
    measure: measureController,
  };
}

/** How a controller goes over what there is. */
export type PassOf = (tracking: Tracking, outbox: Outbox) => Pass;

function takeReleased(state: ControllerState, peer: PeerName, key: string): void {
  state.outbox.releasing.get(peer)?.delete(key);
  state.forgotten.get(peer)?.delete(key);
  if (peer === directory) releasedForeign(state, key);
}

function* take(state: ControllerState, input: Input): Work {
  if (concernsAll(state, input)) state.pass.restart();
  switch (input.kind) {
    case "start":
      state.started = true;
      setCheck(state);
      if (state.wasPutBack) beginAnew(state);
      watchHearing(state);
      resumeReservation(state);
      state.outbox.effects.push(...followDeaths(state.deaths), ...dropStale(state.tickets));
      resumeRests(state);
      // How long they have waited already is not known: they wait once more.
      for (const { uid, run, failure, again, failures } of state.vms.values())
        if (run === null && failure !== null && again) delayRetry(state, uid, failures);
      break;
    case "actual": {
      if (takeDeath(state.deaths, input.from, input.key, input.value) !== null) break;
      const documents = state.actual.get(input.from) ?? state.outbox.make.map<string, Json>();
      state.actual.set(input.from, documents);
      if (input.value === null) documents.delete(input.key);
      else documents.set(input.key, input.value);
      break;
    }
    case "reachable":
      if (input.peer.startsWith("host.")) watchHost(state, input.peer, input.reachable);
      hearMember(state.deaths, input.peer, input.reachable);
      watchOlder(state, input.peer);
      watchHearing(state);
      state.reachable.set(input.peer, input.reachable);
      if (offersHeard(state) && !(isChild(state) && state.life === null)) yield* answerWaiting(state);
      break;
    case "forked":
      if (!input.forked && state.forkedAt.has(input.peer)) noteLost(state);
      takeFork(state, input.peer, input.forked, input.itForked);
      watchOlder(state, input.peer);
      break;
    case "seen-later":
      goOnBeyondLost(state, input.peer);
      break;
    case "another":
      takeAnother(state, input.peer);
      break;
    case "kept":
      noteForgotten(state, input.peer, input.key, input.value);
      takeKept(state, input.peer, input.key, input.value);
      break;
    case "released":
      takeReleased(state, input.peer, input.key);
      break;
    case "request": {
      if (isObject(input.request) && input.request.method === "HA") {
        state.ha = true;
        state.outbox.effects.push({ kind: "reply", id: input.id, response: {} });
        break;
      }
      if (isObject(input.request) && input.request.method === "PRESENCE") {
        const members = input.request.members as readonly PeerName[];
        state.outbox.effects.push(...followOthers(state.deaths, members), {
          kind: "reply",
          id: input.id,
          response: {},
        });
        break;
      }
      yield* submit(state, input.id, input.request);
      return;
    }
    case "timer":
      yield* due(state, input.name);
      break;
    case "desired":
      if (input.from === cellManager && input.key === lifeKey) yield* hearLife(state, input.value);
      if (input.from === tenancy) takeLimits(state, input.key, input.value);
      break;
  }
  if (!state.started) return;
  yield* reconcile(state);
  yield* resumeRoom(state);
  const held = heldInitial(state);
  if (held !== null) yield* submit(state, initialId, { method: "PUT", path: "", json: held });
}

/** Whose timer it is, by its name or by what the name begins with; `rest` is what follows. */
const timers: Readonly<Record<string, (state: ControllerState, rest: string) => void>> = {
  [reservationTimer]: reservationDue,
  [turnTimer]: turnDue,
  [checkTimer]: checkDue,
  [startTimer]: ({ starts }) => {
    starts.dueMs = null;
  },
  [upgradeTimer]: upgradeDue,
  [inUseTimer]: inUseDue,
  [hearingTimer]: hearingDue,
  [olderTimer]: (state, peer) => olderDue(state, peerName(peer)),
  [lostTimer]: (state, peer) => hostIsLost(state, peerName(peer)),
  [restedTimer]: (state, vm) => restIsOver(state, uid(vm)),
  [retryTimer]: ({ resting }, vm) => void resting.delete(uid(vm)),
};
function* due(state: ControllerState, name: string): Work {
  if (name === offersTimer) yield* answerWaiting(state);
  if (name === roomTimer) yield* givenUp(state);
  const at = name.indexOf("/") + 1;
  timers[at === 0 ? name : name.slice(0, at)]?.(state, name.slice(at));
}

/** Rare, and about what is not tracked: the histories of stores, deaths of hosts, the life of a child cell. */
function concernsAll({ deaths }: ControllerState, input: Input): boolean {
  switch (input.kind) {
    case "start":
    case "forked":
    case "another":
    case "kept":
    case "desired":
      return true;
    case "actual":
      return deaths.members.has(input.from);
    case "reachable":
      return deaths.members.has(input.peer);
    case "request":
      return isObject(input.request) && input.request.method === "PRESENCE";
    default:
      return false;
  }
}

function beginAnew(state: ControllerState): void {
  goOnAbove(state);
  auditPutBack(state);
}

const trackedCollections = (tracking: Tracking): Collections => ({
  map: (entries) => new TrackedMap(tracking, entries),
  set: (items) => new TrackedSet(tracking, items),
});

function restore(options: ControllerOptions, restored: Restored, passOf: PassOf): ControllerState {
  const tracking = new Tracking();
  const make = trackedCollections(tracking);
  const outbox = createOutbox(restored, make);
  const elements = new TrackedMap<Uid, ElementRecord>(tracking);
  const vms = new TrackedMap<Uid, VmRecord>(tracking);
  const derived = createDerived(tracking);
  const record = <Value>(key: string, otherwise: Value): Value =>
    (restored.records.get(key) as Value | undefined) ?? otherwise;
  const model = record<ModelRecord>("model", { version: 0, document: null });
  // What a controller has at tenancy is taken and given up by its tickets: no word of a release would come here (requests/tickets.ts).
  const forks = [...(restored.forkedAt ?? [])].filter(([peer]) => peer !== tenancy);
  const state: ControllerState = {
    options,
    outbox,
    tracking,
    pass: passOf(tracking, outbox),
    working: noWork(),
    indexes: indexesOf(tracking, elements, vms),
    derived,
    audiences: createAudiences(tracking, derived),
    turns: createTurns(derived),
    model,
    cell: model.document === null ? null : restoredCell(model.document),
    counters: record<CountersRecord>("counters", { nextNumber: 1, nextIdentity: controllerIdentity + 1, nextRule: 1 }),
    policy: record<PolicyRecord>("policy", { networks: {}, rules: {}, compiled: null, version: 0 }),
    policyParts: new Map(),
    compiled: null,
    toldFirst: make.map(),
    sliced: null,
    elements,
    vms,
    uids: make.map(),
    actual: make.map(),
    reachable: make.map(),
    lost: make.set(),
    forkedAt: make.set(forks.flatMap(([peer, { forked }]) => (forked ? [peer] : []))),
    kept: { claims: new Map(), connections: new Map(), raisedFrom: new Map() },
    olderPeers: make.set(forks.flatMap(([peer, { itForked }]) => (itForked ? [peer] : []))),
    forgotten: new Map(),
    ...restoredHearing(restored.records),
    deaths: createDeaths(options.presence),
    ...restoredGuard(options, restored),
    subscribed: new Set(),
    credentials: new Map(),
    answers: restoredAnswers(restored.records),
    tickets: createTickets(options.self, restored, outbox),
    foreign: make.map(),
    waitingChanges: [],
    reservation: noReservation,
    members: noMembers(),
    life: null,
    initial: null,
    room: record<RoomRecord>("room", noRoom),
    said: { amount: null, untilMs: 0, isTimed: false },
    ask: null,
    upRefusal: null,
    roomWaiting: [],
    grants: make.map(),
    pooled: make.map(),
    claims: new TrackedMap(tracking),
    ...noLimits(tracking),
    ending: restored.records.has("ending"),
    started: false,
    wasPutBack: restored.wasRestored === true,
    putBackBy: restored.putBackBy,
    drawn: restored.drawn ?? 0,
    wentOn: false,
    afterRestore: afterRestoreOf(restored),
    resting: make.set(),
    starts: restoredStarts(restored.records.get("starts"), make.set()),
    upgradeClock: null,
    runningSince: make.map(),
    now: { ms: 0, wallMs: 0 },
  };
  readRecords(state, restored);
  leaveFormer(state);
  forgetWith(state);
  return trackFields(tracking, state, tracked);
}

function readRecords(state: ControllerState, restored: Restored): void {
  for (const [key, value] of restored.records) {
    if (key.startsWith("element/")) {
      const element = restoredElement(state.options.self, value);
      state.elements.set(element.uid, element);
      if (!element.deleting) state.uids.set(element.path, element.uid);
    } else if (key.startsWith("vm/")) {
      const vm = value as unknown as VmRecord;
      state.vms.set(vm.uid, vm);
    } else if (isCredentialRecord(key)) {
      const credential = value as unknown as CredentialRecord;
      state.credentials.set(credential.id, credential);
    } else if (key.startsWith("grant/")) {
      state.grants.set(uid(key.slice("grant/".length)), grantOf(value));
    } else if (key.startsWith("pooled/")) {
      state.pooled.set(uid(key.slice("pooled/".length)), value as unknown as PooledRecord);
    } else if (key.startsWith("rules/")) {
      state.policyParts.set(uid(key.slice("rules/".length)), value as unknown as PolicyPart);
    } else if (readClaim(state, key, value)) {
    } else if (isForeignRecord(key)) state.foreign.set(foreignKeyOf(key), value as unknown as ForeignRecord);
  }
}

/** Those fields on which steps of a pass rest, and that are replaced as a whole. */
const tracked = [
  "ha",
  "guard",
  "cell",
  "model",
  "policy",
  "reservation",
  "life",
  "afterRestore",
  "upgradeClock",
  "ending",
] as const;

/** What was worked out of an element, a VM or a host goes with it. */
function forgetWith(state: ControllerState): void {
  const { elements, vms, derived, indexes } = state;
  followGranted(state);
  elements.watch((uid, _before, after) => {
    if (after !== undefined) return;
    derived.interfaces.delete(uid);
    derived.subnets.delete(uid);
  });
  vms.watch((uid, _before, after) => void (after === undefined && derived.placed.delete(uid)));
  indexes.reserving.watch((uid, _before, after) => void (after === undefined && noteMember(state, uid, null)));
  indexes.hosts.present.watch((host, before, after) => {
    if (after !== undefined) {
      // What it may know can be from before: another cell's end there has been told of.
      if (before === undefined) notePlaces(state, host);
      return;
    }
    derived.rulesAt.delete(host);
    derived.unheard.delete(host);
    derived.toldPlaces.delete(host);
  });
}

/** The previous version wrote a sentence in place of causes. */
function restoredElement(self: PeerName, value: Json): ElementRecord {
  const { reason, ...record } = value as unknown as ElementRecord & { readonly reason?: string | null };
  return (record.causes as ElementRecord["causes"] | undefined) === undefined
    ? { ...record, causes: said(self, reason) }
    : record;
}

/** A document was checked when it was accepted; that it no longer passes can only mean a defect or a damaged store. */
function restoredCell(document: JsonObject): Cell {
  const cell = checkDocument(document, acceptedBefore);
  if (cell.ok) return cell.value;
  throw new Error(`the stored model is refused: ${cell.error.map(({ message }) => message).join("; ")}`);
}
