import { readFileSync } from "node:fs";
import type { ProcessConfiguration } from "../runtime/installation.ts";
import { runGateway } from "./run.ts";

/** `node gateway/main.ts CONFIG.json`: serves the contract on the listening socket that it was started with. */
const [, , file] = process.argv;
if (file === undefined) {
  process.stderr.write("usage: node gateway/main.ts CONFIG.json\n");
  process.exit(2);
}
await runGateway(JSON.parse(readFileSync(file, "utf8")) as ProcessConfiguration);
