import type { Command } from "commander";
import type { Context } from "./context.ts";

/**
 * Adds commands below `parent`. `context` is asked for when a command runs; `withHelp` puts a remark, examples and exit codes
 * behind a command's help.
 */
export type Register = (
  parent: Command,
  context: () => Context,
  withHelp: (command: Command, examples: readonly string[], remark?: string) => Command,
) => void;
