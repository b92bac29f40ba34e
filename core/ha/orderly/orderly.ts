import { hostPeer, type PeerName, type Uid } from "../../../model/cell/identifiers.ts";
import type { DesiredProtected } from "../../documents/ha.ts";
import type { Instant } from "../../env.ts";
import { log, write } from "../../outbox.ts";
import { deathOf } from "../../presence/group/deaths.ts";
import type { Since } from "../decide.ts";
import { isActive, itemKey, type OrderlyType, type Step, type WorkItem, workKey } from "../item.ts";
import { isReadOff } from "../power/power-state.ts";
import type { HaState } from "../state.ts";
import { decideOrderly } from "./decide.ts";
import type { OrderlyItem } from "./records.ts";

/**
 * What is done in order, as items of the queue: a VM that leaves its host, one that its host does not stop, and one that an operator has freed of a
 * host that nobody hears. Others do the work, the Placer, the controller and the host, and all of them look at the whole themselves; an
 * item is the durable account of it, with its steps, its tries and its end, and an alert where a person has to look. Nothing is fenced here, and where the
 * host is lost the item ends, and one of the kind that fences takes its place (`../queue.ts`).
 *
 * Rejected: to have the HA Manager order the stop and the start. A move would then have two who know how, as a restart would.
 */

/** At the start: what cannot be read ends, and what is due is scheduled anew by what is so. */
export function endUnread(state: HaState, { wallMs }: Instant): void {
  const { unread, ended } = state.orderly;
  for (const [key, item] of unread) {
    const { vm, path, cell, incarnation, host, step: was } = item;
    const outcome = `another version has written it, at ${was}, which this one does not know: what is due is scheduled anew`;
    const next: WorkItem = { ...item, step: "Error", since: wallMs, outcome };
    if (key === itemKey(vm, incarnation)) write(state.outbox, key, null);
    write(state.outbox, workKey(vm, incarnation), next);
    ended.set(workKey(vm, incarnation), next);
    log(state.outbox, "ha/step", { vm, path, cell, incarnation, host, step: "Error", reason: outcome });
  }
  unread.clear();
}

function save(state: HaState, item: OrderlyItem): void {
  const key = workKey(item.vm, item.incarnation);
  const { active, ended } = state.orderly;
  write(state.outbox, key, item);
  if (isActive(item.step)) {
    active.set(item.vm, item);
    ended.delete(key);
  } else {
    active.delete(item.vm);
    ended.set(key, item);
  }
}

/** Before the queue of lost hosts is looked at: what ends here makes room there. */
export function settleOrderly(state: HaState, vm: Uid, now: Instant): void {
  for (let moves = 0; moves < mostMoves; moves += 1) {
    schedule(state, vm, now);
    if (!advance(state, vm, now)) break;
  }
}
const mostMoves = 5;

const isHostLost = (state: HaState, host: DesiredProtected["host"], boot: number | undefined): boolean =>
  deathOf(state.deaths, host) !== null || isReadOff(state.power, host, boot);

/** Nothing is told of a stop before its host was looked at twice. */
function isSlow({ differing, settings }: HaState, { vm, incarnation }: DesiredProtected, { ms }: Instant): boolean {
  const said = differing.get(vm);
  return said?.wants === "stop" && said.incarnation === incarnation && ms - said.sinceMs >= settings.compareMs;
}

function dueOf(state: HaState, document: DesiredProtected, now: Instant): readonly [OrderlyType, string] | null {
  const { host, lost, forced, leaves, boot } = document;
  if (forced === true) return ["ForceStop", `an operator has freed it of ${host}, and nobody has seen that it ended`];
  if (isHostLost(state, host, boot)) return null;
  if (leaves === true) return ["Migration", `it is to leave ${host}`];
  return lost === "end" && isSlow(state, document, now)
    ? ["CheckStop", `it is to stop, and ${host}, which is heard, goes on listing it`]
    : null;
}

function schedule(state: HaState, vm: Uid, now: Instant): void {
  const { active, ended } = state.orderly;
  const wanted = state.wanted.get(vm);
  // One item of an incarnation is worked on at a time.
  if (wanted === undefined || active.has(vm) || state.active.has(vm) || state.over.has(vm)) return;
  const { client, document } = wanted;
  const { incarnation, host, cell, path } = document;
  const before = ended.get(workKey(vm, incarnation));
  const due = dueOf(state, document, now);
  if (due === null || (before?.step === "Done" && before.type === due[0])) return;
  const [type, reason] = due;
  log(state.outbox, "ha/scheduled", { vm, path, cell, incarnation, host, type, reason });
  save(state, {
    type,
    step: "Scheduled",
    client,
    vm,
    cell,
    path,
    incarnation,
    host,
    scheduledAt: now.wallMs,
    since: now.wallMs,
    reason,
    answers: [],
    fencing: [],
  });
}

function sinceOf({ client, incarnation, host }: OrderlyItem, wanted: Wanted | undefined): Since {
  if (wanted === undefined || wanted.client !== client) return "gone";
  if (wanted.document.incarnation > incarnation) return "later";
  return wanted.document.incarnation === incarnation && wanted.document.host === host ? "same" : "gone";
}
interface Wanted {
  readonly client: PeerName;
  readonly document: DesiredProtected;
}

/** As its host lists it, as long as that is heard. One whose store was lost lists nothing, which says nothing. */
function powerOf(state: HaState, { vm, incarnation, host }: OrderlyItem): "on" | "off" | "unknown" {
  if (state.reachable.get(hostPeer(host)) !== true || deathOf(state.deaths, host) !== null) return "unknown";
  const listed = state.machines.get(host)?.machines.find((each) => each.vm === vm && each.incarnation === incarnation);
  return listed?.power ?? "unknown";
}

const isStillWanted = (type: OrderlyType, { lost, leaves, forced }: DesiredProtected): boolean => {
  if (type === "Migration") return leaves === true;
  return type === "ForceStop" ? forced === true : lost === "end" && leaves !== true && forced !== true;
};

/** @returns whether the item has gone a step further */
function advance(state: HaState, vm: Uid, { wallMs }: Instant): boolean {
  const item = state.orderly.active.get(vm);
  if (item === undefined) return false;
  const wanted = state.wanted.get(vm);
  const document = wanted?.document;
  const { stopRetryMs, restarts } = state.settings;
  const move = decideOrderly(item.type, item.step, {
    since: sinceOf(item, wanted),
    isWanted: document !== undefined && isStillWanted(item.type, document),
    isStopping: document?.lost === "end",
    isHostLost: isHostLost(state, item.host, document?.boot),
    power: powerOf(state, item),
    areTriesUsed: wallMs - item.since >= stopRetryMs * restarts,
  });
  if (move === null) return false;
  const { to, why, gaveUp } = move;
  const { path, cell, incarnation, host } = item;
  log(state.outbox, "ha/step", { vm, path, cell, incarnation, host, step: to, reason: why });
  save(state, {
    ...item,
    step: to satisfies Step,
    since: wallMs,
    ...(isActive(to) ? {} : { outcome: why }),
    ...(gaveUp === true ? { gaveUp } : {}),
  });
  return true;
}

/** Those that have ended long ago. What was given up counts as long as that may go on. */
export function cleanUpOrderly(state: HaState, { wallMs }: Instant): void {
  for (const [key, item] of [...state.orderly.ended]) {
    const isKept = item.step === "Done" && state.wanted.get(item.vm)?.document.incarnation === item.incarnation;
    if (isKept || wallMs - item.since <= state.settings.keptMs) continue;
    write(state.outbox, key, null);
    state.orderly.ended.delete(key);
  }
}
