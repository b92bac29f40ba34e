import { CommanderError } from "commander";
import { CommandFailure, exitCodes } from "./failure.ts";
import { createProgram } from "./program.ts";

/** The last step: an expected end becomes a text and an exit code. Anything else is a fault of ours, with its stack. */
const report = (error: unknown): number => {
  if (error instanceof CommanderError) return error.exitCode === 0 ? exitCodes.ok : exitCodes.usage;
  if (!(error instanceof CommandFailure)) {
    process.stderr.write(`${error instanceof Error ? error.stack : String(error)}\n`);
    return exitCodes.refused;
  }
  process.stderr.write(`${error.message}\n`);
  return error.exitCode;
};

// A reader that has seen enough (`cells events | head`) is no failure.
process.stdout.on("error", (error: NodeJS.ErrnoException) => process.exit(error.code === "EPIPE" ? 0 : 1));

try {
  await createProgram().parseAsync();
} catch (error) {
  process.exitCode = report(error);
}
