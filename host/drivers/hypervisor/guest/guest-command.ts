import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { type GuestAgent, outputLimit } from "./guest-agent.ts";

/**
 * A command in a guest, with its input and its output as they come. QEMU's guest agent (7.2) gives a process all of its input
 * at the start and all of its output at the end. So the command reads and writes named pipes in the guest, and each piece
 * is carried into a pipe or out of it by a `dd` of its own, which ends once the pipe has all of the piece, or had something to
 * read. What waits, waits in a pipe: neither a guest's disk nor a host's memory fills up with what nobody reads.
 *
 * The agent keeps all pipes open in both directions, so that no opening waits and none of them ends between two pieces. It
 * reads and writes none itself: what a pipe has no room for, or has not yet, would be lost in its buffers.
 *
 * A guest without a shell, or without a place for pipes, gets the agent's own way: all of the input at the start, everything
 * else at the end.
 */
export interface GuestCommand {
  readonly command: readonly string[];
  /** Its standard input, in pieces of any size; the next one is asked for when the guest has the one before. Null: none. */
  readonly input: AsyncIterable<Buffer> | null;
  /** Then it is killed; null: never. */
  readonly timeoutMs: number | null;
}
export interface GuestOutput {
  /** The next bytes are read when this resolves, and the command waits meanwhile. */
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
export type GuestSignal = "INT" | "HUP" | "KILL";

/** Ended by its time-out. */
export class CommandTimeout extends Error {}

/** From asking to the first answer: a guest that boots has no agent yet. */
const startMs = 60_000;
/** One answer of an agent that has answered before. */
const answerMs = 20_000;
const pauses = { shortestMs: 5, longestMs: 300 } as const;
/** After SIGKILL, for its confirmation and what it had still said. */
const killedMs = 3000;
/** Read or written at once: as much as a pipe holds (pipe(7)). */
const pieceBytes = 64 * 1024;
/** Where the whole input goes along with the command. In bytes. */
const longestCapturedInput = 1024 * 1024;

/** Its own session, so that a signal reaches all of it and never the agent, in whose process group it would be. */
const wrapper = [
  "umask 077",
  "place=$1; with=$2; shift 2",
  'mkdir "$place" 2>/dev/null && mkfifo "$place/in" "$place/out" "$place/err" 2>/dev/null ||',
  "  { echo cells-no-place; exit 125; }",
  'command -v -- "$1" >/dev/null 2>&1 || { echo "$1: not found in this guest" >"$place/err"; exit 127; }',
  'if command -v setsid >/dev/null 2>&1; then set -- setsid -- "$@"; fi',
  // The end of the input may come once somebody is there who notices it.
  'if [ "$with" = input ]; then exec <"$place/in"; : >"$place/reads"; fi',
  'exec "$@" >"$place/out" 2>"$place/err"',
].join("\n");
/** First the whole session, else (no setsid in the guest) the process alone. */
const killer = 'kill -"$0" -"$1" 2>/dev/null || kill -"$0" "$1"';

const tidier = 'rm -rf "$0"; [ $# = 0 ] || kill -KILL "$@"';

export const runInGuest = (agent: GuestAgent, command: GuestCommand, output: GuestOutput): GuestRun => {
  const run = new Run(agent, command, output);
  return { exitCode: run.result(), signal: (name) => run.signal(name) };
};

type Status = Readonly<Record<string, unknown>>;
const streams = { stdout: "out", stderr: "err" } as const;

class Run {
  readonly #agent: GuestAgent;
  readonly #command: GuestCommand;
  readonly #output: GuestOutput;
  readonly #place = `/tmp/.cells-${randomBytes(12).toString("hex")}`;
  /** Comes behind all that the command has written. No text begins so, and of none but the last is anything held back. */
  readonly #mark = `\u001fcells-${randomBytes(12).toString("hex")}`;
  readonly #early = new Set<GuestSignal>();
  /** On their way into the guest; true: and asked for once more since. */
  readonly #onTheWay = new Map<GuestSignal, boolean>();
  /** What the agent keeps open, by the pipe's name. */
  readonly #handles = new Map<string, number>();
  /** Processes that carry a piece. */
  readonly #carriers = new Set<number>();
  readonly #givenUp = Promise.withResolvers<void>();
  #pid: number | null = null;
  /** The command has ended. */
  #isOver = false;
  #isTidied = false;

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
    if (name === "KILL") setTimeout(() => this.#givenUp.resolve(), killedMs).unref();
    if (this.#pid === null) this.#early.add(name);
    else if (this.#onTheWay.has(name)) this.#onTheWay.set(name, true);
    else this.#send(name, this.#pid);
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
    await this.#execute("/bin/sh", ["-c", killer, name, String(pid)]).catch(() => undefined);
  }

  async result(): Promise<number> {
    const { command, timeoutMs, input } = this.#command;
    if (command.length === 0) throw new Error("the command is empty: name a program to run in the guest");
    const withInput = input === null ? "none" : "input";
    try {
      await this.#start("/bin/sh", ["-c", wrapper, "cells-exec", this.#place, withInput, ...command]);
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

  async #start(path: string, arg: readonly string[], input: Buffer | null = null): Promise<void> {
    this.#pid = await this.#execute(path, arg, input, startMs);
    for (const name of this.#early) this.signal(name);
    this.#early.clear();
  }

  /** Its process id in the guest. */
  async #execute(
    path: string,
    arg: readonly string[],
    input: Buffer | null = null,
    withinMs = answerMs,
  ): Promise<number> {
    const data = input === null ? {} : { "input-data": input.toString("base64") };
    const started = await this.#agent.call("guest-exec", { path, arg, "capture-output": true, ...data }, withinMs);
    return Number(started.pid);
  }

  #status(pid: number | null): Promise<Status> {
    return this.#agent.call("guest-exec-status", { pid }, answerMs);
  }

  /** What is known of a process that has ended. */
  async #ended(pid: number | null): Promise<Status> {
    for (let pauseMs: number = pauses.shortestMs; ; pauseMs = Math.min(pauses.longestMs, pauseMs * 1.5)) {
      const status = await this.#status(pid);
      if (status.exited === true) return status;
      await sleep(pauseMs);
    }
  }

  /** Runs what carries a piece. What is known of it at its end. */
  async #carry(path: string, arg: readonly string[], input: Buffer | null = null): Promise<Status> {
    const pid = await this.#execute(path, arg, input);
    this.#carriers.add(pid);
    // It was on its way while everything was tidied away, and may wait for a pipe that nobody has open any more.
    if (this.#isTidied) await this.#execute("/bin/sh", ["-c", tidier, this.#place, String(pid)]);
    const status = await this.#ended(pid);
    this.#carriers.delete(pid);
    return status;
  }

  /** Null: the guest has no place for the pipes, and the command did not run. */
  async #follow(): Promise<number | null> {
    try {
      for (const pipe of ["out", "err", ...(this.#command.input === null ? [] : ["in"])]) {
        const ended = await this.#open(pipe);
        if (ended !== null) return said(ended) === "cells-no-place\n" ? null : exitCodeOf(ended);
      }
      const work = this.#carryAll();
      // Whoever gave it up does not hear what becomes of it.
      work.catch(() => undefined);
      return await Promise.race([work, this.#givenUp.promise.then(() => 128 + 9)]);
    } catch (error) {
      if (this.#pid !== null && !this.#isOver) this.#kill("KILL", this.#pid);
      throw error;
    } finally {
      this.#isOver = true;
      this.#tidy().catch(() => undefined);
    }
  }

  async #carryAll(): Promise<number> {
    const output = Promise.all([this.#take("stdout"), this.#take("stderr")]);
    const broken = new Promise<never>((_, reject) => {
      output.catch(reject);
      this.#feed().catch(reject);
    });
    const status = await Promise.race([this.#ended(this.#pid), broken]);
    this.#isOver = true;
    const writers = 'printf %s "$0" >"$1"; printf %s "$0" >"$2"';
    const marked = this.#carry("/bin/sh", ["-c", writers, this.#mark, this.#at("out"), this.#at("err")]);
    await Promise.all([output, marked]);
    return exitCodeOf(status);
  }

  #at(name: string): string {
    return `${this.#place}/${name}`;
  }

  /** Opens a pipe as soon as there is one. Null: it is open; else how the command has ended before. */
  async #open(pipe: string): Promise<Status | null> {
    for (;;) {
      const handle = await this.#opened(pipe, "r+");
      if (handle !== null) {
        this.#handles.set(pipe, handle);
        return null;
      }
      const status = await this.#status(this.#pid);
      if (status.exited === true) return status;
      await sleep(pauses.shortestMs);
    }
  }

  /** Null: there is no such file. */
  async #opened(name: string, mode: "r" | "r+"): Promise<number | null> {
    try {
      const opened = await this.#agent.call("guest-file-open", { path: this.#at(name), mode }, answerMs);
      return Number(opened.value);
    } catch (error) {
      if (/No such file/.test((error as Error).message)) return null;
      throw error;
    }
  }

  async #close(pipe: string): Promise<void> {
    const handle = this.#handles.get(pipe);
    this.#handles.delete(pipe);
    if (handle !== undefined) await this.#agent.call("guest-file-close", { handle }, answerMs);
  }

  /** Gives what the command writes, up to the mark. */
  async #take(stream: keyof typeof streams): Promise<void> {
    const mark = Buffer.from(this.#mark);
    const from = [`if=${this.#at(streams[stream])}`, `bs=${pieceBytes}`, "count=1"];
    let held: Buffer = Buffer.alloc(0);
    for (;;) {
      const status = await this.#carry("dd", from);
      if (exitCodeOf(status) !== 0) throw new Error("the guest's `dd` cannot read what the command writes");
      const bytes = Buffer.concat([held, dataOf(status)]);
      const end = bytes.indexOf(mark);
      const whole = end >= 0 ? end : bytes.length - begunLength(bytes, mark);
      if (whole > 0) await this.#output.output(stream, bytes.subarray(0, whole));
      if (end >= 0) return;
      held = bytes.subarray(whole);
    }
  }

  async #feed(): Promise<void> {
    const { input } = this.#command;
    if (input === null) return;
    for await (const piece of input) {
      if (this.#isOver) return;
      const status = await this.#carry("dd", [`of=${this.#at("in")}`, `bs=${pieceBytes}`], piece);
      if (this.#isOver) return;
      if (exitCodeOf(status) !== 0) throw new Error("the guest's `dd` cannot write what the command reads");
    }
    // Who opens a pipe that nobody has open for writing any more would wait for ever.
    for (let handle = null; handle === null && !this.#isOver; ) {
      handle = await this.#opened("reads", "r");
      if (handle === null) await sleep(pauses.shortestMs);
      else await this.#agent.call("guest-file-close", { handle }, answerMs);
    }
    await this.#close("in");
  }

  /** Nothing of it is left in the guest, but for what the command itself has left. */
  async #tidy(): Promise<void> {
    this.#isTidied = true;
    const tidied = this.#execute("/bin/sh", ["-c", tidier, this.#place, ...[...this.#carriers].map(String)]);
    await Promise.all([tidied, ...[...this.#handles.keys()].map((pipe) => this.#close(pipe))]);
  }

  /** The agent's own way, for guests that have no other. */
  async #runCaptured(why: string): Promise<number> {
    const { command, timeoutMs } = this.#command;
    this.#output.notice(`this guest has ${why}: its output comes when the command has ended`);
    const [program = "", ...arg] = command;
    await this.#start(program, arg, await this.#wholeInput());
    const end = timeoutMs === null ? null : performance.now() + timeoutMs;
    for (let pauseMs = 20; ; pauseMs = Math.min(pauses.longestMs, pauseMs * 1.5)) {
      const status = await this.#status(this.#pid);
      if (status.exited === true) {
        await this.#output.output("stdout", dataOf(status));
        await this.#output.output("stderr", dataOf(status, "err-data"));
        return exitCodeOf(status);
      }
      if (end !== null && performance.now() > end) {
        this.signal("KILL");
        throw new CommandTimeout(`"${program}" did not end within ${(timeoutMs ?? 0) / 1000} s`);
      }
      await sleep(pauseMs);
    }
  }

  async #wholeInput(): Promise<Buffer | null> {
    const { input } = this.#command;
    if (input === null) return null;
    const pieces: Buffer[] = [];
    let length = 0;
    for await (const piece of input) {
      pieces.push(piece);
      length += piece.length;
      if (length > longestCapturedInput)
        throw new Error(
          `the input is longer than ${longestCapturedInput / 1024 / 1024} MiB, and this guest takes no more at once`,
        );
    }
    return Buffer.concat(pieces);
  }
}

const dataOf = (status: Status, field: "out-data" | "err-data" = "out-data"): Buffer => {
  const data = status[field];
  return typeof data === "string" ? Buffer.from(data, "base64").subarray(0, outputLimit) : Buffer.alloc(0);
};
const said = (status: Status): string => dataOf(status).toString("utf8");
const exitCodeOf = ({ exitcode, signal }: Status): number =>
  typeof exitcode === "number" ? exitcode : 128 + (typeof signal === "number" ? signal : 0);

/** How many bytes at the end may be the mark's beginning. */
const begunLength = (bytes: Buffer, mark: Buffer): number => {
  for (let length = Math.min(bytes.length, mark.length - 1); length > 0; length -= 1)
    if (bytes.subarray(bytes.length - length).equals(mark.subarray(0, length))) return length;
  return 0;
};
