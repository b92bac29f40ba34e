import { spawn } from "node:child_process";
import { closeSync, openSync, readdirSync, readFileSync } from "node:fs";
import { createServer, type Server } from "node:net";
import { fileURLToPath } from "node:url";
import type { Places } from "../places.ts";
import { firstProcessScript } from "./namespaces.ts";

/** A process of this boot that cannot be confused with a later one of the same number. */
export interface ProcessIdentity {
  readonly pid: number;
  /** Clock ticks since boot, field 22 of `/proc/<pid>/stat` (proc_pid_stat(5)). */
  readonly startTime: string;
}

/** Undefined when the process is gone; a zombie is gone. */
export const processIdentity = (pid: number): ProcessIdentity | undefined => {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    // The command in parentheses may hold anything, so fields are counted after its end: the state is field 3.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    const startTime = fields[19];
    return startTime === undefined || fields[0] === "Z" || fields[0] === "X" ? undefined : { pid, startTime };
  } catch {
    return undefined;
  }
};

export const isAlive = ({ pid, startTime }: ProcessIdentity): boolean => processIdentity(pid)?.startTime === startTime;

const sendSignal = (process_: ProcessIdentity, signal: NodeJS.Signals): void => {
  if (!isAlive(process_)) return;
  try {
    process.kill(process_.pid, signal);
  } catch {
    // It ended in between.
  }
};

export interface FirstProcesses {
  /** `unshare`, outside: it waits for process 1 and takes it along when it dies. */
  readonly outer: readonly ProcessIdentity[];
  /** Process 1 of the private namespaces. */
  readonly init: readonly ProcessIdentity[];
}

/**
 * What runs of a testbed, found by the tag that only its own two first processes have in this place of their command
 * lines. Looking is better than a pid file here: there is no moment at which a killed `up` has started something that
 * is written down nowhere, and no number that meanwhile belongs to another process.
 */
export const firstProcesses = (tag: string): FirstProcesses => {
  const outer: ProcessIdentity[] = [];
  const init: ProcessIdentity[] = [];
  for (const entry of readdirSync("/proc")) {
    if (!/^\d+$/.test(entry)) continue;
    const identity = processIdentity(Number(entry));
    if (identity === undefined) continue;
    try {
      const command = readFileSync(`/proc/${entry}/cmdline`, "utf8").split("\0");
      const shell = command.indexOf("sh");
      if (command[shell + 1] !== "-c" || command[shell + 3] !== tag) continue;
      if (shell === 0) init.push(identity);
      else if (command[0] === "unshare") outer.push(identity);
    } catch {
      // It ended in between.
    }
  }
  return { outer, init };
};

/** A listening socket on the machine's loopback, and its descriptor to hand over. */
export const listenOnLoopback = (port: number): Promise<{ server: Server; descriptor: number; port: number }> =>
  new Promise((resolve, reject) => {
    const server = createServer();
    server.once("error", reject);
    server.listen({ host: "127.0.0.1", port }, () => {
      // Node offers no public way to a listening socket's descriptor; a child can inherit it only by number.
      const { _handle: handle } = server as unknown as { readonly _handle: { readonly fd: number } };
      const address = server.address();
      if (address === null || typeof address === "string" || handle.fd < 0) reject(new Error("no descriptor"));
      else resolve({ server, descriptor: handle.fd, port: address.port });
    });
  });

/** Starts process 1 in new PID, mount and network namespaces, in a session of its own, with listening sockets from descriptor 3 on. */
export const startFirstProcess = (at: Places, descriptors: readonly number[]): ProcessIdentity => {
  const log = openSync(`${at.logs}/supervisor.log`, "a");
  const supervisor = fileURLToPath(new URL("supervisor.ts", import.meta.url));
  const child = spawn(
    "unshare",
    [
      "--pid",
      "--net",
      "--mount",
      "--fork",
      "--kill-child",
      "sh",
      "-c",
      firstProcessScript,
      at.tag,
      at.run,
      process.execPath,
      supervisor,
      at.instructionsFile,
    ],
    { stdio: ["ignore", log, log, ...descriptors], detached: true, cwd: "/" },
  );
  closeSync(log);
  child.on("error", () => undefined);
  child.unref();
  if (child.pid === undefined) throw new Error("cannot start `unshare`: is util-linux installed?");
  const identity = processIdentity(child.pid);
  if (identity === undefined) throw new Error(`\`unshare\` ended at once; ${at.logs}/supervisor.log says why`);
  return identity;
};

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

const goneWithin = async (processes: readonly ProcessIdentity[], limitMs: number): Promise<boolean> => {
  const end = performance.now() + limitMs;
  while (processes.some(isAlive)) {
    if (performance.now() > end) return false;
    await pause(20);
  }
  return true;
};

/** Ends a testbed's processes: the members get `graceMs` to say goodbye, then the PID namespace ends with all in it. */
export const endFirstProcess = async (tag: string, graceMs: number): Promise<void> => {
  const { outer, init } = firstProcesses(tag);
  const all = [...outer, ...init];
  if (graceMs > 0) {
    for (const process_ of init) sendSignal(process_, "SIGTERM");
    if (await goneWithin(all, graceMs)) return;
  }
  for (const process_ of all) sendSignal(process_, "SIGKILL");
  // Process 1 is gone only when everything in its namespace is.
  if (!(await goneWithin(all, 30_000))) {
    throw new Error(`processes ${all.map(({ pid }) => pid).join(", ")} of this testbed do not end`);
  }
};
