import { readFileSync } from "node:fs";
import type { EventName } from "../../core/telemetry/event-names.ts";

/**
 * A line for what went wrong where no observer is at hand, on standard error, in the form of all lines. The stack may hold
 * what is nobody else's business, so it is in this process's own log and nowhere else.
 */
export const writeErrorLine = (service: string, event: EventName, error: Error): void => {
  const fields = { why: error.message, stack: error.stack ?? null };
  const time = new Date().toISOString();
  process.stderr.write(`${JSON.stringify({ level: "error", time, service, event, fields })}\n`);
};

/** A process that could not start says so under the name in its configuration, if that can be read, and ends. */
export const failStart = (configurationFile: string | undefined, error: Error): never => {
  let name = configurationFile ?? "unknown";
  try {
    name = String(JSON.parse(readFileSync(name, "utf8")).name ?? name);
  } catch {
    // The file is what is wrong, and names itself.
  }
  writeErrorLine(name, "process/failed", error);
  process.exit(1);
};
