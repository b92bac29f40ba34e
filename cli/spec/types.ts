import { writeFileSync } from "node:fs";
import { typescriptDeclarations } from "../../model/reference/typescript-declarations.ts";
import type { Context } from "../context/context.ts";
import { usage } from "../terminal/failure.ts";

/** `cells spec types`: the types of `cells/model`, for editors and `tsc`, to standard output or into a file. */
export const types = ({ terminal }: Context, out: string | undefined): void => {
  const text = typescriptDeclarations();
  if (out === undefined) {
    process.stdout.write(text);
    return;
  }
  try {
    writeFileSync(out, text);
  } catch (error) {
    throw usage(`cannot write ${out}: ${(error as Error).message}`);
  }
  terminal.print(`${out}: the types of cells/model; docs/typescript.md says how to use them`);
};
