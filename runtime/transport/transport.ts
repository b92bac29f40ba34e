import { createServer as createNetServer, type Server } from "node:net";
import { createServer } from "node:tls";
import type { Frame } from "../../core/distribution/node/frames.ts";
import type { Metric } from "../../core/telemetry/metrics.ts";
import type { PeerName } from "../../model/cell/identifiers.ts";
import { type ProcessConfiguration, ports } from "../installation.ts";
import { boundToLife } from "../life/role-life.ts";
import { createAdmission } from "./admission.ts";
import { accept, acceptChannel, judgeAgain } from "./connections/accept.ts";
import {
  type Dialer,
  hasPins,
  type TransportEvents,
  type TransportLimits,
  type TransportState,
  transportLimits,
} from "./connections/connection.ts";
import { dial, linkFound } from "./connections/dial.ts";
import { encodeFrame } from "./frame-codec.ts";
import { createJudge } from "./judge.ts";
import { createLinks, linkProtocol, sharedLinks } from "./links/links.ts";
import { followCredentials, readCredentials, tlsFault } from "./mutual-tls.ts";
import { createRefusals } from "./refusals.ts";

/**
 * Connections between services. Each is a channel of a link (`links/`): mutual TLS 1.3 over TCP between two processes. The
 * first connection to a process opens the link; later ones are further channels of it. A peer that was asked for once is
 * dialled again and again, until `stop`. Frames and changes of a connection become inputs of the node
 * (`core/distribution/node/`).
 */
export interface Transport {
  /** Dials a peer, and dials it again whenever the connection ends. Idempotent. */
  connect(peer: PeerName): void;
  /** `sendable` follows once the frames have left for the kernel. Frames for a connection that is gone are dropped. */
  send(connection: number, frames: readonly Frame[]): void;
  /** Ends a connection after what was sent. */
  close(connection: number): void;
  /** Metrics of what was refused. */
  measure(): readonly Metric[];
  /** Port listened at. */
  readonly port: number;
  /** Ends all connections after what was sent, and the listener. */
  stop(): Promise<void>;
}
const listen = (server: Server, port: number, address: string): Promise<number> =>
  new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, address, () => {
      server.off("error", reject);
      const bound = server.address();
      resolve(typeof bound === "object" && bound !== null ? bound.port : port);
    });
  });

const send = (transport: TransportState, connection: number, frames: readonly Frame[]): void => {
  const found = transport.connections.get(connection);
  if (found === undefined) return;
  const encoded = frames.map((frame) => {
    const bytes = encodeFrame(frame);
    // The node bounds every value, so a frame beyond the limit is a defect of this program.
    if (bytes === null) throw new Error(`a "${frame.frame}" frame is longer than a frame may be`);
    return bytes;
  });
  if (found.channel.send(encoded)) setImmediate(() => transport.events.input({ kind: "sendable", connection }));
};

const stop = async (transport: TransportState, server: Server): Promise<void> => {
  transport.stopping = true;
  for (const dialer of transport.dialers.values()) if (dialer.timer !== null) clearTimeout(dialer.timer);
  const ending = [...transport.connections.values()].map(({ channel, ended }) => {
    ended();
    return channel.end();
  });
  for (const socket of transport.sockets) socket.destroy();
  // Not awaited: it would wait for all TCP connections, and some of them are links that other services of this process use.
  server.close();
  await Promise.all(ending);
};

/**
 * Listens at `configuration.address` and hands on what happens. Rejects when it cannot listen there.
 */
export const createTransport = async (
  configuration: ProcessConfiguration,
  events: TransportEvents,
  limits: TransportLimits = transportLimits,
): Promise<Transport> => {
  const credentials = readCredentials(configuration);
  const refusals = createRefusals(events.log);
  const transport: TransportState = {
    configuration,
    judge: createJudge(configuration, hasPins(configuration)),
    pinned: new Set(),
    events,
    limits,
    links: sharedLinks() ?? createLinks(limits),
    refusals,
    connections: new Map(),
    sockets: new Set(),
    dialers: new Map(),
    nextConnection: 0,
    stopping: false,
  };
  const handshakes = createServer(
    // Node would end an unauthorized connection without saying why; here `accept` does, before anything is read.
    {
      ...credentials,
      requestCert: true,
      rejectUnauthorized: false,
      handshakeTimeout: limits.handshakeMs,
      ALPNProtocols: [linkProtocol],
    },
    (socket) => accept(transport, admission, socket),
  );
  const admission = createAdmission(refusals, limits);
  const server = createNetServer((socket) => {
    if (admission.begin(socket)) handshakes.emit("connection", socket);
    else socket.destroy();
  });
  handshakes.on("tlsClientError", (error: NodeJS.ErrnoException, socket) => {
    const slow = error.code === "ERR_TLS_HANDSHAKE_TIMEOUT";
    const reason = slow ? "handshake too slow" : "handshake failed";
    refusals.refuse(socket.remoteAddress ?? "unknown", reason, tlsFault(error));
    socket.destroy();
  });
  const forget = followCredentials(configuration, (renewed) => handshakes.setSecureContext(renewed));
  const port = await listen(server, configuration.distributionPort ?? ports.distribution, configuration.address);
  const unfollow = transport.judge.follow(() => judgeAgain(transport));
  const withdraw = transport.links.register({
    name: configuration.name,
    port,
    opening: boundToLife((opening) => acceptChannel(transport, admission, opening)),
    found: boundToLife((link) => linkFound(transport, link)),
    refused: boundToLife((peer, reason, why) => refusals.refuse(peer, reason, why)),
  });
  return {
    port,
    connect: (peer) => {
      if (transport.stopping || transport.dialers.has(peer)) return;
      const dialer: Dialer = {
        peer,
        alone: false,
        attempts: 0,
        timer: null,
        host: null,
        goOn: null,
        made: null,
        told: new WeakSet(),
      };
      transport.dialers.set(peer, dialer);
      void dial(transport, dialer);
    },
    send: (connection, frames) => send(transport, connection, frames),
    close: (connection) => {
      const found = transport.connections.get(connection);
      if (found === undefined) return;
      found.ended();
      void found.channel.end();
    },
    measure: () => refusals.metrics(),
    stop: () => {
      forget();
      unfollow();
      withdraw();
      return stop(transport, server);
    },
  };
};
