import { cellOfPath } from "../../cli/context/context.ts";
import { CommandFailure } from "../../cli/terminal/failure.ts";
import type { ElementState } from "../../model/api.ts";
import { type ElementWithState, elementsOf } from "../../model/contract/follow/rows.ts";
import type { Ended } from "../command.ts";
import type { Testbed } from "../harness.ts";

/** What tests ask of a cell again and again, without a process for each question. */

const orNull = async <T>(question: Promise<T>): Promise<T | null> => {
  try {
    return await question;
  } catch (error) {
    if (error instanceof CommandFailure) return null;
    throw error;
  }
};

/** Null: nothing of that name is there, or nobody answers. */
export const stateOf = async (t: Testbed, of: string): Promise<ElementState | null> => {
  const { cell, path, whole } = cellOfPath(of);
  const document = await orNull(t.gateway().model(cell, whole ? "" : path, true));
  const { $state } = (document ?? {}) as { readonly $state?: ElementState };
  return $state ?? null;
};

/** Elements of a whole cell, those too that are being taken away. Null as above. */
export const askElements = async (t: Testbed, cell: string): Promise<readonly ElementWithState[] | null> => {
  const document = await orNull(t.gateway().model(cell, "", true));
  return document === null ? null : elementsOf(document, "");
};

const execTimeoutMs = 30_000;
/** A command in a guest, to its end. Where it cannot be run, with the code and the sentence of `cells exec`. */
export const execIn = async (t: Testbed, vm: string, command: readonly string[]): Promise<Ended> => {
  try {
    const { cell, path } = cellOfPath(vm);
    const options = { vm: path, command, timeoutMs: execTimeoutMs };
    const { exitCode, stdout, stderr } = await t.gateway().exec(cell, options);
    return { code: exitCode, stdout, stderr };
  } catch (error) {
    if (!(error instanceof CommandFailure)) throw error;
    return { code: error.exitCode, stdout: "", stderr: error.message };
  }
};
