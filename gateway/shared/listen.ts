import { createServer, type Server, type ServerOptions } from "node:https";
import type { SecureContext } from "node:tls";
import type { FastifyInstance, FastifyServerFactory } from "fastify";
import type { ProcessConfiguration } from "../../runtime/installation.ts";
import { type Credentials, followCredentials, readCredentials } from "../../runtime/transport/mutual-tls.ts";
import { type Admits, boundHandshakes } from "./handshakes.ts";
import { boundIdle } from "./idle.ts";

/** What a client never begins to ask ends; a session or an upload may last. */
const headersTimeoutMs = 30_000;
/** Of a request's first line and its headers together; beyond it the answer is 431. */
const mostHeaderBytes = 32 * 1024;

/** With the chain to the end, so that a client that knows the authority by its fingerprint alone can follow it. */
const shown = ({ cert, ca, key, minVersion }: Credentials): Omit<Credentials, "ca"> => ({
  cert: Buffer.concat([cert, ca]),
  key,
  minVersion,
});

export interface ListenLimits {
  /** So many connections that ask nothing are kept. */
  readonly idle?: number;
  readonly handshakes?: Admits;
}
/**
 * HTTPS with the certificate of this process, whichever that is by then. Clients show a credential and no certificate.
 * @param contextFor another one for who asks for this name; null: for nobody
 */
export const overTls =
  (
    configuration: ProcessConfiguration,
    contextFor?: (name: string) => SecureContext | null,
    { idle, handshakes }: ListenLimits = {},
  ): FastifyServerFactory =>
  (handler) => {
    const byName: Pick<ServerOptions, "SNICallback"> =
      contextFor === undefined ? {} : { SNICallback: (name, done) => done(null, contextFor(name) ?? undefined) };
    const server: Server = createServer(
      { ...shown(readCredentials(configuration)), ...byName, maxHeaderSize: mostHeaderBytes },
      handler,
    );
    server.requestTimeout = 0;
    server.headersTimeout = headersTimeoutMs;
    // A door apart hears all of its clients through the gateway, which lets in of each what this would.
    boundHandshakes(server, handshakes, (source) => source === configuration.personality?.gateway.address);
    boundIdle(server, idle);
    const forget = followCredentials(configuration, (renewed) => server.setSecureContext(shown(renewed)));
    server.once("close", forget);
    return server;
  };

export interface Place {
  readonly listen?: { readonly address: string; readonly port: number };
  readonly listenFd?: number;
}

/**
 * Resolves when it listens: at the address, or on the socket that was handed over. Rejects when it cannot. `app.close()` ends it:
 * Fastify itself ends a server that it has made or has listen, and this one it has not.
 */
export async function listenAt(app: FastifyInstance, { listen, listenFd = -1 }: Place): Promise<void> {
  app.addHook("onClose", async () => {
    app.server.close();
    app.server.closeAllConnections();
  });
  await app.ready();
  await new Promise<void>((resolve, reject) => {
    app.server.once("error", reject);
    const at = listen === undefined ? { fd: listenFd } : { host: listen.address, port: listen.port };
    app.server.listen(at, resolve);
  });
}

/** The same over TLS at a second place, for doors apart, which have measured who asks there. Resolves to how it ends. */
export async function listenInside(
  app: FastifyInstance,
  configuration: ProcessConfiguration,
  { address, port }: { readonly address: string; readonly port: number },
): Promise<() => void> {
  const handshakes = (): boolean => true;
  const server = overTls(configuration, undefined, { handshakes })(
    (incoming, outgoing) => app.server.emit("request", incoming, outgoing),
    {},
  );
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
