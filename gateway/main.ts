import { readFileSync } from "node:fs";
import { certify } from "../runtime/identity/certify.ts";
import type { ProcessConfiguration } from "../runtime/installation.ts";
import { createObserver, logFatalErrors } from "../runtime/observer.ts";
import { followPeers } from "../runtime/peers-follow.ts";
import { stopAtSignals } from "../runtime/signals.ts";
import { createGateway } from "./gateway.ts";

/** `node gateway/main.ts CONFIG.json`: serves the contract on the listening socket that it was started with. */
const [, , file] = process.argv;
if (file === undefined) {
  process.stderr.write("usage: node gateway/main.ts CONFIG.json\n");
  process.exit(2);
}
const configuration = JSON.parse(readFileSync(file, "utf8")) as ProcessConfiguration;
const observer = createObserver(configuration.name);
logFatalErrors(observer);
await certify(configuration, observer);
if (configuration.followPeers === true) await followPeers(configuration, observer);
const app = createGateway(configuration, observer);
await app.ready();
await new Promise<void>((resolve, reject) => {
  app.server.once("error", reject);
  app.server.listen({ fd: configuration.gateway?.listenFd ?? -1 }, resolve);
});
stopAtSignals(() => app.close());
observer.log("gateway/listening", { fd: configuration.gateway?.listenFd ?? null, pid: process.pid });
