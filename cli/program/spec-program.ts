import type { Command } from "commander";
import { createContext } from "../context/context.ts";
import { specCommands } from "../spec/commands.ts";
import { assembled, withHelp } from "./assembled.ts";

/**
 * The command line as far as `cells spec …` goes, which asks no gateway: an editor runs it at every save, so that it loads
 * neither what speaks with one nor the other commands.
 */
export const createSpecProgram = (): Command =>
  assembled(
    (output) =>
      createContext(output, () => {
        throw new Error("`cells spec` asks no gateway");
      }),
    (program, context) => specCommands(program, context, withHelp),
  );
