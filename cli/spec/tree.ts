import { standardPrototypes } from "../../model/cell/schema.ts";
import { smartFrogTree } from "../../model/smartfrog/tree.ts";
import type { Context } from "../context/context.ts";
import type { Register } from "../context/register-type.ts";
import { exitCodes, usage } from "../terminal/failure.ts";
import { readBundle } from "./bundle.ts";

/** `cells spec tree FILE.sf`. */
export const registerSpecTree: Register = (spec, context, withHelp) => {
  withHelp(
    spec
      .command("tree")
      .description("show what SmartFrog makes of a file, as JSON: its `sfConfig`, or the phase that refused it")
      .argument("<file>", "a SmartFrog file; what it includes is read with it")
      .action((file) => printTree(context(), file)),
    ["cells spec tree tree.sf"],
  );
};

/**
 * Prints one line of JSON in the encoding that recorded outcomes of other implementations have, so that they can be
 * compared. That a file is refused is an outcome as well: it is printed like any other, and the exit code says so.
 */
const printTree = ({ terminal }: Context, file: string): void => {
  if (!file.endsWith(".sf")) throw usage(`${file}: a tree is made of a SmartFrog file, which ends in \`.sf\``);
  const outcome = smartFrogTree(readBundle(file, "leave-out"), standardPrototypes);
  terminal.print(JSON.stringify(outcome));
  if (!outcome.ok) process.exitCode = exitCodes.refused;
};
