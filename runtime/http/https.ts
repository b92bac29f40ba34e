import type {
  ClientRequest,
  IncomingHttpHeaders,
  IncomingMessage,
  OutgoingHttpHeaders,
  ServerResponse,
} from "node:http";
import { Agent, createServer, request, type Server } from "node:https";
import type { Socket } from "node:net";
import { type Duplex, Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { TLSSocket } from "node:tls";
import type { LogLine } from "../../core/distribution/node/types.ts";
import { user } from "../../core/documents/permissions.ts";
import type { EventName } from "../../core/telemetry/event-names.ts";
import type { Metric } from "../../core/telemetry/metrics.ts";
import type { PeerName } from "../../model/cell/identifiers.ts";
import { type ProcessConfiguration, ports } from "../installation.ts";
import { writeErrorLine } from "../life/error-line.ts";
import { addressOf, createStrangers } from "../transport/admission.ts";
import { createJudge, expectCurrent, type Judge } from "../transport/judge.ts";
import { clientCredentials, followCredentials, readCredentials, tlsFault } from "../transport/mutual-tls.ts";
import { findPeer } from "../transport/peers.ts";
import { createRefusals, type Refusals, reasonOf } from "../transport/refusals.ts";
import type { PeerHandler } from "./peer-handler.ts";

/** A request to leave HTTP for another protocol. The handler answers on the socket, or destroys it. */
export interface PeerUpgrade {
  readonly peer: PeerName;
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  readonly raw: IncomingMessage;
  readonly socket: Duplex;
  /** What came right behind the request. */
  readonly head: Buffer;
}
export type PeerUpgradeHandler = (upgrade: PeerUpgrade) => void | Promise<void>;

export interface ServeOptions {
  /** Clients without a certificate may connect, too. */
  readonly users?: boolean;
  /** The process' (`observation/observer.ts`): it counts and logs what is refused. */
  readonly observer?: {
    log(event: EventName, fields: LogLine["fields"]): void;
    measures(collect: () => readonly Metric[]): () => void;
  };
}
export interface PeerServer {
  readonly port: number;
  /** Ends every connection and the listener. */
  stop(): Promise<void>;
}

const answerFailure = (service: string, response: ServerResponse, error: Error): void => {
  if (response.headersSent) {
    response.destroy();
    return;
  }
  writeErrorLine(service, "https/handler-failed", error);
  response.writeHead(500, { "content-type": "application/json" });
  response.end(JSON.stringify({ message: "The service failed to answer this request; its log says why." }));
};

/** From one address at the same time: connections without a certificate, and unfinished handshakes. */
const mostUsers = 64;
const longestHandshakeMs = 20_000;

/** Bounds how many clients without a certificate one address may have: nothing else says how much they may use. */
const boundUsers = (server: Server): void => {
  const strangers = createStrangers();
  server.on("connection", (socket: Socket) => {
    if (strangers.ofAddress(addressOf(socket)) >= mostUsers) socket.destroy();
    else strangers.begin(socket);
  });
  server.on("secureConnection", (socket: TLSSocket) => {
    if (socket.authorized) strangers.leave(socket);
  });
};

/** The caller's name: that of its certificate, or `user` where clients without one may connect. Null: it is refused. */
const callerOf = (judge: Judge, refusals: Refusals, socket: TLSSocket, users: boolean): PeerName | null => {
  if (users && socket.getPeerX509Certificate() === undefined) return user;
  const verdict = judge.of(socket, null);
  if (verdict.ok) return verdict.name;
  // Other refusals are not counted: they fail in the handshake already, or anybody could cause them.
  if (verdict.because === "superseded")
    refusals.refuse(socket.remoteAddress ?? "unknown", reasonOf(verdict), verdict.why);
  return null;
};

/** Ends the connections of peers whose key is not, or is no longer, the one that belongs to their name. */
const followKeys = (server: Server, judge: Judge, caller: (socket: TLSSocket) => PeerName | null): (() => void) => {
  const all = new Set<TLSSocket>();
  const look = (socket: TLSSocket): void => {
    if (socket.authorized && caller(socket) === null) socket.destroy();
  };
  server.on("secureConnection", (socket: TLSSocket) => {
    all.add(socket);
    socket.once("close", () => all.delete(socket));
    look(socket);
  });
  return judge.follow(() => all.forEach(look));
};

/** Returns the sockets that have left HTTP, which the server no longer counts among its own. */
const serveUpgrades = (
  service: string,
  caller: (socket: TLSSocket) => PeerName | null,
  server: Server,
  handler: PeerUpgradeHandler,
): ReadonlySet<Duplex> => {
  const upgraded = new Set<Duplex>();
  server.on("upgrade", async (incoming: IncomingMessage, socket: Duplex, head: Buffer) => {
    const peer = caller(socket as TLSSocket);
    socket.on("error", () => socket.destroy());
    if (peer === null) {
      socket.destroy();
      return;
    }
    upgraded.add(socket);
    socket.once("close", () => upgraded.delete(socket));
    try {
      await handler({ peer, url: incoming.url ?? "/", headers: incoming.headers, raw: incoming, socket, head });
    } catch (error) {
      writeErrorLine(service, "https/upgrade-failed", error as Error);
      socket.destroy();
    }
  });
  return upgraded;
};

/**
 * Serves peers at `configuration.address` and `httpPort` (default `ports.http`). A client without a certificate of this
 * installation does not get past the TLS handshake, unless `users` lets in those that show none: they are `user`, at
 * most 64 at a time from one address, and whoever lets them in asks for a credential. Without `upgrade`, a request for
 * another protocol is one like any other. Rejects when it cannot listen.
 */
export const servePeers = async (
  configuration: ProcessConfiguration,
  handler: PeerHandler,
  upgrade?: PeerUpgradeHandler,
  { users = false, observer }: ServeOptions = {},
): Promise<PeerServer> => {
  const tls = { requestCert: true, rejectUnauthorized: !users, handshakeTimeout: longestHandshakeMs };
  const judge = createJudge(configuration, false);
  const refusals = createRefusals(observer?.log ?? (() => undefined));
  const caller = (socket: TLSSocket): PeerName | null => callerOf(judge, refusals, socket, users);
  const server = createServer({ ...readCredentials(configuration), ...tls }, async (incoming, response) => {
    const peer = caller(incoming.socket as TLSSocket);
    if (peer === null) {
      incoming.socket.destroy();
      return;
    }
    const { method = "GET", url = "/", headers } = incoming;
    try {
      await handler({ peer, method, url, headers, body: incoming, raw: incoming }, response);
    } catch (error) {
      answerFailure(configuration.name, response, error as Error);
    }
  });
  const upgraded =
    upgrade === undefined ? new Set<Duplex>() : serveUpgrades(configuration.name, caller, server, upgrade);
  boundUsers(server);
  const forgetNumbers = observer?.measures(() => refusals.metrics());
  const forget = followCredentials(configuration, (credentials) => server.setSecureContext(credentials));
  // A session or an upload may last as long as it likes, but a request must have its headers in time.
  server.requestTimeout = 0;
  server.headersTimeout = 30_000;
  // Long: each connection that is used again saves a TLS handshake.
  server.keepAliveTimeout = 120_000;
  const port = configuration.httpPort ?? ports.http;
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, configuration.address, () => {
      server.off("error", reject);
      resolve();
    });
  });
  const bound = server.address();
  const unfollow = followKeys(server, judge, caller);
  return {
    port: typeof bound === "object" && bound !== null ? bound.port : port,
    stop: () =>
      new Promise((resolve) => {
        forget();
        unfollow();
        forgetNumbers?.();
        server.close(() => resolve());
        server.closeAllConnections();
        for (const socket of upgraded) socket.destroy();
      }),
  };
};

export interface OutgoingPeerRequest {
  readonly method: string;
  /** Path and query. */
  readonly path: string;
  readonly headers?: OutgoingHttpHeaders;
  readonly body?: string | Buffer | Readable;
  /** The body is sent once the peer has said that it waits for it (RFC 9110, section 10.1.1), and this is called just before; else never. */
  readonly handsOver?: () => void;
  readonly signal?: AbortSignal;
  /** The request fails after this long without a byte in either direction; 0: never. Default 60 s. */
  readonly idleTimeoutMs?: number;
  /** A connection to this peer to be used again. Default: each request makes its own. */
  readonly connection?: KeptConnection;
}
/** A connection that is used for many requests, until the own certificate or the peer's address changes. */
export interface KeptConnection {
  readonly peer: PeerName;
  readonly agent: Agent;
}
/**
 * Interval of TCP keep-alive probes on a kept connection. Every role keeps one to the authority, and at ten seconds probes were twelve of
 * its fourteen frames a minute. So who was killed is noticed up to 40 s later, or as soon as it is probed after it has come back.
 */
const keepAliveMsecs = 30_000;
/** Ended by `agent.destroy()`. */
export const keepConnection = (configuration: ProcessConfiguration, peer: PeerName): KeptConnection => ({
  peer,
  // The check is the agent's and not a request's: Node uses no connection again that a request brought its own check for.
  // No session cache: a resumed TLS session shows no certificate (RFC 8446, section 2.2), so Node would not check the name.
  agent: new Agent({
    keepAlive: true,
    keepAliveMsecs,
    maxSockets: 1,
    maxCachedSessions: 0,
    checkServerIdentity: expectCurrent(configuration, peer),
  }),
});
export interface PeerResponse {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  /** To be read or destroyed by the caller. */
  readonly body: IncomingMessage;
  /** The whole body as text, of at most 64 MiB. Reads `body`. */
  text(): Promise<string>;
}

/** Far more than anybody here answers as a whole: a peer in somebody else's hands fills nobody's memory by answering without end. */
const longestAnswerMiB = 64;
async function boundedText(incoming: IncomingMessage, peer: PeerName): Promise<string> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of incoming as AsyncIterable<Buffer>) {
    length += chunk.length;
    // Leaving the loop ends the connection.
    if (length > longestAnswerMiB * 1024 * 1024) throw new Error(`"${peer}" answers more than ${longestAnswerMiB} MiB`);
    chunks.push(chunk);
  }
  return new TextDecoder().decode(Buffer.concat(chunks));
}

/**
 * Time for a request to make its TCP connection. A machine that is up answers within it however busy its processes are. The
 * kernel repeats its attempts at ever longer intervals, so a request to a machine that was down would still wait long after
 * it has come back. It fails instead, and whoever asked may ask again.
 */
const reachMs = 5000;
const giveUpUnreached = (outgoing: ClientRequest): void => {
  outgoing.once("socket", (socket) => {
    if (!socket.connecting) return;
    const late = new Error(`no answer within ${reachMs / 1000} s`);
    const deadline = setTimeout(() => outgoing.destroy(late), reachMs);
    const clear = (): void => clearTimeout(deadline);
    socket.once("connect", clear);
    socket.once("close", clear);
  });
};

/**
 * Asks a peer over HTTPS with the own certificate. The server must hold the certificate of exactly that peer; host names
 * and addresses do not matter. Rejects when the peer is not in the peers file, cannot be reached, or is another one.
 */
export const peerRequest = async (
  configuration: ProcessConfiguration,
  peer: PeerName,
  { method, path, headers = {}, body, handsOver, signal, idleTimeoutMs = 60_000, connection }: OutgoingPeerRequest,
): Promise<PeerResponse> => {
  const address = await findPeer(configuration, peer);
  if (!address.ok) throw new Error(address.error);
  const { host, httpPort: port } = address.value;
  const outgoing = request({
    ...clientCredentials(configuration),
    host,
    port,
    method,
    path,
    headers: handsOver === undefined ? headers : { ...headers, expect: "100-continue" },
    ...(connection?.peer === peer
      ? { agent: connection.agent }
      : { agent: false, checkServerIdentity: expectCurrent(configuration, peer) }),
    ...(signal === undefined ? {} : { signal }),
  });
  giveUpUnreached(outgoing);
  outgoing.setTimeout(idleTimeoutMs, () => {
    outgoing.destroy(new Error(`"${peer}" at ${host}:${port} was silent for ${idleTimeoutMs} ms`));
  });
  const response = new Promise<IncomingMessage>((resolve, reject) => {
    outgoing.once("response", resolve);
    outgoing.on("error", (error) => reject(new Error(`"${peer}" at ${host}:${port}: ${tlsFault(error)}`)));
  });
  if (body instanceof Readable) {
    // An answer may come before the body's end; a failure of the body shows as a failure of the request.
    pipeline(body, outgoing).catch((error: Error) => outgoing.destroy(error));
  } else if (handsOver !== undefined) {
    outgoing.once("continue", () => {
      handsOver();
      outgoing.end(body);
    });
    outgoing.flushHeaders();
  } else {
    outgoing.end(body);
  }
  const incoming = await response;
  return {
    status: incoming.statusCode ?? 0,
    headers: incoming.headers,
    body: incoming,
    text: () => boundedText(incoming, peer),
  };
};
