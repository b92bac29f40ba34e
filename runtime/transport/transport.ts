import { connect as connectTcp, createServer as createNetServer, type Server, type Socket } from "node:net";
import { connect, createServer, type TLSSocket } from "node:tls";
import type { Frame } from "../../core/distribution/node/frames.ts";
import type { NodeInput } from "../../core/distribution/node/types.ts";
import type { Verdict } from "../../core/identity/may-connect.ts";
import type { EventName } from "../../core/telemetry/event-names.ts";
import type { Metric } from "../../core/telemetry/metrics.ts";
import type { PeerName } from "../../model/cell/identifiers.ts";
import { createJudge, type Judge } from "../identity/authority/judge.ts";
import { type ProcessConfiguration, ports } from "../installation.ts";
import { type Admission, type AdmissionLimits, admissionLimits, createAdmission } from "./admission.ts";
import { createFrameReader, encodeFrame } from "./frame-codec.ts";
import { expectPeer, followCredentials, readCredentials, secureContextOf, tlsFault } from "./mutual-tls.ts";
import { findPeer, type PeerAddress } from "./peers.ts";
import { createPulse, type Life, type Pulse, type PulseLimits } from "./pulse.ts";
import { createRefusals, type Refusals, reasonOf } from "./refusals.ts";

/**
 * Connections between services: mutual TLS 1.3 over TCP, and a peer that was once asked for is dialled until the end.
 * What happens is handed on as inputs of the node.
 */
export interface Transport {
  /** Begins to dial a peer; again and again when the connection ends. Idempotent. */
  connect(peer: PeerName): void;
  /** `sendable` follows once the frames have left for the kernel. Frames for a connection that is gone are dropped. */
  send(connection: number, frames: readonly Frame[]): void;
  /** Ends a connection after what was sent. */
  close(connection: number): void;
  /** What it refused. */
  measure(): readonly Metric[];
  /** Port listened at. */
  readonly port: number;
  /** Ends all connections after what was sent, and the listener. */
  stop(): Promise<void>;
}
export interface TransportEvents {
  readonly input: (input: NodeInput) => void;
  readonly log: (event: EventName, fields: { readonly [key: string]: string | number }) => void;
}

const backoff = { firstMs: 50, lastMs: 2000 } as const;
export interface TransportLimits extends AdmissionLimits, PulseLimits {
  readonly aliveEveryMs: number;
  /**
   * Silence after which a peer counts as gone, so within 10 s at most: three signs of life missed, on a busy machine too.
   * Also how long the first frame may take.
   */
  readonly silenceMs: number;
  /**
   * Time for a TCP connection. The other end's kernel answers, however busy its processes are; and a machine that has only
   * just come hears nothing of an old attempt until that one is repeated, ever later (RFC 6298: after 1, 3, 7, 15 s).
   */
  readonly reachMs: number;
  /** Time for a handshake on either side; an emulated processor that starts with others takes seconds for one. */
  readonly handshakeMs: number;
  /** Time for one frame, from its first byte to its last: the longest one takes 67 s at 1 Mbit/s. */
  readonly frameMs: number;
}
export const transportLimits: TransportLimits = {
  ...admissionLimits,
  ...{ aliveEveryMs: 2000, silenceMs: 8000, reachMs: 4000, handshakeMs: 20_000, frameMs: 120_000 },
};
const closeTimeoutMs = 2000;
/** A connection that ends sooner counts as an attempt that failed. */
const lastingMs = 2000;

interface Connection {
  readonly socket: TLSSocket;
  readonly peer: PeerName;
  readonly life: Life;
  readonly ended: () => void;
}
interface Dialer {
  readonly peer: PeerName;
  attempts: number;
  timer: NodeJS.Timeout | null;
}
interface TransportState {
  readonly configuration: ProcessConfiguration;
  readonly judge: Judge;
  /** Peers whose last connection was let in by their pinned key. */
  readonly pinned: Set<PeerName>;
  readonly events: TransportEvents;
  readonly limits: TransportLimits;
  readonly pulse: Pulse;
  readonly refusals: Refusals;
  readonly connections: Map<number, Connection>;
  /** Accepted and dialled sockets, greeted or not. */
  readonly sockets: Set<Socket>;
  readonly dialers: Map<PeerName, Dialer>;
  nextConnection: number;
  stopping: boolean;
}

/** Before the n-th attempt in a row: doubling up to the limit, and half of it by chance, so that many do not come at once. */
export const backoffMs = (attempt: number, random: number): number => {
  const most = Math.min(backoff.lastMs, backoff.firstMs * 2 ** Math.min(attempt, 16));
  return most / 2 + (most / 2) * random;
};

/** Watches over a live connection and passes its frames on. */
const adopt = (
  transport: TransportState,
  socket: TLSSocket,
  peer: PeerName,
  role: "client" | "server",
  gone: () => void,
): void => {
  const { events, connections } = transport;
  transport.nextConnection += 1;
  const connection = transport.nextConnection;
  const reader = createFrameReader();
  const life = transport.pulse.watch(socket, reader, (why) => {
    if (why !== "silent") transport.refusals.refuse(peer, why, `${reader.waiting} bytes of a frame have come`);
    socket.destroy();
  });
  const ended = (): void => {
    if (!connections.delete(connection)) return;
    life.end();
    events.input({ kind: "disconnected", connection });
    gone();
  };
  connections.set(connection, { socket, peer, life, ended });
  events.input({ kind: "connected", connection, peer, role });
  socket.on("data", (chunk: Buffer) => {
    try {
      const frames = reader.read(chunk);
      for (const frame of frames) events.input({ kind: "frame", connection, frame });
      life.heard(frames.length > 0);
    } catch (error) {
      transport.refusals.refuse(peer, "no frame", (error as Error).message);
      socket.destroy();
    }
  });
  socket.on("end", () => socket.end());
  socket.on("close", ended);
};

const track = (transport: TransportState, socket: Socket): void => {
  transport.sockets.add(socket);
  socket.setNoDelay(true);
  socket.once("close", () => transport.sockets.delete(socket));
};

const retry = (transport: TransportState, dialer: Dialer): void => {
  if (transport.stopping || dialer.timer !== null) return;
  dialer.timer = setTimeout(
    () => {
      dialer.timer = null;
      void dial(transport, dialer);
    },
    backoffMs(dialer.attempts, Math.random()),
  );
  dialer.attempts += 1;
};

const failed = (transport: TransportState, dialer: Dialer, why: string): void => {
  if (transport.stopping) return;
  // The first of a row and then ever more seldom: a peer that is away for a day does not fill the log.
  if ((dialer.attempts & (dialer.attempts - 1)) === 0) {
    transport.events.log("transport/unreachable", { peer: dialer.peer, attempts: dialer.attempts + 1, why });
  }
  transport.events.input({ kind: "unreachable", peer: dialer.peer });
  retry(transport, dialer);
};

/** Whoever has pins decides itself about dates, so OpenSSL, which would refuse, must not. */
const hasPins = ({ pinsFile }: ProcessConfiguration): boolean => pinsFile !== undefined;

/** The verdict about the other end. Nothing was said before. Logs who is there by its pinned key, once in a row. */
const judge = (transport: TransportState, socket: TLSSocket, expected: PeerName | null): Verdict => {
  const verdict = transport.judge.of(socket, expected);
  if (!verdict.ok) return verdict;
  if (verdict.by === "certificate") transport.pinned.delete(verdict.name);
  else if (!transport.pinned.has(verdict.name)) {
    transport.pinned.add(verdict.name);
    transport.events.log("identity/pinned", { peer: verdict.name, why: verdict.why });
  }
  return verdict;
};

/** Begins a handshake with the present certificate; a sentence when that cannot be read. */
const open = ({ configuration }: TransportState, peer: PeerName, reached: Socket): TLSSocket | string => {
  try {
    return connect({
      secureContext: secureContextOf(configuration),
      minVersion: "TLSv1.3",
      socket: reached,
      rejectUnauthorized: !hasPins(configuration),
      checkServerIdentity: expectPeer(peer),
    });
  } catch (error) {
    return `the own certificate cannot be used: ${(error as Error).message}`;
  }
};

const dial = async (transport: TransportState, dialer: Dialer): Promise<void> => {
  const { peer } = dialer;
  const address = await findPeer(transport.configuration, peer);
  if (transport.stopping) return;
  if (!address.ok) {
    failed(transport, dialer, address.error);
    return;
  }
  reach(transport, dialer, address.value);
};

/**
 * TLS begins once the other end is there: while a machine starts, everybody tries it again and again, and what TLS needs
 * for a connection costs some five times of what it costs to be refused.
 */
const reach = (transport: TransportState, dialer: Dialer, { host, distributionPort: port }: PeerAddress): void => {
  const { reachMs } = transport.limits;
  let why = `${host}:${port} does not answer`;
  const socket = connectTcp({ host, port });
  track(transport, socket);
  const deadline = setTimeout(() => {
    why = `${host}:${port} did not answer within ${reachMs} ms`;
    socket.destroy();
  }, reachMs);
  socket.on("error", (error) => {
    why = error.message;
  });
  const unreached = (): void => {
    clearTimeout(deadline);
    failed(transport, dialer, why);
  };
  socket.once("close", unreached);
  socket.once("connect", () => {
    clearTimeout(deadline);
    socket.off("close", unreached);
    greet(transport, dialer, socket);
  });
};

const greet = (transport: TransportState, dialer: Dialer, reached: Socket): void => {
  const { peer } = dialer;
  const socket = open(transport, peer, reached);
  if (typeof socket === "string") {
    reached.destroy();
    failed(transport, dialer, socket);
    return;
  }
  // From here on it is the other's, which ends it too.
  transport.sockets.delete(reached);
  track(transport, socket);
  let why = "the connection ended before it was authenticated";
  let adopted = false;
  const deadline = setTimeout(() => {
    why = `no answer within ${transport.limits.handshakeMs} ms`;
    socket.destroy();
  }, transport.limits.handshakeMs);
  socket.on("error", (error) => {
    why = tlsFault(error);
  });
  socket.once("secureConnect", () => {
    clearTimeout(deadline);
    const verdict = judge(transport, socket, peer);
    if (transport.stopping || !verdict.ok) {
      if (!verdict.ok) why = verdict.why;
      socket.destroy();
      return;
    }
    adopted = true;
    const since = performance.now();
    adopt(transport, socket, peer, "client", () => {
      // With TLS 1.3 a server refuses a client's certificate only after this, and either side may not like what the other
      // says: only a connection that lasted was a success, and the next attempt comes at once.
      if (performance.now() - since > lastingMs) dialer.attempts = 0;
      retry(transport, dialer);
    });
  });
  socket.once("close", () => {
    clearTimeout(deadline);
    if (!adopted) failed(transport, dialer, why);
  });
};

/** Ends what goes on with whoever is not any more the one that has its name. */
const judgeAgain = (transport: TransportState): void => {
  for (const { socket, peer } of [...transport.connections.values()]) {
    const verdict = transport.judge.of(socket, null);
    if (verdict.ok) continue;
    transport.refusals.refuse(peer, reasonOf(verdict), verdict.why);
    socket.destroy();
  }
};

const accept = (transport: TransportState, admission: Admission, socket: TLSSocket): void => {
  track(transport, socket);
  socket.on("error", () => undefined);
  const verdict = judge(transport, socket, null);
  if (!verdict.ok) transport.refusals.refuse(socket.remoteAddress ?? "unknown", reasonOf(verdict), verdict.why);
  if (!verdict.ok || transport.stopping || !admission.admit(socket, verdict.name)) {
    socket.destroy();
    return;
  }
  adopt(transport, socket, verdict.name, "server", () => undefined);
};

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
  if (found === undefined || !found.socket.writable) return;
  const { socket, life } = found;
  const sendable = (): void => transport.events.input({ kind: "sendable", connection });
  const encoded = frames.map((frame) => {
    const bytes = encodeFrame(frame);
    // The node bounds every value, so a frame beyond the limit is a defect of this program.
    if (bytes === null) throw new Error(`a "${frame.frame}" frame is longer than a frame may be`);
    return bytes;
  });
  const [only] = encoded;
  life.said();
  const free = socket.write(encoded.length === 1 && only !== undefined ? only : Buffer.concat(encoded));
  if (free) setImmediate(sendable);
  else socket.once("drain", sendable);
};

const stop = async (transport: TransportState, server: Server): Promise<void> => {
  transport.stopping = true;
  for (const dialer of transport.dialers.values()) if (dialer.timer !== null) clearTimeout(dialer.timer);
  const adopted = new Set<Socket>([...transport.connections.values()].map(({ socket }) => socket));
  for (const { ended } of [...transport.connections.values()]) ended();
  for (const socket of transport.sockets) {
    if (adopted.has(socket)) socket.end();
    else socket.destroy();
  }
  const all = Promise.all([...transport.sockets].map((socket) => new Promise((done) => socket.once("close", done))));
  const deadline = setTimeout(() => {
    for (const socket of transport.sockets) socket.destroy();
  }, closeTimeoutMs);
  await all;
  clearTimeout(deadline);
  await new Promise((done) => server.close(done));
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
    pulse: createPulse(limits),
    refusals,
    connections: new Map(),
    sockets: new Set(),
    dialers: new Map(),
    nextConnection: 0,
    stopping: false,
  };
  const handshakes = createServer(
    // Node would end an unauthorized connection without saying why; here `accept` does, before anything is read.
    { ...credentials, requestCert: true, rejectUnauthorized: false, handshakeTimeout: limits.handshakeMs },
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
  return {
    port,
    connect: (peer) => {
      if (transport.stopping || transport.dialers.has(peer)) return;
      const dialer: Dialer = { peer, attempts: 0, timer: null };
      transport.dialers.set(peer, dialer);
      void dial(transport, dialer);
    },
    send: (connection, frames) => send(transport, connection, frames),
    close: (connection) => {
      const found = transport.connections.get(connection);
      if (found === undefined) return;
      found.ended();
      found.socket.end();
      // A peer that never reads would keep it open.
      setTimeout(() => found.socket.destroy(), closeTimeoutMs).unref();
    },
    measure: () => refusals.metrics(),
    stop: () => {
      forget();
      unfollow();
      return stop(transport, server);
    },
  };
};
