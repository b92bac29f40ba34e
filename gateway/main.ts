import { readFileSync } from "node:fs";
import type { ProcessConfiguration } from "../runtime/installation.ts";

/** `node gateway/main.ts CONFIG.json`: serves the contract, or a personality, at the place that the configuration names. */
const [, , file] = process.argv;
if (file === undefined) {
  process.stderr.write("usage: node gateway/main.ts CONFIG.json\n");
  process.exit(2);
}
const configuration = JSON.parse(readFileSync(file, "utf8")) as ProcessConfiguration;
if (configuration.role === "gateway") await (await import("./run.ts")).runGateway(configuration);
else await (await import("./shared/run.ts")).runPersonality(configuration);
