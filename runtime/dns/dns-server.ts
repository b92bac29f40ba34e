import { createSocket } from "node:dgram";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import {
  type Answer,
  AUTHORITATIVE_ANSWER,
  type DecodedPacket,
  decode,
  encode,
  type Question,
  TRUNCATED_RESPONSE,
} from "dns-packet";
import type { NameAnswer } from "../../core/dns/manager.ts";
import { cellOfController } from "../../core/outbox.ts";
import { peerName } from "../../model/cell/identifiers.ts";
import type { Json } from "../../model/json/json.ts";
import { type PeerBook, type ProcessConfiguration, ports } from "../installation.ts";
import { parsePeerAddress } from "../transport/peers.ts";
import { watchPeers } from "../transport/peers-watch.ts";
import { type ServedByTcp, serveByTcp, type TcpBounds } from "./by-tcp.ts";
import { bytesOf, refusalOf, type Signature, signatureOf, signed, type TsigKey } from "./tsig.ts";
import type { ZoneKeys } from "./zone-keys.ts";

/**
 * The DNS Manager's own edge: DNS over UDP and TCP (RFC 1035, 4.2). The service answers, this only translates. What is
 * malformed is dropped and counted, and so is what comes while too many queries are under way: a client asks again.
 */
export interface DnsServer {
  readonly port: number;
  readonly counts: Readonly<DnsCounts>;
  stop(): Promise<void>;
}
export interface DnsCounts {
  answered: number;
  /** Neither a packet nor a query. */
  malformed: number;
  /** Too many under way, or the service was stopping. */
  dropped: number;
}
interface Asked {
  request(request: Json): Promise<Json>;
}

const noKeys: ZoneKeys = { current: async () => null };
const mostUnderWay = 512;
/** A controller has no more under way (`controller/names/name-server.ts`), whatever its guests ask. */
const tcpBounds: TcpBounds = { connections: 256, connectionsOfAsker: 16, idleMs: 5_000, largestQuery: 65_535 };
/** Without EDNS, of which this server knows nothing, a UDP answer has at most so many bytes (RFC 1035, 2.3.4). */
const largestUdpBytes = 512;
/** With the longest names they fit into one by TCP. */
const recordsOfMessage = 200;
const rcodes = { NOERROR: 0, FORMERR: 1, SERVFAIL: 2, NXDOMAIN: 3, NOTIMP: 4, REFUSED: 5, NOTAUTH: 9 } as const;

/** The cell for whose VMs is asked from an address; null: no one cell's. */
export type CellAt = (address: string) => string | null;

/**
 * By the book of peers: who asks is a cell's controller, at its address, which nobody else can send from (a tap lets nothing
 * out but its interface's own address). Several at one address, as on loopback, are nobody in particular.
 */
export async function followCells({
  peersFile,
}: Pick<ProcessConfiguration, "peersFile">): Promise<{ readonly cellAt: CellAt; readonly stop: () => void }> {
  const cells = new Map<string, string | null>();
  const look = async (): Promise<void> => {
    const book = JSON.parse(await readFile(peersFile, "utf8")) as PeerBook;
    cells.clear();
    for (const [peer, entry] of Object.entries(book.peers)) {
      const cell = cellOfController(peerName(peer));
      const at = cell === null ? null : parsePeerAddress(entry);
      if (at?.ok === true) cells.set(at.value.host, cells.has(at.value.host) ? null : cell);
    }
  };
  // A file that cannot be read leaves what is known; the next one is read again.
  const stop = watchPeers(peersFile, () => look().catch(() => undefined));
  await look().catch(() => undefined);
  return { cellAt: (address) => cells.get(address) ?? null, stop };
}

/**
 * Serves at `configuration.address`, both protocols on `port` (0: any). Rejects when it cannot listen. What is answered, and
 * for how long it holds (TTL), is decided in `core/dns/manager.ts`.
 */
export async function serveDns(
  configuration: Pick<ProcessConfiguration, "address">,
  running: Asked,
  port: number = ports.dns,
  cellAt: CellAt = () => null,
  zoneKeys: ZoneKeys = noKeys,
): Promise<DnsServer> {
  const counts: DnsCounts = { answered: 0, malformed: 0, dropped: 0 };
  let underWay = 0;
  const nowS = (): number => Math.floor(Date.now() / 1_000);
  const keyNamed = async (name: string): Promise<TsigKey | null> => {
    const key = await zoneKeys.current();
    return key === null || key === "missing" || key.name !== name ? null : key;
  };
  const answerTo = async (query: DecodedPacket, signature: Signature, largest: number, asker: string) => {
    if (signature.kind === "bad") {
      const refused = respond(query, { rcode: "NOTAUTH", answers: [] }, largest);
      return refused.map((message) => refusalOf(signature, message, nowS()));
    }
    const by = signature.kind === "good" ? signature : null;
    const room = largest - (by === null ? 0 : bytesOf(by.key));
    const found = await look(query, running, { cell: cellAt(asker), from: asker, key: by?.key.name ?? null }, largest);
    const messages = respond(query, found, room);
    return by === null ? messages : signed(by.key, by.mac, messages, nowS());
  };
  const answer = async (packet: Buffer, largest: number, asker: string): Promise<readonly Buffer[] | null> => {
    const query = parseQuery(packet);
    if (query === null) counts.malformed += 1;
    else if (underWay >= mostUnderWay) counts.dropped += 1;
    if (query === null || underWay >= mostUnderWay) return null;
    underWay += 1;
    try {
      const signature = await signatureOf(packet, keyNamed, nowS);
      if (signature.kind === "malformed") {
        counts.malformed += 1;
        return null;
      }
      const response = await answerTo(query, signature, largest, asker);
      counts.answered += 1;
      return response;
    } catch {
      counts.dropped += 1;
      return null;
    } finally {
      underWay -= 1;
    }
  };
  const udp = createSocket("udp4");
  udp.on("message", async (packet, asker) => {
    const response = await answer(packet, largestUdpBytes, asker.address);
    if (response !== null) udp.send([...response], asker.port, asker.address, () => {});
  });
  udp.bind(port, configuration.address);
  await once(udp, "listening");
  // An unreachable asker's ICMP error is no reason to stop serving the others.
  udp.on("error", () => {});
  const bound = udp.address().port;
  let tcp: ServedByTcp;
  try {
    tcp = await serveByTcp({ address: configuration.address, port: bound }, tcpBounds, (packet, asker) =>
      answer(packet, 65_535, asker),
    );
  } catch (error) {
    udp.close();
    throw error;
  }
  return {
    port: bound,
    counts,
    stop: async () => {
      const closed = once(udp, "close");
      udp.close();
      await Promise.all([closed, tcp.close()]);
    },
  };
}

/** null: no packet, or no query; answering a response could make two servers talk for ever. */
function parseQuery(packet: Buffer): DecodedPacket | null {
  try {
    const query = decode(packet);
    return query.type === "query" ? query : null;
  } catch {
    return null;
  }
}

async function look(
  query: DecodedPacket,
  running: Asked,
  asker: { readonly cell: string | null; readonly from: string; readonly key: string | null },
  largest: number,
): Promise<{ readonly rcode: keyof typeof rcodes; readonly answers: NameAnswer["answers"] }> {
  const none = (rcode: keyof typeof rcodes) => ({ rcode, answers: [] });
  const [question] = query.questions ?? [];
  if (((query.flags ?? 0) & 0x7800) !== 0) return none("NOTIMP");
  if (question === undefined || query.questions?.length !== 1) return none("FORMERR");
  if (question.class !== undefined && question.class !== "IN") return none("REFUSED");
  // A whole zone is handed over by TCP alone (RFC 5936, 4.2).
  if (question.type === "AXFR" && largest <= largestUdpBytes) return none("REFUSED");
  const answer = await running.request({ name: question.name, type: question.type, ...asker });
  return answer as unknown as NameAnswer;
}

/** A zone that is handed over is in as many messages as it takes. */
function respond(
  query: DecodedPacket,
  { rcode, answers }: Awaited<ReturnType<typeof look>>,
  largest: number,
): readonly Buffer[] {
  const questions = (query.questions ?? []).map(({ name, type }): Question => ({ name, type }));
  // Recursion desired is copied (RFC 1035, 4.1.1), recursion is not available.
  const flags = AUTHORITATIVE_ANSWER | ((query.flags ?? 0) & 0x0100) | rcodes[rcode];
  const base = { type: "response", id: query.id ?? 0, questions } as const;
  if (questions[0]?.type === "AXFR" && answers.length > 0)
    return Array.from({ length: Math.ceil(answers.length / recordsOfMessage) }, (_, index) => {
      const part = answers.slice(index * recordsOfMessage, (index + 1) * recordsOfMessage);
      return encode({ ...base, flags, answers: part.map(written) });
    });
  const whole = encode({ ...base, flags, answers: answers.map(written) });
  return [whole.length <= largest ? whole : encode({ ...base, flags: flags | TRUNCATED_RESPONSE })];
}
const written = (record: NameAnswer["answers"][number]): Answer => ({ ...record }) as Answer;
