import { join } from "node:path";
import type { Bench, BenchOptions, Figure } from "../bench.ts";
import { figureOf, interleave, median, rangeOf, ratios, reportOf } from "../measure.ts";
import { measureHarvest } from "./harvest.ts";

type Measures = Readonly<Record<string, number>>;
const program = join(import.meta.dirname, "personalities-process.ts");
const measured = (...asked: readonly (string | number)[]): Promise<Measures> => reportOf(program, ...asked);
/** At which door, what the other one does there, and how that is said. */
const neighbourhoods = [
  ["caas", "flood", "a client at full rate at CaaS: another's p99, against alone"],
  ["caas", "connects", "a client that connects anew each time, at full rate, at CaaS: another's p99, against alone"],
  ["gateway", "flood", "a client at full rate at the gateway: another's p99, against alone"],
] as const;
const of = (measures: Measures, name: string): number => measures[name] ?? Number.NaN;

/** CaaS as a process: what connections cost that ask nothing, and what one client costs another. */
async function measureDoor({ quick, say }: BenchOptions): Promise<readonly Figure[]> {
  const idle = quick ? 500 : 10_000;
  say(`${idle} connections that ask nothing`);
  const come = await measured("connections", idle);
  const held = figureOf(
    `${idle} idle connections: memory of CaaS beside its own`,
    "MiB",
    of(come, "moreMiB"),
    120,
    `${of(come, "opened")} were opened, ${of(come, "standing")} stand; who is idle longest goes`,
  );

  const waited: Figure[] = [];
  for (const [door, other, what] of neighbourhoods) {
    say(what);
    const how = [door, other, quick ? 1 : 3].join(" ");
    const { alone, besides, busy } = await reportOf<Record<string, readonly number[]>>(
      program,
      "neighbour",
      quick ? 50 : 150,
      how,
    );
    const times = ratios(besides ?? [], alone ?? []);
    const note = `wall time; alone ${median(alone ?? []).toFixed(1)} ms; CaaS and gateway had ${(100 * median(busy ?? [])).toFixed(0)} % of a processor meanwhile`;
    waited.push({ what, unit: "×", value: median(times), range: rangeOf(times), atMost: 2, note });
  }
  return [held, ...waited];
}

async function measureAll(options: BenchOptions): Promise<readonly Figure[]> {
  const { quick, say } = options;
  const figures: Figure[] = [];
  const figure = (...said: Parameters<typeof figureOf>): void => void figures.push(figureOf(...said));

  const volumes = quick ? 2_000 : 100_000;
  say(`search among ${volumes} persistent volumes`);
  const found = await measured("search", volumes);
  figure(`search among ${volumes} persistent volumes, p99`, "ms", of(found, "p99Ms"), 20, "processor time");
  figure("the median of it", "ms", of(found, "p50Ms"), null);
  figure("the index made of the model's text", "s", of(found, "rebuiltMs") / 1000, 10, "processor time");

  const vms = quick ? 500 : 25_000;
  say(`listing ${vms} VMs of 25 cells`);
  const listed = await measured("listing", vms);
  figure(
    `listing ${vms} VMs over 25 cells, page by page`,
    "s",
    of(listed, "wallMs") / 1000,
    1,
    "CloudStack 4.20: 9.8 – 17.3 s",
  );
  figure("processor time of it", "s", of(listed, "cpuMs") / 1000, null, "gateway and 25 controllers");

  say(`memory of CaaS with ${vms} VMs`);
  const held = await measured("memory", vms);
  figure("CaaS as a process, resident, idle", "MiB", of(held, "idleMiB"), 60);
  figure(`the most while ${vms} VMs are listed through it`, "MiB", of(held, "mostMiB"), 120);

  figures.push(...(await measureDoor(options)));

  say("writers of one cell");
  let [lost, again] = [0, 0];
  const writers = async (count: number, by: "test" | "version"): Promise<number> => {
    const told = await measured("writers", count, by);
    lost += of(told, "lost");
    if (by === "version") again = of(told, "again");
    return of(told, "cpuMs");
  };
  const { alone, tests, versions } = await interleave(quick ? 1 : 5, {
    alone: () => writers(1, "test"),
    tests: () => writers(16, "test"),
    versions: () => writers(16, "version"),
  });
  const ratio = (what: string, values: readonly number[], atMost: number | null, note: string): void =>
    void figures.push({ what, unit: "×", value: median(values), range: rangeOf(values), atMost, note });
  ratio(
    "a change by one of 16 writers with `test`, against one writer's",
    ratios(tests, alone),
    1.25,
    "processor time",
  );
  ratio(
    "the same by `If-Match` alone",
    ratios(versions, alone),
    null,
    `processor time; for 640 changes ${again} were refused and made again`,
  );
  figure("changes that were lost", "×", lost, 0, "of all that were answered as done");
  return [...figures, ...(await measureHarvest(options))];
}

export const personalities: Bench = {
  title: "Personalities: lists, searches, writers, memory and harvests",
  method:
    "Each in a process of its own. Lists: a gateway and the controllers of 25 cells over mutual TLS, all in one process, pages of 1,000, the median of five. " +
    "Searches: a thousand by people of a hundred accounts, by words, tags and names, 100 answers at most. Writers: all 16 have read before any of them " +
    "writes, at the controller's step function. Memory, idle connections and a neighbour's p99: gateway and CaaS as processes, over loopback, the clients as further ones; a neighbour alone and beside the other one in turns, each of another cell. Harvests: in a cloud of processes (root).",
  run: measureAll,
};
