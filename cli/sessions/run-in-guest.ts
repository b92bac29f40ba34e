import type { Client } from "../connection/client.ts";
import { cellOfPath } from "../context/context.ts";
import { CommandFailure, exitCodes } from "../terminal/failure.ts";
import { openSession } from "./session.ts";

/** Output that came and is not in a file yet. In bytes. */
const longestUntaken = 1024 * 1024;

export interface Ran {
  readonly exitCode: number;
  /** What it wrote to its standard error. */
  readonly said: string;
}
/** A command in the guest, to its end; its output as it comes. */
export const run = async (
  client: Client,
  vm: string,
  command: readonly string[],
  {
    input = null,
    output = () => null,
  }: { readonly input?: AsyncIterable<Buffer> | null; readonly output?: (bytes: Buffer) => Promise<void> | null } = {},
): Promise<Ran> => {
  const { cell, path } = cellOfPath(vm);
  const said: Buffer[] = [];
  /** What is not written yet is bounded: the session waits for a slow disk. */
  const take = (bytes: Buffer): void => {
    untaken += bytes.length;
    if (untaken > longestUntaken) session.pause();
    taking = taking.then(async () => {
      await output(bytes);
      untaken -= bytes.length;
      if (untaken === 0) session.resume();
    });
  };
  let taking: Promise<void> = Promise.resolve();
  let untaken = 0;
  const session = await openSession(
    client,
    { cell, vm: path, verb: "exec" },
    {
      output: (channel, bytes) => {
        if (channel === "error") said.push(bytes);
        else take(bytes);
      },
      message: () => undefined,
    },
  );
  session.send({ kind: "run", command, input: input !== null, timeoutMs: null });
  if (input !== null) {
    for await (const piece of input) if (!(await session.write(piece))) break;
    session.send({ kind: "input-end" });
  }
  const ending = await session.ended;
  await taking;
  if (ending.kind === "exited") return { exitCode: ending.exitCode, said: Buffer.concat(said).toString("utf8").trim() };
  const why = ending.kind === "ended" ? ending.sentence : "the connection to it ended";
  throw new CommandFailure(ending.kind === "ended" ? exitCodes.refused : exitCodes.unreachable, `${vm}: ${why}`);
};
