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
 * `GET /gossip?oldest=&send=&newest=&marks=<epoch>.<mark>,…` at the authority, by hosts alone. The key of the hosts' datagrams
 * (SWIM) is replaced from time to time; each version is an *epoch*. A host says which epochs it has, and is told which there
 * are, with their keys (hexadecimal). A mark proves that it has an epoch's key: if one is missing or wrong it is told
 * `fits: false`, and its word does not count.
 */
export const isGossipQuestion = (url: string): boolean => url.split("?", 1)[0] === "/gossip";

/** Time between two checks whether all hosts have the new key, before it is used. */
const turnMs = 2000;
/** A host that asked for nothing in that time is not waited for: when it comes back, it asks before it sends. */
const goneMs = 86_400_000;

export interface ServedGossip {
  readonly answer: PeerHandler;
  /** The book of peers has changed. */
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
      // Fails only when the service has stopped.
      turn().catch(() => undefined);
    }, turnMs);
  };
  /** The key of epoch 0 needs no mark: it is whatever key a host had before there were epochs. */
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
      say(403, {
        error: { code: "forbidden", message: `only hosts get the keys of datagrams, and this is "${peer}"` },
      });
      return;
    }
    const query = new URLSearchParams(url.split("?", 2)[1] ?? "");
    const [oldest, send, newest] = ["oldest", "send", "newest"].map((name) => Number(query.get(name) ?? Number.NaN));
    const has = readRing({ oldest, send, newest } as unknown as Json);
    const fits = has !== null && (await haveKeys(has, query.get("marks") ?? ""));
    const { gossip } = await ask({ kind: "gossip", host: peer, has: fits ? has : null });
    // The host has a newer epoch, so the authority's store is older than what it has given out: it catches up.
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
