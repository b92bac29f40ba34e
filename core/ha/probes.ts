import { type HostName, hostPeer, type PeerName, type Uid } from "../../model/cell/identifiers.ts";
import type { Json } from "../../model/json/json.ts";
import { type ActualProbe, mostProbed, type ProbedMachine, probeKey } from "../documents/ha.ts";
import { actualProbe } from "../documents/readers/ha.ts";
import { actualHost } from "../documents/readers/placement.ts";
import { desire, write } from "../outbox.ts";
import { deathOf } from "../presence/group/deaths.ts";
import { freshMs, type Probed, type Subject } from "./investigators/investigator.ts";
import { type Asking, createAsking, type HaState, type KnownHost } from "./state.ts";
import { isLookedInto, lookedIntoAt } from "./suspicions.ts";

/**
 * Neighbours of a host that is looked into: two others that are heard put a question to it for as long as it is suspected or an item is about
 * that, and to the machines that should run there, and say what came back. Where a host is on the network it has said itself, and that is kept for when it says nothing.
 */
const neighbourCount = 2;
/** From the first question on nobody waits longer for an answer; each takes a second or so, and so does each further turn, of which few are waited for. */
export const probePatienceMs = 5_000;
const turnMs = 1_500;
const mostTurns = 4;
const patienceFor = (machines: number): number =>
  probePatienceMs + turnMs * Math.max(0, Math.min(mostTurns, Math.ceil(machines / mostProbed)) - 1);
/** Those that are named next to a host are lost with it, as a rack is: the first that is asked is so much of all behind it. */
const awayShare = 1 / 8;
/** A neighbour that has asked so often without an answer has got none. */
const enough = 2;

const hostRecord = (host: HostName): string => `host/${host}`;

/** What a host says of itself; that it says nothing any more is no news. */
export function takeHost(state: HaState, host: HostName, value: Json): void {
  const said = actualHost.of(value);
  if (said === null) return;
  const known: KnownHost = { address: said.address, mac: said.mac };
  write(state.outbox, hostRecord(host), known);
  state.known.set(host, known);
  state.looksDue.add(host);
}

/** What a neighbour got back; null: it does not ask any more. */
export function takeProbe(state: HaState, from: PeerName, host: HostName, value: Json): void {
  const said = actualProbe.of(value, host);
  const byPeer = state.probes.get(host);
  if (byPeer === undefined) return;
  const asking = state.asking.get(host);
  // Any host could say that a lost one answers it, and nobody would be started elsewhere: two are asked, and heard.
  if (asking?.peers.includes(from) !== true) return;
  state.looksDue.add(host);
  if (said === null) {
    byPeer.delete(from);
    return;
  }
  const before = byPeer.get(from);
  const isAnswer = said.answered > (before?.answered ?? 0) && said.mac === state.known.get(host)?.mac;
  const answeredMs = isAnswer ? state.nowMs : (before?.answeredMs ?? null);
  const listed = new Set((said.machines ?? []).map(({ vm }) => vm));
  if (said.asked > (before?.asked ?? 0)) countRound(asking, from, listed);
  const machines = machineAnswers(state, before, said);
  byPeer.set(from, { asked: said.asked, answered: said.answered, answeredMs, machines, listed });
}

/** Of the machines that should run there: what is said of any other is about nobody here. What was said in turns before stays. */
function machineAnswers(
  { at, nowMs }: HaState,
  before: Probed | undefined,
  { host, machines = [] }: ActualProbe,
): Probed["machines"] {
  const there = at.get(host);
  const all = new Map([...(before?.machines ?? [])].filter(([vm]) => there?.has(vm) === true));
  for (const { vm, answered } of machines) {
    if (there?.has(vm) !== true) continue;
    const same = all.get(vm);
    // Whoever asks it in another turn counts anew.
    const isMore = answered > (before?.listed.has(vm) === true ? (same?.answered ?? 0) : 0);
    all.set(vm, { answered, answeredMs: isMore ? nowMs : (same?.answeredMs ?? null) });
  }
  return all;
}

/** Either investigator has neighbours ask; what the other one hears by it is not asked for. */
const hasAsked = ({ settings }: HaState): boolean =>
  settings.investigators.includes("neighbours") || settings.investigators.includes("vm");

/** Of a host that is looked into: those of its VMs that items are about, and before there are any, all that would have one. */
function candidatesAt(state: HaState, host: HostName): readonly ProbedMachine[] {
  const { at, wanted, settings } = state;
  if (!settings.investigators.includes("vm")) return [];
  const about = lookedIntoAt(state, host);
  const vms = about.length > 0 ? about : [...(at.get(host) ?? [])];
  return vms.flatMap((vm) => {
    const { address, lost } = wanted.get(vm)?.document ?? {};
    return address === undefined || lost === "leave" ? [] : [{ vm, address }];
  });
}

const byName = (one: ProbedMachine, other: ProbedMachine): number => (one.vm < other.vm ? -1 : 1);
/**
 * A turn is over when each neighbour has put its question to some of it. One that is silent holds nobody up for longer than this, and one that lies, and says
 * at once that it has asked, leaves the other that time.
 */
const enoughRounds = { listed: 1, unlisted: 3 } as const;
const turnPatienceMs = 2_000;
/** When nobody waits any more for the neighbour that has not asked some of a turn yet, monotonic ms. */
export const turnEnds = ({ asking }: HaState): readonly number[] =>
  [...asking.values()].flatMap(({ turn: { sinceMs } }) => (sinceMs === null ? [] : [sinceMs + turnPatienceMs]));

function countRound({ turn }: Asking, from: PeerName, listed: ReadonlySet<Uid>): void {
  const rounds = turn.rounds.get(from) ?? { listed: 0, all: 0 };
  // What was under way when the turn began names those of it alone that were in the one before, too.
  const isOfTurn = turn.vms.size > 0 && [...turn.vms].every((vm) => listed.has(vm));
  turn.rounds.set(from, { listed: rounds.listed + (isOfTurn ? 1 : 0), all: rounds.all + 1 });
}
function isOver({ turn, peers }: Asking, nowMs: number): boolean {
  const rounds = peers.map((peer) => turn.rounds.get(peer) ?? { listed: 0, all: 0 });
  if (peers.length === 0) return false;
  const isLate = turn.sinceMs !== null && nowMs - turn.sinceMs >= turnPatienceMs;
  if (isLate && rounds.some(({ listed }) => listed >= enoughRounds.listed)) return true;
  // A host of an earlier version asks no machine at all.
  return rounds.every(({ listed, all }) => listed >= enoughRounds.listed || all >= enoughRounds.unlisted);
}

/**
 * Which machines are asked now: no more than a host asks at once. Where there are more they have their turns, those first that were asked
 * longest ago.
 */
function turnOf(asking: Asking, candidates: readonly ProbedMachine[], nowMs: number): readonly ProbedMachine[] {
  const { turn, lastTurn } = asking;
  const same = candidates.filter(({ vm }) => turn.vms.has(vm));
  const isNext = candidates.length <= mostProbed || same.length === 0 || isOver(asking, nowMs);
  const now = isNext ? nextTurn(candidates, lastTurn) : same;
  if (isNext && now.some(({ vm }) => !turn.vms.has(vm))) {
    asking.turns += 1;
    asking.turn = { vms: new Set(now.map(({ vm }) => vm)), sinceMs: null, rounds: new Map() };
    for (const { vm } of now) lastTurn.set(vm, asking.turns);
  } else if (now.length < turn.vms.size) asking.turn = { ...turn, vms: new Set(now.map(({ vm }) => vm)) };
  // Others wait for theirs, from the beginning or since more have come.
  if (candidates.length > mostProbed && asking.turn.sinceMs === null) asking.turn = { ...asking.turn, sinceMs: nowMs };
  return [...now].sort(byName);
}
function nextTurn(candidates: readonly ProbedMachine[], lastTurn: ReadonlyMap<Uid, number>): readonly ProbedMachine[] {
  if (candidates.length <= mostProbed) return candidates;
  const turn = ({ vm }: ProbedMachine): number => lastTurn.get(vm) ?? 0;
  return [...candidates].sort((one, other) => turn(one) - turn(other) || byName(one, other)).slice(0, mostProbed);
}

/** Has the neighbours that are to be asked asked, and no others: of hosts at which something has changed. */
export function settleProbes(state: HaState): void {
  for (const host of state.looksDue) settleHost(state, host);
}

function settleHost(state: HaState, host: HostName): void {
  const { outbox, known, probes, nowMs, settings } = state;
  const { address, mac } = known.get(host) ?? {};
  const before = state.asking.get(host);
  const key = probeKey(host);
  if (address === undefined || !hasAsked(state) || !isLookedInto(state, host)) {
    if (before === undefined) return;
    for (const [peer, documents] of outbox.desired) if (documents.has(key)) desire(outbox, peer, key, null);
    state.asking.delete(host);
    probes.delete(host);
    return;
  }
  const asking = before ?? createAsking();
  const sinceMs = asking.sinceMs ?? nowMs;
  const isDueAnew = nowMs - sinceMs >= settings.askAnewMs;
  const peers = neighboursOf(state, host, asking.peers, isDueAnew);
  const isAsked = (peer: PeerName): boolean => peers.includes(peer);
  for (const gone of asking.peers) {
    if (isAsked(gone)) continue;
    desire(outbox, gone, key, null);
    probes.get(host)?.delete(gone);
  }
  for (const peer of asking.strays) {
    if (!isAsked(peer) && state.reachable.get(peer) === undefined) continue;
    if (!isAsked(peer)) desire(outbox, peer, key, null);
    asking.strays.delete(peer);
  }
  asking.peers = peers;
  asking.sinceMs = isDueAnew ? nowMs : sinceMs;
  const candidates = candidatesAt(state, host);
  asking.patienceMs = Math.max(asking.patienceMs, patienceFor(candidates.length));
  const machines = turnOf(asking, candidates, nowMs);
  const wanted = { host, address, mac, ...(machines.length === 0 ? {} : { machines }) };
  for (const peer of peers) desire(outbox, peer, key, wanted);
  state.asking.set(host, asking);
  if (!probes.has(host)) probes.set(host, new Map());
}

/** Those that were asked already, as long as they are heard, and then others by their names. */
const hasAnswered = ({ probes, nowMs }: HaState, host: HostName, peer: PeerName): boolean => {
  const said = probes.get(host)?.get(peer);
  return [said, ...(said?.machines.values() ?? [])].some((each) => {
    const answeredMs = each?.answeredMs ?? null;
    return answeredMs !== null && nowMs - answeredMs < freshMs;
  });
};

/** Those who are asked already; after a while others, which may have a way that these have not, in place of who got no answer. */
function neighboursOf(
  state: HaState,
  host: HostName,
  before: readonly PeerName[],
  isDueAnew: boolean,
): readonly PeerName[] {
  const isHeard = (peer: PeerName): boolean =>
    peer !== hostPeer(host) &&
    state.reachable.get(peer) === true &&
    deathOf(state.deaths, peer.slice("host.".length) as HostName) === null;
  const { hosts } = state.options;
  const away = hosts.indexOf(hostPeer(host)) + 1 + Math.floor(hosts.length * awayShare);
  const first = (all: Iterable<PeerName>, peers: Set<PeerName> = new Set()): readonly PeerName[] => {
    for (const peer of all) {
      if (peers.size === neighbourCount) break;
      if (isHeard(peer)) peers.add(peer);
    }
    return [...peers];
  };
  if (!isDueAnew) return first(around(hosts, away), new Set(first(before)));
  // Each gets its turn: those behind the last one that was asked, and round again.
  const last = Math.max(...before.map((peer) => hosts.indexOf(peer)));
  const turn = [...hosts.slice(last + 1), ...hosts.slice(0, last + 1)].filter((peer) => !before.includes(peer));
  const hears = before.filter((peer) => hasAnswered(state, host, peer));
  return first([...hears, ...turn, ...before]);
}

/** Each once, from one on. */
function* around(hosts: readonly PeerName[], from: number): Generator<PeerName> {
  for (let index = 0; index < hosts.length; index += 1) {
    const peer = hosts[(from + index) % hosts.length];
    if (peer !== undefined) yield peer;
  }
}

/** Whether some neighbour has yet to say what came back: of the host, and of that VM once it has asked machines there. */
export function isAskingAbout(state: HaState, { host, vm }: Pick<Subject, "host" | "vm">): boolean {
  const { asking, probes, known, nowMs } = state;
  if (!known.has(host) || !hasAsked(state)) return false;
  const asked = asking.get(host);
  // Who is to be asked is found out behind this look.
  if (asked === undefined || asked.sinceMs === null) return true;
  if (nowMs - asked.sinceMs >= asked.patienceMs) return false;
  const isAwaited = isCandidate(state, vm);
  return asked.peers.some((peer) => {
    const said = probes.get(host)?.get(peer);
    if ((said?.asked ?? 0) < enough) return true;
    return isAwaited && said !== undefined && said.machines.size > 0 && !said.machines.has(vm);
  });
}
const isCandidate = ({ wanted, settings }: HaState, vm: Uid): boolean =>
  settings.investigators.includes("vm") && wanted.get(vm)?.document.address !== undefined;
