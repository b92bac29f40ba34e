import { type PeerName, peerName } from "../../model/cell/identifiers.ts";
import type { Json, JsonObject } from "../../model/json/json.ts";
import { InUse, type InUseReport, Ledger } from "./ledger.ts";
import { placerOf, scanned } from "./many-hosts.ts";
import { hostSize, offer } from "./trace-hosts.ts";
import type { Arrival } from "./traces/arrival.ts";
import { BadLines } from "./traces/bad-lines.ts";
import { Ends } from "./traces/ends.ts";
import { arrivalsFrom } from "./traces/read.ts";

/*
 * One process with one Placer that places the VMs of a trace. Arguments: its file, hosts, how many arrivals at most, "spread" or "none" for groups, how many arrivals
 * lie between two that a scan of all hosts is asked of as well. What the Placer answers is written down by hosts and added up in `ledger.ts`, with none of its code.
 */
export interface TraceReport {
  readonly arrivals: number;
  readonly groups: number;
  /** Of processor time, and as time passes. */
  readonly perSecond: number;
  readonly perSecondOfClock: number;
  readonly p99Ms: number;
  readonly longestMs: number;
  /** A VM's end, with all that waits tried again, in processor time. */
  readonly endMs: number;
  readonly ended: number;
  /** Answers by which a host has more VMs than it has room for, or that name a host that is none. */
  readonly unlawful: number;
  /** VMs that were to wait when they came, though a host had room. */
  readonly idle: number;
  /** Of those that were asked of a scan of all hosts as well. */
  readonly scanned: number;
  readonly differ: number;
  /** Most at once, of VMs and of those that had no place. */
  readonly most: number;
  readonly mostWaiting: number;
  /** Hosts in use, of the first arrivals. */
  readonly inUse: InUseReport;
  readonly badLines: { readonly count: number; readonly told: readonly string[] };
}
/** What the trace lacks. */
export interface NoTrace {
  readonly refused: string;
}
/** Hosts in use are compared by so many of the first arrivals. */
const compared = 100_000;

const [file = "", hosts = "1000", most = "Infinity", wish = "spread", between = "100"] = process.argv.slice(2);
const [hostCount, atMost, scanEach] = [hosts, most, between].map(Number) as [number, number, number];
const accounts = 200;
const { peers, state, desire } = placerOf(hostCount, accounts, () => hostSize);
const ledger = new Ledger(
  peers.map((peer) => peer.slice("host.".length)),
  offer,
);

interface Vm {
  readonly client: PeerName;
  readonly memoryMiB: number;
  readonly cpus: number;
  host: string | null;
}
const vms = new Map<string, Vm>();
let unlawful = 0;
/** Processor time of this thread: what else the machine does meanwhile is not in it. */
let cpuMs = 0;
function give(from: PeerName, key: string, value: Json): number {
  const [began, cpu] = [performance.now(), process.threadCpuUsage()];
  const effects = desire(from, key, value);
  const { user, system } = process.threadCpuUsage(cpu);
  const took = performance.now() - began;
  cpuMs = (user + system) / 1000;
  const said = effects.flatMap((effect) => (effect.kind === "publish" ? [effect] : []));
  // Who leaves a host does so before another comes: the order of what is said in one step means nothing.
  const moves = said.map(({ key: about, value: answer }) => hear(about, answer));
  for (const come of moves) come?.();
  return took;
}
/** An answer `controller.k1/placement/v7`: where it is now. */
function hear(key: string, value: Json): (() => void) | null {
  const [, area, uid = ""] = key.split("/");
  const vm = vms.get(uid);
  if (area !== "placement" || vm === undefined) return null;
  const { phase = null, host: named = null } = (value ?? {}) as JsonObject;
  const host = phase === "ready" ? String(named) : null;
  if (host === vm.host) return null;
  if (vm.host !== null) ledger.remove(vm.host, vm);
  vm.host = host;
  return () => {
    if (host !== null && !ledger.add(host, vm)) unlawful += 1;
  };
}

const ends = new Ends();
let [ended, ending] = [0, 0];
function endUntil(second: number): void {
  for (const number of ends.until(second)) {
    const uid = `v${number}`;
    const vm = vms.get(uid);
    if (vm === undefined) continue;
    if (vm.host !== null) ledger.remove(vm.host, vm);
    vms.delete(uid);
    give(vm.client, `placement/${uid}`, null);
    ending += cpuMs;
    ended += 1;
  }
}

const took: number[] = [];
const inUse = new InUse();
let [placing, groups, scans, differ, idle, mostThere, mostWaiting] = [0, 0, 0, 0, 0, 0, 0];
function arrive({ account, group, cpus, memoryMiB, endsAt }: Arrival): void {
  const number = took.length + 1;
  const uid = `v${number}`;
  const cell = `k${account % accounts}`;
  const client = peerName(`controller.${cell}`);
  const path = `${cell}/${uid}`;
  // Those of a group go to different hosts where there are any; each to the fullest of what is left.
  const placement = wish === "spread" ? { fill: "pack", spread: `b${group}` } : { fill: "pack" };
  const document = { vm: uid, path, cell, incarnation: 1, cpuSpeedMHz: 0, memoryMiB, cpus, placement };
  if (took.length % scanEach === 0) {
    scans += 1;
    if (!scanned(state, client, document).isSame) differ += 1;
  }
  const vm: Vm = { client, memoryMiB, cpus, host: null };
  vms.set(uid, vm);
  took.push(give(client, `placement/${uid}`, document));
  placing += cpuMs;
  if (vm.host === null && ledger.hasAnywhere(vm)) idle += 1;
  if (took.length <= compared) inUse.look(ledger.inUse);
  mostThere = Math.max(mostThere, vms.size);
  mostWaiting = Math.max(mostWaiting, state.waiting.size);
  groups = Math.max(groups, group + 1);
  if (endsAt !== null) ends.add(endsAt, number);
}

async function run(): Promise<TraceReport | NoTrace> {
  const bad = new BadLines();
  const trace = arrivalsFrom(file, offer, bad);
  while (took.length < atMost) {
    const next = await trace.next().catch((error: Error) => error);
    if (next instanceof Error) return { refused: next.message };
    if (next.done === true) break;
    endUntil(next.value.second);
    arrive(next.value);
  }
  await trace.return(undefined);
  if (took.length === 0) return { refused: `${file}: there is no VM in it` };
  const missing = [...vms.values()].filter(({ host }) => host === null).length;
  if (missing !== state.waiting.size) unlawful += 1;
  const sum = took.reduce((all, each) => all + each, 0);
  const sorted = took.toSorted((one, other) => one - other);
  return {
    arrivals: took.length,
    groups,
    perSecond: (took.length / placing) * 1000,
    perSecondOfClock: (took.length / sum) * 1000,
    p99Ms: sorted[Math.floor(sorted.length * 0.99)] ?? 0,
    longestMs: sorted.at(-1) ?? 0,
    endMs: ended === 0 ? 0 : ending / ended,
    ended,
    unlawful,
    idle,
    scanned: scans,
    differ,
    most: mostThere,
    mostWaiting,
    inUse: inUse.report,
    badLines: { count: bad.count, told: bad.told },
  };
}
process.stdout.write(`${JSON.stringify(await run())}\n`);
