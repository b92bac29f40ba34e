import type { ServerResponse } from "node:http";
import { mayAsk } from "../../../core/documents/permissions.ts";
import { type CurrentKeys, readCurrentKeys } from "../../../core/identity/current-keys.ts";
import type { PeerEntries, Places } from "../../../core/identity/peer-book.ts";
import { gauge, type Metric, sample } from "../../../core/telemetry/metrics.ts";
import type { PeerName } from "../../../model/cell/identifiers.ts";
import type { Json } from "../../../model/json/json.ts";
import type { PeerHandler } from "../../http/peer-handler.ts";
import { type ProcessConfiguration, ports } from "../../installation.ts";
import type { RunningService } from "../../process/process.ts";

/**
 * `GET /peers?known=<version>`: where everybody is, held back until it is another book than that, for a minute at most
 * (204), so that a connection whose other end is gone shows.
 *
 * Every process of an installation asks, always. So one question to the service stands for all of them, a book is made
 * into bytes once, a peer has one question at a time, and only so many books are under way at once: the others, when a
 * thousand are to be told, get theirs behind them.
 */
export interface PeerBookLimits {
  /** Peers that may wait. */
  readonly followers: number;
  readonly holdMs: number;
  /** From a first change to the telling: changes come in bursts. */
  readonly gatherMs: number;
  readonly sending: number;
  /** For one book to leave. */
  readonly sendMs: number;
}
export const peerBookLimits: PeerBookLimits = {
  followers: 4096,
  holdMs: 60_000,
  gatherMs: 50,
  sending: 64,
  sendMs: 20_000,
};
export interface ServedBook {
  readonly answer: PeerHandler;
  measure(): readonly Metric[];
  /** When a peer asked last, as `performance.now()` says it; null: not yet. */
  heardAt(peer: string): number | null;
  stop(): void;
}

interface Told extends Places {
  readonly version: number;
  readonly keys: Json;
  readonly gossip: Json;
}
interface Held {
  readonly known: number;
  readonly response: ServerResponse;
  readonly timer: NodeJS.Timeout;
}

export const isPeersQuestion = (url: string): boolean => url.split("?", 1)[0] === "/peers";

/** What the authority itself says of where it is, with whoever else is fixed. */
export const fixedPeers = ({
  name,
  address,
  distributionPort,
  httpPort,
  authority,
}: ProcessConfiguration): PeerEntries => {
  const { distribution, http } = ports;
  const usual = distributionPort === undefined && httpPort === undefined;
  const own = usual ? address : [address, distributionPort ?? distribution, httpPort ?? http].join(":");
  return { ...authority?.peers, [name]: own };
};

const refuse = (response: ServerResponse, status: number, code: string, message: string): void => {
  response.writeHead(status, { "content-type": "application/json", "retry-after": "10" });
  response.end(JSON.stringify({ error: { code, message } }));
};

export const createPeerBook = (
  { request }: Pick<RunningService, "request">,
  /** Told of each book before anybody else is. */
  onBook: (keys: CurrentKeys, places: Places) => Promise<void>,
  limits: PeerBookLimits = peerBookLimits,
): ServedBook => {
  const held = new Map<PeerName, Held>();
  const heard = new Map<string, number>();
  let book: { readonly version: number; readonly body: Buffer } | null = null;
  let gathering: NodeJS.Timeout | null = null;
  let sending = 0;
  let stopped = false;

  const release = (peer: PeerName, { timer }: Held): void => {
    clearTimeout(timer);
    held.delete(peer);
  };
  const nothing = (peer: PeerName, one: Held): void => {
    release(peer, one);
    one.response.writeHead(204).end();
  };
  const send = (response: ServerResponse, body: Buffer): void => {
    sending += 1;
    const late = setTimeout(() => response.destroy(), limits.sendMs);
    response.once("close", () => {
      clearTimeout(late);
      sending -= 1;
      tell();
    });
    response.writeHead(200, { "content-type": "application/json", "content-length": body.length });
    response.end(body);
  };
  /** As many as may be told at once. */
  const tell = (): void => {
    if (book === null || gathering !== null || stopped) return;
    for (const [peer, one] of held) {
      if (sending >= limits.sending) return;
      if (one.known === book.version) continue;
      release(peer, one);
      send(one.response, book.body);
    }
  };
  const follow = async (): Promise<void> => {
    while (!stopped) {
      const answer = await request({ kind: "peers", known: book?.version ?? -1 } as unknown as Json);
      const { version, peers, cells, keys, gossip } = answer as unknown as Told;
      await onBook(readCurrentKeys(keys) ?? new Map(), { peers, cells });
      book = { version, body: Buffer.from(JSON.stringify({ version, peers, cells, keys, gossip })) };
      gathering ??= setTimeout(() => {
        gathering = null;
        tell();
      }, limits.gatherMs);
    }
  };
  // The service has stopped, and this with it.
  follow().catch(() => undefined);

  const answer: PeerHandler = ({ peer, method, url }, response) => {
    heard.set(peer, performance.now());
    const before = held.get(peer);
    if (method !== "GET")
      return refuse(response, 405, "not-allowed", "where everybody is can only be asked: GET /peers");
    if (!mayAsk("authority", peer, method, url))
      return refuse(
        response,
        403,
        "forbidden",
        `only what runs for the installation may ask for it, and this is "${peer}"`,
      );
    if (before === undefined && held.size >= limits.followers)
      return refuse(response, 503, "busy", `${limits.followers} peers wait for news already`);
    // Its former connection is lost, and nobody has noticed.
    if (before !== undefined) nothing(peer, before);
    const known = Number(new URLSearchParams(url.split("?", 2)[1] ?? "").get("known") ?? -1);
    const one: Held = { known, response, timer: setTimeout(() => nothing(peer, one), limits.holdMs) };
    held.set(peer, one);
    response.once("close", () => {
      if (held.get(peer) === one) release(peer, one);
    });
    tell();
  };
  return {
    answer,
    heardAt: (peer) => heard.get(peer) ?? null,
    measure: () => [
      gauge("cells_peer_followers", "Processes that wait for news of where everybody is.", [sample(held.size)]),
    ],
    stop: () => {
      stopped = true;
      if (gathering !== null) clearTimeout(gathering);
      for (const [peer, one] of [...held]) release(peer, one);
    },
  };
};
