import { type HostName, hostPeer, type Uid } from "../../model/cell/identifiers.ts";
import { rootCell } from "../documents/cells.ts";
import { majorityOf } from "../documents/declaration.ts";
import {
  beatsKey,
  type DesiredFence,
  type DesiredProtected,
  fenceKey,
  heartbeatKey,
  requestsKey,
} from "../documents/ha.ts";
import { actualKey } from "../documents/vocabulary.ts";
import type { Instant } from "../env.ts";
import { desire, log, sameJson, toJson } from "../outbox.ts";
import { deathOf, diedAt } from "../presence/group/deaths.ts";
import { type Circumstances, decide, type Move, type Since } from "./decide.ts";
import type { Fencer } from "./fencers/fencer.ts";
import { powerFencer } from "./fencers/power.ts";
import { recreatableFencer, recreateAfterMs } from "./fencers/recreatable.ts";
import { storageFencer } from "./fencers/storage.ts";
import { heldBy, youngMs } from "./guards.ts";
import { exports } from "./investigators/export.ts";
import { heartbeat } from "./investigators/heartbeat.ts";
import { hostManager } from "./investigators/host-manager.ts";
import { type Answer, type Investigator, merge, type Subject } from "./investigators/investigator.ts";
import { neighbours } from "./investigators/neighbours.ts";
import { power } from "./investigators/power.ts";
import { isLookedFor, requestPatienceMs, settleRequests } from "./investigators/requests.ts";
import { vm as vmItself } from "./investigators/vm.ts";
import { type FencerName, itemKey, type SaidAnswer, type WorkItem } from "./item.ts";
import { settleOrderly } from "./orderly/orderly.ts";
import { afterFencingMs, isFurther, settleAsked } from "./power/asked.ts";
import { isReadOff } from "./power/power-state.ts";
import { isAskingAbout, settleProbes, turnEnds } from "./probes.ts";
import { fixed } from "./settings.ts";
import {
  forgetItem,
  forgetOver,
  type HaState,
  leaveActive,
  type Protected,
  saveItem,
  saveOver,
  sayOver,
} from "./state.ts";
import { unheardMs } from "./suspicions.ts";

/**
 * The work queue: what is so of each protected incarnation becomes an item, and items go on. Looks at the state alone, so that
 * a repeated input, or a start after a crash, leads to the same. An item's step is durable before what it asks for leaves.
 */
export const investigators: readonly Investigator[] = [power, hostManager, heartbeat, exports, neighbours, vmItself];
/** The first one that has fenced is named. */
export const fencers: readonly Fencer[] = [storageFencer, powerFencer, recreatableFencer];

/** More than one look can take: to the end of an item, and with the next one as far as it goes. */
const mostMoves = 10;

export function settleQueue(state: HaState, now: Instant): void {
  const order = [...state.dirty].sort((one, other) => compare(state, one, other));
  state.dirty.clear();
  for (const vm of order) {
    if (state.unread.has(vm)) continue;
    forgetFormer(state, vm);
    settleOver(state, vm);
    settleOrderly(state, vm, now);
    for (let moves = 0; moves < mostMoves; moves += 1) {
      schedule(state, vm, now);
      if (!advance(state, vm, now)) break;
    }
    settleOrderly(state, vm, now);
    settleFence(state, vm);
  }
  settleProbes(state);
  settleRequests(state);
  settleBeats(state);
  settleAsked(state, now);
  if (state.looksDue.size > 0) setPatience(state);
  state.looksDue.clear();
  setTimers(state);
}

/** Hosts with something that is protected say to their storage servers that they are there. Of the others nothing is looked at. */
function settleBeats({ outbox, at, wanted, beatsDue }: HaState): void {
  for (const host of beatsDue) {
    const there = [...(at.get(host) ?? [])];
    const ends = there.filter((vm) => wanted.get(vm)?.document.lost !== "leave").sort();
    desire(outbox, hostPeer(host), beatsKey, there.length === 0 ? null : { host, ends });
  }
  beatsDue.clear();
}

/** The root cell's first, since the others rest on them; then by priority. */
function compare({ wanted }: HaState, one: Uid, other: Uid): number {
  const [a, b] = [wanted.get(one)?.document, wanted.get(other)?.document];
  if (a === undefined || b === undefined) return a === b ? byText(one, other) : a === undefined ? 1 : -1;
  const isRoot = ({ cell }: DesiredProtected): number => (cell === rootCell ? 1 : 0);
  return isRoot(b) - isRoot(a) || b.priority - a.priority || byText(a.path, b.path) || byText(one, other);
}
const byText = (one: string, other: string): number => (one < other ? -1 : one === other ? 0 : 1);

/** A cell that had another HA Manager for a while comes back to this one: what this one did about the incarnation before that is nothing by now. */
function forgetFormer(state: HaState, vm: Uid): void {
  const document = state.wanted.get(vm)?.document;
  const active = state.active.get(vm);
  if (document === undefined) return;
  const key = itemKey(vm, document.incarnation);
  for (const item of [active, state.ended.get(key)]) {
    if (item === undefined || item.incarnation !== document.incarnation || item.boundAt === document.boundAt) continue;
    if (item === active) leaveActive(state, vm);
    forgetItem(state, key);
  }
}

/** What was said to be over is forgotten with the incarnation. */
function settleOver(state: HaState, vm: Uid): void {
  const over = state.over.get(vm);
  if (over === undefined) return;
  const { client, document } = state.wanted.get(vm) ?? {};
  const isSame = document?.incarnation === over.incarnation && document.host === over.host && client === over.client;
  const isOf = isSame && document.boundAt === over.boundAt;
  if (isOf) sayOver(state, over);
  else forgetOver(state, over);
}

const subjectOf = ({ document, sinceMs }: Protected): Subject => {
  const { vm, incarnation, host, boot, boundAt } = document;
  return { vm, incarnation, host, sinceMs, ...(boot === undefined ? {} : { boot }), ...boundOf({ boundAt }) };
};
const boundOf = ({ boundAt }: { readonly boundAt?: number | undefined }): { readonly boundAt?: number } =>
  boundAt === undefined ? {} : { boundAt };

/** Something is to be done about an incarnation, and there never was an item of it. */
function schedule(state: HaState, vm: Uid, { wallMs }: Instant): void {
  const wanted = state.wanted.get(vm);
  if (wanted === undefined || state.active.has(vm)) return;
  const { client, document } = wanted;
  const { incarnation, host, cell, path, lost, deleted } = document;
  const death = deathOf(state.deaths, host);
  // Of one that an operator has freed nobody has anything to ask but its host.
  if (document.forced === true) return;
  if (lost === "leave" || (death === null && !isReadOff(state.power, host, document.boot))) return;
  const before = state.ended.get(itemKey(vm, incarnation));
  // What was cancelled since its host was there again is due anew when that is lost once more.
  if (before?.step === "Done" || before?.cancelled === true || state.over.has(vm)) return;
  const type = lost !== "end" ? "HA" : deleted === true ? "Destroy" : "Stop";
  const reason =
    death === null ? `the power of ${host} was read as off` : `${host} was declared dead at ${diedAt(death)}`;
  const isYoung = wallMs - wanted.since < youngMs;
  const item: WorkItem = {
    type,
    step: "Scheduled",
    client,
    vm,
    cell,
    path,
    incarnation,
    host,
    scheduledAt: wallMs,
    since: wallMs,
    reason,
    answers: [],
    fencing: [],
    ...(isYoung ? { young: true as const } : {}),
    ...boundOf(document),
  };
  log(state.outbox, "ha/scheduled", { vm, path, cell, incarnation, host, type, reason });
  saveItem(state, item);
}

/** @returns whether the item has gone a step further */
function advance(state: HaState, vm: Uid, now: Instant): boolean {
  const item = state.active.get(vm);
  if (item === undefined) return false;
  const wanted = state.wanted.get(vm);
  const since = sinceOf(item, wanted);
  const asks = item.step === "Investigating" || item.step === "Fencing";
  const answers = since !== "same" || !asks || wanted === undefined ? null : ask(state, wanted);
  const together = answers === null ? "Unknown" : merge(answers.map(({ answer }) => answer));
  if (together !== "Running" || item.step !== "Investigating") state.vetoedSince.delete(vm);
  else if (!state.vetoedSince.has(vm)) state.vetoedSince.set(vm, now.ms);
  const isWaiting = item.step === "Scheduled" || item.step === "Investigating";
  const held = isWaiting ? heldBy(state, item, now) : null;
  if (held !== null && item.held === undefined)
    log(state.outbox, "ha/held", { vm, path: item.path, cell: item.cell, incarnation: item.incarnation, reason: held });
  const subject: Subject =
    wanted === undefined || since !== "same"
      ? { vm, incarnation: item.incarnation, host: item.host }
      : subjectOf(wanted);
  const fencingMs = item.step === "Fencing" ? Math.max(0, now.wallMs - item.since) : null;
  const recreatable = since === "same" && wanted?.document.recreatable === true ? { recreatable: true as const } : {};
  if (fencingMs !== null && recreatable.recreatable) lookAgain(state, recreateAfterMs - fencingMs);
  if (fencingMs !== null && isFurther(state)) lookAgain(state, afterFencingMs - fencingMs);
  const fences = fencers.map((each) => ({
    name: each.name,
    answer: each.judge({ ...subject, fencingMs, ...recreatable }, state),
  }));
  const fencedBy = fences.find(({ answer }) => answer.isFenced)?.name;
  const isUnheardOf = isUnheard(state, item.host);
  const isAsked = isAskingAbout(state, item) || isLookedFor(state, item);
  const so: Circumstances = {
    since,
    lost: wanted?.document.lost ?? "restart",
    isHostLost:
      isUnheardOf || deathOf(state.deaths, item.host) !== null || isReadOff(state.power, item.host, subject.boot),
    state: together,
    isFenced: item.step === "Fencing" && fencedBy !== undefined,
    isolated: wanted?.document.isolated ?? "keep",
    isAsking: item.step === "Investigating" && (isUnheardOf || isAsked),
    isHeld: held !== null,
    isCancelled: item.cancelled === true,
    isVetoedLong: now.ms - (state.vetoedSince.get(vm) ?? now.ms) >= fixed.isolatedMs,
  };
  const fencing =
    item.step === "Fencing" ? fences.map(({ name, answer }) => ({ by: name, answer: fenced(answer) })) : null;
  const noted = noteAnswers(item, { answers, fencing, held }, now);
  const move = decide(item.step, so);
  if (move === null) {
    if (!sameJson(toJson(noted), toJson(item))) saveItem(state, noted);
    return false;
  }
  take(state, noted, { ...move, ...(fencedBy === undefined ? {} : { fencedBy }) }, now);
  return true;
}

/** Since the start nobody could say yet whether its host is still lost: an item of before waits for that, and is not over. */
function isUnheard({ deaths: { members, said }, reachable }: HaState, host: HostName): boolean {
  if (said.has(host)) return false;
  return [...members].filter((member) => reachable.get(member) === true).length < majorityOf(members.size);
}

function sinceOf({ client, incarnation, host }: WorkItem, wanted: Protected | undefined): Since {
  if (wanted === undefined || wanted.client !== client) return "gone";
  const { document } = wanted;
  // An operator has freed it: its controller waits for nobody's word any more.
  if (document.forced === true && document.incarnation === incarnation) return "gone";
  if (document.incarnation > incarnation) return "later";
  return document.incarnation === incarnation && document.host === host ? "same" : "gone";
}

interface By {
  readonly by: string;
  readonly answer: Answer;
}
const ask = (state: HaState, wanted: Protected): readonly By[] =>
  state.settings.investigators.flatMap((name) =>
    investigators
      .filter((each) => each.name === name)
      .map((each) => ({ by: each.name, answer: each.ask(subjectOf(wanted), state) })),
  );
const fenced = ({ isFenced, sentence }: { readonly isFenced: boolean; readonly sentence: string }): Answer => ({
  state: isFenced ? "Stopped" : "Unknown",
  sentence,
});

interface Noted {
  readonly answers: readonly By[] | null;
  readonly fencing: readonly By[] | null;
  readonly held: string | null;
}
/** What was said before stays with its time. */
function noteAnswers(item: WorkItem, { answers, fencing, held }: Noted, now: Instant): WorkItem {
  const note = (before: readonly SaidAnswer[], said: readonly By[]): readonly SaidAnswer[] =>
    said.map(({ by, answer }) => {
      const same = before.find((each) => each.by === by);
      const isSame = same?.state === answer.state && same.sentence === answer.sentence;
      return isSame ? same : { by, state: answer.state, sentence: answer.sentence, at: now.wallMs };
    });
  const { held: _held, ...rest } = item;
  return {
    ...rest,
    ...(held === null ? {} : { held }),
    ...(answers === null ? {} : { answers: note(item.answers, answers) }),
    ...(fencing === null ? {} : { fencing: note(item.fencing, fencing) }),
  };
}

interface Taken extends Move {
  readonly fencedBy?: FencerName;
}
function take(state: HaState, item: WorkItem, { to, by, why, fencedBy = "storage" }: Taken, { wallMs }: Instant): void {
  const { vm, path, cell, incarnation, host, client } = item;
  const ends = to === "Done" || to === "Cancelled";
  const next: WorkItem = {
    ...item,
    step: to,
    since: wallMs,
    ...(by === undefined ? {} : { fencedBy: by === "fencer" ? fencedBy : by }),
    ...(ends ? { outcome: why } : {}),
  };
  log(state.outbox, "ha/step", { vm, path, cell, incarnation, host, step: to, reason: why });
  saveItem(state, next);
  if (by === undefined) return;
  log(state.outbox, "ha/over", { vm, path, cell, incarnation, host, by: next.fencedBy ?? by });
  // With its power it has ended: a controller of the previous version knows no other word for that.
  const said = next.fencedBy === undefined || next.fencedBy === "power" ? "stopped" : next.fencedBy;
  saveOver(state, { client, vm, incarnation, host, by: said, ...boundOf(item) });
}

/** A fence is desired from the step that begins it until nobody could begin anything for that incarnation any more. */
function settleFence(state: HaState, vm: Uid): void {
  const item = state.active.get(vm);
  const wanted = state.wanted.get(vm);
  const isDue = item !== undefined && wanted !== undefined && (item.step === "Fencing" || item.step === "Restarting");
  const at = isDue ? wanted.document.storageManager : null;
  for (const manager of state.options.storageManagers) {
    const isHere = manager === at && item !== undefined && item.step === "Fencing";
    const isDesired = state.outbox.desired.get(manager)?.has(fenceKey(vm)) === true;
    if (isHere) desire(state.outbox, manager, fenceKey(vm), fenceOf(item));
    else if (isDesired && !(manager === at && isDue)) desire(state.outbox, manager, fenceKey(vm), null);
  }
  if (!isDue) state.fences.delete(vm);
}
const fenceOf = (item: WorkItem): DesiredFence => {
  const { vm, cell, incarnation } = item;
  return { vm, cell, incarnation, ...boundOf(item) };
};

/** One timer for the earliest of them: whoever is looked at sets it anew. */
function lookAgain(state: HaState, afterMs: number): void {
  if (afterMs <= 0) return;
  const dueMs = state.nowMs + afterMs;
  if (state.recreateDueMs !== null && state.recreateDueMs <= dueMs) return;
  state.recreateDueMs = dueMs;
  state.outbox.effects.push({ kind: "timer", name: recreateTimer, afterMs });
}

/** One timer for whoever is waited for least long: of hosts that were asked about at different times each has its own. */
function setPatience(state: HaState): void {
  const { asking, looking, unheard, nowMs, outbox } = state;
  const ends = [
    ...[...asking.values()].map(({ sinceMs, patienceMs }) => (sinceMs ?? nowMs) + patienceMs),
    ...[...looking.values()].map((sinceMs) => (sinceMs ?? nowMs) + requestPatienceMs),
    ...[...unheard.values()].map((sinceMs) => sinceMs + unheardMs),
    ...turnEnds(state),
  ].filter((ms) => ms > nowMs);
  const dueMs = ends.length === 0 ? null : Math.min(...ends);
  if (dueMs === state.patienceDueMs) return;
  state.patienceDueMs = dueMs;
  outbox.effects.push({ kind: "timer", name: askedTimer, afterMs: dueMs === null ? null : dueMs - nowMs });
}

/** Items are looked at now and then, whatever is heard; what hosts list is compared, and items that have ended are forgotten one day. */
function setTimers(state: HaState): void {
  const { active, ended, wanted, settings, timed } = state;
  const set = (name: string, isDue: boolean, everyMs: number): void => {
    if (isDue === timed.has(name)) return;
    if (isDue) timed.add(name);
    else timed.delete(name);
    state.outbox.effects.push({ kind: "timer", name, afterMs: isDue ? everyMs : null });
  };
  set(lookTimer, active.size + state.orderly.active.size > 0, settings.lookMs);
  set(compareTimer, active.size + ended.size + wanted.size + state.orderly.ended.size > 0, settings.compareMs);
}
export const lookTimer = "look";
export const compareTimer = "compare";
/** Nothing else has fenced what may be made anew. */
export const recreateTimer = "recreate";
/** Those that were asked have had their time. */
export const askedTimer = "asked";

/** Follows all hosts, and others on which something is protected: these say to their storage servers that they are there. */
export function followHosts(state: HaState): void {
  for (const to of state.options.agents ?? []) {
    if (state.subscribed.has(to)) continue;
    state.subscribed.add(to);
    for (const prefix of [heartbeatKey("" as HostName), actualKey(state.options.self, requestsKey("" as HostName))])
      state.outbox.effects.push({ kind: "subscribe", to, prefix });
  }
  for (const peer of [...state.options.hosts, ...[...state.at.keys()].map(hostPeer)]) {
    if (state.subscribed.has(peer)) continue;
    state.subscribed.add(peer);
    for (const prefix of ["machines", "host", actualKey(state.options.self, "probe/")])
      state.outbox.effects.push({ kind: "subscribe", to: peer, prefix });
  }
}
