import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import type { FastifyInstance } from "fastify";
import { capabilityPrefix, sessionProtocol } from "../model/sessions.ts";
import type { ProcessConfiguration } from "../runtime/installation.ts";
import { passUpgradeBack, peerUpgrade, refuseUpgrade } from "../runtime/upgrade.ts";
import type { Cells } from "./cells.ts";
import { controllerOf } from "./forward.ts";

/**
 * Sessions on their way to a cell's controller. The handshake needs no credential: what opens a session is the capability
 * that it carries, which the cell gave to somebody who had one. What is no session of a known cell goes no further.
 */
const mostSessions = 256;
/** Handshakes whose controller or host has not answered yet. */
const mostOpening = 32;
const sessionPath = /^\/cells\/([a-z][a-z0-9-]{0,52})\/sessions$/;

export function registerSessions(app: FastifyInstance, configuration: ProcessConfiguration, cells: Cells): void {
  const clients = new Set<Duplex>();
  let opening = 0;
  let open = 0;
  /** Resolves when the session is over. */
  const pass = async ({ headers }: IncomingMessage, socket: Duplex, head: Buffer, cell: string): Promise<void> => {
    const protocols = headers["sec-websocket-protocol"] ?? "";
    if (!protocols.includes(capabilityPrefix)) {
      const how = `POST /cells/${cell}/sessions gives a capability; then open a WebSocket with the subprotocols ${sessionProtocol} and ${capabilityPrefix}<session>`;
      refuseUpgrade(socket, 401, "unauthorized", `a session is opened by a capability: ${how}`);
      return;
    }
    if (opening >= mostOpening || open >= mostSessions) {
      refuseUpgrade(
        socket,
        503,
        "busy",
        `too many sessions are open or opening (at most ${mostSessions}); try again later`,
      );
      return;
    }
    opening += 1;
    let answer: Awaited<ReturnType<typeof peerUpgrade>>;
    try {
      if (!(await cells.has(cell))) {
        refuseUpgrade(socket, 404, "not-found", `there is no cell "${cell}"`);
        return;
      }
      const outgoing = {
        path: `/cells/${cell}/sessions`,
        handshake: headers,
        headers: { "sec-websocket-protocol": protocols },
      };
      answer = await peerUpgrade(configuration, controllerOf(cell), outgoing);
    } catch (error) {
      const why = (error as Error).message;
      refuseUpgrade(
        socket,
        502,
        "controller-unreachable",
        `the controller of the cell "${cell}" does not answer: ${why}`,
      );
      return;
    } finally {
      opening -= 1;
    }
    if (!answer.accepted) {
      await passUpgradeBack(answer, socket, head);
      return;
    }
    // Only what a cell has let in counts: what is refused may stay on its connection for a while.
    open += 1;
    try {
      await passUpgradeBack(answer, socket, head);
    } finally {
      open -= 1;
    }
  };

  app.server.on("upgrade", (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    socket.on("error", () => socket.destroy());
    clients.add(socket);
    socket.once("close", () => clients.delete(socket));
    const cell = sessionPath.exec(request.url?.split("?")[0] ?? "")?.[1];
    if (cell === undefined || request.headers.upgrade?.toLowerCase() !== "websocket")
      refuseUpgrade(socket, 404, "not-found", "the only WebSockets here are sessions: /cells/<cell>/sessions");
    else pass(request, socket, head, cell).catch(() => socket.destroy());
  });
  // They would keep the server from closing.
  app.addHook("preClose", async () => {
    for (const socket of clients) socket.destroy();
  });
}
