import { fileURLToPath } from "node:url";
import type { Bench, BenchOptions, Figure } from "../bench.ts";
import { median, rangeOf, reportOf } from "../measure.ts";
import type { ViewReport } from "./view-process.ts";

const program = fileURLToPath(new URL("view-process.ts", import.meta.url));
/** What a host waits for, each time. */
const sums = ({ built, planned, compared }: Pick<ViewReport, "built" | "planned" | "compared">): readonly number[] =>
  built.map((ms, at) => ms + (planned[at] ?? 0) + (compared[at] ?? 0));

async function run({ quick, say }: BenchOptions): Promise<readonly Figure[]> {
  const reports: ViewReport[] = [];
  for (let round = 0; round < (quick ? 1 : 5); round += 1) {
    say("a process builds, plans and compares a view of 10,000 instances in 1,000 groups");
    reports.push(await reportOf<ViewReport>(program, quick ? 3 : 20));
  }
  const times = (name: "built" | "planned" | "compared"): readonly number[] =>
    reports.flatMap((report) => report[name].slice(1));
  const of = (what: string, unit: Figure["unit"], values: readonly number[], atMost: number | null): Figure => {
    return { what, unit, value: median(values), range: rangeOf(values), atMost };
  };
  const memory = (what: string, name: "planMiB" | "allMiB" | "heldMiB", atMost: number | null): Figure =>
    of(
      what,
      "MiB",
      reports.map((report) => report[name]),
      atMost,
    );
  return [
    of(
      "built, compared and planned",
      "ms",
      reports.flatMap((report) => sums(report).slice(1)),
      200,
    ),
    of(
      "the same for the first time in a process",
      "ms",
      reports.flatMap((report) => sums(report).slice(0, 1)),
      null,
    ),
    of("of this, built", "ms", times("built"), null),
    of("planned", "ms", times("planned"), null),
    of("compared with what is in place", "ms", times("compared"), null),
    memory("memory above that of the process before, at most, built and planned", "planMiB", 60),
    memory("the same, and put in place, read back and compared", "allMiB", 60),
    memory("held of view and plan", "heldMiB", null),
  ];
}

export const view: Bench = {
  title: "A view of 10,000 instances in 1,000 groups (EDGE)",
  method:
    "A process that has loaded its code and knows no view builds one (three rules a group, 100 nodes), plans a node's part of it, puts that in " +
    "place in a network namespace with Debian's tools, reads it back and compares, which finds that nothing is due; then it builds, plans " +
    "and compares again. Memory is the most that was resident at any time (VmHWM) without what was before, garbage included. Each round is " +
    "a new process.",
  run,
};
