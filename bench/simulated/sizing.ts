import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import type { Bench, BenchOptions, Figure } from "../bench.ts";
import type { Load, Size, SizingReport } from "./sizing-process.ts";

const run = promisify(execFile);
const file = join(import.meta.dirname, "sizing-process.ts");

export const sizes: readonly Size[] = [
  { hosts: 3, cells: 2 },
  { hosts: 10, cells: 10 },
  { hosts: 30, cells: 30 },
  { hosts: 100, cells: 100 },
];

async function measured(size: Size): Promise<SizingReport> {
  const options = ["--disable-warning=ExperimentalWarning", file, `${size.hosts}`, `${size.cells}`];
  const { stdout } = await run(process.execPath, options, { maxBuffer: 16 * 1024 * 1024 });
  return JSON.parse(stdout) as SizingReport;
}

/** Who is told of one by one; of the others of a kind the one with the most to do stands for all. */
const shown = (loads: readonly Load[]): readonly Load[] => {
  const kinds = new Map<string, Load>();
  for (const load of loads) {
    const kind = load.service.replace(/\..*/, "");
    const most = kinds.get(kind);
    if (most === undefined || load.growingMs > most.growingMs) kinds.set(kind, load);
  }
  return [...kinds.entries()].map(([kind, load]) => ({ ...load, service: kind }));
};

async function measureAll({ quick, say }: BenchOptions): Promise<readonly Figure[]> {
  const figures: Figure[] = [];
  for (const size of quick ? sizes.slice(0, 2) : sizes) {
    const about = `${size.hosts} hosts, ${size.cells} cells of four machines`;
    say(about);
    const { loads, readyAfterMs } = await measured(size);
    say(`all ready after ${(readyAfterMs / 1000).toFixed(0)} s of virtual time`);
    for (const load of shown(loads)) {
      const { service, storeKiB, growingMs, idleMs, idleSteps, idleFrames } = load;
      figures.push({
        what: `${about}: ${service}, processor time until all is ready`,
        unit: "ms",
        value: growingMs,
        range: null,
        atMost: null,
        note: `store ${storeKiB} KiB; idle, a minute: ${idleSteps} steps, ${idleFrames} frames, ${idleMs.toFixed(0)} ms`,
      });
    }
  }
  return figures;
}

export const sizing: Bench = {
  title: "The management by number of hosts and cells, simulated",
  method:
    "Real services in the simulator, from nothing until every cell has its four machines, and then for a minute in which nobody " +
    "wants anything. Of each kind of service the one that had the most to do: processor time of its steps alone (no TLS, no " +
    "kernel, no commits to a disk, which is another three to ten times as much), what its store holds, and frames that it was sent. " +
    "Signs of life between processes are not simulated: two small frames each way in two seconds for each pair.",
  run: measureAll,
};
