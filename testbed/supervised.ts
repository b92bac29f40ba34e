import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, openSync, writeSync } from "node:fs";
import { connect } from "node:net";
import type { Member } from "./members.ts";
import { enterMember } from "./namespaces.ts";

/** How one member's process is started. */
export interface Launch {
  readonly command: readonly string[];
  readonly logFile: string;
  /** Descriptor handed over as 3. */
  readonly descriptor?: number;
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
}

const firstBackOffMs = 250;
const longestBackOffMs = 10_000;
/** A process that ran this long was well: the next end of it starts from the first back-off again. */
const healthyAfterMs = 30_000;
const knockEveryMs = 100;

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
  #child: ChildProcess | undefined;
  #timer: NodeJS.Timeout | undefined;
  #wanted = false;
  #answers = false;
  #restarts = 0;
  #backOffMs = firstBackOffMs;
  #lastEnd: string | null = null;
  /** Who waits for the end of the present process. */
  readonly #onEnd = new Set<() => void>();

  constructor(member: Member, launch: Launch) {
    this.member = member;
    this.#launch = launch;
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
    };
  }

  start(): void {
    this.#wanted = true;
    if (this.#child !== undefined) return;
    clearTimeout(this.#timer);
    this.#spawn();
  }

  #spawn(): void {
    const log = openSync(this.#launch.logFile, "a");
    const [command = "", ...args] = [...enterMember(this.member.name), ...this.#launch.command];
    const { descriptor } = this.#launch;
    const startedAt = performance.now();
    const further = descriptor === undefined ? [] : [descriptor];
    const child = spawn(command, args, { stdio: ["ignore", log, log, ...further], cwd: "/" });
    closeSync(log);
    this.#child = child;
    this.#answers = false;
    const ended = (how: string): void => {
      if (this.#child !== child) return;
      this.#child = undefined;
      this.#lastEnd = how;
      this.#note(`ended: ${how}`);
      for (const waiter of this.#onEnd) waiter();
      this.#onEnd.clear();
      if (performance.now() - startedAt > healthyAfterMs) this.#backOffMs = firstBackOffMs;
      if (this.#wanted) this.#again();
    };
    child.once("exit", (code, signal) => ended(signal ?? `exit code ${code}`));
    child.once("error", (error) => ended(error.message));
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
        return;
      }
      await new Promise((resolve) => setTimeout(resolve, knockEveryMs));
    }
  }

  #note(text: string): void {
    const log = openSync(this.#launch.logFile, "a");
    writeSync(log, `${new Date().toISOString()} supervisor: ${this.member.name} ${text}\n`);
    closeSync(log);
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
