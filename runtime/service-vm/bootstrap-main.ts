import { readFileSync } from "node:fs";
import type { ProcessConfiguration } from "../installation.ts";
import { failStart } from "../life/error-line.ts";
import { runRole } from "../roles.ts";

/**
 * `node runtime/service-vm/bootstrap-main.ts ROLES.json`: the services of the installation's birth in one process, before there is a
 * VM for them (decision 31). The file holds their configurations, in the order in which they start: who enrols comes after
 * the authority. A Host Manager starts it, is told when all run, and ends it; it does not outlive that one.
 */
const [, , file] = process.argv;
const main = async (): Promise<void> => {
  if (file === undefined || process.send === undefined)
    throw new Error("usage: node runtime/service-vm/bootstrap-main.ts ROLES.json, started by a Host Manager");
  process.once("disconnect", () => process.exit(1));
  for (const configuration of JSON.parse(readFileSync(file, "utf8")) as readonly ProcessConfiguration[])
    await runRole(configuration);
  process.send("running");
};

main().catch((error: Error) => failStart(file, error));
