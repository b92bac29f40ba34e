import { type HostName, hostName, type PeerName } from "../../../model/cell/identifiers.ts";
import type { Json } from "../../../model/json/json.ts";
import { agreedOn, majorityOf } from "../../documents/declaration.ts";
import { isGeneration, isIncarnation, isPlausible } from "../../documents/life-numbers.ts";
import { maySee } from "../../documents/permissions.ts";
import {
  type ActualPresence,
  type ActualPresenceDeath,
  type ActualPresenceMissed,
  type ActualPresenceSuspicion,
  type ActualPresenceVote,
  presenceKey,
} from "../../documents/presence.ts";
import { presenceDeath } from "../../documents/readers/presence.ts";
import { documentsOf } from "../../documents/readers/table.ts";
import type { Input, Restored, Service } from "../../env.ts";
import { createOutbox, isObject, log, takeEffects, toJson, write } from "../../outbox.ts";
import { counter, gauge, type Metric, sample } from "../../telemetry/metrics.ts";
import { beginCalls, callIn, callsBefore, endCall, heardSince, isCallRecord, takeAnswer } from "./call.ts";
import { membersIn } from "./deaths.ts";
import { answerEnd, isEndToTake, knownIn, laterDeath, lifeRecord, noteLife, readEndRequest } from "./end.ts";
import { lookedFor, noteMissed } from "./missed.ts";
import { isSame, isSuspected, reportersOf } from "./reports.ts";
import { type GroupOptions, type GroupState, type HostView, isGone, type Life, publish } from "./state.ts";

/**
 * A member of the Presence group. It collects what hosts report of each other and decides with the other members which
 * host is declared dead. Hosts' reports and members' votes are evidence: they are actual state, are taken back as soon as
 * they are no longer so, and are rebuilt from scratch after a restart. The declaration alone is durable and final: it ends
 * one generation of the host, which may come back with the next one.
 *
 * A member votes that a host is dead when all of this is so at once:
 *  - more distinct hosts than a threshold report it, in its present generation and incarnation, and this member hears each
 *    of these hosts itself (a report of a host that has vanished may be old);
 *  - this member does not hear the reported host either: who is heard is alive, whatever is said;
 *  - at least half of all hosts have answered a call that it made when the above was so (`call.ts`), and it hears them
 *    still: otherwise it may be this member that was cut off.
 * It declares when it sees votes of a majority of the group, its own or those of members it hears, for one incarnation, or
 * when a majority has declared it or votes for it.
 * So nobody alone declares anything, a refutation that reached a majority of the group in time prevails, and no rule rests
 * on a clock: a member that stood still has old evidence only until its connections say so.
 *
 * Rejected: votes that bind (a consensus round per death). Declarations cannot contradict each other, they only grow, so
 * there is nothing to agree on but "enough of us see it now", and a vote that stays would count against the host later.
 */
export function createPresence(options: GroupOptions): Service<GroupState> {
  return {
    restore: (restored) => restore(restored, options),
    step: (state, input, now) => {
      take(state, input, now.wallMs);
      state.outbox.quiet = false;
      return { state, effects: takeEffects(state.outbox) };
    },
    audience: (state) => state.options.members,
    entitled: (state, peer, key) =>
      maySee("presence", peer, key) && (!key.startsWith(presenceKey.vote("")) || state.options.members.includes(peer)),
    accepts: () => false,
    read: documentsOf("presence"),
    measure,
  };
}

const deathRecord = (host: HostName): string => `dead/${host}`;

function restore(restored: Restored, options: GroupOptions): GroupState {
  const state: GroupState = {
    options,
    outbox: createOutbox(restored),
    hosts: new Map(),
    live: null,
    members: new Set(),
    silent: new Set(options.members.filter((member) => member !== options.self)),
    alone: null,
    call: callsBefore(restored.records),
    asking: new Set(),
    missed: { hosts: new Map(), areTooMany: false },
    refused: 0,
  };
  for (const peer of options.hosts) {
    const host = hostName(peer.slice("host.".length));
    const value = restored.records.get(deathRecord(host));
    state.hosts.set(host, {
      host,
      peer,
      reachable: null,
      self: null,
      left: false,
      answers: false,
      answered: 0,
      asked: null,
      reports: new Map(),
      doubts: new Map(),
      votes: new Map(),
      claims: new Map(),
      returned: new Map(),
      declared: presenceDeath.of(value, host),
      known: knownIn(restored.records.get(lifeRecord(host))),
      sinceMs: 0,
    });
  }
  return state;
}

function take(state: GroupState, input: Input, wallMs: number): void {
  switch (input.kind) {
    case "start":
      start(state);
      return;
    case "actual":
      takeActual(state, input.from, input.key, input.value, wallMs);
      return;
    case "reachable":
      takeReachable(state, input.peer, input.reachable, wallMs);
      return;
    case "request":
      state.outbox.effects.push({ kind: "reply", id: input.id, response: answer(state, input.request, wallMs) });
      return;
    case "desired":
    case "timer":
      return;
  }
}

function start(state: GroupState): void {
  state.outbox.quiet = true;
  const { options, outbox } = state;
  beginCalls(state);
  for (const { peer, declared, host } of state.hosts.values()) {
    outbox.effects.push({ kind: "subscribe", to: peer, prefix: presenceKey.all });
    outbox.effects.push({ kind: "subscribe", to: peer, prefix: presenceKey.answer(options.self) });
    if (declared !== null) publish(state, presenceKey.death(host), declared);
  }
  // Hosts that the installation does not have any more.
  for (const key of [...outbox.records.keys()])
    if (!isCallRecord(key) && !state.hosts.has(hostName(key.slice(key.indexOf("/") + 1)))) write(outbox, key, null);
  for (const to of options.members) followMember(state, to);
  const declared = [...state.hosts.values()].filter((view) => view.declared !== null).length;
  log(outbox, "service/restored", { declared });
}

function followMember({ options, outbox }: GroupState, to: PeerName): void {
  if (to === options.self) return;
  outbox.effects.push({ kind: "subscribe", to, prefix: presenceKey.vote("") });
  outbox.effects.push({ kind: "subscribe", to, prefix: presenceKey.death("") });
}

/** The group has gained members. None goes while this one runs: of fewer members what was said before may be a majority. */
function takeMembers(state: GroupState, members: readonly PeerName[]): void {
  const came = members.filter((member) => !state.options.members.includes(member));
  if (came.length === 0) return;
  state.options = { ...state.options, members: [...state.options.members, ...came] };
  for (const member of came) {
    state.silent.add(member);
    followMember(state, member);
  }
  // Those that are being dialled may answer.
  if (state.alone === false) state.alone = null;
}

const lifeOf = (value: Json): Life | null =>
  isObject(value) && isGeneration(value.generation) && isIncarnation(value.incarnation)
    ? { generation: value.generation, incarnation: value.incarnation }
    : null;

/** The host that a peer is; null for any other peer. */
function hostOf(state: GroupState, peer: PeerName): HostView | null {
  const view = state.hosts.get(hostName(peer.slice("host.".length)));
  return view?.peer === peer ? view : null;
}

function takeActual(state: GroupState, from: PeerName, key: string, value: Json, wallMs: number): void {
  const life = lifeOf(value);
  const isAnswer = key === presenceKey.answer(state.options.self);
  if (value !== null && (isAnswer ? callIn(value) : life) === null) {
    refuse(state, from, key, isAnswer ? "it names no call" : "it names no generation and incarnation");
    return;
  }
  if (state.options.members.includes(from)) {
    takeFromMember(state, from, key, life, value, wallMs);
    return;
  }
  const reporter = hostOf(state, from);
  if (reporter === null) {
    refuse(state, from, key, "it is no host of this installation");
    return;
  }
  if (isAnswer) for (const view of takeAnswer(state, reporter, value)) evaluate(state, view, wallMs);
  else takeFromHost(state, reporter.host, key, life, value, wallMs);
}

function takeFromHost(
  state: GroupState,
  reporter: HostName,
  key: string,
  life: Life | null,
  value: Json,
  wallMs: number,
): void {
  if (key === presenceKey.self) {
    const view = state.hosts.get(reporter);
    if (view === undefined) return;
    if (isGone(view) !== (life === null)) view.sinceMs = wallMs;
    view.left = life === null && (view.left || !isGone(view));
    view.self = life;
    state.live = null;
    if (isObject(value)) view.answers = value.answers === true;
    noteLife(state, view, value);
    noteReturn(state, view);
    // How many hosts there are counts for every decision.
    evaluateReported(state, wallMs);
    return;
  }
  const isDoubt = key.startsWith(presenceKey.doubt(""));
  if (!isDoubt && !key.startsWith(presenceKey.report(""))) return;
  const view = state.hosts.get(hostName(key.slice((isDoubt ? presenceKey.doubt("") : presenceKey.report("")).length)));
  if (view === undefined || view.host === reporter) {
    if (life !== null) refuse(state, `host.${reporter}`, key, "no other host of this installation has that name");
    return;
  }
  if (life !== null && view.known !== null && !isPlausible(life.generation, view.known.generation)) {
    refuse(state, `host.${reporter}`, key, `it has never said that it is in life ${life.generation}`);
    return;
  }
  if (isDoubt) {
    if (life === null) view.doubts.delete(reporter);
    else view.doubts.set(reporter, life);
    evaluate(state, view, wallMs);
    return;
  }
  const wasReported = view.reports.size > 0;
  if (life === null) view.reports.delete(reporter);
  else view.reports.set(reporter, life);
  if (wasReported !== view.reports.size > 0) view.sinceMs = wallMs;
  evaluate(state, view, wallMs);
}

function takeFromMember(
  state: GroupState,
  from: PeerName,
  key: string,
  life: Life | null,
  value: Json,
  wallMs: number,
): void {
  const [kind, name = ""] = key.split("/");
  const view = state.hosts.get(hostName(name));
  if (view === undefined) return;
  if (key === presenceKey.vote(name)) {
    if (life === null) view.votes.delete(from);
    else view.votes.set(from, { host: view.host, ...life });
    evaluate(state, view, wallMs);
  } else if (kind === "dead" && life !== null) {
    const death = presenceDeath.of(value, name);
    if (death === null) return;
    const { declaredAt, reporters, ended, endedIn, returned } = death;
    if (returned === undefined) view.returned.delete(from);
    else view.returned.set(from, returned);
    const end = ended === undefined ? {} : { ended, ...(endedIn === undefined ? {} : { endedIn }) };
    view.claims.set(from, { host: view.host, ...life, declaredAt, reporters, ...end });
    evaluate(state, view, wallMs);
  }
}

function takeReachable(state: GroupState, peer: PeerName, reachable: boolean, wallMs: number): void {
  if (state.options.members.includes(peer)) {
    if (reachable) state.members.add(peer);
    else state.members.delete(peer);
    state.silent.delete(peer);
    noteStanding(state);
  } else {
    const view = hostOf(state, peer);
    if (view === null || view.reachable === reachable) return;
    view.reachable = reachable;
    evaluate(state, view, wallMs);
  }
  evaluateReported(state, wallMs);
}

function refuse(state: GroupState, from: string, key: string, why: string): void {
  state.refused += 1;
  log(state.outbox, "document/refused", { from, key, why });
}

/** Everything that some evidence concerns. */
function evaluateReported(state: GroupState, wallMs: number): void {
  for (const view of state.hosts.values())
    if (view.reports.size + view.doubts.size + view.votes.size + view.claims.size > 0) evaluate(state, view, wallMs);
}

/** The life that reports are about: the latest that anyone knows. A report of an earlier one was refuted. */
function latest({ self, reports }: HostView): Life | null {
  let life = self;
  for (const report of reports.values())
    if (life === null || isLater(report, life))
      life = { generation: report.generation, incarnation: report.incarnation };
  return life;
}
const isLater = (a: Life, b: Life): boolean =>
  a.generation > b.generation || (a.generation === b.generation && a.incarnation > b.incarnation);

/**
 * What other members declared is taken over when more than half of the group stand behind it, this member's own vote
 * included: one alone may make up anything. The certain end of a boot is one member's word, as it was the operator's; it is
 * taken over when this member would take the operator's own.
 */
function takeOver(state: GroupState, view: HostView, wallMs: number): void {
  const members = new Set(state.options.members);
  const said = new Map([...view.claims].map(([member, { generation }]) => [member, generation]));
  const own = Math.max(view.declared?.generation ?? 0, view.votes.get(state.options.self)?.generation ?? 0);
  if (own > 0) said.set(state.options.self, own);
  const agreed = agreedOn(members, said);
  const claims = [...view.claims.values()].sort((one, other) => one.generation - other.generation);
  const death = claims.find(({ generation }) => agreed !== null && generation >= agreed);
  if (death !== undefined && agreed !== null) {
    const { ended: _, endedIn: _in, ...silence } = death;
    declare(state, view, { ...silence, generation: agreed }, wallMs);
  }
  for (const claim of claims) if (isEndToTake(state, view, claim)) declare(state, view, claim, wallMs);
}

function evaluate(state: GroupState, view: HostView, wallMs: number): void {
  const { options } = state;
  const life = lookedFor(view, latest(view));
  const over = life === null || (view.declared !== null && view.declared.generation >= life.generation);
  if (over) endCall(state, view);
  const suspicion = over ? null : isSuspected(state, view, life);
  // A connection is silent for 8 to 10 s before it is known to be, and a large group takes longer to report; who asks further is told before that.
  const suspected: ActualPresenceSuspicion | null =
    suspicion === null || life === null ? null : { host: view.host, ...life };
  publish(state, presenceKey.suspected(view.host), suspected);
  const isReported = suspicion?.for === "votes";
  sayMissed(state, view, over || isReported ? null : life);
  const own = over ? null : ownVote(state, view, life, isReported);
  vote(state, view, own);
  if (view.claims.size > 0) takeOver(state, view, wallMs);
  if (over || (view.declared !== null && view.declared.generation >= life.generation)) return;
  let votes = 0;
  for (const [member, value] of view.votes)
    if (isSame(value, life) && (member === options.self || state.members.has(member))) votes += 1;
  if (votes < majorityOf(options.members.length)) return;
  const reporters = reportersOf(state, view, life);
  declare(state, view, { host: view.host, ...life, declaredAt: wallMs, reporters }, wallMs);
}

/**
 * Hosts hear of each other by datagrams, and this member of them by connections. One that was back for a moment may have been heard here
 * alone: the others hold it for dead in an earlier life, or know nothing of what it answered last, look for nobody, and report nothing that
 * counts. It would be silent for ever and never be declared. So they are told which life to look for.
 */
function sayMissed(state: GroupState, view: HostView, life: Life | null): void {
  const isMissed = life !== null && view.reachable === false && !view.left;
  const missed: ActualPresenceMissed | null = isMissed ? { host: view.host, ...life } : null;
  noteMissed(state, view.host, missed);
}

/** That this member never heard the host is no reason to wait: it may have started after the host's death. */
function ownVote(state: GroupState, view: HostView, life: Life, isSuspect: boolean): ActualPresenceVote | null {
  if (!isSuspect || view.reachable !== false) {
    endCall(state, view);
    return null;
  }
  return heardSince(state, view, life) ? { host: view.host, ...life } : null;
}

function vote(state: GroupState, view: HostView, own: ActualPresenceVote | null): void {
  const { self } = state.options;
  const before = view.votes.get(self) ?? null;
  if (own === null ? before === null : before !== null && isSame(own, before)) return;
  if (own === null) view.votes.delete(self);
  else view.votes.set(self, own);
  publish(state, presenceKey.vote(view.host), own);
  const { host, declared } = view;
  const over = declared !== null && before !== null && declared.generation >= before.generation;
  if (own === null && over) return;
  if (own === null) log(state.outbox, "presence/vote-withdrawn", { host });
  else log(state.outbox, "presence/voted", { host, generation: own.generation, reports: view.reports.size });
}

function declare(state: GroupState, view: HostView, said: ActualPresenceDeath, wallMs: number): void {
  const before = view.declared;
  const death = laterDeath(before, said);
  if (death === null) return;
  view.declared = death;
  state.live = null;
  write(state.outbox, deathRecord(view.host), death);
  publish(state, presenceKey.death(view.host), death);
  if (isGone(view)) sayMissed(state, view, null);
  const { host, generation, reporters, ended } = death;
  if (ended !== undefined && ended !== before?.ended) log(state.outbox, "presence/power-off", { host, boot: ended });
  if (before !== null && generation === before.generation) return;
  log(state.outbox, "presence/declared", { host, generation, reporters });
  vote(state, view, null);
  noteReturn(state, view);
  // What it reported of others counts no more, and there is one host fewer.
  evaluateReported(state, wallMs);
}

/**
 * A host that was declared dead shows by a later generation that it is back: everyone is told, so that nobody takes an old
 * declaration for what is so now. The declared generation stays over.
 */
function noteReturn(state: GroupState, view: HostView): void {
  const { host, self, declared } = view;
  if (self === null || declared === null || self.generation <= declared.generation) return;
  if (declared.returned !== undefined) return;
  view.declared = { ...declared, returned: self.generation };
  write(state.outbox, deathRecord(host), view.declared);
  publish(state, presenceKey.death(host), view.declared);
  log(state.outbox, "presence/returned", { host, generation: self.generation });
}

/** Says once that this member can declare nothing any more, and once that it can again. */
function noteStanding(state: GroupState): void {
  const of = state.options.members.length;
  const heard = state.members.size + 1;
  const alone = heard < majorityOf(of);
  const before = state.alone;
  // Just started: those that are still being dialled may answer.
  if (alone && before === null && state.silent.size > 0) return;
  state.alone = alone;
  if (alone && before !== true) log(state.outbox, "presence/no-majority", { heard, of, needed: majorityOf(of) });
  else if (!alone && before === true) log(state.outbox, "presence/majority", { heard, of });
}

/** Answer to the request `{kind: "hosts"}`. */
export interface HostPresence extends ActualPresence {
  readonly state: "alive" | "reported" | "dead" | "gone";
  readonly reports: number;
  /** Milliseconds since 1970, by this member's clock. */
  readonly sinceMs: number;
  /** Dead for certain: nothing that ran there does. Absent: not known. */
  readonly powerIsOff?: true;
}
function answer(state: GroupState, request: Json, wallMs: number): Json {
  const members = membersIn(request);
  if (members !== null) {
    takeMembers(state, members);
    return toJson({ members: state.options.members });
  }
  const end = readEndRequest(request);
  if (end !== null) return answerEnd(state, end, (view, death) => declare(state, view, death, wallMs), wallMs);
  if (isObject(request) && request.kind === "hosts") return statusOf(state);
  return { error: 'Presence answers {"kind": "hosts"} and {"kind": "host-end"} only' };
}
function statusOf(state: GroupState): Json {
  const hosts = [...state.hosts.values()].map((view): HostPresence => {
    const life = latest(view) ?? view.declared ?? { generation: 0, incarnation: 0 };
    const { generation, incarnation } = life;
    const dead = view.declared !== null && view.declared.generation >= generation;
    // What it has refuted is still on its way back.
    const reports = [...view.reports.values()].filter((report) => isSame(report, life)).length;
    const alive = reports === 0 ? "alive" : "reported";
    const thought = view.self === null ? "gone" : alive;
    const sinceMs = dead ? (view.declared?.declaredAt ?? view.sinceMs) : view.sinceMs;
    const isOff = dead && view.known?.boot != null && (view.declared?.ended ?? -1) >= view.known.boot;
    const state = dead ? "dead" : thought;
    return {
      host: view.host,
      generation,
      incarnation,
      state,
      reports,
      sinceMs,
      ...(isOff ? { powerIsOff: true as const } : {}),
    };
  });
  return toJson({ hosts });
}

function measure(state: GroupState): readonly Metric[] {
  const views = [...state.hosts.values()];
  const count = (of: (view: HostView) => boolean): number => views.filter(of).length;
  return [
    gauge("cells_presence_hosts", "Hosts by what this member of the Presence group thinks of them.", [
      sample(
        count((view) => !isGone(view) && view.reports.size === 0),
        { state: "alive" },
      ),
      sample(
        count((view) => !isGone(view) && view.reports.size > 0),
        { state: "reported" },
      ),
      sample(
        count((view) => isGone(view) && view.declared !== null),
        { state: "dead" },
      ),
    ]),
    gauge("cells_presence_hosts_heard", "Hosts that this member hears itself.", [
      sample(count((view) => view.reachable === true)),
    ]),
    gauge("cells_presence_votes", "Hosts that this member votes to declare dead.", [
      sample(count((view) => view.votes.has(state.options.self))),
    ]),
    counter("cells_presence_refused_total", "Documents that made no sense.", [sample(state.refused)]),
  ];
}
