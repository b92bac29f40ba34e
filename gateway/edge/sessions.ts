import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import type { FastifyInstance } from "fastify";
import { capabilityPrefix, sessionProtocol } from "../../model/cell/session-messages.ts";
import { passUpgradeBack, peerUpgrade, refuseUpgrade } from "../../runtime/http/websocket-hop.ts";
import type { ProcessConfiguration } from "../../runtime/installation.ts";
import { controllerOf, isCellName } from "../requests/cell-names.ts";
import type { Scope } from "../requests/credentials.ts";
import { type PlaceLimits, Places } from "../requests/places.ts";
import type { GrantedSessions } from "./granted.ts";

/**
 * Sessions on their way to a cell's controller. The handshake needs no credential: what opens a session is the capability
 * that it carries, which the cell gave to somebody who had one, through this gateway. What is no session goes no further.
 */
const open: PlaceLimits = { inAll: 400, reserved: 16, perCell: 128 };
/** Handshakes whose controller or host has not answered yet. */
const opening: PlaceLimits = { inAll: 32, reserved: 4, perCell: 8 };
const sessionPath = /^\/cells\/([^/]+)\/sessions$/;
const capabilityRefused =
  "this capability opens nothing: it was used before, has expired (after 60 s), or was not given here; ask for another one";

/** The capability in a handshake's list of protocols; null: none. */
const capabilityIn = (protocols: string): string | null => {
  const offered = protocols.split(",").map((name) => name.trim());
  return offered.find((name) => name.startsWith(capabilityPrefix))?.slice(capabilityPrefix.length) ?? null;
};

export function registerSessions(
  app: FastifyInstance,
  configuration: ProcessConfiguration,
  granted: GrantedSessions,
): void {
  const clients = new Set<Duplex>();
  const places = { open: new Places(open), opening: new Places(opening) };

  /** Null: it was refused. */
  const handshake = async ({ headers }: IncomingMessage, socket: Duplex, cell: string, scope: Scope) => {
    const leave = places.opening.take(scope);
    if (typeof leave !== "function") {
      const message = `too many sessions of the cell "${cell}" are opening; try again in a moment`;
      refuseUpgrade(socket, 503, "busy", message);
      return null;
    }
    try {
      return await peerUpgrade(configuration, controllerOf(cell), {
        path: `/cells/${cell}/sessions`,
        handshake: headers,
        headers: { "sec-websocket-protocol": headers["sec-websocket-protocol"] ?? "" },
      });
    } catch (error) {
      const message = `the controller of the cell "${cell}" does not answer: ${(error as Error).message}`;
      refuseUpgrade(socket, 502, "controller-unreachable", message);
      return null;
    } finally {
      leave();
    }
  };
  /** Resolves when the session is over. */
  const pass = async (request: IncomingMessage, socket: Duplex, head: Buffer, cell: string): Promise<void> => {
    const session = capabilityIn(request.headers["sec-websocket-protocol"] ?? "");
    if (session === null) {
      const how = `POST /cells/${cell}/sessions gives a capability; then open a WebSocket with the subprotocols ${sessionProtocol} and ${capabilityPrefix}<session>`;
      refuseUpgrade(socket, 401, "unauthorized", `a session is opened by a capability: ${how}`);
      return;
    }
    const scope = granted.use(cell, session);
    if (scope === null) {
      refuseUpgrade(socket, 403, "capability", capabilityRefused);
      return;
    }
    const end = places.open.take(scope);
    if (typeof end !== "function") {
      const message = `as many sessions are open as there may be now (of one cell at most ${open.perCell}, of all ${open.inAll}); try again later`;
      refuseUpgrade(socket, 503, "busy", message);
      return;
    }
    try {
      const answer = await handshake(request, socket, cell, scope);
      // What is refused may stay on its connection for a while, and needs no place for that.
      if (answer?.accepted === false) end();
      if (answer !== null) await passUpgradeBack(answer, socket, head);
    } finally {
      end();
    }
  };

  app.server.on("upgrade", (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    socket.on("error", () => socket.destroy());
    clients.add(socket);
    socket.once("close", () => clients.delete(socket));
    const cell = sessionPath.exec(request.url?.split("?")[0] ?? "")?.[1];
    if (cell === undefined || !isCellName(cell) || request.headers.upgrade?.toLowerCase() !== "websocket")
      refuseUpgrade(socket, 404, "not-found", "the only WebSockets here are sessions: /cells/<cell>/sessions");
    else pass(request, socket, head, cell).catch(() => socket.destroy());
  });
  // They would keep the server from closing.
  app.addHook("preClose", async () => {
    for (const socket of clients) socket.destroy();
  });
}
