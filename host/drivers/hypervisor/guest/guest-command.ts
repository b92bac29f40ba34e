import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { type GuestAgent, outputLimit } from "./guest-agent.ts";

/**
 * A command in a guest, its output given as it comes. QEMU's guest agent (7.2) captures output only to hand it out at the
 * end. So a shell in the guest sends both streams into files, which the agent reads for us while they grow. They are
 * unlinked as soon as they are open: whatever ends first, nothing is left in the guest. A guest without a shell, or without
 * a place to write to, gets the agent's own way: everything at the end.
 */
export interface GuestCommand {
  readonly command: readonly string[];
  /** Its standard input, whole; null: none. */
  readonly input: Buffer | null;
  /** Then it is killed; null: never. */
  readonly timeoutMs: number | null;
}
export interface GuestOutput {
  /** The next bytes are read when this resolves, and the command is held meanwhile when that takes long. */
  output(stream: "stdout" | "stderr", bytes: Buffer): Promise<void>;
  /** Something the person should know. */
  notice(sentence: string): void;
}
export interface GuestRun {
  /** 128 + signal when a signal ended it. Rejects with a sentence when there is no result. */
  readonly exitCode: Promise<number>;
  /** To the command and all that it started, as far as it stayed in its session. */
  signal(name: GuestSignal): void;
}
export type GuestSignal = "INT" | "HUP" | "KILL" | "STOP" | "CONT";

/** Ended by its time-out. */
export class CommandTimeout extends Error {}

/** From asking to the first answer: a guest that boots has no agent yet. */
const startMs = 60_000;
/** One answer of an agent that has answered before. */
const answerMs = 20_000;
/** In base64 it fits into a line that is taken of an agent. */
const chunkBytes = 180 * 1024;
const longestPauseMs = 300;
/** Read in one go, then the command waits until all is read: a guest's disk is no buffer for what nobody reads. */
const burstBytes = 1024 * 1024;
/** A client that takes longer for a chunk holds the command. */
const patienceMs = 500;
/** After SIGKILL, for its confirmation and what it had still said. */
const killedMs = 3000;

/** Its own session, so that a signal reaches all of it and never the agent, in whose process group it would be. */
const wrapper = [
  "umask 077",
  'mkdir "$1" 2>/dev/null || { echo cells-no-place; exit 125; }',
  'place=$1; shift; : >"$place/out"',
  'command -v -- "$1" >/dev/null 2>&1 || { echo "$1: not found in this guest" >"$place/err"; exit 127; }',
  'if command -v setsid >/dev/null 2>&1; then set -- setsid -- "$@"; fi',
  'exec "$@" >"$place/out" 2>"$place/err"',
].join("\n");
/** First the whole session, else (no setsid in the guest) the process alone. */
const killer = 'kill -"$0" -"$1" 2>/dev/null || kill -"$0" "$1"';

export const runInGuest = (agent: GuestAgent, command: GuestCommand, output: GuestOutput): GuestRun => {
  const run = new Run(agent, command, output);
  return { exitCode: run.result(), signal: (name) => run.signal(name) };
};

type Status = Readonly<Record<string, unknown>>;

class Run {
  readonly #agent: GuestAgent;
  readonly #command: GuestCommand;
  readonly #output: GuestOutput;
  readonly #place = `/tmp/.cells-${randomBytes(12).toString("hex")}`;
  readonly #early = new Set<GuestSignal>();
  /** On their way into the guest; true: and asked for once more since. */
  readonly #onTheWay = new Map<GuestSignal, boolean>();
  #pid: number | null = null;
  #held = false;
  #killedAt: number | null = null;

  constructor(agent: GuestAgent, command: GuestCommand, output: GuestOutput) {
    this.#agent = agent;
    this.#command = command;
    this.#output = output;
  }

  /**
   * One that comes before the start is sent right after it. Of many that come while one is on its way, one is left, as
   * of a process's pending signals (signal(7)): a client may send any number of them.
   */
  signal(name: GuestSignal): void {
    if (name === "KILL") this.#killedAt ??= performance.now();
    if (this.#pid === null) {
      this.#early.add(name);
      return;
    }
    if (name === "STOP" || name === "CONT") this.#kill(name, this.#pid);
    else if (this.#onTheWay.has(name)) this.#onTheWay.set(name, true);
    else this.#send(name, this.#pid);
    // What is held gets no other signal before it goes on.
    if (this.#held && name !== "STOP" && name !== "CONT") this.#release();
  }

  #send(name: GuestSignal, pid: number): void {
    this.#onTheWay.set(name, false);
    this.#kill(name, pid).then(() => {
      const again = this.#onTheWay.get(name) === true;
      this.#onTheWay.delete(name);
      if (again) this.#send(name, pid);
    });
  }

  async #kill(name: GuestSignal, pid: number): Promise<void> {
    const arg = ["-c", killer, name, String(pid)];
    await this.#agent.call("guest-exec", { path: "/bin/sh", arg }, answerMs).catch(() => undefined);
  }

  async result(): Promise<number> {
    const { command, timeoutMs } = this.#command;
    if (command.length === 0) throw new Error("the command is empty: name a program to run in the guest");
    try {
      await this.#start("/bin/sh", ["-c", wrapper, "cells-exec", this.#place, ...command]);
    } catch (error) {
      if (!/No such file/.test((error as Error).message)) throw error;
      return this.#runCaptured("no shell");
    }
    let timedOut = false;
    const timer =
      timeoutMs === null
        ? undefined
        : setTimeout(() => {
            timedOut = true;
            this.signal("KILL");
          }, timeoutMs);
    try {
      const exitCode = await this.#follow();
      if (timedOut)
        throw new CommandTimeout(`"${command[0]}" did not end within ${(timeoutMs ?? 0) / 1000} s and was killed`);
      return exitCode ?? (await this.#runCaptured("no place to write to"));
    } finally {
      clearTimeout(timer);
    }
  }

  async #start(path: string, arg: readonly string[]): Promise<void> {
    const { input } = this.#command;
    const started = await this.#agent.call(
      "guest-exec",
      { path, arg, "capture-output": true, ...(input === null ? {} : { "input-data": input.toString("base64") }) },
      startMs,
    );
    this.#pid = Number(started.pid);
    for (const name of this.#early) this.signal(name);
    this.#early.clear();
  }

  #status(): Promise<Status> {
    return this.#agent.call("guest-exec-status", { pid: this.#pid }, answerMs);
  }

  /** Null: the guest has no place for the output, and the command did not run. */
  async #follow(): Promise<number | null> {
    const files = {
      stdout: new GrowingFile(this.#agent, `${this.#place}/out`),
      stderr: new GrowingFile(this.#agent, `${this.#place}/err`),
    };
    let tidied = false;
    try {
      for (let pauseMs = 20; ; ) {
        const status = await this.#status();
        if (files.stdout.open && files.stderr.open && !tidied) {
          tidied = true;
          await this.#agent.call("guest-exec", { path: "rm", arg: ["-rf", this.#place] }, answerMs);
        }
        const read = (await this.#pass(files.stdout, "stdout")) + (await this.#pass(files.stderr, "stderr"));
        if (status.exited === true) {
          if (!files.stdout.open && said(status) === "cells-no-place\n") return null;
          return exitCodeOf(status);
        }
        if (this.#givenUp()) return 128 + 9;
        if (this.#held) this.#release();
        pauseMs = read > 0 ? 20 : Math.min(longestPauseMs, pauseMs * 1.5);
        await sleep(pauseMs);
      }
    } finally {
      await files.stdout.close();
      await files.stderr.close();
      if (!tidied)
        this.#agent.call("guest-exec", { path: "rm", arg: ["-rf", this.#place] }, answerMs).catch(() => undefined);
    }
  }

  /** Gives all that a file holds now; returns how many bytes. */
  async #pass(file: GrowingFile, stream: "stdout" | "stderr"): Promise<number> {
    let total = 0;
    for (;;) {
      const bytes = await file.read();
      if (bytes.length === 0 || this.#givenUp()) return total;
      total += bytes.length;
      if (total > burstBytes) this.#hold();
      const given = this.#output.output(stream, bytes);
      const slow = setTimeout(() => this.#hold(), patienceMs);
      await given.finally(() => clearTimeout(slow));
    }
  }

  #givenUp(): boolean {
    return this.#killedAt !== null && performance.now() - this.#killedAt > killedMs;
  }
  #hold(): void {
    if (this.#held || this.#killedAt !== null) return;
    this.#held = true;
    this.signal("STOP");
  }
  #release(): void {
    this.#held = false;
    this.signal("CONT");
  }

  /** The agent's own way, for guests that have no other. */
  async #runCaptured(why: string): Promise<number> {
    this.#output.notice(`this guest has ${why}: its output comes when the command has ended`);
    const [program = "", ...arg] = this.#command.command;
    await this.#start(program, arg);
    const end = this.#command.timeoutMs === null ? null : performance.now() + this.#command.timeoutMs;
    for (let pauseMs = 20; ; pauseMs = Math.min(longestPauseMs, pauseMs * 1.5)) {
      const status = await this.#status();
      if (status.exited === true) {
        for (const [stream, field] of [
          ["stdout", "out-data"],
          ["stderr", "err-data"],
        ] as const) {
          const data = status[field];
          if (typeof data === "string")
            await this.#output.output(stream, Buffer.from(data, "base64").subarray(0, outputLimit));
        }
        return exitCodeOf(status);
      }
      if (end !== null && performance.now() > end) {
        this.signal("KILL");
        throw new CommandTimeout(`"${program}" did not end within ${(this.#command.timeoutMs ?? 0) / 1000} s`);
      }
      await sleep(pauseMs);
    }
  }
}

const said = (status: Status): string => {
  const data = status["out-data"];
  return typeof data === "string" ? Buffer.from(data, "base64").toString("utf8") : "";
};
const exitCodeOf = ({ exitcode, signal }: Status): number =>
  typeof exitcode === "number" ? exitcode : 128 + (typeof signal === "number" ? signal : 0);

/** A file in the guest that somebody writes to. */
class GrowingFile {
  readonly #agent: GuestAgent;
  readonly #path: string;
  #handle: number | null = null;

  constructor(agent: GuestAgent, path: string) {
    this.#agent = agent;
    this.#path = path;
  }

  get open(): boolean {
    return this.#handle !== null;
  }

  /** What is there and was not read yet, at most one chunk; nothing while the file does not exist. */
  async read(): Promise<Buffer> {
    if (this.#handle === null) {
      try {
        const opened = await this.#agent.call("guest-file-open", { path: this.#path, mode: "r" }, answerMs);
        this.#handle = Number(opened.value);
      } catch (error) {
        if (/No such file/.test((error as Error).message)) return Buffer.alloc(0);
        throw error;
      }
    }
    const read = await this.#agent.call("guest-file-read", { handle: this.#handle, count: chunkBytes }, answerMs);
    return typeof read["buf-b64"] === "string" ? Buffer.from(read["buf-b64"], "base64") : Buffer.alloc(0);
  }

  async close(): Promise<void> {
    const handle = this.#handle;
    this.#handle = null;
    if (handle !== null) await this.#agent.call("guest-file-close", { handle }, answerMs).catch(() => undefined);
  }
}
