import { join } from "node:path";
import type { Bench, BenchOptions, Figure } from "../bench.ts";
import { figureOf, reportOf } from "../measure.ts";
import type { DocumentsReport } from "./documents-process.ts";

const measured = (service: string, count: number): Promise<DocumentsReport> =>
  reportOf(join(import.meta.dirname, "documents-process.ts"), service, count);

const services = {
  names: "names at the DNS Manager",
  directory: "documents at the directory",
  placements: "placements at the Placer",
  volumes: "volumes at the Storage Manager",
} as const;

async function measureAll({ quick, say }: BenchOptions): Promise<readonly Figure[]> {
  const figures: Figure[] = [];
  const [few, many] = quick ? [250, 1000] : [25_000, 100_000];
  for (const [service, what] of Object.entries(services)) {
    say(`${few} and ${many} ${what}`);
    const before = await measured(service, few);
    const { cpuMs, longestMs, againMs, heldMiB } = await measured(service, many);
    const figure = (about: string, unit: Figure["unit"], value: number, note?: string): void =>
      void figures.push(figureOf(`${many} ${what}, ${about}`, unit, value, null, note));
    figure("taken one by one", "s", cpuMs / 1000);
    figure(`against ${few}`, "×", cpuMs / before.cpuMs, "four times as many");
    figure("the longest step", "ms", longestMs);
    figure("a new start", "s", againMs / 1000);
    figure("held", "MiB", heldMiB);
  }
  return figures;
}

export const documents: Bench = {
  title: "Services and the number of their documents",
  method:
    "One service as a function in a process of its own, and documents of ten cells that come one by one, with servers and hosts that " +
    "answer at once (no network, no store): its processor time. Volumes: nine in ten are copies of the tenth, on eight servers. " +
    "Placements at 100 hosts with room for all. At the directory: half are shown, half asked for, one in a hundred is a rule.",
  run: measureAll,
};
