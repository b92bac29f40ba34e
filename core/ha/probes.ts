import { type HostName, hostPeer, type PeerName, type Uid } from "../../model/cell/identifiers.ts";
import type { Json } from "../../model/json/json.ts";
import { type ActualProbe, mostProbed, type ProbedMachine, probeKey } from "../documents/ha.ts";
import { actualProbe } from "../documents/readers/ha.ts";
import { actualHost } from "../documents/readers/placement.ts";
import { desire, write } from "../outbox.ts";
import { deathOf } from "../presence/group/deaths.ts";
import { freshMs, type Probed } from "./investigators/investigator.ts";
import type { HaState, KnownHost } from "./state.ts";
import { suspectedHosts } from "./suspicions.ts";

/**
 * Neighbours of a host that is looked into: two others that are heard put a question to it for as long as it is suspected or an item is about
 * that, and to the machines that should run there, and say what came back. Where a host is on the network it has said itself, and that is kept for when it says nothing.
 */
const neighbourCount = 2;
/** From the first question on nobody waits longer for an answer; each takes a second or so. */
export const probePatienceMs = 5_000;
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
}

/** What a neighbour got back; null: it does not ask any more. */
export function takeProbe(state: HaState, from: PeerName, host: HostName, value: Json): void {
  const said = actualProbe.of(value, host);
  const byPeer = state.probes.get(host);
  if (byPeer === undefined) return;
  // Any host could say that a lost one answers it, and nobody would be started elsewhere: two are asked, and heard.
  if (state.asking.get(host)?.peers.includes(from) !== true) return;
  if (said === null) {
    byPeer.delete(from);
    return;
  }
  const before = byPeer.get(from);
  const isAnswer = said.answered > (before?.answered ?? 0) && said.mac === state.known.get(host)?.mac;
  const answeredMs = isAnswer ? state.nowMs : (before?.answeredMs ?? null);
  const machines = machineAnswers(state, before, said);
  byPeer.set(from, { asked: said.asked, answered: said.answered, answeredMs, machines });
}

/** Of the machines that should run there: what is said of any other is about nobody here. */
function machineAnswers(
  { at, nowMs }: HaState,
  before: Probed | undefined,
  { host, machines = [] }: ActualProbe,
): Probed["machines"] {
  const there = at.get(host);
  const known = machines.filter(({ vm }) => there?.has(vm) === true);
  return new Map(
    known.map(({ vm, answered }) => {
      const same = before?.machines.get(vm);
      const isMore = answered > (same?.answered ?? 0);
      return [vm, { answered, answeredMs: isMore ? nowMs : (same?.answeredMs ?? null) }];
    }),
  );
}

/** Either investigator has neighbours ask; what the other one hears by it is not asked for. */
const hasAsked = ({ settings }: HaState): boolean =>
  settings.investigators.includes("neighbours") || settings.investigators.includes("vm");

const byName = (one: ProbedMachine, other: ProbedMachine): number => (one.vm < other.vm ? -1 : 1);
/** Those that are looked into first, and no more than a host asks at once. */
function machinesAt({ at, wanted, active, settings }: HaState, host: HostName): readonly ProbedMachine[] {
  if (!settings.investigators.includes("vm")) return [];
  const isLookedInto = (vm: Uid): number => (active.has(vm) ? 0 : 1);
  return [...(at.get(host) ?? [])]
    .flatMap((vm) => {
      const address = wanted.get(vm)?.document.address;
      return address === undefined ? [] : [{ vm, address }];
    })
    .sort((one, other) => isLookedInto(one.vm) - isLookedInto(other.vm) || byName(one, other))
    .slice(0, mostProbed)
    .sort(byName);
}

/** Has the neighbours that are to be asked asked, and no others. */
export function settleProbes(state: HaState): void {
  const isAsked = hasAsked(state);
  const looked = new Set(isAsked ? suspectedHosts(state).filter((host) => state.known.has(host)) : []);
  for (const { step, host } of isAsked ? state.active.values() : [])
    if ((step === "Scheduled" || step === "Investigating") && state.known.has(host)) looked.add(host);
  for (const host of looked) {
    const { address, mac } = state.known.get(host) ?? {};
    const asked = state.asking.get(host) ?? { peers: [], sinceMs: state.nowMs };
    const isDueAnew = state.nowMs - asked.sinceMs >= state.settings.askAnewMs;
    const peers = neighboursOf(state, host, asked.peers, isDueAnew);
    for (const gone of asked.peers) {
      if (peers.includes(gone)) continue;
      desire(state.outbox, gone, probeKey(host), null);
      state.probes.get(host)?.delete(gone);
    }
    const machines = machinesAt(state, host);
    const wanted = { host, address, mac, ...(machines.length === 0 ? {} : { machines }) };
    for (const peer of peers) desire(state.outbox, peer, probeKey(host), wanted);
    state.asking.set(host, { peers, sinceMs: isDueAnew ? state.nowMs : asked.sinceMs });
    if (!state.probes.has(host)) state.probes.set(host, new Map());
  }
  for (const [peer, documents] of state.outbox.desired)
    for (const key of [...documents.keys()])
      if (key.startsWith("probe/") && !looked.has(key.slice("probe/".length) as HostName))
        desire(state.outbox, peer, key, null);
  for (const host of [...state.asking.keys()]) {
    if (looked.has(host)) continue;
    state.asking.delete(host);
    state.probes.delete(host);
  }
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
  if (!isDueAnew) return [...new Set([...before, ...hosts])].filter(isHeard).slice(0, neighbourCount);
  // Each gets its turn: those behind the last one that was asked, and round again.
  const last = Math.max(...before.map((peer) => hosts.indexOf(peer)));
  const turn = [...hosts.slice(last + 1), ...hosts.slice(0, last + 1)].filter((peer) => !before.includes(peer));
  const hears = before.filter((peer) => hasAnswered(state, host, peer));
  return [...new Set([...hears, ...turn, ...before])].filter(isHeard).slice(0, neighbourCount);
}

/** Whether some neighbour has yet to say what came back. */
export function isAskingAbout(state: HaState, host: HostName): boolean {
  const { asking, probes, known, nowMs } = state;
  if (!known.has(host) || !hasAsked(state)) return false;
  const asked = asking.get(host);
  // Who is to be asked is found out behind this look.
  if (asked === undefined) return true;
  if (nowMs - asked.sinceMs >= probePatienceMs) return false;
  return asked.peers.some((peer) => (probes.get(host)?.get(peer)?.asked ?? 0) < enough);
}
