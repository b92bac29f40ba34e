import { type PeerName, peerName } from "../../model/cell/identifiers.ts";
import type { Json, JsonObject } from "../../model/json/json.ts";
import { machineMiB, placerOf, reservedMiB, scanned } from "./many-hosts.ts";
import { type Arrival, arrivalsFrom } from "./trace.ts";

/*
 * One process with one Placer that places the VMs of a trace. Arguments: its file, hosts, how many arrivals at most. What the Placer answers is written
 * down by hosts and added up here, with none of its code: a host that has more than it has room for is counted.
 */
export interface TraceReport {
  readonly arrivals: number;
  readonly batches: number;
  readonly perSecond: number;
  readonly p99Ms: number;
  readonly longestMs: number;
  readonly endMs: number;
  /** Answers by which a host has more VMs than it has room for, or that name a host that is none. */
  readonly unlawful: number;
  /** Of those that were asked of a scan of all hosts as well. */
  readonly scanned: number;
  readonly differ: number;
  /** Most at once, of VMs and of those that had no place. */
  readonly most: number;
  readonly mostWaiting: number;
}

const [file = "", hostCount = 1000, atMost = Number.POSITIVE_INFINITY] = process.argv
  .slice(2)
  .map((each, at) => (at === 0 ? each : Number(each))) as [string, number, number];
const accounts = 200;
const size = { memoryMiB: 262_144, cpus: 64, cpuSpeedMHz: 2400 } as const;
const { state, desire } = placerOf(hostCount, accounts, () => size);

interface Vm {
  readonly client: PeerName;
  readonly memoryMiB: number;
  readonly cpus: number;
  host: string | null;
}
const vms = new Map<string, Vm>();
const free = new Map<string, { memoryMiB: number; cpus: number }>();
for (const { host } of state.hosts.values())
  free.set(host, { memoryMiB: size.memoryMiB - reservedMiB, cpus: size.cpus * state.ratios.cpu });
let unlawful = 0;
function give(from: PeerName, key: string, value: Json): number {
  const began = performance.now();
  const effects = desire(from, key, value);
  const took = performance.now() - began;
  for (const effect of effects) if (effect.kind === "publish") hear(effect.key, effect.value);
  return took;
}
/** An answer `controller.k1/placement/v7`: where it is now. */
function hear(key: string, value: Json): void {
  const [, area, uid = ""] = key.split("/");
  const vm = vms.get(uid);
  if (area !== "placement" || vm === undefined) return;
  const { phase = null, host: named = null } = (value ?? {}) as JsonObject;
  const host = phase === "ready" ? String(named) : null;
  if (host === vm.host) return;
  take(vm, -1);
  vm.host = host;
  if (!take(vm, 1)) unlawful += 1;
}
/** @returns whether there is room for what is there then */
function take({ host, memoryMiB: asked, cpus }: Vm, times: 1 | -1): boolean {
  if (host === null) return true;
  const left = free.get(host);
  if (left === undefined) return false;
  left.memoryMiB -= times * (asked + machineMiB);
  left.cpus -= times * cpus;
  return left.memoryMiB >= 0 && left.cpus >= 0;
}

/** By the second in which they end: those of the trace are multiples of a period. */
const ends = new Map<number, string[]>();
let [ended, endTook] = [0, 0];
function endUntil(second: number): void {
  for (const due of [...ends.keys()].filter((each) => each <= second).sort((one, other) => one - other)) {
    for (const uid of ends.get(due) ?? []) {
      const vm = vms.get(uid);
      if (vm === undefined) continue;
      take(vm, -1);
      vms.delete(uid);
      endTook += give(vm.client, `placement/${uid}`, null);
      ended += 1;
    }
    ends.delete(due);
  }
}

const took: number[] = [];
let [second, batches, scans, differ, most, mostWaiting] = [0, 0, 0, 0, 0, 0];
function arrive({ batch, cpus, memoryMiB: asked, endsAt }: Arrival): void {
  const uid = `v${took.length + 1}`;
  const cell = `k${batch % accounts}`;
  const client = peerName(`controller.${cell}`);
  const path = `${cell}/${uid}`;
  // Those of a batch go to different hosts where there are any.
  const placement = { spread: `b${batch}` };
  const document = { vm: uid, path, cell, incarnation: 1, cpuSpeedMHz: 0, memoryMiB: asked, cpus, placement };
  if (took.length % 100 === 0) {
    scans += 1;
    if (!scanned(state, client, document).isSame) differ += 1;
  }
  const vm: Vm = { client, memoryMiB: asked, cpus, host: null };
  vms.set(uid, vm);
  took.push(give(client, `placement/${uid}`, document));
  most = Math.max(most, vms.size);
  mostWaiting = Math.max(mostWaiting, state.waiting.size);
  batches = batch + 1;
  if (endsAt !== null) ends.set(endsAt, [...(ends.get(endsAt) ?? []), uid]);
}

for await (const arrival of arrivalsFrom(file)) {
  if (took.length >= atMost) break;
  if (arrival.second !== second) endUntil(arrival.second);
  second = arrival.second;
  arrive(arrival);
}
const missing = [...vms.values()].filter(({ host }) => host === null).length;
if (missing !== state.waiting.size) unlawful += 1;
const sum = took.reduce((all, each) => all + each, 0);
const sorted = took.toSorted((one, other) => one - other);
const report: TraceReport = {
  arrivals: took.length,
  batches,
  perSecond: (took.length / sum) * 1000,
  p99Ms: sorted[Math.floor(sorted.length * 0.99)] ?? 0,
  longestMs: sorted.at(-1) ?? 0,
  endMs: ended === 0 ? 0 : endTook / ended,
  unlawful,
  scanned: scans,
  differ,
  most,
  mostWaiting,
};
process.stdout.write(`${JSON.stringify(report)}\n`);
