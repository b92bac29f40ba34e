import type { IncomingMessage, Server } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { refuseUpgrade } from "../../runtime/http/websocket-hop.ts";
import { addressOf } from "../../runtime/transport/admission.ts";
import { Counts } from "../requests/places.ts";

/*
 * What a personality's door costs whoever stands behind it. Each connection is a socket, each session one more to the gateway, each
 * request a place until its body is there; so there are so many of each, from one source and in all, and who sends slowly is cut.
 */
export interface Most {
  readonly inAll: number;
  readonly ofSource: number;
}
export interface DoorLimits {
  readonly connections: Most;
  /** Requests that leave HTTP. */
  readonly upgrades: Most;
  /** Of a body that is not there yet: so many octets in each period at least. */
  readonly body: { readonly least: number; readonly periodMs: number };
}
export const doorLimits: DoorLimits = {
  connections: { inAll: 10_240, ofSource: 2048 },
  upgrades: { inAll: 400, ofSource: 128 },
  body: { least: 16 * 1024, periodMs: 15_000 },
};

/** Takes a place and returns how it is given back. Null: there is none, in all or for that source. */
export function createPlacesOf({ inAll, ofSource }: Most): (source: string) => (() => void) | null {
  const taken = new Counts();
  return (source) => {
    if (taken.all >= inAll || taken.of(source) >= ofSource) return null;
    taken.add(source, 1);
    return () => taken.add(source, -1);
  };
}

/** @param passUpgradeOn of a request that leaves HTTP and has a place */
export function boundDoor(
  server: Server,
  passUpgradeOn: (incoming: IncomingMessage, socket: Duplex, head: Buffer) => void,
  limits: DoorLimits = doorLimits,
): void {
  const connections = createPlacesOf(limits.connections);
  const upgrades = createPlacesOf(limits.upgrades);
  server.on("connection", (socket: Socket) => {
    const leave = connections(addressOf(socket));
    if (leave === null) socket.destroy();
    else socket.once("close", leave);
  });
  server.on("request", (incoming) => cutSlow(incoming, limits.body));
  server.on("upgrade", (incoming: IncomingMessage, socket: Duplex, head: Buffer) => {
    socket.on("error", () => socket.destroy());
    const leave = upgrades(addressOf(incoming.socket));
    if (leave === null) {
      // Nobody else reads it, and what is not read never ends.
      socket.resume();
      refuseUpgrade(socket, 503, "busy", "as many sessions are open from here, or in all, as this door has places for");
      return;
    }
    socket.once("close", leave);
    passUpgradeOn(incoming, socket, head);
  });
}

/** What is not read yet is not the client's delay. */
const isRead = ({ readableLength, readableHighWaterMark }: IncomingMessage): boolean =>
  readableLength < readableHighWaterMark;

function cutSlow(incoming: IncomingMessage, { least, periodMs }: DoorLimits["body"]): void {
  const { headers, socket } = incoming;
  if (headers["content-length"] === undefined && headers["transfer-encoding"] === undefined) return;
  let before = socket.bytesRead;
  const over = (): void => {
    clearInterval(timer);
    socket.off("close", over);
  };
  const timer = setInterval(() => {
    if (incoming.complete) return over();
    const now = socket.bytesRead;
    if (now - before < least && isRead(incoming)) socket.destroy();
    before = now;
  }, periodMs);
  timer.unref();
  socket.once("close", over);
  // A connection outlives its requests, and may not keep something of each.
  incoming.once("close", () => {
    if (incoming.complete) over();
  });
}
