import type { Socket } from "node:net";
import type { TLSSocket } from "node:tls";
import type { NodeInput } from "../../../core/distribution/node/types.ts";
import type { Verdict } from "../../../core/identity/may-connect.ts";
import type { EventName } from "../../../core/telemetry/event-names.ts";
import type { PeerName } from "../../../model/cell/identifiers.ts";
import type { ProcessConfiguration } from "../../installation.ts";
import { boundToLife } from "../../life/role-life.ts";
import { type AdmissionLimits, admissionLimits } from "../admission.ts";
import type { Judge } from "../judge.ts";
import type { Channel, ChannelEvents, Link } from "../links/link.ts";
import type { Links } from "../links/links.ts";
import type { PulseLimits } from "../pulse.ts";
import type { Refusals } from "../refusals.ts";

/** What dialling (`dial.ts`) and taking (`accept.ts`) have in common: a connection, from its beginning to its end. */
export interface TransportEvents {
  readonly input: (input: NodeInput) => void;
  readonly log: (event: EventName, fields: { readonly [key: string]: string | number }) => void;
}

export interface TransportLimits extends AdmissionLimits, PulseLimits {
  readonly aliveEveryMs: number;
  /**
   * Silence after which a peer counts as gone, so within 10 s at most: three signs of life missed, on a busy machine too.
   * On a link that rests from when it was asked, so within 20 s. Also how long the first frame may take where there is no link.
   */
  readonly silenceMs: number;
  /**
   * Time for a TCP connection. The other end's kernel answers, however busy its processes are; and a machine that has only
   * just come hears nothing of an old attempt until that one is repeated, ever later (RFC 6298: after 1, 3, 7, 15 s).
   */
  readonly reachMs: number;
  /** For whoever reaches the same machine already. Another process of it may be hung, and not the one that is wanted. */
  readonly othersMs: number;
  /** Between attempts: of the first, and of the longest. */
  readonly retryMs: { readonly first: number; readonly last: number };
  /**
   * Time for a handshake on either side, and for all that comes between it and the first frame of a channel; an emulated processor that
   * starts with others takes seconds for each. Whoever is given up too soon does all of it again, and so is later still.
   */
  readonly handshakeMs: number;
  /** Time for one frame, from its first byte to its last: the longest one takes 67 s at 1 Mbit/s. */
  readonly frameMs: number;
}
export const transportLimits: TransportLimits = {
  ...admissionLimits,

  aliveEveryMs: 2000,
  restEveryMs: 10_000,
  silenceMs: 8000,
  reachMs: 4000,
  othersMs: 5000,
  retryMs: { first: 50, last: 2000 },
  handshakeMs: 20_000,
  frameMs: 120_000,
};
export interface Connection {
  readonly channel: Channel;
  readonly peer: PeerName;
  /** What the judge knows it by: a socket that was authenticated, or the channel itself. */
  readonly judged: object;
  readonly ended: () => void;
}
export interface Dialer {
  readonly peer: PeerName;
  /** The last link that was there did not lead to it: a connection of its own comes next. */
  alone: boolean;
  attempts: number;
  timer: NodeJS.Timeout | null;
  /** Where it was at the last attempt. */
  host: string | null;
  /** Ends what an attempt waits for, where a link that has just come may lead to the peer; null: it waits for nothing. */
  goOn: (() => void) | null;
  /** A link that this dialer has made, and whose other end has yet to say which services are there; then it is decided. */
  made: { readonly link: Link; readonly introduced: () => void } | null;
  /** Links that have said that they lead to it: each brings one attempt before its time. */
  readonly told: WeakSet<Link>;
}
export interface TransportState {
  readonly configuration: ProcessConfiguration;
  readonly judge: Judge;
  /** Peers whose last connection was let in by their pinned key. */
  readonly pinned: Set<PeerName>;
  readonly events: TransportEvents;
  readonly limits: TransportLimits;
  readonly links: Links;
  readonly refusals: Refusals;
  readonly connections: Map<number, Connection>;
  /** Accepted and dialled sockets that are no links yet. */
  readonly sockets: Set<Socket>;
  readonly dialers: Map<PeerName, Dialer>;
  nextConnection: number;
  stopping: boolean;
}

/** What one connection is to the node, from its beginning to its end. */
export const adopt = (
  transport: TransportState,
  judged: object,
  peer: PeerName,
  role: "client" | "server",
  open: (events: ChannelEvents) => Channel,
  gone: () => void = () => undefined,
): Channel => {
  const { events, connections } = transport;
  transport.nextConnection += 1;
  const connection = transport.nextConnection;
  const ended = boundToLife(() => {
    if (!connections.delete(connection)) return;
    events.input({ kind: "disconnected", connection });
    gone();
  });
  const channel = open({
    frame: (frame) => events.input({ kind: "frame", connection, frame }),
    sendable: () => events.input({ kind: "sendable", connection }),
    ended,
  });
  connections.set(connection, { channel, peer, judged, ended });
  events.input({ kind: "connected", connection, peer, role });
  return channel;
};

/** An authenticated socket becomes a link, and this connection its first channel. */
export const makeLink = (transport: TransportState, socket: TLSSocket, peer: PeerName, dialled: boolean): Link => {
  transport.sockets.delete(socket);
  return transport.links.adopt(socket, { self: transport.configuration.name, peer, dialled });
};

export const track = (transport: TransportState, socket: Socket): void => {
  transport.sockets.add(socket);
  socket.setNoDelay(true);
  socket.once("close", () => transport.sockets.delete(socket));
};

/** Whoever has pins decides itself about dates, so OpenSSL, which would refuse, must not. */
export const hasPins = ({ pinsFile }: ProcessConfiguration): boolean => pinsFile !== undefined;

/** The verdict about the other end. Nothing was said before. Logs who is there by its pinned key, once in a row. */
export const judge = (transport: TransportState, socket: TLSSocket, expected: PeerName | null): Verdict => {
  const verdict = transport.judge.of(socket, expected);
  if (verdict.ok) noted(transport, verdict);
  return verdict;
};
export const noted = (transport: TransportState, verdict: Verdict & { readonly ok: true }): void => {
  if (verdict.by === "certificate") transport.pinned.delete(verdict.name);
  else if (!transport.pinned.has(verdict.name)) {
    transport.pinned.add(verdict.name);
    transport.events.log("identity/pinned", { peer: verdict.name, why: verdict.why });
  }
};
