import { CommanderError } from "commander";
import { createProgram } from "./program/program.ts";
import { CommandFailure, detailedExitCode, exitCodes } from "./terminal/failure.ts";
import { Interrupted } from "./terminal/interrupted.ts";

/** The last step: an expected end becomes a text and an exit code. Anything else is a fault of ours, with its stack. */
const report = (error: unknown): number => {
  // 2 says that something would change there.
  const usage = process.argv.includes(detailedExitCode) ? exitCodes.refused : exitCodes.usage;
  if (error instanceof CommanderError) return error.exitCode === 0 ? exitCodes.ok : usage;
  if (!(error instanceof CommandFailure)) {
    process.stderr.write(`${error instanceof Error ? error.stack : String(error)}\n`);
    return exitCodes.refused;
  }
  process.stderr.write(`${error.message}\n`);
  if (error instanceof Interrupted) process.exit(error.exitCode);
  return error.exitCode === exitCodes.usage ? usage : error.exitCode;
};

// A reader that has seen enough (`cells events | head`) is no failure.
process.stdout.on("error", (error: NodeJS.ErrnoException) => process.exit(error.code === "EPIPE" ? 0 : 1));

// It is about this program (see `cells`). What this one starts is run by other users as well, who have their own.
delete process.env.NODE_COMPILE_CACHE;

try {
  await createProgram().parseAsync();
} catch (error) {
  process.exitCode = report(error);
}
