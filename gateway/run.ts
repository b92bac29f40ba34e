import { createServer } from "node:https";
import type { FastifyServerFactory } from "fastify";
import { certify } from "../runtime/identity/own/certify.ts";
import { followPeers } from "../runtime/identity/own/peers-follow.ts";
import type { ProcessConfiguration } from "../runtime/installation.ts";
import { stopAtSignals } from "../runtime/life/signals.ts";
import { createObserver, logFatalErrors } from "../runtime/observation/observer.ts";
import { type Credentials, followCredentials, readCredentials } from "../runtime/transport/mutual-tls.ts";
import { createGateway } from "./gateway.ts";

/** What a client never begins to ask ends; a session or an upload may last. */
const headersTimeoutMs = 30_000;

/** With the chain to the end, so that a client that knows the authority by its fingerprint alone can follow it. */
const shown = ({ cert, ca, key, minVersion }: Credentials): Omit<Credentials, "ca"> => ({
  cert: Buffer.concat([cert, ca]),
  key,
  minVersion,
});

/** HTTPS with the certificate of this process, whichever that is by then. Clients show a credential and no certificate. */
const overTls =
  (configuration: ProcessConfiguration): FastifyServerFactory =>
  (handler) => {
    const server = createServer(shown(readCredentials(configuration)), handler);
    server.requestTimeout = 0;
    server.headersTimeout = headersTimeoutMs;
    const forget = followCredentials(configuration, (renewed) => server.setSecureContext(shown(renewed)));
    server.once("close", forget);
    return server;
  };

/**
 * Runs the gateway until a signal ends the process: on the listening socket that it was handed, or over TLS at an address
 * of its own. Rejects when it cannot listen.
 */
export async function runGateway(configuration: ProcessConfiguration): Promise<void> {
  const { listen, listenFd } = configuration.gateway ?? {};
  const observer = createObserver(configuration.name);
  logFatalErrors(observer);
  await certify(configuration, observer);
  if (configuration.followPeers === true) await followPeers(configuration, observer);
  const app = createGateway(configuration, observer, listen === undefined ? undefined : overTls(configuration));
  await app.ready();
  await new Promise<void>((resolve, reject) => {
    app.server.once("error", reject);
    const at = listen === undefined ? { fd: listenFd ?? -1 } : { host: listen.address, port: listen.port };
    app.server.listen(at, resolve);
  });
  stopAtSignals(() => app.close());
  const where = listen === undefined ? { fd: listenFd ?? null } : { address: listen.address, port: listen.port };
  observer.log("gateway/listening", { ...where, pid: process.pid });
}
