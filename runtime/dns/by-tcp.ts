import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";

/**
 * DNS over TCP (RFC 1035, 4.2.2; RFC 7766): messages one after another, each behind its length in two bytes. Whoever has
 * sent several at once gets the answers in their order. While one is answered, or an answer is not taken, nothing more is read.
 */
export interface TcpBounds {
  /** In all, and of one address; one more is closed at once. */
  readonly connections: number;
  readonly connectionsOfAsker: number;
  /** Without anything that comes or goes. */
  readonly idleMs: number;
  /** Bytes of a query. */
  readonly largestQuery: number;
}
export interface ServedByTcp {
  readonly close: () => Promise<void>;
}
/** One message or several to one query; null: there is no answer, and the connection ends. */
type Answer = (packet: Buffer, asker: string) => Promise<Uint8Array | readonly Uint8Array[] | null>;
interface Place {
  readonly address: string;
  readonly port: number;
}

const behindItsLength = (message: Uint8Array): Buffer => {
  const length = Buffer.alloc(2);
  length.writeUInt16BE(message.length);
  return Buffer.concat([length, message]);
};

/** Rejects when it cannot listen. */
export async function serveByTcp({ address, port }: Place, bounds: TcpBounds, answer: Answer): Promise<ServedByTcp> {
  const connections = new Set<Socket>();
  const ofAsker = new Map<string, number>();
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    socket.on("error", () => socket.destroy());
    const asker = socket.remoteAddress ?? "";
    const own = ofAsker.get(asker) ?? 0;
    if (connections.size >= bounds.connections || own >= bounds.connectionsOfAsker) {
      socket.destroy();
      return;
    }
    connections.add(socket);
    ofAsker.set(asker, own + 1);
    socket.once("close", () => {
      connections.delete(socket);
      const left = (ofAsker.get(asker) ?? 1) - 1;
      if (left === 0) ofAsker.delete(asker);
      else ofAsker.set(asker, left);
    });
    serveConnection(socket, bounds, (packet) => answer(packet, asker));
  });
  server.listen(port, address);
  await once(server, "listening");
  return {
    close: async () => {
      const closed = once(server, "close");
      server.close();
      for (const socket of connections) socket.destroy();
      await closed;
    },
  };
}

function serveConnection(
  socket: Socket,
  { idleMs, largestQuery }: TcpBounds,
  answer: (packet: Buffer) => ReturnType<Answer>,
): void {
  let received = Buffer.alloc(0);
  let [busy, awaited, ended] = [false, false, false];
  const taken = (): Promise<void> =>
    new Promise((resolve) => {
      socket.once("drain", resolve);
      socket.once("close", resolve);
    });
  const answerAll = async (): Promise<void> => {
    while (received.length >= 2 && !socket.destroyed) {
      const length = received.readUInt16BE(0);
      if (length > largestQuery) socket.destroy();
      if (received.length < 2 + length) return;
      const packet = received.subarray(2, 2 + length);
      received = received.subarray(2 + length);
      awaited = true;
      const response = await answer(packet).catch(() => null);
      awaited = false;
      if (response === null) socket.destroy();
      for (const message of [response ?? []].flat())
        if (!socket.destroyed && !socket.write(behindItsLength(message))) await taken();
    }
  };
  const next = async (): Promise<void> => {
    if (busy) return;
    busy = true;
    socket.pause();
    await answerAll();
    busy = false;
    if (ended) socket.end();
    else if (!socket.destroyed) socket.resume();
  };
  // An answer has a time of its own.
  socket.setTimeout(idleMs).on("timeout", () => awaited || socket.destroy());
  socket.on("data", (part: Buffer) => {
    received = Buffer.concat([received, part]);
    void next();
  });
  socket.on("end", () => {
    ended = true;
    void next();
  });
}

export interface AskedByTcp extends Place {
  /** The asker's own address. */
  readonly from: string;
  readonly timeoutMs: number;
  /** Bytes of an answer; of a longer one nothing is read but its length. */
  readonly largest: number;
}
/** One question and its answer, unread; null: there was none. `stop` gives up, and is told at once how. */
export function askByTcp(
  { address, port, from, timeoutMs, largest }: AskedByTcp,
  question: Uint8Array,
  stop: (giveUp: () => void) => void = () => {},
): Promise<Buffer | null> {
  return new Promise((resolve) => {
    const socket = connect({ port, host: address, localAddress: from });
    const end = (answer: Buffer | null): void => {
      clearTimeout(timer);
      socket.destroy();
      resolve(answer);
    };
    const timer = setTimeout(() => end(null), timeoutMs);
    stop(() => end(null));
    let received = Buffer.alloc(0);
    socket.on("error", () => end(null));
    socket.on("close", () => end(null));
    socket.on("connect", () => socket.write(behindItsLength(question)));
    socket.on("data", (part) => {
      received = Buffer.concat([received, part]);
      const length = received.length < 2 ? 0 : received.readUInt16BE(0);
      if (length > largest) end(null);
      else if (length > 0 && received.length >= 2 + length) end(received.subarray(2, 2 + length));
    });
  });
}
