import { choose } from "../../core/placer/index/choose.ts";
import { askerOf } from "../../core/placer/owners.ts";
import { place } from "../../core/placer/place.ts";
import type { Wanted } from "../../core/placer/state.ts";
import { capacityOf } from "../../core/placer/what-if/capacity.ts";
import { faultsOf } from "../../core/placer/what-if/check-moves.ts";
import { sliceTimer } from "../../core/placer/what-if/questions.ts";
import { rebalance } from "../../core/placer/what-if/rebalance.ts";
import { wholeOf } from "../../core/placer/what-if/sliced.ts";
import { thought } from "../../core/placer/what-if/thought.ts";
import { below } from "../../core/random.ts";
import { peerName, type Uid } from "../../model/cell/identifiers.ts";
import type { JsonObject } from "../../model/json/json.ts";
import { clock, placerOf, root, scanned } from "./many-hosts.ts";
import { type Asked, dedicated, isPooled, type Kind, machineAt, mixOf, pooled, poolsOf } from "./mix.ts";
import { Quotas } from "./quotas.ts";

/*
 * One process with one Placer that has so many hosts, of `placement.ts`. Arguments: hosts, decisions that are measured. The times
 * of single steps are those of a clock, so nothing else should run.
 */
export interface PlacementReport {
  /** Places given per second of processor time, each a whole step: document read, decided, reserved, answered. */
  readonly perSecond: number;
  readonly medianMs: number;
  readonly p99Ms: number;
  readonly longestMs: number;
  /** A VM's end, with all that waits tried again, in processor time. */
  readonly endMs: number;
  /** Of a scan of all hosts, the same requests. */
  readonly scanMs: number;
  /** Scan and index choose another host. */
  readonly differ: number;
  readonly refusedMs: number;
  readonly refusedInFullMs: number;
  /** How many more fit, and how many after any one host is lost. */
  readonly capacityMs: number;
  readonly capacityAfterLossMs: number;
  /** A plan by which hosts are used alike, looked at anew; null: not where there are so many VMs. */
  readonly rebalanceMs: number | null;
  readonly moves: number;
  /** Of a plan, and of what fits after a loss, asked of the service: the longest step meanwhile by the time of its thread, one of a hundred, and how many there were. */
  readonly slices: { readonly longestMs: number; readonly p99Ms: number; readonly count: number };
  /** What the hosts, the places and the index hold, with garbage collected. */
  readonly heldMiB: number;
  readonly placed: number;
  readonly waiting: number;
  /** That no Placer was asked for: their account had its quota in full. */
  readonly overQuota: number;
}

const [hostCount = 5000, count = 20_000] = process.argv.slice(2).map(Number);
const accounts = 50;
const heldMiB = (): number => {
  globalThis.gc?.();
  return process.memoryUsage().heapUsed / 2 ** 20;
};
const before = heldMiB();

const { peers, service, state, desire } = placerOf(hostCount, accounts, machineAt);
for (let at = 0; at < hostCount; at += 10) {
  const host = peers[at]?.slice("host.".length) ?? "";
  desire(root, `dedicated/${host}`, dedicated(host, at, accounts));
}
const pools = poolsOf(hostCount, accounts);
for (const [at, peer] of peers.entries())
  if (isPooled(at))
    desire(root, `pooled/${peer.slice("host.".length)}`, pooled(peer.slice("host.".length), at, accounts, pools));
const { chance, kindOf, request, clientOf, first } = mixOf(accounts, pools, desire);
const vmsOfHost = hostCount <= 1000 ? 8 : 15;
// Hardly more than an account has on the average: some have theirs in full.
const limit = Math.ceil(1.02 * ((hostCount * vmsOfHost) / accounts + 40));
const quotas = new Quotas(accounts, { vms: limit, memoryMiB: limit * 8192, cpus: limit * 3 });
interface Live {
  readonly vm: string;
  readonly kind: Kind;
}
/** All that are there, in two lists: what is held is measured as well, and no more of that is to be the bench's own than has to be. */
const live = { vms: [] as string[], kinds: [] as Kind[] };
let overQuota = 0;
const start = ({ client, document, kind }: Asked): void => {
  if (quotas.take(kind.of, document).length > 0) {
    overQuota += 1;
    return;
  }
  desire(client, `placement/${document.vm}`, document);
  live.vms.push(document.vm);
  live.kinds.push(kind);
};
const end = ({ vm, kind }: Live): void => {
  // What the Placer knows of it, so that nobody keeps it twice: what is held is measured as well.
  const wanted = state.wanted.get(vm as Uid);
  if (wanted !== undefined) quotas.give(kind.of, wanted.document);
  desire(clientOf(kind), `placement/${vm}`, null);
};

// Half of the memory has VMs before anything is measured: some 15 for each host.
for (const kind of first()) start(request(kind));
for (let at = 0; at < hostCount * vmsOfHost; at += 1) start(request(kindOf()));
const held = heldMiB() - before;

/** Processor time of this thread since then: what else a machine does meanwhile is not in it. */
const cpuMsSince = (from: NodeJS.CpuUsage): number => {
  const { user, system } = process.threadCpuUsage(from);
  return (user + system) / 1000;
};
/** One by chance, whose place the last one takes: to move all behind it would take longer than what is measured. */
function oneOf({ vms, kinds }: typeof live): Live | undefined {
  const [at, vm, kind] = [below(chance, vms.length), vms.pop(), kinds.pop()];
  if (vm === undefined || kind === undefined) return undefined;
  const [ofVm, ofKind] = [vms[at], kinds[at]];
  if (ofVm === undefined || ofKind === undefined) return { vm, kind };
  vms[at] = vm;
  kinds[at] = kind;
  return { vm: ofVm, kind: ofKind };
}

const steps: number[] = [];
let [placing, ending] = [0, 0];
for (let at = 0; at < count; at += 1) {
  const gone = oneOf(live);
  const ended = process.threadCpuUsage();
  if (gone !== undefined) end(gone);
  ending += cpuMsSince(ended);
  const asked = request(gone?.kind ?? kindOf());
  const [from, cpu] = [performance.now(), process.threadCpuUsage()];
  start(asked);
  placing += cpuMsSince(cpu);
  steps.push(performance.now() - from);
}
steps.sort((one, other) => one - other);

let [differ, scanMs] = [0, 0];
const scans = 200;
for (let at = 0; at < scans; at += 1) {
  const { client, document } = request(kindOf());
  const { tookMs, isSame } = scanned(state, client, document);
  scanMs += tookMs;
  if (!isSame) differ += 1;
}

const tooLarge: Wanted = {
  client: peerName("controller.k1"),
  document: { ...request({ of: 1, what: undefined }).document, memoryMiB: 2 ** 20 } as never,
};
const asker = askerOf(state, tooLarge.client);
/** Some kernels count processor time by the tick, of up to 10 ms: what takes less than some of these is done again. */
const leastMs = 50;
const timesOf = (work: () => unknown, times: number): number => {
  work();
  const from = process.threadCpuUsage();
  for (let done = times; ; done += times) {
    for (let at = 0; at < times; at += 1) work();
    const tookMs = cpuMsSince(from);
    if (tookMs >= leastMs) return tookMs / done;
  }
};
const refusedMs = timesOf(() => choose(state, tooLarge.document, asker), 1000);
const refusedInFullMs = timesOf(
  () => place([...state.hosts.values()], state.usage, tooLarge.document, state.ratios, asker),
  10,
);
const like: Wanted = { client: peerName("controller.k1"), document: request({ of: 1, what: 0 }).document as never };
const capacityMs = timesOf(() => wholeOf(capacityOf(state, like, 0)), 10);
const capacityAfterLossMs = timesOf(() => wholeOf(capacityOf(state, like, 1)), 2);
const planned = performance.now();
const plan = hostCount <= 1000 ? wholeOf(rebalance(wholeOf(thought(state)), { goal: "even", host: null })) : null;
if (plan !== null && wholeOf(faultsOf(state, plan.moves)).length > 0) throw new Error("the plan is not lawful");
const rebalanceMs = plan === null ? null : performance.now() - planned;

/** What is asked of the service as the operator does it, with a VM placed between two steps. */
function slicesOf(question: JsonObject): readonly number[] {
  const took: number[] = [];
  let input: Parameters<typeof service.step>[1] | null = { kind: "request", id: 1, request: question };
  while (input !== null) {
    const from = process.threadCpuUsage();
    const { effects } = service.step(state, input, clock);
    took.push(cpuMsSince(from));
    const goesOn: boolean = effects.some(({ kind }) => kind === "timer");
    input = goesOn ? { kind: "timer", name: sliceTimer } : null;
    const gone = took.length % 20 === 0 ? oneOf(live) : undefined;
    if (gone === undefined) continue;
    end(gone);
    start(request(gone.kind));
  }
  return took;
}
const slices = [
  ...slicesOf({ kind: "capacity", memoryMiB: "4096", failures: "1" }),
  ...(hostCount <= 1000 ? slicesOf({ kind: "rebalance", goal: "even" }) : []),
].sort((one, other) => one - other);
const at = (share: number): number => steps[Math.min(steps.length - 1, Math.floor(steps.length * share))] ?? 0;
const report: PlacementReport = {
  perSecond: (count / placing) * 1000,
  medianMs: at(0.5),
  p99Ms: at(0.99),
  longestMs: at(1),
  endMs: ending / count,
  scanMs: scanMs / scans,
  differ,
  refusedMs,
  refusedInFullMs,
  capacityMs,
  capacityAfterLossMs,
  rebalanceMs,
  moves: plan?.moves.length ?? 0,
  slices: {
    longestMs: slices.at(-1) ?? 0,
    p99Ms: slices[Math.floor(slices.length * 0.99)] ?? 0,
    count: slices.length,
  },
  heldMiB: held,
  placed: state.reservations.size,
  waiting: state.waiting.size,
  overQuota,
};
process.stdout.write(`${JSON.stringify(report)}\n`);
