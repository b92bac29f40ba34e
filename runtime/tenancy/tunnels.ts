import type { Duplex } from "node:stream";
import type { PeerUpgrade } from "../http/https.ts";
import { refuseUpgrade } from "../http/websocket-hop.ts";
import { tunnelAt } from "./source.ts";

/*
 * This service has no way outside, and nothing here is called by it. So with a request that needs connections to a provider of logins the gateway
 * opens a tunnel to here beforehand, says in the request which one is the request's own, and opens another one as soon as one is used. A line says
 * where it is to lead, a line answers, and then the bytes are the connection's: TLS is spoken from here, and the gateway sees what is sealed.
 */
const longestLine = 1024;
const waitMs = 10_000;
const mostWaiting = 256;

interface Waiting {
  readonly spare: Duplex[];
  readonly takers: ((socket: Duplex) => void)[];
}

export class Tunnels {
  readonly #waiting = new Map<string, Waiting>();

  /** A gateway has come with one that nobody uses yet. */
  accept({ url, socket }: Pick<PeerUpgrade, "url" | "socket">): void {
    const id = tunnelAt(url);
    if (id === null || (!this.#waiting.has(id) && this.#waiting.size >= mostWaiting)) {
      refuseUpgrade(socket, 404, "not-found", "there is no place for such a tunnel");
      return;
    }
    socket.write("HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\nupgrade: tunnel\r\n\r\n");
    const own = this.#of(id);
    const taker = own.takers.shift();
    if (taker !== undefined) {
      taker(socket);
      return;
    }
    own.spare.push(socket);
    socket.once("close", () => {
      const at = own.spare.indexOf(socket);
      if (at >= 0) own.spare.splice(at, 1);
      this.#tidy(id, own);
    });
  }

  /** A connection to there. Rejects with why there is none. */
  async open(id: string, host: string, port: number): Promise<Duplex> {
    const socket = await this.#take(id);
    socket.write(`${JSON.stringify({ host, port })}\n`);
    const { line, rest } = await firstLine(socket);
    if (line !== "{}") {
      socket.destroy();
      throw new Error(`the gateway reaches no ${host}:${port}: ${line.slice(0, 200)}`);
    }
    if (rest.length > 0) socket.unshift(rest);
    return socket;
  }

  #of(id: string): Waiting {
    const own = this.#waiting.get(id) ?? { spare: [], takers: [] };
    this.#waiting.set(id, own);
    return own;
  }
  #tidy(id: string, own: Waiting): void {
    if (own.spare.length === 0 && own.takers.length === 0 && this.#waiting.get(id) === own) this.#waiting.delete(id);
  }
  #take(id: string): Promise<Duplex> {
    const own = this.#of(id);
    const spare = own.spare.shift();
    if (spare !== undefined) return Promise.resolve(spare);
    return new Promise((resolve, reject) => {
      const late = setTimeout(() => {
        own.takers.splice(own.takers.indexOf(taker), 1);
        this.#tidy(id, own);
        reject(new Error("the gateway makes no way to the provider"));
      }, waitMs);
      const taker = (socket: Duplex): void => {
        clearTimeout(late);
        resolve(socket);
      };
      own.takers.push(taker);
    });
  }
}

/** What comes up to a line's end, and what came behind it. Rejects where none comes in time. */
export function firstLine(
  socket: Duplex,
  withinMs = waitMs,
): Promise<{ readonly line: string; readonly rest: Buffer }> {
  return new Promise((resolve, reject) => {
    let had = Buffer.alloc(0);
    const leave = (): void => {
      socket.off("data", take).off("close", closed).off("error", closed);
      clearTimeout(late);
      socket.pause();
    };
    const closed = (): void => {
      leave();
      reject(new Error("the tunnel has closed"));
    };
    const late = setTimeout(() => {
      socket.destroy();
      closed();
    }, withinMs);
    const take = (chunk: Buffer): void => {
      had = Buffer.concat([had, chunk]);
      const at = had.indexOf(10);
      if (at < 0 && had.length <= longestLine) return;
      leave();
      if (at < 0) {
        socket.destroy();
        reject(new Error("the tunnel says no line"));
      } else resolve({ line: had.subarray(0, at).toString("utf8"), rest: had.subarray(at + 1) });
    };
    socket.on("data", take).once("close", closed).once("error", closed);
  });
}
