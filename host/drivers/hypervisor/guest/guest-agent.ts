import { randomInt } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { LineLimits } from "../process/bounded-lines.ts";
import type { Rate } from "../process/byte-rate.ts";
import { asRecord, connectLines, type LineSocket } from "../process/lines.ts";

/** At most this much of each output stream is returned, in bytes. */
export const outputLimit = 1024 * 1024;

/** The guest agent of one machine. Its channel carries one command at a time and no ids but those of `guest-sync`. */
export interface GuestAgent {
  /** Runs a command to its end; rejects with a sentence when the agent does not answer or the time is over. */
  exec(command: readonly string[], timeoutMs: number): Promise<GuestResult>;
  /** One command of the agent (QEMU's guest agent protocol), in its turn. Rejects with the guest's sentence, or as above. */
  call(command: string, parameters: unknown, timeoutMs: number): Promise<Readonly<Record<string, unknown>>>;
  /** Since this was made. */
  hasAnswered(): boolean;
  /** The machine has ended, or is not ours to watch any more: what is under way and all that comes later is refused. */
  close(): void;
}

/**
 * The guest writes the agent's side. Nothing is read of it but while an answer is awaited, so that what it says unasked
 * costs the host nothing; and then only so much at a time, in lines that are small in every way.
 */
const rate: Rate = { bytesPerSecond: 8 * 1024 * 1024, burstBytes: 4 * 1024 * 1024 };
/** Before the answer: what earlier commands, given up meanwhile, still said, and no more. */
const mostLines = 256;
const usual: LineLimits = { depth: 16, values: 1024, stringBytes: 256 * 1024, lineBytes: 256 * 1024, lines: mostLines };
/** A command's whole output is in its status, in base64; what is beyond the limit of each stream is not kept. */
const outputBase64 = Math.ceil(outputLimit / 3) * 4;
const withOutput: LineLimits = { ...usual, stringBytes: outputBase64, lineBytes: 2 * outputBase64 + 4096 };

interface Awaited {
  readonly receive: (answer: unknown) => void;
  readonly fail: (error: Error) => void;
  lines: number;
}

export const createGuestAgent = (path: string): GuestAgent => {
  let socket: LineSocket | null = null;
  let awaited: Awaited | null = null;
  let turn: Promise<unknown> = Promise.resolve();
  let closed = false;
  let answered = false;

  /**
   * The VM's next incarnation has its channel at the same place, and QEMU serves one client at a time: who connected once more
   * would shut out everybody who has business there.
   */
  const requireOpen = (): void => {
    if (closed) throw new Error("the guest agent cannot be asked any more: its machine has ended");
  };
  const disconnect = (): void => {
    socket?.close();
    socket = null;
  };
  /** The end of a connection that was given up comes later, when the next one may be in use already: it says nothing of that. */
  const connect = async (): Promise<LineSocket> => {
    const connection: LineSocket = await connectLines(
      path,
      { limits: usual, rate, listens: false },
      {
        message: (answer) => awaited?.receive(answer),
        lines: (count) => {
          if (awaited === null) return;
          awaited.lines += count;
          if (awaited.lines > mostLines) awaited.fail(new Error("the guest agent says what nobody asked it"));
        },
        closed: () => {
          if (socket !== connection) return;
          socket = null;
          awaited?.fail(new Error("the guest agent's channel was closed"));
        },
      },
    );
    return connection;
  };
  /** Sends one message and waits for the first answer that `take` accepts. */
  const exchange = async <T>(
    message: unknown,
    { timeoutMs, limits = usual }: { readonly timeoutMs: number; readonly limits?: LineLimits },
    take: (answer: unknown) => T | undefined,
  ) => {
    requireOpen();
    const connection = socket ?? (await connect());
    socket = connection;
    if (closed) disconnect();
    requireOpen();
    return new Promise<T>((resolve, reject) => {
      const end = (): void => {
        clearTimeout(timer);
        awaited = null;
        connection.listen(false);
      };
      const fail = (error: Error): void => {
        end();
        reject(error);
      };
      const timer = setTimeout(() => fail(new Error("the guest agent does not answer")), Math.max(1, timeoutMs));
      awaited = {
        lines: 0,
        fail,
        receive: (answer) => {
          const taken = take(answer);
          if (taken === undefined) return;
          end();
          resolve(taken);
        },
      };
      connection.limit(limits);
      connection.listen(true);
      connection.send(message);
    });
  };
  /** Discards what earlier, given-up commands may still answer: only an answer with our random id counts. */
  const synchronise = async (deadline: number): Promise<void> => {
    for (;;) {
      const id = randomInt(1, 2 ** 31);
      try {
        const budget = Math.min(1000, deadline - performance.now());
        await exchange({ execute: "guest-sync", arguments: { id } }, { timeoutMs: budget }, (answer) =>
          asRecord(answer).return === id ? true : undefined,
        );
        answered = true;
        return;
      } catch (error) {
        disconnect();
        requireOpen();
        if (performance.now() >= deadline) throw error;
        await sleep(50);
      }
    }
  };
  /** One synchronised command in its turn, so that callers never read each other's answers. */
  const call = (command: string, parameters: unknown, deadline: number): Promise<Readonly<Record<string, unknown>>> => {
    const run = async () => {
      requireOpen();
      await synchronise(deadline);
      const limits = command === "guest-exec-status" ? withOutput : usual;
      const within = { timeoutMs: deadline - performance.now(), limits };
      const answer = await exchange({ execute: command, arguments: parameters }, within, (a) => {
        const fields = asRecord(a);
        return "return" in fields || "error" in fields ? fields : undefined;
      });
      const error = asRecord(answer.error);
      if (typeof error.desc === "string") throw new Error(`the guest refuses: ${inWords(error.desc)}`);
      return typeof answer.return === "number" ? { value: answer.return } : asRecord(answer.return);
    };
    const result = turn.then(run, run);
    turn = result.catch(() => undefined);
    return result;
  };

  return {
    exec: async (command, timeoutMs) => {
      const [program, ...rest] = command;
      if (program === undefined) throw new Error("the command is empty: name a program to run in the guest");
      const deadline = performance.now() + timeoutMs;
      const started = await call("guest-exec", { path: program, arg: rest, "capture-output": true }, deadline);
      for (let pauseMs = 20; ; pauseMs = Math.min(500, pauseMs * 1.5)) {
        const status = await call("guest-exec-status", { pid: started.pid }, deadline);
        if (status.exited === true) return guestResult(status);
        if (performance.now() + pauseMs >= deadline) {
          const graceDeadline = performance.now() + 2000;
          const kill = { path: "/bin/kill", arg: ["-9", String(started.pid)] };
          await call("guest-exec", kill, graceDeadline).catch(() => undefined);
          throw new Error(`"${program}" did not end within ${timeoutMs} ms and was killed`);
        }
        await sleep(pauseMs);
      }
    },
    call: (command, parameters, timeoutMs) => call(command, parameters, performance.now() + timeoutMs),
    hasAnswered: () => answered,
    close: () => {
      closed = true;
      disconnect();
    },
  };
};

/** A guest's words in a sentence of ours: what a terminal would obey is left out, and they are not many. */
const inWords = (text: string): string => text.replace(/[^ -~]/g, "").slice(0, 300);

const guestResult = (status: Readonly<Record<string, unknown>>): GuestResult => {
  const text = (field: unknown): string =>
    typeof field === "string" ? Buffer.from(field, "base64").subarray(0, outputLimit).toString("utf8") : "";
  // As a shell does: 128 + signal when a signal ended it.
  const exitCode =
    typeof status.exitcode === "number"
      ? status.exitcode
      : 128 + (typeof status.signal === "number" ? status.signal : 0);
  return { exitCode, stdout: text(status["out-data"]), stderr: text(status["err-data"]) };
};

export interface GuestResult {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
}
