import { createSocket, type RemoteInfo, type Socket } from "node:dgram";
import { once } from "node:events";
import type { NamesOutside } from "./names-outside.ts";

/**
 * The name server that the VMs of a cell see: it hands each query to the DNS Manager and gives back what that answers. It
 * neither parses nor caches: names are the DNS Manager's business, who may ask is the rules'. Names outside are looked for
 * there first (`names-outside.ts`), under the same bounds.
 *
 * Every query goes out from a socket of its own with a fresh port, connected to the DNS Manager, so that the answer can
 * only be the Manager's and belongs to one asker. Both the queries per asker and those under way are bounded.
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
const mostAskers = 4_096;
/** A DNS header; less is no query. */
const headerBytes = 12;

export async function serveNames(options: NameServerOptions): Promise<NameServer> {
  const { listen, upstream, outside, timeoutMs = 2_000, perSecond = 50 } = options;
  const socket = createSocket("udp4");
  const underWay = new Set<Socket>();
  const askers = createBuckets(perSecond);
  let closed = false;
  const take = async (query: Buffer, asker: RemoteInfo): Promise<void> => {
    // A response (QR bit set) is no query: answering one could make two servers talk for ever.
    if (query.length < headerBytes || ((query[2] ?? 0x80) & 0x80) !== 0) return;
    if (!askers.take(asker.address)) return;
    const found = (await outside?.answer(query, asker.address).catch(() => null)) ?? null;
    if (closed || found === "nothing") return;
    if (found === null) forward(query, asker);
    else socket.send(found, asker.port, asker.address);
  };
  const forward = (query: Buffer, asker: RemoteInfo): void => {
    if (underWay.size >= mostUnderWay) return;
    const out = createSocket("udp4");
    underWay.add(out);
    const end = (): void => {
      clearTimeout(timer);
      if (underWay.delete(out)) out.close();
    };
    const timer = setTimeout(end, timeoutMs);
    out.on("error", end);
    out.on("message", (reply) => {
      if (reply.length < headerBytes || reply.readUInt16BE(0) !== query.readUInt16BE(0)) return;
      socket.send(reply, asker.port, asker.address);
      end();
    });
    const { port, address } = upstream();
    // From the controller's own address, by which the DNS Manager knows for which cell it asks.
    out.bind(0, listen.address, () => out.connect(port, address, () => out.send(query)));
  };
  socket.on("message", (query, asker) => void take(query, asker));
  socket.bind(listen.port, listen.address);
  await once(socket, "listening");
  // An unreachable asker's ICMP error is no reason to stop serving the others.
  socket.on("error", () => {});
  return {
    port: socket.address().port,
    close: async () => {
      closed = true;
      for (const out of underWay) out.close();
      underWay.clear();
      socket.close();
      await once(socket, "close");
    },
  };
}

/** Token buckets by asker: `perSecond` sustained, twice that at once. */
function createBuckets(perSecond: number): { take(asker: string): boolean } {
  const buckets = new Map<string, { tokens: number; at: number }>();
  return {
    take: (asker) => {
      const now = performance.now();
      if (buckets.size >= mostAskers && !buckets.has(asker)) buckets.clear();
      const bucket = buckets.get(asker) ?? { tokens: 2 * perSecond, at: now };
      bucket.tokens = Math.min(2 * perSecond, bucket.tokens + ((now - bucket.at) / 1_000) * perSecond);
      bucket.at = now;
      buckets.set(asker, bucket);
      if (bucket.tokens < 1) return false;
      bucket.tokens -= 1;
      return true;
    },
  };
}
