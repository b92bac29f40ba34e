import { join } from "node:path";
import { runHistory } from "../../simulator/run.ts";
import { parseHistory } from "../../simulator/world/history.ts";
import type { Bench, BenchOptions, Figure } from "../bench.ts";
import { median, percentile, rangeOf, reportOf } from "../measure.ts";
import type { DayReport } from "./day-process.ts";
import type { HeartbeatsReport } from "./heartbeats-process.ts";
import type { HaReport } from "./manager-process.ts";
import type { ManyReport } from "./many-process.ts";

const largest = { hosts: 1000, each: 25, lost: 200 } as const;

const alone = (hosts: number, each: number, lost: number): Promise<HaReport> =>
  reportOf(join(import.meta.dirname, "manager-process.ts"), hosts, each, lost);

const machines = 24;
const hosts = 8;
const vms = Array.from({ length: machines }, (_, index) => `vm:a${index + 1}:64:data`).join(" ");
const lostMs = 15_000;
/** By what becomes of a host, and what is known of its power. */
const losses = {
  "power control dead": ["at 200 controller h1 dead for 100000"],
  "power control says off": ["at 200 controller h1 works for 100000"],
  "no power control, a storage server slow": ["at 14000 server s1 slow for 60000"],
} as const;

/** What may fail beside a host, one of each kind, and what helps least when the host is lost at 15 s. */
const besides = {
  "another host cut off": ["at 14500 cut h2 * for 20000"],
  "another host cut off from all but the storage": ["at 14500 isolate h2 for 25000"],
  "the HA Manager, the Storage Manager and the controller crash": [
    "at 16000 crash ha-manager for 2000",
    "at 24500 crash storage-manager for 2000",
    "at 25000 crash controller.c1 for 2000",
  ],
  "a member of Presence stands still": ["at 15500 pause presence.1 for 25000"],
  "the HA Manager stands still for 5 s": ["at 24000 pause ha-manager for 5000"],
  "disks of the HA Manager and the controller are slow": [
    "at 14000 disk ha-manager slow for 60000",
    "at 14000 disk controller.c1 slow for 60000",
  ],
  "one packet in ten is lost": ["at 14000 loss 10 for 60000"],
  "each packet is 300 ms late": ["at 14000 delay 300 for 60000"],
  "its power control is slow": ["at 200 controller h1 slow for 100000"],
  "its power control says yes and does nothing": ["at 200 controller h1 deaf for 100000"],
} as const;

/** From the loss of a host to the start of each machine's next process, ms of simulated time. */
async function timesOf(seeds: number, more: readonly string[]): Promise<readonly number[]> {
  const times: number[] = [];
  for (let seed = 1; seed <= seeds; seed += 1) {
    const head = [`hosts ${hosts}`, "servers 3", `seed ${seed}`, "ha 1", `at 100 apply c1 ${vms}`];
    // What a history does stands in it in the order of its times.
    const steps = [...more, `at ${lostMs} power-off h1 for 90000`].sort((one, other) => atMs(one) - atMs(other));
    const text = [...head, ...steps, "until 60000"].join("\n");
    const { faults, log } = await runHistory(parseHistory(text), { keepLog: true, heals: false });
    if (faults.length > 0) throw new Error(`seed ${seed}: ${faults.join("; ")}`);
    const there = new Set(
      [...log.matchAll(/ machine\.h1 started \{"vm":"([^"]+)","incarnation":1,/g)].map(([, vm]) => vm),
    );
    for (const [, ms = "", vm] of log.matchAll(/^([\d.]+) machine\.\w+ started \{"vm":"([^"]+)","incarnation":2,/gm))
      if (there.delete(vm)) times.push(Number(ms) - lostMs);
    if (there.size > 0) throw new Error(`seed ${seed}: ${there.size} machines did not start elsewhere within 45 s`);
  }
  return times;
}

const atMs = (step: string): number => Number(step.split(" ")[1]);

/** The slowest of all kinds, and how each did. */
async function underFaults(quick: boolean, say: BenchOptions["say"]): Promise<readonly Figure[]> {
  const all: number[] = [];
  let slowest = { what: "", ms: 0 };
  for (const [what, more] of Object.entries(besides).slice(0, quick ? 2 : undefined)) {
    say(`a host is lost: ${what}`);
    const times = await timesOf(quick ? 1 : 4, more);
    all.push(...times.map((ms) => ms / 1000));
    if (Math.max(...times) > slowest.ms) slowest = { what, ms: Math.max(...times) };
  }
  const note = `${all.length} machines, ${Object.keys(besides).length} kinds; slowest: ${slowest.what}`;
  return [["p50", 0.5, null] as const, ["p99", 0.99, 30] as const].map(([name, part, atMost]) => ({
    what: `the same, something else fails as well, ${name}`,
    unit: "s" as const,
    note,
    atMost,
    range: rangeOf(all),
    value: part === 0.5 ? median(all) : percentile(all, part),
  }));
}

const many = (hosts: number, cells: number, vms: number, power: string): Promise<ManyReport> =>
  reportOf(join(import.meta.dirname, "many-process.ts"), hosts, cells, vms, power, 1);
const manyGoals = { dead: [12, 18], works: [9, null] } as const;
const manyNames = { dead: "power control dead", works: "power control says off" } as const;

/** Hosts of a large installation, lost one after the other; and one host with many VMs. */
async function ofMany(quick: boolean, say: BenchOptions["say"]): Promise<readonly Figure[]> {
  const figures: Figure[] = [];
  const [all, lost, each] = quick ? [40, 2, 5] : [1000, 16, 25];
  for (const power of ["dead", "works"] as const) {
    say(`${lost} of ${all} hosts are lost one after the other: ${manyNames[power]}`);
    const { started, declared, cpuS, residentMiB } = await many(all, lost, each, power);
    const cost = `${Math.round(cpuS)} s of CPU, ${Math.round(residentMiB)} MiB`;
    const note = `${lost} lost hosts of ${each} VMs, the others of none; declared after ${median(declared).toFixed(1)} s (median); ${cost}`;
    for (const [name, at] of [
      ["p50", 0],
      ["p99", 1],
    ] as const)
      figures.push({
        what: `the same at ${all} hosts, ${manyNames[power]}, ${name}`,
        unit: "s",
        note,
        atMost: manyGoals[power][at],
        range: rangeOf(started),
        value: at === 0 ? median(started) : percentile(started, 0.99),
      });
  }
  const cells = quick ? 2 : 8;
  say(`a host with ${cells * 25} VMs is lost`);
  const { lastAsked, asked } = await many(9, cells, 25, "one");
  figures.push({
    what: `${cells * 25} VMs of one host, from its declaration until the last next process is asked for`,
    unit: "s",
    note: `of ${asked.length} VMs`,
    atMost: 5,
    range: null,
    value: Math.max(...lastAsked),
  });
  return figures;
}

/** Nothing is lost but packets, and some hosts stand still now and then. */
async function falseRestarts({ quick, long = false, say }: BenchOptions): Promise<Figure> {
  const [hosts, vms, minutes] = quick ? [10, 4, 2] : [10, 20, long ? 1440 : 120];
  const day = (minutes: number, lost: 0 | 1): Promise<DayReport> =>
    reportOf(join(import.meta.dirname, "day-process.ts"), hosts, vms, minutes, 1, lost);
  say(`${minutes} minutes in which packets are lost and a tenth of the hosts stands still`);
  // What would be seen if it were so.
  const { restarts: seen } = await day(2, 1);
  if (seen === 0) throw new Error("a host was lost, and no VM started elsewhere");
  const { restarts, overs, isolated, declared, pauses, items, cpuS } = await day(minutes, 0);
  const also = `${overs} incarnations over, ${isolated} VMs ended by their hosts, ${declared} hosts declared dead, ${items} items`;
  return {
    what: `false restarts in ${minutes} simulated minutes, 5 % of packets lost, a tenth of the hosts standing still for 5 s again and again`,
    unit: "VMs",
    note: `${hosts} hosts, ${vms} VMs, ${pauses} times; ${also}; ${Math.round(cpuS)} s of CPU; where a host is lost: ${seen}`,
    value: restarts + overs + isolated,
    range: null,
    atMost: 0,
  };
}

/** What it costs a storage server to hear so many hosts. */
async function heartbeats({ quick, say }: BenchOptions): Promise<readonly Figure[]> {
  const [hosts, seconds] = quick ? [60, 6] : [1000, 60];
  say(`${hosts} hosts beat at a storage agent for ${seconds} s`);
  const report = await reportOf<HeartbeatsReport>(join(import.meta.dirname, "heartbeats-process.ts"), hosts, seconds);
  const { silentPercent, percent, said, acknowledged, slowestMs, residentMiB } = report;
  // Those of the last second wait for each other when it ends.
  if (acknowledged < 0.9 * said - hosts / 3) throw new Error(`${acknowledged} of ${said} beats were acknowledged`);
  const heard = `${acknowledged} of ${said} acknowledged, the slowest after ${Math.round(slowestMs)} ms; ${Math.round(residentMiB)} MiB`;
  return [
    {
      what: `of a core: a storage agent that hears ${hosts} hosts, each every 3 s`,
      unit: "%",
      note: `${heard}; ${silentPercent.toFixed(2)} % while they are connected and say nothing`,
      value: percent,
      range: null,
      atMost: 2,
    },
  ];
}

async function run(options: BenchOptions): Promise<readonly Figure[]> {
  const { quick, say } = options;
  const figures: Figure[] = [];
  for (const [what, more] of Object.entries(losses)) {
    say(`a host is lost: ${what}`);
    const times = (await timesOf(quick ? 1 : 12, more)).map((ms) => ms / 1000);
    const goal = { "power control dead": [12, 18], "power control says off": [9, null] }[what] ?? [null, 30];
    const note = `${times.length} machines`;
    for (const [name, part, atMost] of [
      ["p50", 0.5, goal[0] ?? null],
      ["p99", 0.99, goal[1] ?? null],
    ] as const)
      figures.push({
        what: `host lost until the VM's process runs, ${what}, ${name}`,
        unit: "s",
        note,
        atMost,
        value: part === 0.5 ? median(times) : percentile(times, part),
        range: rangeOf(times),
      });
  }
  figures.push(...(await underFaults(quick, say)), ...(await ofMany(quick, say)));
  figures.push(await falseRestarts(options), ...(await heartbeats(options)));
  const { hosts: all, each, lost } = quick ? { hosts: 50, each: 25, lost: 50 } : largest;
  say(`the HA Manager alone, ${all} hosts of ${each} VMs`);
  const [small, large] = [await alone(all / 5, each, lost), await alone(all, each, lost)];
  const one = (what: string, unit: Figure["unit"], value: number, atMost: number | null = null): void =>
    void figures.push({ what, unit, value, range: null, atMost });
  one(`HA Manager at ${all} hosts of ${each} VMs: held`, "MiB", large.heldMiB, 150);
  one("the same, of a fifth of the hosts", "MiB", small.heldMiB);
  one("of a core, where each host says once a minute what it runs", "%", large.idleMs / 600, 0.5);
  one(
    `${lost} VMs of one host, from its death to the last fence that is asked for, CPU time`,
    "ms",
    large.fencesMs,
    5000,
  );
  one("the same beside a fifth of the hosts", "ms", small.fencesMs);
  one(`and from ${lost} answers to the last word that one is over, CPU time`, "ms", large.oversMs);
  return figures;
}

export const ha: Bench = {
  title: "What becomes of VMs when their host is lost",
  method:
    `Simulated time of ${hosts} hosts with ${machines} VMs, with seeds one after another: from the loss of a host's power to the start of each ` +
    "VM's next process; the same of a large installation, and of a host with many VMs. And the HA Manager by itself, one document at a time, nothing stored: what it holds, and its CPU time. " +
    "A storage agent as a process, with its store and a TLS connection of each host; its CPU time with all its threads. --long simulates a whole day without losses.",
  run,
};
