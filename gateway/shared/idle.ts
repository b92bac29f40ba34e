import type { IncomingMessage, ServerResponse } from "node:http";
import type { Server } from "node:https";
import type { Socket } from "node:net";
import { addressOf } from "../../runtime/transport/admission.ts";

/*
 * Connections that stand and ask nothing. Each costs about 74 KiB of this process, most of it buffers of TLS (`bench personalities`), and whoever
 * connects decides how many there are. So that many are kept, and where one more comes the one that is idle longest goes: its client
 * opens another when it asks again (RFC 9112, section 9.3.1). It is one of the source that has most, so nobody's number takes another's.
 */

/** 92 MiB. */
export const mostIdle = 1280;

/** @param most of all sources together */
export function boundIdle(server: Server, most: number = mostIdle): void {
  /** By source and port, the one that is idle longest first; a source without one has no entry. */
  const bySource = new Map<string, Map<number, Socket>>();
  let all = 0;
  const leave = (source: string, port: number): void => {
    const its = bySource.get(source);
    if (its?.delete(port) !== true) return;
    all -= 1;
    if (its.size === 0) bySource.delete(source);
  };
  const enter = (socket: Socket): void => {
    const [source, port] = [addressOf(socket), socket.remotePort];
    // It is gone already.
    if (socket.destroyed || port === undefined) return;
    leave(source, port);
    bySource.set(source, (bySource.get(source) ?? new Map<number, Socket>()).set(port, socket));
    all += 1;
    if (all > most) endOne();
  };
  function endOne(): void {
    let of = "";
    for (const [source, { size }] of bySource) if (size > (bySource.get(of)?.size ?? 0)) of = source;
    for (const [port, socket] of bySource.get(of) ?? []) {
      leave(of, port);
      socket.destroy();
      return;
    }
  }
  /** Requests under way; a client may send several at once. */
  const underWay = new WeakMap<Socket, number>();
  const busy = ({ socket }: IncomingMessage): void => {
    underWay.set(socket, (underWay.get(socket) ?? 0) + 1);
    if (socket.remotePort !== undefined) leave(addressOf(socket), socket.remotePort);
  };
  // Before its handshake it is one already, and who never ends that is no better.
  server.on("connection", (socket: Socket) => {
    const [source, port] = [addressOf(socket), socket.remotePort ?? -1];
    socket.once("close", () => leave(source, port));
    enter(socket);
  });
  server.on("secureConnection", enter);
  server.on("request", (incoming: IncomingMessage, response: ServerResponse) => {
    const { socket } = incoming;
    busy(incoming);
    response.once("close", () => {
      const left = (underWay.get(socket) ?? 1) - 1;
      underWay.set(socket, left);
      if (left === 0) enter(socket);
    });
  });
  // What leaves HTTP has places of its own. A server that nobody listens to for that would take it for a request, and is to go on so.
  server.on("newListener", function first(event: string) {
    if (event !== "upgrade") return;
    server.off("newListener", first);
    server.prependListener("upgrade", busy);
  });
}
