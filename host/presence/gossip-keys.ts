import { readFile } from "node:fs/promises";
import {
  epochsOf,
  firstRing,
  isLaterRing,
  isSameRing,
  isSettled,
  type Ring,
  readRing,
} from "../../core/identity/gossip-ring.ts";
import type { EventName } from "../../core/telemetry/event-names.ts";
import { peerName } from "../../model/cell/identifiers.ts";
import type { Json } from "../../model/json/json.ts";
import { peerRequest } from "../../runtime/http/https.ts";
import { gossipKeyBytes, gossipRingFile, markOfGossipKey } from "../../runtime/identity/own/gossip-key.ts";
import type { PeerBook, ProcessConfiguration } from "../../runtime/installation.ts";
import { createSealRing, type SealRing } from "../../runtime/presence/seal.ts";
import { replaceFile } from "../../runtime/process/replace-file.ts";
import { fingerprintOfCertificate } from "../../runtime/transport/fingerprint.ts";

/**
 * The keys of this host's datagrams, as the authority changes them (decision 58). They lie in a file beside the first one, so
 * a host that starts in the dark has those that it had. It asks once after its start, and while its ring is not the book's or
 * is being changed: each question says what it has by now, which is what a change waits for.
 */
export interface GossipKeys {
  readonly seal: SealRing;
  /** The book of peers may be another. */
  look(): void;
  close(): void;
}
interface Kept {
  /** Fingerprint of the authority's key: a machine may have been in another installation. */
  readonly ca: string;
  readonly ring: Ring;
  /** By epoch, hexadecimal. */
  readonly keys: Readonly<Record<string, string>>;
}

interface Told {
  readonly ring?: Json;
  /** By epoch, hexadecimal. */
  readonly keys?: Readonly<Record<string, string>>;
  /** False: this host has other keys under the numbers that it named. */
  readonly fits?: boolean;
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
  const ringFile = gossipRingFile(file);
  const ca = fingerprintOfCertificate(await readFile(configuration.certificate.caFile, "utf8"));
  let kept: Kept = (await readKept(ringFile, ca)) ?? {
    ca,
    ring: firstRing,
    keys: { 0: await readFile(file, "hex") },
  };
  const seal = createSealRing(bytesOf(kept));
  let timer: NodeJS.Timeout | null = null;
  let pauseMs: number = againMs.first;
  let closed = false;
  let asking = false;
  /** The authority has looked at the keys that this process began with. */
  let compared = false;

  const take = async (ring: Ring, keys: Readonly<Record<string, string>>, own: Kept["keys"]): Promise<boolean> => {
    const next: Kept = { ca, ring, keys: keysFor(ring, keys, own) };
    if (next.keys[ring.send] === undefined) throw new Error(`the authority gave no key of epoch ${ring.send}`);
    if (JSON.stringify(next) === JSON.stringify(kept)) return false;
    await replaceFile(ringFile, JSON.stringify(next));
    kept = next;
    seal.set(bytesOf(kept));
    // For the previous version, should it come back.
    const sent = keys[ring.send];
    if (sent !== undefined && ring.send > 0) await replaceFile(file, `${sent}\n`);
    log("gossip/changed", { epochs: epochsOf(ring).join(" "), epoch: ring.send });
    return true;
  };
  /** Whether something has changed. */
  const ask = async (): Promise<boolean> => {
    const { oldest, send, newest } = kept.ring;
    const path = `/gossip?oldest=${oldest}&send=${send}&newest=${newest}&marks=${marksOf(kept)}`;
    const answer = await peerRequest(configuration, authority, { method: "GET", path, idleTimeoutMs: 20_000 });
    const read = JSON.parse(await answer.text()) as Told;
    const ring = answer.status === 200 ? readRing(read.ring) : null;
    const keys = read.keys ?? {};
    if (ring === null || !Object.values(keys).every((key) => keyForm.test(String(key)))) return false;
    compared = true;
    // Keys under numbers of another life: what the authority says counts, were it an earlier ring.
    if (read.fits === false) return take(ring, keys, {});
    return isLaterRing(ring, kept.ring) && take(ring, keys, kept.keys);
  };
  const turn = async (): Promise<void> => {
    if (asking || closed) return;
    asking = true;
    try {
      const told = (await bookRing(configuration)) ?? firstRing;
      if (isSameRing(told, kept.ring) && isSettled(kept.ring) && (compared || kept.ring.newest === 0)) {
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

/** The first epoch's is the one that this host came with, unless it came while a later one was sealed with already. */
export const keysFor = (ring: Ring, told: Readonly<Record<string, string>>, own: Kept["keys"]): Kept["keys"] => {
  const given = new Map(Object.entries(told).map(([epoch, key]) => [epoch, gossipKeyBytes(key).toString("hex")]));
  const later = [...given].some(([epoch, key]) => epoch !== "0" && key === own[0]);
  const keyOf = (epoch: number): string | undefined =>
    epoch === 0 && !later ? (own[0] ?? given.get("0")) : (given.get(`${epoch}`) ?? own[epoch]);
  const all = epochsOf(ring).map((epoch): [string, string | undefined] => [`${epoch}`, keyOf(epoch)]);
  return Object.fromEntries(all.filter((one): one is [string, string] => one[1] !== undefined));
};

/** Of the first epoch's key there is none: it is what a host came with. */
const marksOf = ({ ring, keys }: Kept): string =>
  epochsOf(ring)
    .filter((epoch) => epoch > 0 && keys[epoch] !== undefined)
    .map((epoch) => `${epoch}.${markOfGossipKey(Buffer.from(keys[epoch] ?? "", "hex"))}`)
    .join(",");

/** What seals comes first. */
const bytesOf = ({ ring, keys }: Kept): readonly Uint8Array[] =>
  epochsOf(ring).flatMap((epoch) => (keys[epoch] === undefined ? [] : [Buffer.from(keys[epoch], "hex")]));

const bookRing = async ({ peersFile }: ProcessConfiguration): Promise<Ring | null> => {
  const { gossip } = JSON.parse(await readFile(peersFile, "utf8")) as PeerBook;
  return readRing(gossip as unknown as Json);
};

/** Null: there is none, or none that can be used. */
const readKept = async (file: string, ca: string): Promise<Kept | null> => {
  try {
    const read = JSON.parse(await readFile(file, "utf8")) as Omit<Kept, "ring"> & { readonly ring: Json };
    const ring = readRing(read.ring);
    if (ring === null || read.ca !== ca || typeof read.keys[ring.send] !== "string") return null;
    return { ca, ring, keys: read.keys };
  } catch {
    return null;
  }
};
