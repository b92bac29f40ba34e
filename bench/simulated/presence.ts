import {
  type Conditions,
  type DeathFigures,
  measureDeaths,
  measureQuiet,
  memberlistDefaults,
  type Pauses,
} from "../../simulator/presence/figures.ts";
import type { Bench, BenchOptions, Figure } from "../bench.ts";
import { percentile, rangeOf } from "../measure.ts";

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
/** A tenth of the hosts stands still for 5 s, again and again, with half a minute in between on average. */
const tenth: Pauses = { share: 0.1, pauseMs: 5000, runMs: 30_000 };
/** Every host does, in its turn, so that at each moment a tenth of all stands still. */
const everyone: Pauses = { share: 1, pauseMs: 5000, runMs: 45_000 };

interface Sizes {
  readonly hosts: number;
  readonly deaths: number;
  readonly hardDeaths: number;
  readonly idleMs: number;
  readonly quietMs: number;
  readonly hardMs: number;
}
const sizesOf = ({ quick, long }: BenchOptions): Sizes => {
  if (quick) return { hosts: 100, deaths: 5, hardDeaths: 3, idleMs: minuteMs, quietMs: minuteMs, hardMs: minuteMs };
  if (long === true)
    return { hosts: 1000, deaths: 500, hardDeaths: 200, idleMs: hourMs, quietMs: 24 * hourMs, hardMs: hourMs };
  return {
    hosts: 1000,
    deaths: 100,
    hardDeaths: 40,
    idleMs: 6 * minuteMs,
    quietMs: 5 * minuteMs,
    hardMs: 2 * minuteMs,
  };
};

const deathFigures = (where: string, figures: DeathFigures, atMost: number | null): readonly Figure[] => {
  const seconds = (values: readonly number[]): readonly number[] => values.map((value) => value / 1000);
  const [declared, known] = [seconds(figures.declaredMs), seconds(figures.knownMs)];
  const note = `${known.length} deaths, ${figures.missed} missed, ${figures.falseDeaths} false`;
  return [
    {
      what: `${where}: death declared, median`,
      unit: "s",
      value: percentile(declared, 0.5),
      range: rangeOf(declared),
      atMost: null,
    },
    {
      what: `${where}: declared and known at all hosts, p99`,
      unit: "s",
      value: percentile(known, 0.99),
      range: rangeOf(known),
      atMost,
      note,
    },
  ];
};

const quietFigures = (where: string, conditions: Conditions, ms: number, say: (line: string) => void) => {
  let saidAt = performance.now();
  const figures = measureQuiet(conditions, ms, (so) => {
    if (performance.now() - saidAt < minuteMs) return;
    saidAt = performance.now();
    say(`${(so.simulatedMs / hourMs).toFixed(2)} h: ${so.pauses} pauses, ${so.falseDeaths} false deaths`);
  });
  const time = ms >= hourMs ? `${ms / hourMs} h` : `${ms / minuteMs} min`;
  const lines: readonly Figure[] = [
    {
      what: `${where}: false deaths in ${time}`,
      unit: "deaths",
      value: figures.falseDeaths,
      range: null,
      atMost: 0,
      note: `${figures.pauses} pauses, ${figures.wrongReports} wrong reports of single hosts`,
    },
    {
      what: `${where}: packets sent by a host, mean`,
      unit: "1/s",
      value: figures.meanPackets,
      range: null,
      atMost: 20,
    },
    {
      what: `${where}: packets sent by the busiest host in its busiest 10 s`,
      unit: "1/s",
      value: figures.busiestPackets,
      range: null,
      atMost: 20,
    },
  ];
  return { figures, lines };
};

async function run(options: BenchOptions): Promise<readonly Figure[]> {
  const { say } = options;
  const { hosts, deaths, hardDeaths, idleMs, quietMs, hardMs } = sizesOf(options);
  const calm: Conditions = { hosts, seed: 1, loss: 0, pauses: null };
  say(`${deaths} deaths`);
  const plain = measureDeaths(calm, deaths);
  say(`${hardDeaths} deaths with loss and pauses`);
  const hard = measureDeaths({ ...calm, seed: 2, loss: 0.05, pauses: tenth }, hardDeaths);
  say(`${hardDeaths} deaths with memberlist's defaults`);
  const reference = measureDeaths({ ...calm, seed: 3, config: memberlistDefaults }, hardDeaths);
  say("idle hosts");
  const idle = quietFigures("idle", calm, idleMs, say);
  say("5 % loss, a tenth pauses");
  const paused = quietFigures(
    "5 % loss, a tenth pauses",
    { ...calm, seed: 5, loss: 0.05, pauses: tenth },
    quietMs,
    say,
  );
  say("5 % loss, all pause in turn");
  const all = { ...calm, seed: 6, loss: 0.05, pauses: everyone };
  return [
    ...deathFigures("no loss", plain, 16),
    ...deathFigures("5 % loss, a tenth pauses", hard, null),
    ...deathFigures("no loss, memberlist's defaults", reference, null),
    {
      what: "a simulated hour of idle hosts, CPU time of the process",
      unit: "s",
      value: (idle.figures.cpuMs / 1000) * (hourMs / idleMs),
      range: null,
      atMost: null,
    },
    {
      what: "a simulated hour of idle hosts, wall time",
      unit: "s",
      value: (idle.figures.wallMs / 1000) * (hourMs / idleMs),
      range: null,
      atMost: 120,
      note: idleMs === hourMs ? "measured" : `${hourMs / idleMs} × that of ${idleMs / minuteMs} min`,
    },
    ...idle.lines,
    ...paused.lines,
    ...quietFigures("5 % loss, at each moment a tenth pauses", all, hardMs, say).lines,
  ];
}

export const presence: Bench = {
  title: "Presence of 1,000 hosts, simulated",
  method:
    "Every host and the three members of the Presence group run their real code over a virtual clock and a seeded network " +
    "(0.2-2 ms one way). Hosts crash one after the other; a death is known when every running host has it from the group. " +
    "Pauses: the process stands still for 5 s and finds in its socket what came meanwhile. Connections to the group are " +
    "modelled (a silent one is given up after 8-10 s). --quick simulates 100 hosts, --long a whole day.",
  run,
};
