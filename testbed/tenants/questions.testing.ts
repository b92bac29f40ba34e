import { cellOfPath } from "../../cli/context/context.ts";
import { CommandFailure, exitCodes } from "../../cli/terminal/failure.ts";
import type { ElementState, InstallationStatus } from "../../model/api.ts";
import { type ElementWithState, elementsOf } from "../../model/contract/follow/rows.ts";
import type { Json } from "../../model/json/json.ts";
import type { Ended } from "../command.ts";
import type { Testbed } from "../harness.ts";

/**
 * What tests ask of a cloud again and again, without a process for each question. Each has a connection of its own, as a command has: one
 * that is kept may lead to a machine that was killed meanwhile, which says nothing of it.
 */
const answerMs = 20_000;
const asking = (withinMs: number) => ({ headers: { connection: "close" }, signal: AbortSignal.timeout(withinMs) });

/** The gateway is away, or went away before its answer was whole. */
const isNoAnswer = (error: unknown): boolean =>
  error instanceof CommandFailure ||
  (error instanceof DOMException && error.name === "TimeoutError") ||
  (error instanceof TypeError && error.message === "terminated");

const orNull = async <T>(question: Promise<T>): Promise<T | null> => {
  try {
    return await question;
  } catch (error) {
    if (isNoAnswer(error)) return null;
    throw error;
  }
};

const modelOf = (t: Testbed, cell: string, path: string): Promise<Json | null> => {
  const question = { query: { state: true }, ...asking(answerMs) };
  return orNull(
    path === ""
      ? t.gateway().ask("readModel", { parameters: { cell }, ...question })
      : t.gateway().ask("readElement", { parameters: { cell, path }, ...question }),
  );
};

/** The installation, as `cells status --output json` has it. Null: nobody answers. */
export const askStatus = (t: Testbed): Promise<InstallationStatus | null> =>
  orNull(t.gateway().ask("readStatus", { parameters: {}, ...asking(answerMs) }));

/** Null: nothing of that name is there, or nobody answers. */
export const stateOf = async (t: Testbed, of: string): Promise<ElementState | null> => {
  const { cell, path, whole } = cellOfPath(of);
  const document = await modelOf(t, cell, whole ? "" : path);
  const { $state } = (document ?? {}) as { readonly $state?: ElementState };
  return $state ?? null;
};

/** Elements of a whole cell, those too that are being taken away. Null as above. */
export const askElements = async (t: Testbed, cell: string): Promise<readonly ElementWithState[] | null> => {
  const document = await modelOf(t, cell, "");
  return document === null ? null : elementsOf(document, "");
};

const execMs = 60_000;
/** A command in a guest, to its end. Where it cannot be run, with the code and the sentence of `cells exec`. */
export const execIn = async (t: Testbed, vm: string, command: readonly string[]): Promise<Ended> => {
  try {
    const { cell, path } = cellOfPath(vm);
    const body = { vm: path, command, timeoutMs: execMs };
    const { exitCode, stdout, stderr } = await t
      .gateway()
      .ask("exec", { parameters: { cell }, body, ...asking(execMs + answerMs) });
    return { code: exitCode, stdout, stderr };
  } catch (error) {
    if (!isNoAnswer(error)) throw error;
    const { message } = error as Error;
    return {
      code: error instanceof CommandFailure ? error.exitCode : exitCodes.unreachable,
      stdout: "",
      stderr: message,
    };
  }
};
