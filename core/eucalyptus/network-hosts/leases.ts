import { type HostName, hostPeer } from "../../../model/cell/identifiers.ts";
import { networkBeatKey, networkLease, networkLeaseKey } from "../../documents/network/eucalyptus.ts";
import { actualNetworkBeat } from "../../documents/readers/eucalyptus.ts";
import { actualKey } from "../../documents/vocabulary.ts";
import type { Input, Instant } from "../../env.ts";
import { log, publishValue } from "../../outbox.ts";
import { ask, hostOf, hostsOf, type NetworkViewManagerOptions, type NetworkViewState } from "../state.ts";
import { type NetworkHosts, noNetworkHost } from "./carriers.ts";

/*
 * Who carries a cluster of the MANAGED modes. One network host does so until it says that it does not, or is fenced. Of several one can take over: each of
 * them carries under a lease then, and one that has none has let everything go by itself before its time is over here. That is the one thing which time
 * decides in this service, and only for a host that has said to carry under a lease alone.
 *
 * A host that is alone has none: whatever happens to this service, nobody could take over.
 */
const timer = "network-lease";

/** @returns whether it is a host's beat: nothing else in this service follows from it */
export function takeBeat({ leases }: NetworkViewState, input: Input, now: Instant): boolean {
  if (input.kind === "start") leases.startedMs = now.ms;
  if (input.kind === "timer" && input.name === timer) leases.dueMs = null;
  if (input.kind !== "actual" || input.key !== networkBeatKey) return false;
  const host = hostOf(input.from);
  if (host === null) return false;
  const beat = input.value === null ? null : actualNetworkBeat.of(input.value);
  if (beat === null) leases.beats.delete(host);
  else leases.beats.set(host, { ...beat, atMs: now.ms });
  return true;
}

/** Names network hosts, answers those that carry, ends leases. @returns whether that made another view, or may let somebody be named */
export function carryClusters(state: NetworkViewState, options: NetworkViewManagerOptions, now: Instant): boolean {
  const { book, said } = state;
  const { version } = book;
  const all = [...said].filter(([, { peer }]) => peer === "network").sort(([one], [other]) => (one < other ? -1 : 1));
  let dueMs: number | null = null;
  for (const [cluster, words] of Map.groupBy(all, ([, word]) => word.cluster)) {
    const of: OfCluster = { state, cluster, hosts: words.map(([host]) => host), now };
    settleLease(of, options);
    const nextMs = endLeases(of);
    if (nextMs !== null) dueMs = Math.min(dueMs ?? nextMs, nextMs);
    nameCarrier(of);
    answer(of);
  }
  setTimer(state, dueMs, now);
  return book.version !== version;
}

interface OfCluster {
  readonly state: NetworkViewState;
  readonly cluster: string;
  /** That may carry it, by their names. */
  readonly hosts: readonly HostName[];
  readonly now: Instant;
}
const carriersOf = ({ state, cluster }: OfCluster): NetworkHosts =>
  state.book.networkHosts.get(cluster) ?? noNetworkHost;

/** With a second network host that knows leases there is one, until nobody else is left. */
function settleLease(of: OfCluster, options: NetworkViewManagerOptions): void {
  const { state, cluster, hosts, now } = of;
  const { leases, said, inStep } = state;
  const { leasedSince, active, leaving } = carriersOf(of);
  if (leasedSince === null) {
    if (hosts.length > 1 && hosts.every((host) => leases.beats.has(host)))
      ask(state, { kind: "lease", cluster, isLeased: true });
    return;
  }
  for (const host of hosts) {
    const version = leases.beats.get(host)?.leased;
    if (version === undefined || carriersOf(of).leased.has(host)) continue;
    ask(state, { kind: "bound", cluster, host, version });
    // Its lease begins with its word that it needs one.
    if (carriersOf(of).leased.has(host)) leases.answeredMs.set(host, now.ms);
  }
  // One of which nothing is heard may be another network host, and may carry the cluster.
  const isNone = (host: HostName): boolean => {
    const word = said.get(host);
    return word === undefined ? inStep.has(host) : word.peer !== "network" || word.cluster !== cluster;
  };
  const others = hostsOf(options).filter((host) => host !== active && !isNone(host));
  if (active !== null && leaving.size === 0 && others.length === 0)
    ask(state, { kind: "lease", cluster, isLeased: false });
}

/** Whom a lease could be given: it asks for one, and carries nothing without. */
const candidates = (
  { state: { leases, inStep }, hosts, now }: OfCluster,
  { leased }: NetworkHosts,
): readonly HostName[] =>
  hosts.filter((host) => {
    const beat = leases.beats.get(host);
    return leased.has(host) && inStep.has(host) && beat !== undefined && now.ms - beat.atMs < networkLease.endsMs;
  });

/** @returns when the next one is over, in `now.ms`; null: nobody waits for that */
function endLeases(of: OfCluster): number | null {
  const { state, cluster, now } = of;
  const { leases, outbox, book } = state;
  if (book.recovery !== null) return null;
  const carriers = carriersOf(of);
  const { active, leaving, leased } = carriers;
  let next: number | null = null;
  for (const host of [...leaving.keys(), ...(active === null ? [] : [active])] as HostName[]) {
    if (!leased.has(host)) continue;
    // Where nobody could take over it stays named, and goes on when it is heard again.
    if (host === active && candidates(of, carriers).every((each) => each === host)) continue;
    const endsMs = Math.max(leases.startedMs, leases.answeredMs.get(host) ?? 0) + networkLease.endsMs;
    if (now.ms < endsMs) next = Math.min(next ?? endsMs, endsMs);
    else {
      ask(state, { kind: "lapsed", cluster, host });
      log(outbox, "network/host-lapsed", { cluster, host });
    }
  }
  return next;
}

function nameCarrier(of: OfCluster): void {
  const { state, cluster, hosts } = of;
  const carriers = carriersOf(of);
  if (carriers.active !== null) return;
  const [first] = carriers.leasedSince === null ? hosts : candidates(of, carriers);
  if (first === undefined) return;
  const { refused } = ask(state, { kind: "network-host", cluster, host: first });
  if (refused === null) log(state.outbox, "network/host-named", { cluster, host: first });
}

/** Who is named has its lease, from now on. After a loss nobody is known to be the only one before all hosts were heard. */
function answer(of: OfCluster): void {
  const { state, hosts, now } = of;
  const { leases, book, outbox } = state;
  const { active } = carriersOf(of);
  for (const host of hosts) {
    const beat = leases.beats.get(host)?.beat;
    if (host !== active || beat === undefined || book.recovery !== null || leases.answered.get(host) === beat) continue;
    leases.answered.set(host, beat);
    leases.answeredMs.set(host, now.ms);
    publishValue(outbox, actualKey(hostPeer(host), networkLeaseKey), { beat });
  }
}

function setTimer({ leases, outbox }: NetworkViewState, dueMs: number | null, now: Instant): void {
  if (dueMs === leases.dueMs) return;
  leases.dueMs = dueMs;
  outbox.effects.push({ kind: "timer", name: timer, afterMs: dueMs === null ? null : Math.max(0, dueMs - now.ms) });
}
