import { createServer, type Server } from "node:https";
import type { FastifyInstance, FastifyServerFactory } from "fastify";
import type { ProcessConfiguration } from "../../runtime/installation.ts";
import { type Credentials, followCredentials, readCredentials } from "../../runtime/transport/mutual-tls.ts";

/** What a client never begins to ask ends; a session or an upload may last. */
const headersTimeoutMs = 30_000;

/** With the chain to the end, so that a client that knows the authority by its fingerprint alone can follow it. */
const shown = ({ cert, ca, key, minVersion }: Credentials): Omit<Credentials, "ca"> => ({
  cert: Buffer.concat([cert, ca]),
  key,
  minVersion,
});

/** HTTPS with the certificate of this process, whichever that is by then. Clients show a credential and no certificate. */
export const overTls =
  (configuration: ProcessConfiguration): FastifyServerFactory =>
  (handler) => {
    const server: Server = createServer(shown(readCredentials(configuration)), handler);
    server.requestTimeout = 0;
    server.headersTimeout = headersTimeoutMs;
    const forget = followCredentials(configuration, (renewed) => server.setSecureContext(shown(renewed)));
    server.once("close", forget);
    return server;
  };

export interface Place {
  readonly listen?: { readonly address: string; readonly port: number };
  readonly listenFd?: number;
}

/** Resolves when it listens: at the address, or on the socket that was handed over. Rejects when it cannot. */
export async function listenAt(app: FastifyInstance, { listen, listenFd = -1 }: Place): Promise<void> {
  await app.ready();
  await new Promise<void>((resolve, reject) => {
    app.server.once("error", reject);
    const at = listen === undefined ? { fd: listenFd } : { host: listen.address, port: listen.port };
    app.server.listen(at, resolve);
  });
}

/** The same over TLS at a second place, for who asks from inside the installation. Resolves to how it ends. */
export async function listenInside(
  app: FastifyInstance,
  configuration: ProcessConfiguration,
  { address, port }: { readonly address: string; readonly port: number },
): Promise<() => void> {
  const server = overTls(configuration)((incoming, outgoing) => app.server.emit("request", incoming, outgoing), {});
  server.on("upgrade", (...upgrade) => app.server.emit("upgrade", ...upgrade));
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen({ host: address, port }, resolve);
  });
  return () => {
    server.close();
    (server as Server).closeAllConnections();
  };
}
