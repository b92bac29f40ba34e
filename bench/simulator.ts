import { faultKinds, generateHistory } from "../simulator/generate.ts";
import { runHistory } from "../simulator/run.ts";
import { parseHistory } from "../simulator/world/history.ts";
import type { Bench, BenchOptions, Figure } from "./bench.ts";

/** A simulated hour of hosts that do nothing; wall time in seconds. */
const idleHourSeconds = async (hosts: number, minutes: number): Promise<number> => {
  const begin = performance.now();
  const text = `hosts ${hosts}\nservers 3\nseed 1\nat 100 apply c1 vm:a1:256 vm:a2:256\nuntil ${minutes * 60_000}`;
  const { faults } = await runHistory(parseHistory(text));
  if (faults.length > 0) throw new Error(faults.join("; "));
  return (performance.now() - begin) / 1000;
};

const run = async ({ quick, say }: BenchOptions): Promise<readonly Figure[]> => {
  const seeds = quick ? 5 : 200;
  say(`${seeds} short seeds`);
  const seconds: number[] = [];
  for (let seed = 1; seed <= seeds; seed += 1) {
    const history = generateHistory({ seed, hosts: 10, cells: 3, minutes: 1, faults: faultKinds });
    const begin = performance.now();
    const { faults } = await runHistory(history);
    if (faults.length > 0) throw new Error(`seed ${seed}: ${faults.join("; ")}`);
    seconds.push((performance.now() - begin) / 1000);
  }
  const mean = seconds.reduce((sum, each) => sum + each, 0) / seeds;
  const range = [Math.min(...seconds), Math.max(...seconds)] as const;
  const hosts = quick ? 50 : 1000;
  say(`an hour of ${hosts} idle hosts`);
  return [
    {
      what: "a short seed",
      unit: "s",
      value: mean,
      range,
      atMost: 3.6,
      note: "10 hosts, 3 cells, a minute of all faults",
    },
    { what: "short seeds per hour, divided by 3600", unit: "1/s", value: 1 / mean, range: null, atMost: null },
    {
      what: `a simulated hour of ${hosts} idle hosts`,
      unit: "s",
      value: await idleHourSeconds(hosts, 60),
      range: null,
      atMost: 120,
    },
  ];
};

export const simulator: Bench = {
  title: "The simulator",
  method:
    "One process, one core: wall time of short seeds with every kind of fault and all invariants, one after another, healing " +
    "and coming to rest included; and of an hour in which hosts, one cell and the services have nothing to do.",
  run,
};
