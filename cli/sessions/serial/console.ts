import { setTimeout as sleep } from "node:timers/promises";
import type { SessionMessage } from "../../../model/cell/session-messages.ts";
import { type Context, cellOfPath } from "../../context/context.ts";
import { CommandFailure, exitCodes } from "../../terminal/failure.ts";
import { type Ending, isPassing, onHost, openSession, type Session } from "../session.ts";
import { withoutQueries } from "./replay.ts";

/**
 * `cells console`: this terminal becomes the VM's serial console. Every key goes to the guest, Ctrl-C too; Ctrl-] leaves,
 * as with telnet and virsh. Without a terminal, what comes on standard input is typed, and the end of it is followed by
 * as much of the answer as comes without a pause.
 */
export interface ConsoleOptions {
  /** Goes on with the VM's next incarnation, and after a lost connection. */
  readonly reconnect: boolean;
  /** Without a terminal: leaves when the console was silent this long after the input's end. */
  readonly lingerMs: number;
}

/** Ctrl-]. */
const escapeByte = 0x1d;
const [shortestPauseMs, longestPauseMs] = [500, 4000];

export const openVmConsole = async (context: Context, vmText: string, options: ConsoleOptions): Promise<void> => {
  const seat = new Seat(context, vmText, options);
  const restore = seat.takeTerminal();
  try {
    process.exitCode = await seat.stay();
  } finally {
    restore();
  }
};

/** Where somebody sits: one terminal, and one session after the other. */
class Seat {
  readonly #context: Context;
  readonly #cell: string;
  readonly #path: string;
  readonly #options: ConsoleOptions;
  readonly #interactive = process.stdin.isTTY === true;
  readonly #left = new AbortController();
  #session: Session | null = null;
  #exitCode: number = exitCodes.ok;
  #incarnation: number | null = null;
  #pastBytes = 0;
  #typing: Promise<void> = Promise.resolve();
  #inputEnded = false;
  #quiet: NodeJS.Timeout | null = null;

  constructor(context: Context, vmText: string, options: ConsoleOptions) {
    const { cell, path } = cellOfPath(vmText);
    this.#context = context;
    this.#cell = cell;
    this.#path = path;
    this.#options = options;
  }

  /** Returns how the terminal becomes what it was, which also happens however the process ends. */
  takeTerminal(): () => void {
    const { stdin } = process;
    const ends = { SIGINT: 2, SIGTERM: 15, SIGHUP: 1 } as const;
    const leaveBySignal = (name: NodeJS.Signals): void => {
      this.#exitCode = 128 + (ends[name as keyof typeof ends] ?? 0);
      this.#leave();
    };
    const giveBack = (): void => {
      if (stdin.isRaw !== true) return;
      stdin.setRawMode(false);
      // Colours and the hidden cursor of what ran in the guest would otherwise stay.
      process.stdout.write("\u001b[0m\u001b[?25h");
    };
    process.once("exit", giveBack);
    for (const name of Object.keys(ends)) process.on(name, leaveBySignal);
    stdin.on("data", this.#typed);
    stdin.on("end", this.#endOfInput);
    // Nothing is read before there is somebody to read it.
    stdin.pause();
    return () => {
      giveBack();
      process.off("exit", giveBack);
      for (const name of Object.keys(ends)) process.off(name, leaveBySignal);
      stdin.off("data", this.#typed);
      stdin.off("end", this.#endOfInput);
      stdin.pause();
      stdin.unref?.();
    };
  }

  /** Returns the exit code. */
  async stay(): Promise<number> {
    for (let pauseMs = shortestPauseMs; ; pauseMs = Math.min(longestPauseMs, pauseMs * 2)) {
      const failure = await this.#sit();
      if (failure === null || this.#left.signal.aborted) return this.#exitCode;
      if (!this.#options.reconnect) throw failure;
      if (this.#session !== null) pauseMs = shortestPauseMs;
      this.#session = null;
      this.#goRaw();
      this.#say(`${failure.message}; trying again${this.#interactive ? ", Ctrl-] leaves" : ""}`);
      await sleep(pauseMs, undefined, { signal: this.#left.signal }).catch(() => undefined);
      if (this.#left.signal.aborted) return this.#exitCode;
    }
  }

  /** One session, from its opening to its end. Null when the person has left. */
  async #sit(): Promise<CommandFailure | null> {
    let opened: Session;
    try {
      opened = await openSession(
        this.#context.client(),
        { cell: this.#cell, vm: this.#path, verb: "console" },
        { output: (_channel, bytes) => this.#show(bytes), message: (message) => this.#told(message) },
      );
    } catch (error) {
      // What asking again cannot change is told at once.
      if (!(error instanceof CommandFailure) || !isPassing(error)) throw error;
      return error;
    }
    this.#session = opened;
    if (this.#left.signal.aborted) opened.close();
    this.#goRaw();
    process.stdin.resume();
    if (this.#inputEnded) this.#endOfInput();
    const ending = await opened.ended;
    if (this.#quiet !== null) clearTimeout(this.#quiet);
    this.#quiet = null;
    if (!this.#interactive) process.stdin.pause();
    return this.#outcome(ending);
  }

  /** Every key is the guest's from here on, but one. */
  #goRaw(): void {
    if (!this.#interactive) return;
    process.stdin.setRawMode(true);
    process.stdin.resume();
  }

  #outcome(ending: Ending): CommandFailure | null {
    switch (ending.kind) {
      case "left":
      case "exited":
        this.#say(`left the console of ${this.#path}; the VM goes on`);
        return null;
      case "ended":
        return new CommandFailure(exitCodes.refused, `the console of ${this.#path} ended: ${ending.sentence}`);
      case "broken":
        return new CommandFailure(
          exitCodes.unreachable,
          `the connection to the console of ${this.#path} ended: a service on the way has stopped (the VM need not have), or the credential was revoked`,
        );
    }
  }

  #leave(): void {
    this.#left.abort();
    this.#session?.close();
  }

  readonly #typed = (bytes: Buffer): void => {
    const at = this.#interactive ? bytes.indexOf(escapeByte) : -1;
    const typed = at < 0 ? bytes : bytes.subarray(0, at);
    const session = this.#session;
    if (session !== null && typed.length > 0) {
      // A pipe waits for the guest; a person's few keys need not.
      if (!this.#interactive) process.stdin.pause();
      this.#typing = this.#typing.then(() => session.write(typed)).then(() => void process.stdin.resume());
    }
    if (at >= 0)
      this.#typing.then(
        () => this.#leave(),
        () => this.#leave(),
      );
  };

  readonly #endOfInput = (): void => {
    this.#inputEnded = true;
    if (this.#interactive) this.#leave();
    else this.#typing.then(() => this.#startQuiet());
  };

  #startQuiet(): void {
    if (this.#quiet !== null) clearTimeout(this.#quiet);
    this.#quiet = setTimeout(() => this.#leave(), this.#options.lingerMs);
  }

  #show(bytes: Buffer): void {
    const isPast = this.#pastBytes > 0;
    this.#pastBytes -= Math.min(this.#pastBytes, bytes.length);
    // What the guest asked a terminal long ago must not be answered by this one now: the answer would be typed.
    const shown = isPast && this.#interactive ? withoutQueries(bytes) : bytes;
    const { stdout } = process;
    if (!stdout.write(shown)) {
      this.#session?.pause();
      stdout.once("drain", () => this.#session?.resume());
    }
    if (this.#inputEnded && this.#quiet !== null) this.#startQuiet();
  }

  #told(message: SessionMessage): void {
    switch (message.kind) {
      case "opened":
        this.#pastBytes = message.pastBytes;
        this.#greet(message);
        return;
      case "viewers":
        this.#say(
          message.count === 1
            ? "nobody else is at this console now"
            : `${message.count} are at this console now; all see it, all may type`,
        );
        return;
      case "lost":
        this.#say(`${message.bytes} bytes are missing here: they came faster than this terminal took them`);
        return;
      case "notice":
        this.#say(message.sentence);
    }
  }

  #greet({ incarnation, host, viewers }: Extract<SessionMessage, { kind: "opened" }>): void {
    const known = this.#incarnation;
    this.#incarnation = incarnation;
    const what = known === null ? "" : known === incarnation ? "connected again: " : "started anew: ";
    const others = viewers > 1 ? ` ${viewers} are at it; all see it, all may type.` : "";
    const wayOut = this.#interactive ? " Ctrl-] leaves." : "";
    this.#say(`${what}console of ${this.#path}, incarnation ${incarnation}${onHost(host)}.${others}${wayOut}`);
  }

  /** Beside the guest's own output, which has the standard output for itself. */
  #say(sentence: string): void {
    const newLine = process.stdin.isRaw === true ? "\r\n" : "\n";
    process.stderr.write(`${newLine === "\r\n" ? newLine : ""}[${sentence}]${newLine}`);
  }
}
