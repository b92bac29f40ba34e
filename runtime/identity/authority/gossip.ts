import { mayAsk } from "../../../core/documents/permissions.ts";
import type { AuthorityAnswer } from "../../../core/identity/authority/requests.ts";
import { epochsOf, isSettled, type Ring, readRing } from "../../../core/identity/gossip-ring.ts";
import type { PeerEntries } from "../../../core/identity/peer-book.ts";
import type { Json } from "../../../model/json/json.ts";
import type { PeerHandler } from "../../http/peer-handler.ts";
import type { RunningService } from "../../process/process.ts";
import { gossipKeyOf } from "../certificates.ts";
import { gossipKeyBytes, markOfGossipKey } from "../own/gossip-key.ts";

/**
 * `GET /gossip?oldest=&send=&newest=&marks=<epoch>.<mark>,…` at the authority, of hosts alone: a host says which epochs of the
 * key of datagrams it has, and is told which there are, with their keys (hexadecimal). The marks show that it has them: without
 * them, or with others', it is told `fits: false`, and what it says counts for nothing.
 */
export const isGossipQuestion = (url: string): boolean => url.split("?", 1)[0] === "/gossip";

/** Between two looks whether everybody has what a change waits for. */
const turnMs = 2000;
/** A host that asked for nothing in that time is not waited for. When it comes back it asks before anything else. */
const goneMs = 86_400_000;

export interface ServedGossip {
  readonly answer: PeerHandler;
  /** There is a new book. */
  look(peers: PeerEntries): void;
  stop(): void;
}

export const serveGossip = ({
  directory,
  request,
  heardAt,
}: {
  /** Of the authority's key. */
  readonly directory: string;
  readonly request: RunningService["request"];
  readonly heardAt: (peer: string) => number | null;
}): ServedGossip => {
  const startedAt = performance.now();
  let peers: PeerEntries = {};
  let timer: NodeJS.Timeout | null = null;
  let stopped = false;
  const ask = async (asked: object) =>
    (await request(asked as Json)) as unknown as AuthorityAnswer & { readonly kind: "gossip" };

  const isGone = (peer: string): boolean => performance.now() - (heardAt(peer) ?? startedAt) > goneMs;
  const turn = async (): Promise<void> => {
    const gone = Object.keys(peers).filter((name) => name.startsWith("host.") && isGone(name));
    const { gossip } = await ask({ kind: "gossip-turn", gone });
    if (!isSettled(gossip) && !stopped) wait();
  };
  const wait = (): void => {
    timer ??= setTimeout(() => {
      timer = null;
      // The service has stopped, and this with it.
      turn().catch(() => undefined);
    }, turnMs);
  };
  /** The first epoch's key needs no mark: it is the one that hosts had before, whichever that was. */
  const haveKeys = async (has: Ring, marks: string): Promise<boolean> => {
    const shown = new Set(marks.split(","));
    const later = epochsOf(has).filter((epoch) => epoch > 0);
    const right = later.map(async (epoch) => {
      const mark = markOfGossipKey(gossipKeyBytes(await gossipKeyOf(directory, epoch)));
      return shown.has(`${epoch}.${mark}`);
    });
    return (await Promise.all(right)).every(Boolean);
  };
  const answer: PeerHandler = async ({ peer, method, url }, response) => {
    const say = (status: number, body: object): void => {
      response.writeHead(status, { "content-type": "application/json", "cache-control": "no-store" });
      response.end(JSON.stringify(body));
    };
    if (!mayAsk("authority", peer, method, url)) {
      say(403, { error: { code: "forbidden", message: `keys of datagrams are hosts' alone, and this is "${peer}"` } });
      return;
    }
    const query = new URLSearchParams(url.split("?", 2)[1] ?? "");
    const [oldest, send, newest] = ["oldest", "send", "newest"].map((name) => Number(query.get(name) ?? Number.NaN));
    const has = readRing({ oldest, send, newest } as unknown as Json);
    const fits = has !== null && (await haveKeys(has, query.get("marks") ?? ""));
    const { gossip } = await ask({ kind: "gossip", host: peer, has: fits ? has : null });
    // It may be the authority that is behind.
    if (fits && has.newest > gossip.newest && !stopped) wait();
    const epochs = epochsOf(gossip);
    const keys = await Promise.all(
      epochs.map(async (epoch): Promise<[string, string]> => [`${epoch}`, await gossipKeyOf(directory, epoch)]),
    );
    say(200, { ring: gossip, keys: Object.fromEntries(keys), fits });
  };
  return {
    answer,
    look: (now) => {
      peers = now;
      if (!stopped) wait();
    },
    stop: () => {
      stopped = true;
      if (timer !== null) clearTimeout(timer);
    },
  };
};
