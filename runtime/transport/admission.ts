import type { Socket } from "node:net";
import type { PeerName } from "../../model/cell/identifiers.ts";
import type { Refusals } from "./refusals.ts";

/**
 * How many connections a listener accepts. A client that has not shown a certificate yet costs a socket and the time of its
 * handshake, so handshakes have bounds of their own, per address and in all. A flood of them ends no authenticated connection,
 * and keeps out new clients from other addresses only while it fills all places.
 */
export interface AdmissionLimits {
  /** Handshakes at one time: in all, and from one address. */
  readonly handshakes: number;
  readonly handshakesOfAddress: number;
  /** Authenticated connections: in all, and of one peer, whose oldest is closed for a new one. */
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
  /** A handshake begins. False: there are too many, and the caller destroys the socket. */
  begin(socket: Socket): boolean;
  /** The handshake is done: it counts as one no more. */
  arrived(socket: Socket): void;
  /**
   * Takes a place for an authenticated connection. Returns a function that gives it back; null: there is no place.
   * @param destroy closes the connection when it is the peer's oldest and a new one needs its place
   */
  admit(peer: PeerName, destroy: () => void): (() => void) | null;
}

/** Counts sockets that are not authenticated yet, by remote address. */
export interface Strangers {
  /** How many there are in all. */
  count(): number;
  ofAddress(address: string): number;
  /** Counted until it closes, or until `leave` with any socket object of the same address and port (TLS wraps the first one). */
  begin(socket: Socket): void;
  leave(socket: Socket): void;
}
export const createStrangers = (): Strangers => {
  /** Remote address → ports. */
  const places = new Map<string, Set<number>>();
  let all = 0;
  const leave = (address: string, port: number): void => {
    const ports = places.get(address);
    if (ports === undefined || !ports.delete(port)) return;
    all -= 1;
    if (ports.size === 0) places.delete(address);
  };
  return {
    count: () => all,
    ofAddress: (address) => places.get(address)?.size ?? 0,
    begin: (socket) => {
      const [address, port] = [addressOf(socket), socket.remotePort ?? 0];
      places.set(address, (places.get(address) ?? new Set()).add(port));
      all += 1;
      socket.once("close", () => leave(address, port));
    },
    leave: (socket) => leave(addressOf(socket), socket.remotePort ?? 0),
  };
};
export const addressOf = ({ remoteAddress = "unknown" }: Socket): string => remoteAddress;

export const createAdmission = (refusals: Refusals, limits: AdmissionLimits): Admission => {
  /** Not authenticated yet. */
  const underWay = createStrangers();
  const ofPeer = new Map<PeerName, Set<Place>>();
  let connections = 0;
  const leave = (peer: PeerName, place: Place): void => {
    const own = ofPeer.get(peer);
    if (own === undefined || !own.delete(place)) return;
    connections -= 1;
    if (own.size === 0) ofPeer.delete(peer);
  };

  return {
    begin: (socket) => {
      const address = addressOf(socket);
      const [all, own] = [underWay.count(), underWay.ofAddress(address)];
      if (all >= limits.handshakes || own >= limits.handshakesOfAddress) {
        refusals.refuse(address, "too many handshakes", `${all} are under way, ${own} of this address`);
        return false;
      }
      underWay.begin(socket);
      return true;
    },
    arrived: underWay.leave,
    admit: (peer, destroy) => {
      const [oldest] = ofPeer.get(peer) ?? [];
      const count = ofPeer.get(peer)?.size ?? 0;
      if (count >= limits.connectionsOfPeer && oldest !== undefined) {
        refusals.refuse(peer, "too many connections", `it has ${count}, and the oldest gives way`);
        leave(peer, oldest);
        oldest.destroy();
      } else if (connections >= limits.connections) {
        refusals.refuse(peer, "too many connections", `there are ${connections} in all`);
        return null;
      }
      const place: Place = { destroy };
      ofPeer.set(peer, (ofPeer.get(peer) ?? new Set()).add(place));
      connections += 1;
      return () => leave(peer, place);
    },
  };
};
interface Place {
  readonly destroy: () => void;
}
