import { readdirSync, readFileSync, readlinkSync, statSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { machineIdentity } from "../../host/drivers/unix-users.ts";
import { processIdentity } from "../../testbed/supervisor/first-process.ts";
import type { Figure } from "../bench.ts";
import { processCpuMs } from "../measure.ts";
import { type CallCounter, countCalls } from "./calls.ts";

/**
 * What a cloud does when nobody wants anything of it, by VM: frames that come to its card or leave it, wake-ups of QEMU's threads,
 * pieces of the guest's code that QEMU translates (emulated processors alone), and its processor time.
 */
export interface Idleness {
  readonly frames: number;
  readonly wakeUps: number;
  /** Null: nothing is translated there, or it could not be counted. */
  readonly translations: number | null;
  readonly cpuMs: number;
  /** Of its host, in proportion where pages are shared. */
  readonly memoryMiB: number;
}
/** One of the machines, by what it is called in the table. */
export interface Counted {
  readonly name: string;
  readonly pid: number;
}

/** Of all threads, since they began: how often they gave their processor up, to wait for something. */
export function wakeUpsOf(pid: number): number {
  return readdirSync(`/proc/${pid}/task`).reduce((sum, thread) => {
    try {
      const status = readFileSync(`/proc/${pid}/task/${thread}/status`, "utf8");
      return sum + Number(/^voluntary_ctxt_switches:\s+(\d+)/m.exec(status)?.[1] ?? 0);
    } catch {
      return sum; // It ended in between.
    }
  }, 0);
}

/** Memory of a process, in proportion where pages are shared (Pss). */
export const memoryMiBOf = (pid: number): number =>
  Number(/^Pss:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, "utf8"))?.[1] ?? 0) / 1024;

/** Names of the taps that a process has open. */
export function tapsOf(pid: number): readonly string[] {
  return readdirSync(`/proc/${pid}/fd`).flatMap((descriptor) => {
    try {
      if (readlinkSync(`/proc/${pid}/fd/${descriptor}`) !== "/dev/net/tun") return [];
      return /^iff:\s+(\S+)/m.exec(readFileSync(`/proc/${pid}/fdinfo/${descriptor}`, "utf8"))?.[1] ?? [];
    } catch {
      return [];
    }
  });
}

/** Frames through devices of that process' network, both ways (proc_net_dev). */
export function framesIn(text: string, devices: readonly string[]): number {
  return text.split("\n").reduce((sum, line) => {
    const [device = "", counters = ""] = line.trim().split(/:\s*/);
    if (!devices.includes(device)) return sum;
    const numbers = counters.split(/\s+/).map(Number);
    return sum + (numbers[1] ?? 0) + (numbers[9] ?? 0);
  }, 0);
}

interface Standing {
  readonly frames: number;
  readonly wakeUps: number;
  readonly cpuMs: number;
}
/** Throws when a process of that machine is gone: what it did would be left out. */
function alive(name: string, pid: number): void {
  if (processIdentity(pid) === undefined) throw new Error(`process ${pid} of ${name} ended while it was counted`);
}
/** `networkOf`: a process in the network where its taps are. */
function standingOf({ name, pid }: Counted, networkOf: number): Standing {
  for (const each of [pid, networkOf]) alive(name, each);
  return {
    frames: framesIn(readFileSync(`/proc/${networkOf}/net/dev`, "utf8"), tapsOf(pid)),
    wakeUps: wakeUpsOf(pid),
    cpuMs: processCpuMs(pid),
  };
}

/** QEMU translates a piece of a guest's code by this function. */
const translates = { file: "/usr/bin/qemu-system-x86_64", symbol: "tb_gen_code" } as const;

/** In clock ticks since the machine started (proc_pid_stat(5), field 22); infinite when the process is gone. */
const startOf = (pid: number): number => Number(processIdentity(pid)?.startTime ?? Number.POSITIVE_INFINITY);

/** One of these processes in whose network the taps of a machine are; the machine itself where there is none. */
export const networkOf = (pids: readonly number[], machine: number): number => {
  const [tap] = tapsOf(machine);
  const has = (pid: number): boolean => {
    try {
      return tap !== undefined && readFileSync(`/proc/${pid}/net/dev`, "utf8").includes(` ${tap}:`);
    } catch {
      return false;
    }
  };
  // Those that stand longest first: a helper's process may see the tap, too, and end before it is read again.
  const eldest = pids.toSorted((one, other) => startOf(one) - startOf(other));
  return [machine, ...eldest].find(has) ?? machine;
};

const translationsOf = (counted: readonly Counted[], say: IdleOptions["say"]): Promise<CallCounter | null> =>
  countCalls(
    translates.file,
    translates.symbol,
    counted.map(({ pid }) => pid),
  ).catch((error: Error) => {
    say(error.message);
    return null;
  });

export interface IdleOptions {
  /**
   * Translations are counted too. Where that is not possible (no such symbol, no uprobes) `say` is told why. Of what is
   * measured afterwards nothing can be relied on: in five runs of five a QEMU 7.2 aborted within the minute in which its calls
   * were counted, each time that of a controller (2026-11-28), and none in minutes without.
   */
  readonly translations: boolean;
  readonly say: (line: string) => void;
}

/** What each does in so many seconds, as per minute. `networkOf`: a process in the network where its taps are. */
export async function idleness(
  counted: readonly (Counted & { readonly networkOf: number })[],
  seconds: number,
  options: IdleOptions,
): Promise<readonly (Counted & Idleness)[]> {
  const counter = options.translations ? await translationsOf(counted, options.say) : null;
  let translations: readonly (number | null)[] = [];
  let before: readonly Standing[];
  let after: readonly Standing[];
  try {
    before = counted.map((each) => standingOf(each, each.networkOf));
    await sleep(seconds * 1000);
    after = counted.map((each) => standingOf(each, each.networkOf));
  } finally {
    // Also when a machine is gone: the counter would stay, and this process with it.
    translations = (await counter?.stop()) ?? [];
  }
  const minute = 60 / seconds;
  return counted.map(({ name, pid }, index) => {
    const [then, now] = [before[index], after[index]];
    const grown = (what: keyof Standing): number => ((now?.[what] ?? 0) - (then?.[what] ?? 0)) * minute;
    const translated = translations[index] ?? null;
    alive(name, pid);
    return {
      name,
      pid,
      frames: grown("frames"),
      wakeUps: grown("wakeUps"),
      cpuMs: grown("cpuMs"),
      memoryMiB: memoryMiBOf(pid),
      translations: translated === null ? null : translated * minute,
    };
  });
}

/** Figures of one machine each, those that take the most processor time first. */
export const idleFigures = (all: readonly (Counted & Idleness)[]): readonly Figure[] =>
  all
    .toSorted((one, other) => other.cpuMs - one.cpuMs)
    .map(({ name, cpuMs, memoryMiB, frames, wakeUps, translations }) => ({
      what: `idle: ${name}, of one core`,
      unit: "%",
      value: cpuMs / 600,
      range: null,
      atMost: null,
      note:
        `a minute: ${Math.round(frames)} frames, ${Math.round(wakeUps)} wake-ups, ` +
        `${translations === null ? "translations not counted" : `${Math.round(translations)} translations`}; ` +
        `${Math.round(memoryMiB)} MiB`,
    }));

/** QEMU of each of these VMs, among the processes of a testbed. */
export function machinesAmong(
  pids: readonly number[],
  vms: readonly { readonly path: string; readonly uid: string }[],
): readonly Counted[] {
  const owners = new Map(vms.map(({ path, uid }) => [machineIdentity(uid).uid, path]));
  return pids.flatMap((pid) => {
    const owner = statSync(`/proc/${pid}`, { throwIfNoEntry: false })?.uid;
    const name = owner === undefined ? undefined : owners.get(owner);
    return name === undefined ? [] : [{ name, pid }];
  });
}
