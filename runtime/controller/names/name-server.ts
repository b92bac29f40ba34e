import { createSocket } from "node:dgram";
import { once } from "node:events";
import { askByTcp, type ServedByTcp, serveByTcp, type TcpBounds } from "../../dns/by-tcp.ts";
import { createBuckets } from "../../http/buckets.ts";
import type { NamesOutside } from "./names-outside.ts";

/**
 * The name server that the VMs of a cell see: it hands each query to the DNS Manager and gives back what that answers. It
 * neither parses nor caches: names are the DNS Manager's business, who may ask is the rules'. Names outside are looked for
 * there first (`names-outside.ts`), under the same bounds.
 *
 * Every query goes out from a socket of its own with a fresh port, connected to the DNS Manager, so that the answer can
 * only be the Manager's and belongs to one asker. Both the queries per asker and those under way are bounded. Who was told that
 * an answer does not fit asks again by TCP (RFC 7766), and so does the name server for him.
 */
export interface NameServerOptions {
  /** Port 0: any. */
  readonly listen: { readonly address: string; readonly port: number };
  /** Asked for each query: the DNS Manager may move. */
  readonly upstream: () => { readonly address: string; readonly port: number };
  /** Absent: nobody is asked outside. */
  readonly outside?: Pick<NamesOutside, "answer">;
  readonly timeoutMs?: number;
  /** Sustained queries per second of one asker; twice as many at once. */
  readonly perSecond?: number;
}
export interface NameServer {
  readonly port: number;
  close(): Promise<void>;
}

const mostUnderWay = 256;
/** As many connections as one asker has at the DNS Manager (`dns/dns-server.ts`). */
const mostByTcp = 16;
/** Of the machines of one cell. No query that is answered is longer than its name and an option. */
const tcpBounds: TcpBounds = { connections: 128, connectionsOfAsker: 4, idleMs: 5_000, largestQuery: 1_024 };
const largestByTcp = 65_535;
/** A DNS header; less is no query. */
const headerBytes = 12;

export async function serveNames(options: NameServerOptions): Promise<NameServer> {
  const { listen, upstream, outside, timeoutMs = 2_000, perSecond = 50 } = options;
  const socket = createSocket("udp4");
  const underWay = new Set<() => void>();
  const askers = createBuckets(perSecond);
  let [closed, byTcp] = [false, 0];
  /** @returns null: none, since it is no query, or too many are asked, or nobody answers. */
  const answer = async (query: Buffer, asker: string, largest?: number): Promise<Uint8Array | null> => {
    // A response (QR bit set) is no query: answering one could make two servers talk for ever.
    if (query.length < headerBytes || ((query[2] ?? 0x80) & 0x80) !== 0) return null;
    if (!askers.take(asker)) return null;
    const found = (await outside?.answer(query, asker, largest).catch(() => null)) ?? null;
    if (closed || found === "nothing") return null;
    if (found !== null) return found;
    const reply = await (largest === undefined ? forward(query) : forwardByTcp(query));
    return reply === null || !isReplyTo(query, reply) ? null : reply;
  };
  const forward = (query: Buffer): Promise<Buffer | null> =>
    new Promise((resolve) => {
      if (underWay.size >= mostUnderWay) return resolve(null);
      const out = createSocket("udp4");
      const end = (reply: Buffer | null = null): void => {
        clearTimeout(timer);
        if (underWay.delete(giveUp)) out.close();
        resolve(reply);
      };
      const giveUp = (): void => end();
      underWay.add(giveUp);
      const timer = setTimeout(giveUp, timeoutMs);
      out.on("error", giveUp);
      out.on("message", (reply) => isReplyTo(query, reply) && end(reply));
      const { port, address } = upstream();
      // From the controller's own address, by which the DNS Manager knows for which cell it asks.
      out.bind(0, listen.address, () => underWay.has(giveUp) && out.connect(port, address, () => out.send(query)));
    });
  const forwardByTcp = async (query: Buffer): Promise<Buffer | null> => {
    if (byTcp >= mostByTcp) return null;
    let giveUp = (): void => {};
    byTcp += 1;
    const place = { ...upstream(), from: listen.address, timeoutMs, largest: largestByTcp };
    const reply = await askByTcp(place, query, (how) => {
      giveUp = how;
      underWay.add(how);
    });
    underWay.delete(giveUp);
    byTcp -= 1;
    return reply;
  };
  socket.on("message", async (query, asker) => {
    const found = await answer(query, asker.address);
    if (found !== null && !closed) socket.send(found, asker.port, asker.address);
  });
  socket.bind(listen.port, listen.address);
  await once(socket, "listening");
  // An unreachable asker's ICMP error is no reason to stop serving the others.
  socket.on("error", () => {});
  const { port } = socket.address();
  let tcp: ServedByTcp;
  try {
    tcp = await serveByTcp({ address: listen.address, port }, tcpBounds, (query, asker) =>
      answer(query, asker, largestByTcp),
    );
  } catch (error) {
    socket.close();
    throw error;
  }
  return {
    port,
    close: async () => {
      closed = true;
      for (const giveUp of [...underWay]) giveUp();
      const done = once(socket, "close");
      socket.close();
      await Promise.all([done, tcp.close()]);
    },
  };
}

const isReplyTo = (query: Buffer, reply: Buffer): boolean =>
  reply.length >= headerBytes && reply.readUInt16BE(0) === query.readUInt16BE(0);
