import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import type { Bench, BenchOptions, Figure } from "../bench.ts";
import type { CellSizeReport } from "./cell-size-process.ts";

const run = promisify(execFile);
const file = join(import.meta.dirname, "cell-size-process.ts");

/** A process of its own for each size: memory is that of one cell. */
async function measured(shape: string, elements: number): Promise<CellSizeReport> {
  const { stdout } = await run(process.execPath, ["--disable-warning=ExperimentalWarning", file, shape, `${elements}`]);
  return JSON.parse(stdout) as CellSizeReport;
}

async function measureAll({ quick, long = false, say }: BenchOptions): Promise<readonly Figure[]> {
  const figures: Figure[] = [];
  const [small, large] = quick ? [100, 400] : [1600, 6400];
  const seconds: number[] = [];
  for (const elements of [small, large]) {
    say(`${elements} copies of one volume`);
    const { readyMs } = await measured("copies", elements);
    seconds.push(readyMs / 1000);
    figures.push({ what: `${elements} copies are ready`, unit: "s", value: readyMs / 1000, range: null, atMost: null });
  }
  const ratio = (seconds[1] ?? 0) / (seconds[0] ?? 1);
  figures.push({
    ...{ what: `${large} copies against ${small}`, unit: "×", value: ratio, range: null },
    atMost: quick ? null : 4.2,
    note: "four times as many",
  });
  const sizes = quick ? [100, 400] : [100, 400, 1600, 6400, 10_000, ...(long ? [25_000] : [])];
  for (const size of sizes) {
    say(`${size} elements of machines`);
    const { elements, readyMs, answerMs, residentMiB, news } = await measured("machines", size);
    const [median, p99, longest] = answerMs;
    const isGoal = size === 10_000;
    figures.push(
      {
        ...{ what: `${elements} elements are ready`, unit: "s", value: readyMs / 1000, range: null, atMost: null },
        note: `${news} pieces of news`,
      },
      {
        ...{ what: `${elements} elements, one is asked for meanwhile: p99`, unit: "ms", value: p99 },
        range: [median, longest],
        atMost: isGoal ? 50 : null,
        note: "median – longest",
      },
      {
        ...{ what: `${elements} elements, largest resident memory`, unit: "MiB", value: residentMiB, range: null },
        atMost: isGoal ? 300 : null,
      },
    );
  }
  return figures;
}

export const cellSize: Bench = {
  title: "A controller and the size of its cell",
  method:
    "One controller as a function in a process of its own, with services and hosts that answer each document at once (no VMs, no " +
    "network, no store): the time from the accepted model until everything is ready, while every 20 ms somebody asks for the state " +
    "of one element; from when it was asked until it is answered, with what the controller is doing at that moment. Machines: four " +
    "elements each (VM, copy of an image, connection, interface), 25 to a subnet, with rules between neighbouring subnets.",
  run: measureAll,
};
