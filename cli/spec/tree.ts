import { standardPrototypes } from "../../model/cell/schema.ts";
import { smartFrogTree } from "../../model/smartfrog/tree.ts";
import type { Context } from "../context/context.ts";
import { exitCodes, usage } from "../terminal/failure.ts";
import { readBundle } from "./bundle.ts";

/** `cells spec tree FILE.sf`. */

/**
 * Prints one line of JSON in the encoding that recorded outcomes of other implementations have, so that they can be
 * compared. That a file is refused is an outcome as well: it is printed like any other, and the exit code says so.
 */
export const printTree = ({ terminal }: Context, file: string): void => {
  if (!file.endsWith(".sf")) throw usage(`${file}: a tree is made of a SmartFrog file, which ends in \`.sf\``);
  const outcome = smartFrogTree(readBundle(file, "leave-out"), standardPrototypes);
  terminal.print(JSON.stringify(outcome));
  if (!outcome.ok) process.exitCode = exitCodes.refused;
};
