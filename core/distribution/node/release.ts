import type { PeerName } from "../../../model/cell/identifiers.ts";
import { forgetMark, hasForked, isKept, recovered, releaseClient, releaseSelf } from "../fork.ts";
import { closeServer, remove } from "./server.ts";
import type { Client, Distribution, Turn } from "./types.ts";

/** What stays in force at a receiver although its client does not desire it, or not so, to be read by an operator. */
export interface Leftover {
  readonly client: PeerName;
  /** The client's store was lost or is older: what it desired before stays as it is until an operator releases it. */
  readonly forked: boolean;
  /** How many documents are kept as they are. */
  readonly kept: number;
  /** Keys of documents that the client did not repeat, sorted, at most `namedAtMost` of `orphans`. */
  readonly keys: readonly string[];
  readonly orphans: number;
}
/** A receiver of this service's documents of which one side has forked. */
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

export const leftoversOf = (node: Distribution): Leftovers => ({
  clients: [...node.clients.values()]
    .filter((client) => client.orphans.size > 0 || hasForked(client))
    .map((client) => ({
      client: client.peer,
      forked: hasForked(client),
      kept: keptIn(client),
      keys: [...client.orphans].sort(byText).slice(0, namedAtMost),
      orphans: client.orphans.size,
    }))
    .sort((a, b) => byText(a.client, b.client)),
  receivers: [...node.targets.values()]
    .filter(({ forked, itForked }) => forked || itForked)
    .map(({ peer, forked, itForked }) => ({ receiver: peer, forked, itForked }))
    .sort((a, b) => byText(a.receiver, b.receiver)),
});

/** An operator's word about a peer (`NodeInput`). */
export const release = (node: Distribution, turn: Turn, peer: PeerName, keys: readonly string[] | undefined): void => {
  const client = node.clients.get(peer);
  if (keys !== undefined) {
    if (client !== undefined) end(turn, client, keys);
    return;
  }
  if (peer === node.self) releaseSelf(node, turn);
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

const end = (turn: Turn, client: Client, keys: readonly string[]): void => {
  const ended = keys.filter((key) => {
    const document = client.documents.get(key);
    return document !== undefined && (client.orphans.has(key) || isKept(client, document));
  });
  for (const key of ended) remove(turn, client, key);
  const fields = { peer: client.peer, count: ended.length, keys: ended.slice(0, 10) };
  if (ended.length > 0) turn.logs.push({ event: "distribution/ended", fields });
};
