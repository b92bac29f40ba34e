import type { Socket } from "node:net";
import type { TLSSocket } from "node:tls";
import type { PeerName } from "../model/identifiers.ts";
import type { Refusals } from "./refusals.ts";

/**
 * How many connections a listener bears. Whoever has not shown a certificate costs a socket and some time for its
 * handshake, so these are bounded for themselves, for each address and in all: a flood of them shuts out nobody who
 * stands, and newcomers from elsewhere only while it fills all places.
 */
export interface AdmissionLimits {
  /** Under way at one time: in all, and from one address. */
  readonly handshakes: number;
  readonly handshakesOfAddress: number;
  /** Accepted ones, authenticated: in all, and of one peer, whose oldest gives way. */
  readonly connections: number;
  readonly connectionsOfPeer: number;
}
export const admissionLimits: AdmissionLimits = {
  handshakes: 512,
  handshakesOfAddress: 128,
  connections: 10_000,
  connectionsOfPeer: 8,
};

export interface Admission {
  /** A connection begins; false: it is one too many, and is to be destroyed. */
  begin(socket: Socket): boolean;
  /** An authenticated socket takes its place; false: there is none, and it is to be destroyed. */
  admit(socket: TLSSocket, peer: PeerName): boolean;
}

export const createAdmission = (refusals: Refusals, limits: AdmissionLimits): Admission => {
  /** Remote address → ports of sockets that are not authenticated yet. */
  const underWay = new Map<string, Set<number>>();
  const ofPeer = new Map<PeerName, Set<TLSSocket>>();
  let handshakes = 0;
  let connections = 0;

  const leave = (address: string, port: number): void => {
    const ports = underWay.get(address);
    if (ports === undefined || !ports.delete(port)) return;
    handshakes -= 1;
    if (ports.size === 0) underWay.delete(address);
  };
  return {
    begin: (socket) => {
      const { remoteAddress = "unknown", remotePort = 0 } = socket;
      const ports = underWay.get(remoteAddress) ?? new Set();
      if (handshakes >= limits.handshakes || ports.size >= limits.handshakesOfAddress) {
        const why = `${handshakes} are under way, ${ports.size} of this address`;
        refusals.refuse(remoteAddress, "too many handshakes", why);
        return false;
      }
      underWay.set(remoteAddress, ports.add(remotePort));
      handshakes += 1;
      socket.once("close", () => leave(remoteAddress, remotePort));
      return true;
    },
    admit: (socket, peer) => {
      leave(socket.remoteAddress ?? "unknown", socket.remotePort ?? 0);
      const own = ofPeer.get(peer) ?? new Set();
      const [oldest] = own;
      if (own.size >= limits.connectionsOfPeer && oldest !== undefined) {
        refusals.refuse(peer, "too many connections", `it has ${own.size}, and the oldest gives way`);
        oldest.destroy();
        own.delete(oldest);
        connections -= 1;
      } else if (connections >= limits.connections) {
        refusals.refuse(peer, "too many connections", `there are ${connections} in all`);
        return false;
      }
      ofPeer.set(peer, own.add(socket));
      connections += 1;
      socket.once("close", () => {
        if (!own.delete(socket)) return;
        connections -= 1;
        if (own.size === 0 && ofPeer.get(peer) === own) ofPeer.delete(peer);
      });
      return true;
    },
  };
};
