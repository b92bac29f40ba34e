import { writeFileSync } from "node:fs";
import type { Context } from "../context/context.ts";
import { usage } from "../terminal/failure.ts";

/** Prints a text, or writes it to a file, which may be there already. */
export const putText = ({ terminal }: Context, text: string, file: string | undefined): void => {
  if (file === undefined) {
    terminal.print(text.replace(/\n$/, ""));
    return;
  }
  try {
    writeFileSync(file, text);
  } catch (error) {
    throw usage(`cannot write ${file}: ${error instanceof Error ? error.message : String(error)}`);
  }
};
