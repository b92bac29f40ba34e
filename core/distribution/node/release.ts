import type { PeerName } from "../../../model/cell/identifiers.ts";
import { forgetMark, hasForked, isKept, recovered, releaseClient, releaseSelf } from "../fork.ts";
import { closeServer, remove } from "./server.ts";
import type { Client, Distribution, NodeInput, Turn } from "./types.ts";

/** What stays in force at a receiver although its client does not desire it, or not so, to be read by an operator. */
export interface Leftover {
  readonly client: PeerName;
  /** The client's store was lost or is older: what it desired before stays as it is until an operator releases it. */
  readonly forked: boolean;
  /** How many documents are kept as they are. */
  readonly kept: number;
  /**
   * Keys of documents that the client did not repeat, sorted, at most `namedAtMost` of `orphans`; all of a client that is gone for
   * good, whom an older store of this service still knows.
   */
  readonly keys: readonly string[];
  readonly orphans: number;
}
/** A receiver of this service's documents of which one side has forked; or the service itself, which found out by itself. */
export interface ForkedReceiver {
  readonly receiver: PeerName;
  readonly forked: boolean;
  readonly itForked: boolean;
}
export interface Leftovers {
  readonly clients: readonly Leftover[];
  readonly receivers: readonly ForkedReceiver[];
}
export const namedAtMost = 1000;

const byText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

const keptIn = (client: Client): number => {
  if (!hasForked(client)) return 0;
  let count = 0;
  for (const document of client.documents.values()) if (isKept(client, document)) count += 1;
  return count;
};

/**
 * Is there anybody of this name in the cloud, as far as its book of peers says? `instance`: of the one that is meant, null where
 * nobody has said it; whom the book says to be another one now is gone.
 */
export type IsThere = (peer: PeerName, instance: string | null) => boolean;

const isGone = (peer: PeerName, client: Client | undefined, isThere: IsThere): boolean =>
  (client?.session ?? -1) < 0 && !isThere(peer, instanceOf(client));
/** What was told of a client when it was last heard: the UID of a controller's cell. */
export const instanceOf = (client: Client | undefined): string | null => client?.mark?.instance ?? null;

/**
 * What an operator may end of a client: what it did not repeat. One that nobody is any more, and that has not been heard since this
 * start, repeats nothing: this store was put back, and what it knows of an ended cell is known to nobody else. What the service
 * knows to be the client's without a document of it counts once the client has said all that it desires.
 */
export const orphansOf = (
  node: Distribution,
  peer: PeerName,
  isThere: IsThere,
  unclaimed = node.unclaimed(),
): readonly string[] => {
  const client = node.clients.get(peer);
  const all = isGone(peer, client, isThere) ? client?.documents.keys() : client?.orphans;
  return [...(all ?? []), ...unclaimedOf(unclaimed, peer, client, isThere)];
};
const unclaimedOf = (
  unclaimed: ReadonlyMap<PeerName, readonly string[]>,
  peer: PeerName,
  client: Client | undefined,
  isThere: IsThere,
): readonly string[] => {
  const hasSaidAll = client?.link?.seen === null;
  if (!hasSaidAll && !isGone(peer, client, isThere)) return [];
  return (unclaimed.get(peer) ?? []).filter((key) => client?.documents.has(key) !== true);
};

export const leftoversOf = (node: Distribution, isThere: IsThere, unclaimed = node.unclaimed()): Leftovers => ({
  clients: [...new Set([...node.clients.keys(), ...unclaimed.keys()])]
    .map((peer) => ({ peer, client: node.clients.get(peer), orphans: orphansOf(node, peer, isThere, unclaimed) }))
    .filter(({ client, orphans }) => orphans.length > 0 || (client !== undefined && hasForked(client)))
    .map(({ peer, client, orphans }) => ({
      client: peer,
      forked: client !== undefined && hasForked(client),
      kept: client === undefined ? 0 : keptIn(client),
      keys: [...orphans].sort(byText).slice(0, namedAtMost),
      orphans: orphans.length,
    }))
    .sort((a, b) => byText(a.client, b.client)),
  receivers: [
    ...(node.isLost() ? [{ receiver: node.self, forked: true, itForked: false }] : []),
    ...[...node.targets.values()]
      .filter(({ forked, itForked }) => forked || itForked)
      .map(({ peer, forked, itForked }) => ({ receiver: peer, forked, itForked })),
  ].sort((a, b) => byText(a.receiver, b.receiver)),
});

type Release = Extract<NodeInput, { readonly kind: "release" }>;

/** An operator's word about a peer (`NodeInput`). */
export const release = (node: Distribution, turn: Turn, { peer, keys, isGone: gone }: Release): void => {
  const client = node.clients.get(peer);
  if (keys !== undefined) {
    end(node, turn, peer, keys, () => gone !== true);
    return;
  }
  if (peer === node.self) releaseSelf(node, turn);
  if (peer !== node.self || node.isLost()) turn.inbox.push({ kind: "excused", peer });
  const target = node.targets.get(peer);
  if (target !== undefined) recovered(node, turn, target);
  if (client === undefined) return;
  // Who is not here now may come with a store that this receiver has not met yet: it counts as well.
  if (client.link === null) forgetMark(turn, client);
  if (!hasForked(client)) return;
  releaseClient(turn, client, "operator");
  // On its next connection it says all that it desires once more, tombstones included.
  if (client.link !== null) closeServer(node, turn, client.link);
};

const end = (node: Distribution, turn: Turn, peer: PeerName, keys: readonly string[], isThere: IsThere): void => {
  const client = node.clients.get(peer);
  const orphans = new Set(orphansOf(node, peer, isThere));
  const unclaimed = keys.filter((key) => orphans.has(key) && client?.documents.has(key) !== true);
  const held = keys.filter((key) => {
    const document = client?.documents.get(key);
    return client !== undefined && document !== undefined && (orphans.has(key) || isKept(client, document));
  });
  if (client !== undefined) for (const key of held) remove(turn, client, key);
  if (unclaimed.length > 0) turn.inbox.push({ kind: "ended", peer, keys: unclaimed });
  const ended = [...held, ...unclaimed];
  const fields = { peer, count: ended.length, keys: ended.slice(0, 10) };
  if (ended.length > 0) turn.logs.push({ event: "distribution/ended", fields });
};
