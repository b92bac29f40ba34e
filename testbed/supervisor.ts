import { readJson } from "./files.ts";
import { Installation } from "./installation.ts";
import type { Order } from "./order.ts";
import { places } from "./places.ts";
import { supervisorServer } from "./supervisor-api.ts";

/**
 * Runs inside the testbed's private namespaces, as the child of process 1: makes the members' machines and keeps their
 * processes running until SIGTERM. When it ends, process 1 ends, and with it every process of the testbed.
 */
const orderFile = process.argv[2];
if (orderFile === undefined) throw new Error("usage: supervisor.ts ORDER");
const order = readJson<Order>(orderFile);
if (order === undefined) throw new Error(`${orderFile} is missing`);

const installation = new Installation(order);
const server = supervisorServer(installation);
const { supervisorSocket } = places(order.directory);

const log = (text: string): void => void process.stdout.write(`${new Date().toISOString()} ${text}\n`);

process.once("SIGTERM", () => {
  log("stopping");
  server.close();
  installation.stop().then(() => process.exit(0));
});

server.listen(supervisorSocket, () => log(`serving ${supervisorSocket}`));
await installation.start();
log("every member is started");
