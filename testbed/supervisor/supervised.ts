import { type ChildProcess, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { connect } from "node:net";
import { finished } from "node:stream/promises";
import type { LogLine } from "../../core/distribution/node/types.ts";
import type { EventName } from "../../core/telemetry/event-names.ts";
import { BoundedLog } from "./bounded-log.ts";
import type { Member } from "./members.ts";
import { enterMember } from "./namespaces.ts";

/** How one member's process is started. */
export interface Launch {
  readonly command: readonly string[];
  readonly logFile: string;
  /** Descriptor handed over as 3. */
  readonly descriptor?: number;
  /** A change of the process' state. */
  readonly onEvent: (event: EventName, fields: LogLine["fields"]) => void;
}
export interface MemberStatus {
  readonly name: string;
  readonly peer: string;
  readonly address: string;
  readonly running: boolean;
  /** Its ports answered since it was started last. */
  readonly answers: boolean;
  readonly pid: number | null;
  readonly restarts: number;
  /** How it ended last; null if it never did. */
  readonly lastEnd: string | null;
  readonly logFile: string;
  readonly state: "running" | "starting" | "resting" | "stopped";
  /** ISO 8601; null when it does not run. */
  readonly since: string | null;
  /** Resident; null when it does not run. */
  readonly memoryMiB: number | null;
}

const firstBackOffMs = 250;
const longestBackOffMs = 10_000;
/** A process that ran this long was well: the next end of it starts from the first back-off again. */
const healthyAfterMs = 30_000;
const knockEveryMs = 100;
/** A process that ended leaves its last words in the pipe; a child of it may hold that open. */
const lastWordsMs = 500;

/** Resident memory of a process in MiB, null when it is gone. */
const residentMiB = (pid: number | undefined): number | null => {
  if (pid === undefined) return null;
  try {
    const kilobytes = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
    return kilobytes === undefined ? null : Math.round(Number(kilobytes) / 1024);
  } catch {
    return null;
  }
};

/** True when something accepts connections there. */
export const answers = (address: string, port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect({ host: address, port, timeout: 1000 });
    const end = (is: boolean) => () => {
      socket.destroy();
      resolve(is);
    };
    socket.once("connect", end(true)).once("error", end(false)).once("timeout", end(false));
  });

/** One member's process: started, watched, started again after a growing pause when it ends. */
export class Supervised {
  readonly member: Member;
  readonly #launch: Launch;
  readonly #log: BoundedLog;
  #child: ChildProcess | undefined;
  #timer: NodeJS.Timeout | undefined;
  #wanted = false;
  #answers = false;
  #restarts = 0;
  #backOffMs = firstBackOffMs;
  #lastEnd: string | null = null;
  #startedAt = 0;
  /** Who waits for the end of the present process. */
  readonly #onEnd = new Set<() => void>();

  constructor(member: Member, launch: Launch) {
    this.member = member;
    this.#launch = launch;
    this.#log = new BoundedLog(launch.logFile);
  }

  status(): MemberStatus {
    const running = this.#child !== undefined;
    const { name, peer, address } = this.member;
    return {
      name,
      peer,
      address,
      running,
      answers: running && this.#answers,
      pid: this.#child?.pid ?? null,
      restarts: this.#restarts,
      lastEnd: this.#lastEnd,
      logFile: this.#launch.logFile,
      state: running ? (this.#answers ? "running" : "starting") : this.#wanted ? "resting" : "stopped",
      since: running ? new Date(this.#startedAt).toISOString() : null,
      memoryMiB: residentMiB(this.#child?.pid),
    };
  }

  start(): void {
    this.#wanted = true;
    if (this.#child !== undefined) return;
    clearTimeout(this.#timer);
    this.#spawn();
  }

  #spawn(): void {
    const [command = "", ...args] = [...enterMember(this.member.name), ...this.#launch.command];
    const { descriptor } = this.#launch;
    const startedAt = performance.now();
    const further = descriptor === undefined ? [] : [descriptor];
    const child = spawn(command, args, { stdio: ["ignore", "pipe", "pipe", ...further], cwd: "/" });
    const words = [child.stdout, child.stderr].map((stream) => {
      stream?.on("data", (part: Buffer) => this.#log.write(part));
      return stream === null ? undefined : finished(stream).catch(() => undefined);
    });
    this.#child = child;
    this.#answers = false;
    this.#startedAt = Date.now();
    this.#tell("service/started", { pid: child.pid ?? null, restarts: this.#restarts });
    let over = false;
    const ended = async (how: string): Promise<void> => {
      if (over) return;
      over = true;
      await Promise.race([Promise.all(words), new Promise((resolve) => setTimeout(resolve, lastWordsMs))]);
      this.#child = undefined;
      this.#lastEnd = how;
      this.#tell(this.#wanted ? "service/ended" : "service/stopped", { how });
      for (const waiter of this.#onEnd) waiter();
      this.#onEnd.clear();
      if (performance.now() - startedAt > healthyAfterMs) this.#backOffMs = firstBackOffMs;
      if (this.#wanted) this.#again();
    };
    child.once("exit", (code, signal) => void ended(signal ?? `exit code ${code}`));
    child.once("error", (error) => void ended(error.message));
    void this.#knock(child);
  }

  #again(): void {
    this.#timer = setTimeout(() => {
      this.#restarts += 1;
      this.#spawn();
    }, this.#backOffMs);
    this.#backOffMs = Math.min(this.#backOffMs * 2, longestBackOffMs);
  }

  async #knock(child: ChildProcess): Promise<void> {
    while (this.#child === child) {
      const ports = this.member.answersOn;
      const all = await Promise.all(ports.map((port) => answers(this.member.address, port)));
      if (this.#child === child && all.every((is) => is)) {
        this.#answers = true;
        this.#tell("service/answers", { afterMs: Date.now() - this.#startedAt });
        return;
      }
      await new Promise((resolve) => setTimeout(resolve, knockEveryMs));
    }
  }

  #tell(event: EventName, fields: LogLine["fields"]): void {
    this.#launch.onEvent(event, { peer: this.member.peer, ...fields });
  }

  /** Sends a signal to the process; it is started again when that ends it. False when nothing runs. */
  kill(signal: NodeJS.Signals): boolean {
    return this.#child?.kill(signal) ?? false;
  }

  /** Ends the process and does not start it again. SIGTERM first, SIGKILL after `graceMs`. */
  stop(graceMs: number): Promise<void> {
    this.#wanted = false;
    clearTimeout(this.#timer);
    const child = this.#child;
    if (child === undefined) return Promise.resolve();
    return new Promise((resolve) => {
      const force = setTimeout(() => child.kill("SIGKILL"), graceMs);
      this.#onEnd.add(() => {
        clearTimeout(force);
        resolve();
      });
      child.kill("SIGTERM");
    });
  }
}
