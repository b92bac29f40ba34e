import type { ExecAnswer } from "../../model/api.ts";
import { type Context, cellOfPath, printJson } from "../context/context.ts";
import { CommandFailure, exitCodes, usage } from "../terminal/failure.ts";
import { Beginning } from "./run-in-guest.ts";
import { type Ending, openSession, type Session } from "./session.ts";

/** `cells exec`: a command in a guest, its output as it comes, its exit code as ours. */
export interface ExecOptions {
  /** Null: as long as it wants. */
  readonly timeoutMs: number | null;
  /** Standard input goes to the command. */
  readonly stdin: boolean;
}

/** Ctrl-C once asks the command to end, twice ends it, three times leaves it. */
const interrupts = ["INT", "KILL"] as const;
const interruptedCode = 130;
/** Of each of the two streams, in bytes: who runs something in a guest need not know how much it says. */
const mostInJson = 16 * 1024 * 1024;

export const exec = async (
  context: Context,
  vmText: string,
  command: readonly string[],
  { timeoutMs, stdin }: ExecOptions,
): Promise<void> => {
  if (command.length === 0) throw usage("which command? for example: cells exec shop/web/vm -- uname -a");
  const { cell, path } = cellOfPath(vmText);
  const collected = { output: new Beginning(mostInJson), error: new Beginning(mostInJson) } as const;
  let isTooLong = false;
  const streams = { output: process.stdout, error: process.stderr } as const;
  let session: Session | null = null;
  const opened = await openSession(
    context.client(),
    { cell, vm: path, verb: "exec" },
    {
      output: (channel, bytes) => {
        if (context.json) {
          if (collected[channel].add(bytes)) return;
          isTooLong = true;
          session?.close();
        } else if (!streams[channel].write(bytes)) {
          session?.pause();
          streams[channel].once("drain", () => session?.resume());
        }
      },
      message: (message) => {
        if (message.kind === "notice") context.terminal.warn(message.sentence);
      },
    },
  );
  session = opened;
  if (isTooLong) opened.close();
  const ending = await interruptible(context, opened, async () => {
    opened.send({ kind: "run", command, input: stdin, timeoutMs });
    if (stdin) await giveInput(opened);
  });
  if (isTooLong)
    throw new CommandFailure(
      exitCodes.refused,
      `${vmText}: the command has said more than the ${mostInJson / 1024 / 1024} MiB that are kept for an answer in JSON, and was told to end; without --output json its output comes as it is written, of any length`,
    );
  const exitCode = exitCodeOf(ending, path);
  if (context.json) {
    const [stdout, stderr] = [collected.output, collected.error].map((said) => said.whole().toString("utf8"));
    printJson(context, { exitCode, stdout: stdout ?? "", stderr: stderr ?? "" } satisfies ExecAnswer);
  }
  process.exitCode = exitCode;
};

/** Begins, and waits for the session's end; from the beginning on Ctrl-C is the command's. */
const interruptible = async (context: Context, session: Session, begin: () => Promise<void>): Promise<Ending> => {
  let count = 0;
  const interrupt = (): void => {
    const signal = interrupts[count];
    count += 1;
    if (signal === undefined) {
      session.close();
      return;
    }
    session.send({ kind: "signal", signal });
    const next = count === 1 ? "again kills it" : "once more leaves it to itself";
    context.terminal.warn(`\n${count === 1 ? "interrupting" : "killing"} the command in the guest; Ctrl-C ${next}`);
  };
  // The host ends what its client leaves behind.
  const leave = (): void => session.close();
  process.on("SIGINT", interrupt);
  process.on("SIGTERM", leave);
  process.on("SIGHUP", leave);
  try {
    const [ending] = await Promise.all([session.ended, begin()]);
    return ending;
  } finally {
    process.off("SIGINT", interrupt);
    process.off("SIGTERM", leave);
    process.off("SIGHUP", leave);
  }
};

const exitCodeOf = (ending: Ending, path: string): number => {
  switch (ending.kind) {
    case "exited":
      return ending.exitCode;
    case "left":
      return interruptedCode;
    case "ended":
      throw new CommandFailure(exitCodes.refused, `${path}: ${ending.sentence}`);
    case "broken":
      throw new CommandFailure(
        exitCodes.unreachable,
        `the connection to ${path} ended before the command did: a service on the way has stopped, or the credential was revoked. The command was told to end, too`,
      );
  }
};

/** Standard input as it comes, for as long as the command is there; no more is read than it has room for. */
const giveInput = async (session: Session): Promise<void> => {
  let isOver = false;
  session.ended.then(() => {
    isOver = true;
    // Else this process would wait for an input that nobody wants.
    process.stdin.destroy();
  });
  try {
    for await (const chunk of process.stdin as AsyncIterable<Buffer>) if (!(await session.write(chunk))) return;
    session.send({ kind: "input-end" });
  } catch (error) {
    if (isOver) return;
    session.close();
    throw usage(`standard input cannot be read: ${(error as Error).message}`);
  }
};
