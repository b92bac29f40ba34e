import { readFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { placeOf } from "../../../core/documents/service-roles.ts";
import { type CurrentKeys, mergeKeys, readCurrentKeys, writeCurrentKeys } from "../../../core/identity/current-keys.ts";
import { type Ring, readRing } from "../../../core/identity/gossip-ring.ts";
import { toJson } from "../../../core/outbox.ts";
import { peerName } from "../../../model/cell/identifiers.ts";
import type { Json } from "../../../model/json/json.ts";
import { type KeptConnection, keepConnection, peerRequest } from "../../http/https.ts";
import type { PeerBook, ProcessConfiguration } from "../../installation.ts";
import { stopAtSignals } from "../../life/signals.ts";
import type { Observer } from "../../observation/observer.ts";
import { replaceFile } from "../../process/replace-file.ts";
import { parsePeerAddress } from "../../transport/peers.ts";

/**
 * Keeps this process' peers file as the authority knows it (decision 31). One question is always under way, which the
 * authority answers when there is news or after a minute, over a connection that stays. The file is durable, so a start
 * needs nobody: what it says counts until the authority says otherwise.
 *
 * Where the authority itself is comes from the file too. Its entry therefore stays when a book has none, and a process that
 * never had a file begins with the one address that it enrols at.
 */
const authority = peerName("authority");
/** The authority answers an unchanged book after a minute. */
const silenceMs = 90_000;
const longestBook = 4 * 1024 * 1024;
/** A book that is as it was, sooner than that, is no news and no sign of life: it counts as an attempt in vain. */
const soonMs = 1000;
const backoff = { firstMs: 200, lastMs: 10_000 } as const;
/** Before the n-th attempt in a row: doubling up to the limit, and half of it by chance. Thousands may have lost it at once. */
const pauseMs = (attempt: number): number => {
  const most = Math.min(backoff.lastMs, backoff.firstMs * 2 ** Math.min(attempt - 1, 16));
  return most / 2 + (most / 2) * Math.random();
};

type Places = Required<Pick<PeerBook, "peers" | "cells">>;
interface Answer extends Places {
  readonly version: number;
  readonly keys: CurrentKeys;
  readonly gossip: Ring | null;
}

/**
 * Resolves when the peers file says where others are, which at a first start the authority has to say; follows the authority
 * from then on until a signal ends the process. Rejects when nothing says where the authority is, or the file cannot be
 * written.
 */
export const followPeers = async (configuration: ProcessConfiguration, observer: Observer): Promise<void> => {
  const book = await readBook(configuration.peersFile);
  const first = Promise.withResolvers<void>();
  stopAtSignals(await keepPeers(configuration, observer, first.resolve));
  // A start later on needs nobody. At the first one a service that knows of nobody would tell its clients so.
  const isFirst = Object.keys(book?.peers ?? {}).length <= 1;
  if (isFirst && configuration.name !== authority) await first.promise;
};

/** Follows it until what this resolves to is called, which it does as soon as there is a file. `onBook`: with each book. */
export const keepPeers = async (
  configuration: ProcessConfiguration,
  observer: Pick<Observer, "log">,
  onBook: () => void = () => undefined,
): Promise<() => Promise<void>> => {
  const { peersFile, name } = configuration;
  const onDisk = await readBook(peersFile);
  if (onDisk === null) await writeBook(peersFile, firstBook(configuration));
  // Whoever knows it asks nobody else.
  if (name === authority) return async () => undefined;
  const stop = new AbortController();
  const following = follow(configuration, observer, stop.signal, onBook);
  return () => {
    stop.abort();
    return following;
  };
};

const firstBook = ({ peersFile, name, enrolment }: ProcessConfiguration): PeerBook => {
  if (name === authority) return { peers: {} };
  const address = enrolment?.authority.split(":")[0];
  if (address === undefined || address === "")
    throw new Error(
      `${peersFile} does not say where the peer "authority" is, and no enrolment does: add it to the file`,
    );
  return { peers: { authority: placeOf("authority", address) } };
};

const follow = async (
  configuration: ProcessConfiguration,
  observer: Pick<Observer, "log">,
  signal: AbortSignal,
  onBook: () => void,
): Promise<void> => {
  const connection = keepConnection(configuration, authority);
  let known = -1;
  let attempts = 0;
  while (!signal.aborted) {
    const since = performance.now();
    try {
      const answer = await ask(configuration, known, connection, signal);
      if (answer !== null) {
        await takeBook(configuration, answer, observer);
        known = answer.version;
        onBook();
      } else if (performance.now() - since < soonMs) throw new Error("it says too often that nothing has changed");
      attempts = 0;
    } catch (error) {
      if (signal.aborted) break;
      attempts += 1;
      // Ever more seldom: an authority that is away for a day does not fill the log.
      if ((attempts & (attempts - 1)) === 0) observer.log("peers/waiting", { why: (error as Error).message, attempts });
      await sleep(pauseMs(attempts), undefined, { signal }).catch(() => undefined);
    }
  }
  connection.agent.destroy();
};

/** Null: nothing has changed. Rejects with a sentence. */
const ask = async (
  configuration: ProcessConfiguration,
  known: number,
  connection: KeptConnection,
  signal: AbortSignal,
): Promise<Answer | null> => {
  const path = `/peers?known=${known}`;
  const answer = await peerRequest(configuration, authority, {
    method: "GET",
    path,
    connection,
    signal,
    idleTimeoutMs: silenceMs,
  });
  let length = 0;
  answer.body.on("data", (chunk: Buffer) => {
    length += chunk.length;
    if (length > longestBook) answer.body.destroy(new Error("the authority's book of peers has no end"));
  });
  const body = await answer.text();
  if (answer.status === 204) return null;
  if (answer.status !== 200) throw new Error(`the authority answered ${answer.status} when asked where everybody is`);
  const read = JSON.parse(body) as { readonly [name: string]: unknown };
  // An authority of the previous version says nothing of cells.
  const { version, peers, cells = {} } = read;
  const keys = readCurrentKeys(read.keys as Json | undefined);
  if (typeof version !== "number" || !isBook({ peers, cells }) || keys === null)
    throw new Error("the authority's book of peers is malformed; see PeerBook in runtime/installation.ts");
  const places = { peers: peers as PeerBook["peers"], cells: cells as Answer["cells"] };
  return { version, ...places, keys, gossip: readRing(read.gossip as Json | undefined) };
};

const takeBook = async (
  { peersFile }: ProcessConfiguration,
  { version, peers, cells, keys, gossip }: Answer,
  observer: Pick<Observer, "log">,
): Promise<void> => {
  const before = await readBook(peersFile);
  const own = before?.peers.authority;
  const all = own === undefined ? peers : { authority: own, ...peers };
  const book = bookWith({ peers: all, cells }, mergeKeys(keysIn(before), keys, Date.now()), gossip);
  if (before !== null && same(before, book)) return;
  await writeBook(peersFile, book);
  observer.log("peers/changed", { version, peers: Object.keys(book.peers).length });
};

/**
 * The authority's own, as it tells it to others: it judges them as everybody does, and knows who there is. In a file that is not its
 * own only the keys are its own to say.
 */
export const keepOwnBook = async (
  { peersFile, followPeers }: ProcessConfiguration,
  told: Places,
  keys: CurrentKeys,
): Promise<void> => {
  const before = await readBook(peersFile);
  const places = followPeers === true ? told : { peers: before?.peers ?? {}, cells: before?.cells ?? {} };
  const book = bookWith(places, mergeKeys(keysIn(before), keys, Date.now()), null);
  if (before === null || !same(before, book)) await writeBook(peersFile, book);
};

const bookWith = ({ peers, cells }: Places, keys: CurrentKeys, gossip: Ring | null): PeerBook => ({
  peers,
  ...(Object.keys(cells).length === 0 ? {} : { cells }),
  ...(gossip === null || gossip.newest === 0 ? {} : { gossip }),
  ...(keys.size === 0 ? {} : { keys: writeCurrentKeys(keys) }),
});
const keysIn = (book: PeerBook | null): CurrentKeys => readCurrentKeys(toJson(book?.keys ?? {})) ?? new Map();

const same = (a: PeerBook, b: PeerBook): boolean => {
  const names = Object.keys(a.peers);
  const others = ({ keys, gossip, cells }: PeerBook): string =>
    JSON.stringify([keys ?? {}, gossip ?? null, cells ?? {}]);
  if (others(a) !== others(b)) return false;
  return names.length === Object.keys(b.peers).length && names.every((name) => a.peers[name] === b.peers[name]);
};

const writeBook = (file: string, book: PeerBook): Promise<void> => replaceFile(file, `${JSON.stringify(book)}\n`);

/** Null for a file that is not there or holds no book. */
const readBook = async (file: string): Promise<PeerBook | null> => {
  try {
    const read: unknown = JSON.parse(await readFile(file, "utf8"));
    return isBook(read) ? read : null;
  } catch {
    return null;
  }
};

const isObject = (read: unknown): read is { readonly [name: string]: unknown } =>
  typeof read === "object" && read !== null && !Array.isArray(read);
const isBook = (read: unknown): read is PeerBook => {
  if (!isObject(read) || !isObject(read.peers)) return false;
  const { peers, cells = {} } = read;
  if (!isObject(cells) || !Object.values(cells).every((cell) => typeof cell === "string")) return false;
  return Object.values(peers).every((entry) => typeof entry === "string" && parsePeerAddress(entry).ok);
};
