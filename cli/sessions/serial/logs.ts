import { setTimeout as sleep } from "node:timers/promises";
import { type Context, cellOfPath } from "../../context/context.ts";
import { CommandFailure, exitCodes } from "../../terminal/failure.ts";
import { type Ending, isPassing, onHost, openSession, type Session } from "../session.ts";
import { withoutQueries } from "./replay.ts";

/** `cells logs`: what a VM has written to its serial console, as its host has recorded it; nothing is typed. */
export interface LogsOptions {
  /** Goes on with what comes, and with the VM's next incarnation, until Ctrl-C. */
  readonly follow: boolean;
  /** Of this incarnation alone, which may have ended; null: of the one that runs. */
  readonly incarnation: number | null;
}

const pauseMs = 1000;

/** Beside the guest's own output, which has the standard output for itself. */
const say = (sentence: string): void => void process.stderr.write(`[${sentence}]\n`);

/** One session: what was recorded, and with `follow` what comes until it ends. */
const show = async (context: Context, vmText: string, options: LogsOptions, known: number | null) => {
  const { follow, incarnation: asked } = options;
  const { cell, path } = cellOfPath(vmText);
  let session: Session | null = null;
  let isOver = false;
  const left = (): void => {
    isOver = true;
    session?.close();
  };
  let past = 0;
  let incarnation = known;
  let another: number | null = null;
  let host: string | null = null;
  let all = "";
  const decoder = new TextDecoder();
  const line = (text: string): string => `${JSON.stringify({ vm: vmText, incarnation, host, text })}\n`;
  /** @returns false: no more is taken for now */
  const put = (bytes: Buffer): boolean => {
    // What the guest has asked a terminal is not for this one, whose answers would be typed into somebody's shell.
    if (!context.json) return process.stdout.write(process.stdout.isTTY ? withoutQueries(bytes) : bytes);
    const text = decoder.decode(bytes, { stream: true });
    if (follow) return text === "" || process.stdout.write(line(text));
    all += text;
    return true;
  };
  session = await openSession(
    context.client(),
    { cell, vm: path, verb: "console", ...(asked === null ? {} : { incarnation: asked }) },
    {
      output: (_channel, bytes) => {
        if (another !== null) return;
        if (!put(bytes)) {
          session?.pause();
          process.stdout.once("drain", () => session?.resume());
        }
        past -= bytes.length;
        if (!follow && past <= 0) left();
      },
      message: (message) => {
        if (message.kind === "lost")
          say(`${message.bytes} bytes are missing here: they came faster than they were taken`);
        if (message.kind !== "opened") return;
        if (asked !== null && message.incarnation !== asked) {
          another = message.incarnation;
          left();
          return;
        }
        past = message.pastBytes;
        host = message.host;
        if (follow && message.incarnation !== incarnation)
          say(`incarnation ${message.incarnation} of ${vmText}${onHost(message.host)}`);
        incarnation = message.incarnation;
        if (!follow && past === 0) left();
      },
    },
  );
  if (isOver) session.close();
  const ending = await session.ended;
  if (another !== null && known === null) throw notThere(vmText, asked ?? 0, another);
  // Where it ended otherwise that is told, and nothing is printed that looks whole.
  if (context.json && !follow && ending.kind === "left") process.stdout.write(line(all + decoder.decode()));
  return { incarnation, ending };
};

const notThere = (path: string, asked: number, runs: number): CommandFailure =>
  new CommandFailure(
    exitCodes.refused,
    asked > runs
      ? `${path} has had no incarnation ${asked} yet: incarnation ${runs} runs`
      : `the record of incarnation ${asked} of ${path} went with it, since a service on the way is of a version before: incarnation ${runs} runs`,
  );

const failureOf = (path: string, ending: Ending): CommandFailure =>
  ending.kind === "ended"
    ? new CommandFailure(exitCodes.refused, `the console of ${path} ended: ${ending.sentence}`)
    : new CommandFailure(
        exitCodes.unreachable,
        `the connection to the console of ${path} ended: a service on the way has stopped`,
      );

export const logs = async (context: Context, vmText: string, options: LogsOptions): Promise<void> => {
  let known: number | null = null;
  for (let isFirst = true; ; isFirst = false) {
    try {
      const { incarnation, ending } = await show(context, vmText, options, known);
      known = incarnation;
      // The next one is another's; that the connection has ended says nothing of the machine.
      const isOver = options.incarnation !== null && ending.kind === "ended" && ending.cause === "machine-ended";
      if (ending.kind === "left" || (options.follow && isOver)) return;
      if (!options.follow) throw failureOf(vmText, ending);
      say(`${failureOf(vmText, ending).message}; waiting for more, Ctrl-C leaves`);
    } catch (error) {
      // A first one that is refused is an error; one that was there before comes again.
      if (!options.follow || isFirst || !(error instanceof CommandFailure && isPassing(error))) throw error;
    }
    await sleep(pauseMs);
  }
};
