import { basename, join } from "node:path";
import type { BenchOptions, Figure } from "../bench.ts";
import { figureOf, reportOf } from "../measure.ts";
import type { BestFitReport } from "./compared/best-fit-process.ts";
import type { NoTrace, TraceReport } from "./trace-process.ts";

const program = (name: string): string => join(import.meta.dirname, name);

export const traceMethod =
  "VMs of a trace, or of a seeded generator where none is named (by `--trace`: lines of periods, Azure's tables of 2017 and 2019, also packed by gzip, " +
  "its packing trace of 2020): at hosts of 256 GiB and 64 processors, 16 times over, in a process of its own, VMs a second and ends in processor time of its thread; each subscription one of " +
  "200 accounts in turn, each deployment (batch, or what a tenant starts at once) a group that spreads, all else packed. A bucket `>24` counts as the power of two " +
  "after it; a share of a machine is one of our host. A line that is none is named and left out, and more than one in a thousand end it. What is " +
  "answered is added up beside the Placer, with none of its code: room, and hosts in use after each of the first 100,000 arrivals. Best fit, beside it: each VM to the fullest host " +
  "that has room for it, of those with the fewest of its group where groups spread, all hosts looked at, nothing moved later.";

async function placed(...args: readonly (string | number)[]): Promise<TraceReport> {
  const report = await reportOf<TraceReport | NoTrace>(program("trace-process.ts"), ...args);
  if ("refused" in report) throw new Error(report.refused);
  return report;
}

/** VMs of a trace, of which there are as many as it says. */
export async function measureTrace(trace: string, { quick, say }: BenchOptions): Promise<readonly Figure[]> {
  const [hosts, atMost, compared, scanEach] = quick ? [100, 2000, 2000, 100] : [10_000, Infinity, 100_000, 1000];
  const name = basename(trace);
  say(`the VMs of ${name} at ${hosts} hosts`);
  const report = await placed(trace, hosts, atMost, "spread", scanEach);
  const { arrivals, groups, most, mostWaiting, scanned, differ, badLines } = report;
  for (const sentence of badLines.told) say(`left out: ${sentence}`);
  const figures: Figure[] = [];
  const add = (...[about, ...more]: Parameters<typeof figureOf>): void =>
    void figures.push(figureOf(`${name} at ${hosts} hosts, ${about}`, ...more));
  const came = `goal: 5000 or more; ${arrivals} arrive, in ${groups} groups; ${report.perSecondOfClock.toFixed(0)} as time passes`;
  add("VMs placed, in processor time", "1/s", report.perSecond, null, came);
  add("one VM placed, 99 of 100", "ms", report.p99Ms, 1, `the longest ${report.longestMs.toFixed(1)} ms`);
  add("one VM ends", "ms", report.endMs, null, `${badLines.count} bad lines left out`);
  add("at once", "VMs", most, null, `${mostWaiting} wait at most`);
  const lawful = 100 * (1 - (report.unlawful + report.idle) / arrivals);
  const faults = `${report.unlawful} at hosts without room, ${report.idle} told to wait though a host had room`;
  add("answers without fault, by what is added up beside the Placer", "%", lawful, null, `goal: 100; ${faults}`);
  add(
    "choices that are the scan's",
    "%",
    (100 * (scanned - differ)) / scanned,
    null,
    `goal: 100; ${scanned} looked at`,
  );
  for (const wish of ["spread", "none"]) {
    say(`best fit of the first ${compared} of them, ${wish === "spread" ? "groups spread" : "no groups"}`);
    const ours = wish === "spread" ? report : await placed(trace, hosts, compared, "none", 10 * scanEach);
    const fit = await reportOf<BestFitReport>(program("compared/best-fit-process.ts"), trace, hosts, compared, wish);
    const [{ inUse }, of] = [ours, fit.inUse];
    const note = `${inUse.mean.toFixed(1)} and ${of.mean.toFixed(1)} after each of ${inUse.arrivals} arrivals, ${inUse.most} and ${of.most} at most`;
    const about = `hosts in use to those of exhaustive best fit, ${wish === "spread" ? "groups spread" : "without groups"}`;
    add(about, "×", inUse.mean / of.mean, 1.03, note);
    add(
      `best fit, one VM, ${wish === "spread" ? "groups spread" : "without groups"}`,
      "ms",
      fit.tookMs / of.arrivals,
      null,
    );
  }
  return figures;
}
