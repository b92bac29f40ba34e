import { type ChildProcess, execFile, execFileSync } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { cpus, loadavg, release } from "node:os";
import { promisify } from "node:util";
import type { Figure } from "./bench.ts";

/** The value below which the share `part` (0 to 1) of the values lies: the nearest rank, so always one that was measured. */
export function percentile(values: readonly number[], part: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  const value = sorted[Math.min(sorted.length - 1, Math.max(0, Math.ceil(part * sorted.length) - 1))];
  if (value === undefined) throw new Error("nothing was measured");
  return value;
}
export const median = (values: readonly number[]): number => percentile(values, 0.5);
export const rangeOf = (values: readonly number[]): readonly [number, number] => [
  percentile(values, 0),
  percentile(values, 1),
];

/** A figure of one value. */
export const figureOf = (
  what: string,
  unit: Figure["unit"],
  value: number,
  atMost: number | null,
  note?: string,
): Figure => ({ what, unit, value, range: null, atMost, ...(note === undefined ? {} : { note }) });

/**
 * Measures all variants again and again, in turn, so that what the machine does meanwhile meets them alike. The order
 * turns around every other round: nobody always comes right after the same neighbour.
 */
export async function interleave<Name extends string>(
  rounds: number,
  variants: Readonly<Record<Name, (round: number) => Promise<number>>>,
): Promise<Readonly<Record<Name, readonly number[]>>> {
  const names = Object.keys(variants) as Name[];
  const measured = Object.fromEntries(names.map((name) => [name, [] as number[]])) as Record<Name, number[]>;
  for (let round = 0; round < rounds; round += 1)
    for (const name of round % 2 === 0 ? names : names.toReversed()) measured[name].push(await variants[name](round));
  return measured;
}

/** Ratios of what was measured in the same round. */
export const ratios = (values: readonly number[], to: readonly number[]): readonly number[] =>
  values.flatMap((value, index) => {
    const other = to[index];
    return other === undefined || other === 0 ? [] : [value / other];
  });

interface CpuTimes {
  readonly busy: number;
  readonly all: number;
}
/** Clock ticks of all CPUs since boot (proc_stat(5)). */
function cpuTimes(): CpuTimes {
  const [first = ""] = readFileSync("/proc/stat", "utf8").split("\n");
  const ticks = first.split(/\s+/).slice(1, 9).map(Number);
  const all = ticks.reduce((sum, value) => sum + value, 0);
  return { all, busy: all - (ticks[3] ?? 0) - (ticks[4] ?? 0) };
}
/** Share (0 to 1) of all CPUs that is in use while this process waits: what others do. */
export async function othersShare(milliseconds: number): Promise<number> {
  const before = cpuTimes();
  await new Promise((resolve) => setTimeout(resolve, milliseconds));
  const after = cpuTimes();
  return (after.busy - before.busy) / Math.max(1, after.all - before.all);
}

/** A process ends as it stands, and has ended then. */
export async function killed(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, "exit");
  child.kill("SIGKILL");
  await ended;
}

/** Clock ticks per second in /proc; the kernel's interface fixes it on every architecture that Cells runs on. */
const ticksPerSecond = 100;
/** CPU time of a process with all its threads, in milliseconds, in steps of 10 (proc_pid_stat(5), fields 14 and 15). */
export function processCpuMs(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return ((Number(fields[11]) + Number(fields[12])) * 1000) / ticksPerSecond;
}

/** Resident memory of a process in MiB, and the most that it ever was (proc_pid_status(5)). Throws when it has ended. */
export function residentMiBOf(pid: number): { readonly now: number; readonly most: number } {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  const of = (name: string): number => {
    const [, kib] = new RegExp(`^${name}:\\s+(\\d+) kB`, "m").exec(status) ?? [];
    if (kib === undefined) throw new Error(`process ${pid} has ended`);
    return Number(kib) / 1024;
  };
  return { now: of("VmRSS"), most: of("VmHWM") };
}

/** What a program says, in JSON, that is a process of its own: processor time and memory there are those of what it measures. */
export async function reportOf<Report>(program: string, ...args: readonly (string | number)[]): Promise<Report> {
  const options = ["--expose-gc", "--disable-warning=ExperimentalWarning"];
  const { stdout } = await promisify(execFile)(process.execPath, [...options, program, ...args.map(String)]);
  return JSON.parse(stdout) as Report;
}

/** Where and when figures come from. */
export interface Provenance {
  readonly commit: string;
  readonly time: string;
  readonly machine: string;
  readonly load: number;
  /** Share of the CPUs that others used just before. */
  readonly others: number;
}
export async function provenance(quick: boolean): Promise<Provenance> {
  const git = (...args: readonly string[]): string => {
    try {
      return execFileSync("git", args, { cwd: import.meta.dirname, encoding: "utf8", stdio: "pipe" }).trim();
    } catch {
      return "";
    }
  };
  const changed = git("status", "--porcelain", "--untracked-files=no") === "" ? "" : " with changes";
  const [first] = cpus();
  return {
    commit: `${git("rev-parse", "--short", "HEAD") || "unknown"}${changed}`,
    time: `${new Date().toISOString().slice(0, 16)}Z`,
    machine: `${cpus().length} × ${first?.model.trim() ?? "unknown CPU"}, Linux ${release()}`,
    others: await othersShare(quick ? 200 : 3000),
    load: loadavg()[0] ?? 0,
  };
}
/** Above this share of use by others, figures are for a look only. */
export const busyShare = 0.15;
