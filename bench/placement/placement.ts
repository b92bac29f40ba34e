import { join, resolve } from "node:path";
import type { Bench, BenchOptions, Figure } from "../bench.ts";
import { figureOf, reportOf } from "../measure.ts";
import type { CommitsReport } from "./commits-process.ts";
import { ganetiMethod, measureGaneti } from "./compared/ganeti.ts";
import { measureOpenStack, openStackMethod } from "./compared/openstack.ts";
import type { PlacementReport } from "./placement-process.ts";
import { measureTrace, traceMethod } from "./trace-figures.ts";
import { seeded } from "./traces/read.ts";

const program = (name: string): string => join(import.meta.dirname, name);

/** The same through the process that every installation runs, with its store and its connections. */
async function measureCommits({ quick, say }: BenchOptions): Promise<readonly Figure[]> {
  const [hosts, controllers, count, steadily, seconds] = quick ? [100, 10, 500, 100, 1] : [1000, 50, 20_000, 1000, 10];
  say(`${count} VMs of ${controllers} controllers through the Placer's process, ${hosts} hosts`);
  const report = await reportOf<CommitsReport>(
    program("commits-process.ts"),
    hosts,
    controllers,
    count,
    steadily,
    seconds,
  );
  const { busy, steady, placed, refused, lost } = report;
  const rows: readonly Parameters<typeof figureOf>[] = [
    ["VMs placed, durable and told", "1/s", report.perSecond, null, `goal: 3750 or more; ${report.count} of them`],
    ["from document to answer meanwhile, 99 of 100", "ms", busy.p99Ms, null, `${32 * controllers} on their way`],
    ["processor time of the Placer for one", "ms", report.cpuMs, null],
    [`${steadily} a second, from document to answer, median`, "ms", steady.medianMs, null],
    ["the same, 99 of 100", "ms", steady.p99Ms, null, `the longest ${steady.longestMs.toFixed(1)} ms`],
    ["resident", "MiB", report.residentMiB, null, `${placed} VMs there, ${refused} have no place`],
    ["told, and in the store of the Placer, killed then", "%", (100 * (placed - lost)) / placed, null, "goal: 100"],
  ];
  return rows.map(([about, ...more]) => figureOf(`through its process at ${hosts} hosts, ${about}`, ...more));
}

async function measureAll(options: BenchOptions): Promise<readonly Figure[]> {
  const { quick, say, trace } = options;
  if (trace !== undefined) return measureTrace(resolve(trace), options);
  const figures: Figure[] = [];
  for (const [hosts, decisions] of quick
    ? [[300, 500]]
    : [
        [1000, 5000],
        [5000, 20_000],
        [25_000, 10_000],
      ]) {
    if (hosts === undefined || decisions === undefined) continue;
    say(`${decisions} decisions at ${hosts} hosts`);
    const report = await reportOf<PlacementReport>(program("placement-process.ts"), hosts, decisions);
    const figure = (...[about, ...more]: Parameters<typeof figureOf>): void =>
      void figures.push(figureOf(`${hosts} hosts, ${about}`, ...more));
    const most = hosts > 5000 ? 10_000 : 15_000;
    figure(
      "VMs placed, in processor time",
      "1/s",
      report.perSecond,
      null,
      `goal: ${most} or more; ${report.placed} VMs there, ${report.overQuota} over their quota`,
    );
    figure("one VM placed, median", "ms", report.medianMs, null);
    figure("one VM placed, 99 of 100", "ms", report.p99Ms, 1, `the longest ${report.longestMs.toFixed(1)} ms`);
    figure("one VM ends", "ms", report.endMs, null, `${report.waiting} wait`);
    figure("chosen by a scan of all", "ms", report.scanMs, null, "the same requests, 200 of them");
    figure("choices that are the scan's", "%", 100 - report.differ / 2, null, "goal: 100");
    figure("refused", "ms", report.refusedMs, 1);
    figure("refused with a sentence for each host", "ms", report.refusedInFullMs, 50);
    figure("how many more of a VM fit", "ms", report.capacityMs, hosts > 5000 ? null : 50);
    figure("the same after the loss of a host", "ms", report.capacityAfterLossMs, null, "4 of the fullest are tried");
    if (report.rebalanceMs !== null)
      figure("a plan of moves, and looked at anew", "ms", report.rebalanceMs, 10_000, `${report.moves} moves`);
    figure("held", "MiB", report.heldMiB, 300, "hosts, places, documents and index");
  }
  const stood = await measureTrace(seeded(quick ? 2000 : 100_000), options);
  // They are fetched, which takes a network.
  const beside = quick ? [] : [...(await measureGaneti(options)), ...(await measureOpenStack(options))];
  return [...figures, ...stood, ...beside, ...(await measureCommits(options))];
}

export const placement: Bench = {
  title: "Places for VMs",
  method:
    "One Placer as a function in a process of its own, no network, no store: a VM's document comes and is read, a host is chosen and reserved, and " +
    "the answer is there. Two kinds of hosts (256 and 512 GiB), one in ten dedicated to one of 50 accounts. Some 15 VMs are at each host before; then " +
    "one ends and one of its kind comes, in turn. One host in twenty is in one of as many pools, at most 50. Of twenty, 11 ask for nothing, 3 and 2 are in strict and non-strict anti-affinity groups of five, 1 is in " +
    "a strict affinity group of four, 1 spreads, 1 asks for hosts of its account, 1 for a pool; each account has 20 strict and 20 preferred ones besides. " +
    "VMs a second, ends, refusals and how many more fit are in processor time of its thread, all else in time as it passes. " +
    "Quotas are decided at controllers, before a Placer is asked: their sums are made for each VM here, and are in the figures of a VM placed. Through its process: the Placer as every " +
    "installation runs it, with its store on this disk, in a process of its own; its hosts and 50 controllers are in another one and keep nothing, each at " +
    "an address of its own, with a connection of its own by mutual TLS. The same mix, after 2,000 strict and preferred VMs and a quarter of what is counted; each " +
    "answer brings the next document, and then so many come a second. " +
    `${traceMethod} ${ganetiMethod} ${openStackMethod}`,
  run: measureAll,
};
