import { readFileSync } from "node:fs";
import type { Bench, BenchOptions, Figure } from "../bench.ts";
import { cellName, processesWith, specification, untilGuestsAnswer, vmPaths, withCloud } from "../cloud/cloud.ts";
import { processCpuMs, residentMiBOf } from "../measure.ts";

/** How often the threads of a process gave up the CPU to wait for something: its wake-ups. */
const wakeUps = (pid: number): number =>
  Number(/^voluntary_ctxt_switches:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? 0);

async function run({ quick, say }: BenchOptions): Promise<readonly Figure[]> {
  const machines = quick ? 1 : 3;
  return withCloud({ hosts: 1, servers: 1 }, async ({ testbed, client }) => {
    say(`${machines} machines on one host`);
    await client.apply(cellName, specification(machines, 7001), false);
    await untilGuestsAnswer(client, vmPaths(machines), 240_000);
    const [pid, ...more] = processesWith(`host/main.ts ${testbed.at.directory}/`);
    if (pid === undefined || more.length > 0) throw new Error("there is not just one Host Manager");
    // What the start left to do is over, and its garbage is collected or never will be.
    await pause(quick ? 500 : 15_000);
    const seconds = quick ? 3 : 60;
    say(`watching the Host Manager for ${seconds} s`);
    const [cpu, wakes] = [processCpuMs(pid), wakeUps(pid)];
    const memory: number[] = [];
    for (let second = 0; second < seconds; second += 1) {
      await pause(1000);
      memory.push(residentMiBOf(pid).now);
    }
    const share = (100 * (processCpuMs(pid) - cpu)) / (1000 * seconds);
    const note = `${machines} machines that do nothing`;
    return [
      {
        what: "resident memory",
        unit: "MiB",
        value: Math.max(...memory),
        range: [Math.min(...memory), Math.max(...memory)],
        atMost: 120,
        note,
      },
      { what: "share of one core", unit: "%", value: share, range: null, atMost: 1, note },
      { what: "wake-ups", unit: "1/s", value: (wakeUps(pid) - wakes) / seconds, range: null, atMost: null },
    ];
  });
}
const pause = (milliseconds: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, milliseconds));

export const hostManager: Bench = {
  title: "Idle cost of a Host Manager",
  method:
    "One Host Manager with machines that run and are left alone: its largest resident memory, the CPU time of its process " +
    "(in steps of 10 ms), and how often its main thread woke up.",
  run,
};
