import { readFileSync } from "node:fs";
import type { ProcessConfiguration } from "./installation.ts";
import { failStart } from "./life/error-line.ts";
import { runRole } from "./roles.ts";

/** `node runtime/main.ts CONFIG.json`: runs the core role that the configuration names, until SIGTERM or SIGINT. */
const [, , file] = process.argv;
if (file === undefined) {
  process.stderr.write("usage: node runtime/main.ts CONFIG.json\n");
  process.exit(2);
}
try {
  await runRole(JSON.parse(readFileSync(file, "utf8")) as ProcessConfiguration);
} catch (error) {
  failStart(file, error as Error);
}
