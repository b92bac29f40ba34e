import type { Socket } from "node:net";
import type { PeerName } from "../../model/cell/identifiers.ts";
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
  /** Who is at the other end of it is known: it is under way no more. */
  arrived(socket: Socket): void;
  /**
   * An authenticated peer's connection takes a place; what is returned gives it back. Null: there is none.
   * @param destroy ends the connection, when it is the oldest and gives way
   */
  admit(peer: PeerName, destroy: () => void): (() => void) | null;
}

/** Sockets of whom nothing is known yet, by the address that they come from. */
export interface Strangers {
  /** How many there are in all. */
  count(): number;
  ofAddress(address: string): number;
  /** It counts until it closes or `leave` is called for its address and port, whichever object then stands for it. */
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
