import { execFile } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { heapOptions } from "../../runtime/life/heap.ts";
import { cacheDirectory } from "../../testbed/places.ts";
import type { Bench, BenchOptions, Figure } from "../bench.ts";
import { provenance } from "../measure.ts";
import { renderProvenance } from "../table.ts";
import type { CellSizeReport } from "./cell-size-process.ts";
import { type GrowthLine, renderGrowth } from "./size-svg.ts";

const run = promisify(execFile);
const file = join(import.meta.dirname, "cell-size-process.ts");

/** A process of its own for each size: memory is that of one cell. */
async function measured(shape: string, elements: number): Promise<CellSizeReport> {
  const { stdout } = await run(process.execPath, [
    "--expose-gc",
    "--disable-warning=ExperimentalWarning",
    ...heapOptions,
    file,
    shape,
    `${elements}`,
  ]);
  return JSON.parse(stdout) as CellSizeReport;
}

async function measureAll(options: BenchOptions): Promise<readonly Figure[]> {
  const { quick, long = false, say } = options;
  const figures: Figure[] = [];
  const [small, large] = quick ? [100, 400] : [1600, 6400];
  const seconds: number[] = [];
  for (const elements of [small, large]) {
    say(`${elements} copies of one volume`);
    const { cpuMs } = await measured("copies", elements);
    seconds.push(cpuMs / 1000);
    figures.push({ what: `${elements} copies are ready`, unit: "s", value: cpuMs / 1000, range: null, atMost: null });
  }
  const ratio = (seconds[1] ?? 0) / (seconds[0] ?? 1);
  figures.push({
    what: `${large} copies against ${small}`,
    unit: "×",
    value: ratio,
    range: null,
    atMost: quick ? null : 4.2,
    note: "four times as many",
  });
  const reports: CellSizeReport[] = [];
  for (const size of quick ? [100, 400] : [100, 400, 1600, 6400, goalSize, ...(long ? [25_000] : [])]) {
    say(`${size} elements of machines`);
    const report = await measured("machines", size);
    reports.push(report);
    figures.push(...machineFigures(report, size === goalSize));
  }
  await draw(options, reports);
  return figures;
}

const goalSize = 10_000;
const [goalMs, goalMiB] = [50, 300];

function machineFigures(
  { elements, cpuMs, answerMs, residentMiB, heldMiB, news }: CellSizeReport,
  isGoal: boolean,
): readonly Figure[] {
  const [median, p99, longest] = answerMs;
  return [
    {
      what: `${elements} elements are ready`,
      unit: "s",
      value: cpuMs / 1000,
      range: null,
      atMost: null,
      note: `${news} pieces of news`,
    },
    {
      what: `${elements} elements, one is asked for meanwhile: p99`,
      unit: "ms",
      value: p99,
      range: [median, longest],
      atMost: isGoal ? goalMs : null,
      note: "median – longest",
    },
    {
      what: `${elements} elements, largest resident memory`,
      unit: "MiB",
      value: residentMiB,
      range: null,
      atMost: isGoal ? goalMiB : null,
    },
    {
      what: `${elements} elements, what is held of it when all is ready`,
      unit: "MiB",
      value: heldMiB,
      range: null,
      atMost: null,
    },
  ];
}

async function draw(
  { quick, say, into = join(cacheDirectory(), "figures") }: BenchOptions,
  reports: readonly CellSizeReport[],
): Promise<void> {
  const points = (of: (report: CellSizeReport) => number): GrowthLine["points"] =>
    reports.map((report) => [report.elements, of(report)]);
  const file = join(into, "cell-size.svg");
  mkdirSync(into, { recursive: true });
  const drawing = renderGrowth({
    title: "A controller and the size of its cell",
    origin: [renderProvenance(await provenance(quick), quick)],
    description:
      "Processor time until all is ready, time to an answer meanwhile, and memory, by the number of elements.",
    along: "elements",
    panels: [
      {
        title: "until all is ready, CPU time / s",
        lines: [{ name: "machines", points: points(({ cpuMs }) => cpuMs / 1000) }],
        goal: null,
      },
      {
        title: "an answer meanwhile, CPU time / ms",
        lines: [
          { name: "p99", points: points(({ answerMs }) => answerMs[1]) },
          { name: "longest", points: points(({ answerMs }) => answerMs[2]) },
        ],
        goal: { size: goalSize, value: goalMs },
      },
      {
        title: "memory / MiB",
        lines: [
          { name: "largest resident", points: points(({ residentMiB }) => residentMiB) },
          { name: "held when ready", points: points(({ heldMiB }) => heldMiB) },
        ],
        goal: { size: goalSize, value: goalMiB },
      },
    ],
  });
  writeFileSync(file, drawing);
  say(`drawn: ${file}`);
}

export const cellSize: Bench = {
  title: "A controller and the size of its cell",
  method:
    "One controller as a function in a process of its own, with its store and with services and hosts that answer each document at " +
    "once (no VMs, no network): its processor time from the model until everything is ready, while every 5 ms of it somebody asks for the " +
    "state of one element, and is heard between batches of 20 ms, as in a process; from when it was asked until it is answered, in " +
    "processor time of the thread that answers. The heap has the bounds of a service's process on a large machine " +
    "(`runtime/life/heap.ts`). Machines: four elements each (VM, copy of an image, connection, interface), 25 to a subnet, with " +
    "rules between neighbouring subnets, at 100 hosts.",
  run: measureAll,
};
