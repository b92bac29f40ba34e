import { readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { EventName } from "../core/event-names.ts";
import {
  epochsOf,
  firstRing,
  isLaterRing,
  isSameRing,
  isSettled,
  type Ring,
  readRing,
} from "../core/presence/gossip-ring.ts";
import { peerName } from "../model/identifiers.ts";
import type { Json } from "../model/json.ts";
import { peerRequest } from "../runtime/https.ts";
import { replaceFile } from "../runtime/identity/replace-file.ts";
import type { PeerBook, ProcessConfiguration } from "../runtime/installation.ts";
import { createSealRing, type SealRing } from "../runtime/presence/seal.ts";

/**
 * The keys of this host's datagrams, as the authority changes them (decision 58). They lie in a file beside the first one, so
 * a host that starts in the dark has those that it had. It asks while its ring is not the book's, or is being changed: each
 * question says what it has by now, which is what a change waits for.
 */
export interface GossipKeys {
  readonly seal: SealRing;
  /** The book of peers may be another. */
  look(): void;
  close(): void;
}
interface Kept {
  readonly ring: Ring;
  /** By epoch, hexadecimal. */
  readonly keys: Readonly<Record<string, string>>;
}

const authority = peerName("authority");
const againMs = { first: 1000, last: 60_000 } as const;
const keyForm = /^[0-9a-f]{64}$/;

/** Rejects where there is no key. */
export const followGossipKeys = async (
  configuration: ProcessConfiguration,
  log: (event: EventName, fields: { readonly [key: string]: Json }) => void,
): Promise<GossipKeys> => {
  const file = configuration.presence?.gossipKeyFile ?? "";
  const ringFile = join(dirname(file), "gossip-ring.json");
  let kept: Kept = (await readKept(ringFile)) ?? { ring: firstRing, keys: { 0: await readFile(file, "hex") } };
  const seal = createSealRing(bytesOf(kept));
  let timer: NodeJS.Timeout | null = null;
  let pauseMs: number = againMs.first;
  let closed = false;
  let asking = false;

  const take = async (ring: Ring, keys: Readonly<Record<string, string>>): Promise<void> => {
    const all = epochsOf(ring).flatMap((epoch): [string, string][] => {
      // A file of one key ends its line, and the line's end is part of the key.
      const told = keys[epoch];
      const key = told === undefined ? kept.keys[epoch] : Buffer.from(`${told}\n`).toString("hex");
      return key === undefined ? [] : [[`${epoch}`, key]];
    });
    const next: Kept = { ring, keys: Object.fromEntries(all) };
    if (next.keys[ring.send] === undefined) throw new Error(`the authority gave no key of epoch ${ring.send}`);
    await replaceFile(ringFile, JSON.stringify(next));
    kept = next;
    seal.set(bytesOf(kept));
    // For the previous version, should it come back.
    const sent = keys[ring.send];
    if (sent !== undefined) await replaceFile(file, `${sent}\n`);
    log("gossip/changed", { epochs: epochsOf(ring).join(" "), epoch: ring.send });
  };
  /** Whether something has changed. */
  const ask = async (): Promise<boolean> => {
    const { oldest, send, newest } = kept.ring;
    const path = `/gossip?oldest=${oldest}&send=${send}&newest=${newest}`;
    const answer = await peerRequest(configuration, authority, { method: "GET", path, idleTimeoutMs: 20_000 });
    const read = JSON.parse(await answer.text()) as { readonly ring?: Json; readonly keys?: Record<string, string> };
    const ring = answer.status === 200 ? readRing(read.ring) : null;
    const keys = read.keys ?? {};
    if (ring === null || !Object.values(keys).every((key) => keyForm.test(String(key)))) return false;
    if (!isLaterRing(ring, kept.ring)) return false;
    await take(ring, keys);
    return true;
  };
  const turn = async (): Promise<void> => {
    if (asking || closed) return;
    asking = true;
    try {
      const told = (await bookRing(configuration)) ?? firstRing;
      if (isSameRing(told, kept.ring) && isSettled(kept.ring)) {
        pauseMs = againMs.first;
        return;
      }
      // What it has now is said at once.
      while (!closed && (await ask())) pauseMs = againMs.first;
    } catch {
      // An authority that is away, or of the previous version: later.
    } finally {
      asking = false;
    }
    if (closed || timer !== null) return;
    timer = setTimeout(() => {
      timer = null;
      void turn();
    }, pauseMs).unref();
    pauseMs = Math.min(2 * pauseMs, againMs.last);
  };
  return {
    seal,
    look: () => {
      pauseMs = againMs.first;
      if (timer !== null) clearTimeout(timer);
      timer = null;
      void turn();
    },
    close: () => {
      closed = true;
      if (timer !== null) clearTimeout(timer);
    },
  };
};

/** What seals comes first. */
const bytesOf = ({ ring, keys }: Kept): readonly Uint8Array[] =>
  epochsOf(ring).flatMap((epoch) => (keys[epoch] === undefined ? [] : [Buffer.from(keys[epoch], "hex")]));

const bookRing = async ({ peersFile }: ProcessConfiguration): Promise<Ring | null> => {
  const { gossip } = JSON.parse(await readFile(peersFile, "utf8")) as PeerBook;
  return readRing(gossip as unknown as Json);
};

/** Null: there is none, or none that can be used. */
const readKept = async (file: string): Promise<Kept | null> => {
  try {
    const read = JSON.parse(await readFile(file, "utf8")) as { readonly ring: Json; readonly keys: Kept["keys"] };
    const ring = readRing(read.ring);
    return ring === null || typeof read.keys[ring.send] !== "string" ? null : { ring, keys: read.keys };
  } catch {
    return null;
  }
};
