import { readdirSync, readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";

/** A process, safe from reuse of its number: the start time (clock ticks since boot) belongs to its identity. */
export interface ProcessIdentity {
  readonly pid: number;
  readonly startTime: string;
}

/** Fields of /proc/<pid>/stat after the command (which may hold anything): state first, start time is field 22. */
export const statFields = (pid: number): readonly string[] | null => {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, "latin1");
    return text.slice(text.lastIndexOf(")") + 2).split(" ");
  } catch {
    return null;
  }
};

/** Null when there is no such process. */
export const identify = (pid: number): ProcessIdentity | null => {
  const startTime = statFields(pid)?.[19];
  return startTime === undefined ? null : { pid, startTime };
};

/**
 * May the process still do anything? A zombie's leader may be gone while its other threads still run, hence the count
 * of tasks: only the last task of a zombie has closed its files.
 */
export const isAlive = (process: ProcessIdentity): boolean => {
  const fields = statFields(process.pid);
  if (fields === null || fields[19] !== process.startTime) return false;
  if (fields[0] !== "Z" && fields[0] !== "X") return true;
  try {
    return readdirSync(`/proc/${process.pid}/task`).length > 1;
  } catch {
    return false;
  }
};

/** Does its command line hold this argument? */
export const hasArgument = (pid: number, argument: string): boolean => {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0").includes(argument);
  } catch {
    return false;
  }
};

/** Killed, and on its way out of the kernel: its memory has gone before its files, and its command line with it. */
export const isExiting = (target: ProcessIdentity): boolean => {
  if (!isAlive(target)) return false;
  try {
    return readFileSync(`/proc/${target.pid}/cmdline`, "utf8") === "";
  } catch {
    return false;
  }
};

/** A process with this argument; for a machine whose number was not written down before its starter died. */
export const findByArgument = (argument: string): ProcessIdentity | null => {
  for (const entry of readdirSync("/proc")) {
    const pid = Number(entry);
    if (!Number.isInteger(pid) || !hasArgument(pid, argument)) continue;
    const found = identify(pid);
    if (found !== null && isAlive(found)) return found;
  }
  return null;
};

/** Sends the signal to exactly this process; nothing happens when it is gone. */
export const signal = (target: ProcessIdentity, name: NodeJS.Signals): void => {
  if (!isAlive(target)) return;
  try {
    process.kill(target.pid, name);
  } catch {
    // It ended in between.
  }
};

/** True once it is confirmed gone, false if it still lives after the time. */
export const waitGone = async (target: ProcessIdentity, timeoutMs: number): Promise<boolean> => {
  const deadline = performance.now() + timeoutMs;
  for (let pauseMs = 2; isAlive(target); pauseMs = Math.min(50, pauseMs * 2)) {
    if (performance.now() >= deadline) return false;
    await sleep(pauseMs);
  }
  return true;
};

/**
 * A process was killed and is still there: stuck in the kernel, as over a disk that hangs. What it began may still land, so
 * whoever is told must not take it for gone.
 */
export class NotConfirmedGone extends Error {}

/** How processes are ended. Tests give another, for which a process does not end. */
export interface ProcessControl {
  readonly signal: typeof signal;
  readonly waitGone: typeof waitGone;
}
export const processControl: ProcessControl = { signal, waitGone };
