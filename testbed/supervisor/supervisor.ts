import { createObserver, lineWriterTo, logFatalErrors } from "../../runtime/observation/observer.ts";
import { listenDescriptor } from "../configuration.ts";
import { readJson } from "../files.ts";
import { Installation } from "../installation.ts";
import { places } from "../places.ts";
import { relayToGateway } from "../self-hosted.ts";
import { BoundedLog } from "./bounded-log.ts";
import type { Instructions } from "./instructions.ts";
import { supervisorServer } from "./supervisor-api.ts";

/**
 * Runs inside the testbed's private namespaces, as the child of process 1: makes the members' machines and keeps their
 * processes running until SIGTERM. When it ends, process 1 ends, and with it every process of the testbed.
 */
const instructionsFile = process.argv[2];
if (instructionsFile === undefined) throw new Error("usage: supervisor.ts INSTRUCTIONS");
const instructions = readJson<Instructions>(instructionsFile);
if (instructions === undefined) throw new Error(`${instructionsFile} is missing`);

const { supervisorSocket, logs } = places(instructions.directory);
const observer = createObserver("supervisor", lineWriterTo(new BoundedLog(`${logs}/supervisor.log`)));
const { log } = observer;
logFatalErrors(observer);
const installation = new Installation(instructions, log);
const server = supervisorServer(installation, observer.events, places(instructions.directory));

process.once("SIGTERM", () => {
  log("supervisor/stopping", {});
  server.close();
  installation.stop().then(() => process.exit(0));
});

server.listen(supervisorSocket, () => log("supervisor/serving", { socket: supervisorSocket }));
await installation.start();
const { profile } = installation;
for (const [at, role] of installation.outside().entries()) {
  if (profile === undefined) break;
  const relay = await relayToGateway(places(instructions.directory), profile, role, listenDescriptor + at);
  relay.on("error", (error) => log("supervisor/relay-failed", { why: error.message }));
}
log("supervisor/started", { members: installation.status().length });
