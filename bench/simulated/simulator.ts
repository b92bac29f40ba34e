import { faultKinds } from "../../simulator/histories/fault-kinds.ts";
import { generateHistory } from "../../simulator/histories/generate.ts";
import { runHistory } from "../../simulator/run.ts";
import { parseHistory } from "../../simulator/world/history.ts";
import type { Bench, BenchOptions, Figure } from "../bench.ts";

interface Spent {
  readonly wallSeconds: number;
  readonly cpuSeconds: number;
}
const spentSince = (wallMs: number, cpu: NodeJS.CpuUsage): Spent => {
  const { user, system } = process.cpuUsage(cpu);
  return { wallSeconds: (performance.now() - wallMs) / 1000, cpuSeconds: (user + system) / 1e6 };
};

/** A simulated hour of hosts that do nothing but take part in Presence. */
const idleHour = async (hosts: number, minutes: number): Promise<Spent> => {
  const begin = performance.now();
  const cpu = process.cpuUsage();
  const text = `hosts ${hosts}\nservers 3\nseed 1\nat 100 apply c1 vm:a1:256 vm:a2:256\nuntil ${minutes * 60_000}`;
  const { faults } = await runHistory(parseHistory(text));
  if (faults.length > 0) throw new Error(faults.join("; "));
  return spentSince(begin, cpu);
};

const run = async ({ quick, say }: BenchOptions): Promise<readonly Figure[]> => {
  const seeds = quick ? 5 : 200;
  say(`${seeds} short seeds`);
  const seconds: number[] = [];
  const cpu = process.cpuUsage();
  for (let seed = 1; seed <= seeds; seed += 1) {
    const history = generateHistory({ seed, hosts: 10, cells: 3, minutes: 1, faults: faultKinds });
    const begin = performance.now();
    const { faults } = await runHistory(history);
    if (faults.length > 0) throw new Error(`seed ${seed}: ${faults.join("; ")}`);
    seconds.push((performance.now() - begin) / 1000);
  }
  const seedCpu = spentSince(0, cpu).cpuSeconds / seeds;
  const mean = seconds.reduce((sum, each) => sum + each, 0) / seeds;
  const range = [Math.min(...seconds), Math.max(...seconds)] as const;
  const hosts = quick ? 50 : 1000;
  say(`an hour of ${hosts} idle hosts`);
  const hour = await idleHour(hosts, 60);
  return [
    {
      what: "a short seed",
      unit: "s",
      value: mean,
      range,
      atMost: 3.6,
      note: "10 hosts, 3 cells, a minute of all faults, Presence with three members",
    },
    { what: "a short seed, CPU time", unit: "s", value: seedCpu, range: null, atMost: null },
    { what: "short seeds per hour, divided by 3600", unit: "1/s", value: 1 / mean, range: null, atMost: null },
    {
      what: `a simulated hour of ${hosts} idle hosts`,
      unit: "s",
      value: hour.wallSeconds,
      range: null,
      atMost: 120,
      note: "each with its packets of membership, and its connections to the Presence group",
    },
    {
      what: `a simulated hour of ${hosts} idle hosts, CPU time`,
      unit: "s",
      value: hour.cpuSeconds,
      range: null,
      atMost: null,
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
