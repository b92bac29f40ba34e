import { printable } from "../../model/diagnostics/render-diagnostic.ts";
import type { Client } from "../connection/client.ts";
import { cellOfPath } from "../context/context.ts";
import { CommandFailure, exitCodes } from "../terminal/failure.ts";
import { inWords, openSession, type Session } from "./session.ts";

/**
 * A command in a guest, whose output this command needs. Who is root in the guest decides what its agent says, and whether it says anything: so each
 * has bounds here, in time and in what is kept, and what is over them ends with a sentence.
 */
export interface RunBounds {
  /** In all; absent: for as long as something comes or is taken. */
  readonly limitMs?: number;
  /** Without a byte that came or was taken. */
  readonly quietMs?: number;
  /** Of standard output, in bytes; absent: any number, since it is not kept. */
  readonly mostBytes?: number;
}

/** Output that came and is not in a file yet. In bytes. */
const longestUntaken = 1024 * 1024;
/** Of standard error, the beginning of which says what was wrong. In bytes. */
const longestSaid = 8 * 1024;
/** Longer than a host waits for an agent: its sentence says more. */
const longestQuietMs = 90_000;

export interface Ran {
  readonly exitCode: number;
  /** What it wrote to its standard error; no more than its beginning. */
  readonly said: string;
}
interface Ways {
  readonly input?: AsyncIterable<Buffer> | null;
  readonly output?: (bytes: Buffer) => Promise<void> | null;
}

/** A command in the guest, to its end; its output as it comes. */
export const run = async (
  client: Client,
  vm: string,
  command: readonly string[],
  { input = null, output = () => null, ...bounds }: Ways & RunBounds = {},
): Promise<Ran> => {
  const { cell, path } = cellOfPath(vm);
  const said = new Beginning(longestSaid);
  let session: Session | null = null;
  let failure: Error | null = null;
  /** The first reason counts. The host ends the command once its client is gone. */
  const stop = (error: Error): void => {
    failure ??= error;
    session?.close();
  };
  let taking: Promise<void> = Promise.resolve();
  let [untaken, came] = [0, 0];
  const patience = new Patience(vm, bounds, () => untaken > 0, stop);
  /** What is not written yet is bounded: the session waits for a slow disk. */
  const take = (bytes: Buffer): void => {
    came += bytes.length;
    if (came > (bounds.mostBytes ?? Number.POSITIVE_INFINITY)) {
      stop(refusal(`${vm}: its guest says more than ${bounds.mostBytes} bytes where a few were asked for`));
      return;
    }
    untaken += bytes.length;
    if (untaken > longestUntaken) session?.pause();
    taking = taking.then(async () => {
      await output(bytes);
      untaken -= bytes.length;
      if (untaken === 0) session?.resume();
    });
    taking.catch(stop);
  };
  try {
    const opened = await openSession(
      client,
      { cell, vm: path, verb: "exec" },
      {
        output: (channel, bytes) => {
          patience.refresh();
          if (channel === "error") said.add(bytes);
          else if (failure === null) take(bytes);
        },
        message: () => patience.refresh(),
      },
    );
    session = opened;
    // Its time may have gone by before it was there.
    if (failure !== null) throw failure;
    opened.send({ kind: "run", command, input: input !== null, timeoutMs: bounds.limitMs ?? null });
    if (input !== null) {
      for await (const piece of input) {
        if (!(await opened.write(piece))) break;
        patience.refresh();
      }
      opened.send({ kind: "input-end" });
    }
    const ending = await opened.ended;
    if (failure !== null) throw failure;
    await taking;
    if (ending.kind === "exited") return { exitCode: ending.exitCode, said: said.text() };
    const why = ending.kind === "ended" ? ending.sentence : "the connection to it ended";
    throw new CommandFailure(ending.kind === "ended" ? exitCodes.refused : exitCodes.unreachable, `${vm}: ${why}`);
  } catch (error) {
    session?.close();
    throw error;
  } finally {
    patience.end();
  }
};

const refusal = (sentence: string): CommandFailure => new CommandFailure(exitCodes.refused, sentence);

/** Two clocks: one for all of it, one that begins anew with each byte. */
class Patience {
  readonly #quiet: NodeJS.Timeout;
  readonly #limit: NodeJS.Timeout | null;

  /** @param isOurs what is waited for is this machine, and not the guest */
  constructor(
    vm: string,
    { limitMs, quietMs = longestQuietMs }: RunBounds,
    isOurs: () => boolean,
    stop: (error: Error) => void,
  ) {
    const wayOut = "`cells why` says how it is, and `cells console` reaches it without its agent";
    this.#quiet = setTimeout(() => {
      if (isOurs()) this.#quiet.refresh();
      else stop(refusal(`${vm}: its guest has said and taken nothing for ${inWords(quietMs)}; ${wayOut}`));
    }, quietMs);
    this.#limit =
      limitMs === undefined
        ? null
        : setTimeout(
            () => stop(refusal(`${vm}: its guest was not done after ${inWords(limitMs)}; ${wayOut}`)),
            limitMs,
          );
  }
  refresh(): void {
    this.#quiet.refresh();
  }
  end(): void {
    clearTimeout(this.#quiet);
    if (this.#limit !== null) clearTimeout(this.#limit);
  }
}

/** Of bytes that come, the first ones. */
export class Beginning {
  readonly #most: number;
  readonly #kept: Buffer[] = [];
  #bytes = 0;

  constructor(most: number) {
    this.#most = most;
  }
  /** False: some of it is left out. */
  add(bytes: Buffer): boolean {
    const room = this.#most - this.#bytes;
    const kept = bytes.subarray(0, room);
    // A copy: a part of a large buffer would keep all of it.
    if (kept.length > 0) this.#kept.push(Buffer.from(kept));
    this.#bytes += kept.length;
    return bytes.length <= room;
  }
  text(): string {
    return printable(Buffer.concat(this.#kept).toString("utf8").trim());
  }
  whole(): Buffer {
    return Buffer.concat(this.#kept);
  }
}
