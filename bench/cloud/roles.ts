import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import type { Bench, BenchOptions, Figure } from "../bench.ts";
import { median, rangeOf } from "../measure.ts";
import type { RolesReport } from "./roles-process.ts";

const run = promisify(execFile);
const goalMiB = 24;

async function measureAll({ quick, say }: BenchOptions): Promise<readonly Figure[]> {
  const added: number[] = [];
  const first: number[] = [];
  for (let round = 0; round < (quick ? 1 : 5); round += 1) {
    const file = join(import.meta.dirname, "roles-process.ts");
    const { stdout } = await run(process.execPath, ["--expose-gc", "--disable-warning=ExperimentalWarning", file]);
    const reports = JSON.parse(stdout.trim().split("\n").at(-1) ?? "[]") as readonly RolesReport[];
    for (const [index, { role, residentMiB }] of reports.entries()) {
      const before = reports[index - 1];
      if (before === undefined) first.push(residentMiB);
      else added.push(residentMiB - before.residentMiB);
      say(`${role}: ${residentMiB.toFixed(1)} MiB`);
    }
  }
  const figure = (what: string, values: readonly number[], atMost: number | null): Figure => ({
    what,
    unit: "MiB",
    value: median(values),
    range: rangeOf(values),
    atMost,
  });
  return [
    figure("a process with one role", first, null),
    figure("what each further role of the process adds, without anything to remember", added, goalMiB),
  ];
}

export const roles: Bench = {
  title: "Roles that share a process",
  method:
    "One process that begins eight roles one after another, each with its store, its certificate and its listeners, in sources as " +
    "they stand and outside of a guest: resident memory after each, with garbage collected.",
  run: measureAll,
};
