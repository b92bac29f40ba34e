import { type PeerName, peerName } from "../../../model/cell/identifiers.ts";
import type { AuditActor, Ring } from "../../../model/contract/audit/audit.ts";
import type { Json } from "../../../model/json/json.ts";
import type { Forks, Restored } from "../../env.ts";
import type { ClientMark, Mark, StoredPeer } from "../marks.ts";
import { textOf } from "./frames.ts";

/**
 * Layout of a service's store: one flat set of named JSON values.
 *
 * | key                | value                    |
 * | generation         | of the last start        |
 * | own/<key>          | a record of the service  |
 * | out/<peer>/<key>   | `{ value }`: own desired document at a peer; a null value is a tombstone that awaits its ack |
 * | in/<peer>/<key>    | `{ generation, seq, value }`: a client's desired document here |
 * | client/<peer>      | the newest generation in which that client was seen |
 * | history/start/<n>  | `{ start, count }`: a mark of this store's own history, oldest first |
 * | history/client/<p> | `ClientMark`: how far a client's store was, and what of it is kept |
 * | history/peer/<p>   | `StoredPeer`: how far a receiver's store was, and whether one of the two sides has forked |
 * | history/restored   | `{ wallMs, from, by?, hosts? }`: the store was put back from a copy, by whoever put it there; gone after the next start |
 * | history/audit      | `Chain`: how far the records go of what an operator had done here, of a service without chains of its own |
 * | history/audit-refusals | the same of what he was refused |
 * | history/raised     | true: a peer has seen later generations of this service than its store knows, which was lost |
 *
 * What is below `history/` is no concern of an earlier version, which cannot read it: a store keeps it apart from the rest.
 *
 * Peer names hold no `/`: they are common names of certificates that the installation issued.
 */
export const storeKey = {
  generation: "generation",
  own: (key: string): string => `own/${key}`,
  out: (peer: PeerName, key: string): string => `out/${peer}/${key}`,
  in: (peer: PeerName, key: string): string => `in/${peer}/${key}`,
  client: (peer: PeerName): string => `client/${peer}`,
  start: (number: number): string => `history/start/${number}`,
  clientMark: (peer: PeerName): string => `history/client/${peer}`,
  peerMark: (peer: PeerName): string => `history/peer/${peer}`,
  restored: "history/restored",
  raised: "history/raised",
  chains: { changes: "history/audit", refusals: "history/audit-refusals" },
} as const;

export interface StoredDocument {
  readonly generation: number;
  readonly seq: number;
  readonly value: Json;
  /** JSON text of the value, to see whether it changed. */
  readonly text: string;
}
export interface StoredNode {
  readonly generation: number;
  readonly records: Map<string, Json>;
  /** Own desired documents, tombstones (null) included. */
  readonly out: Map<PeerName, Map<string, Json>>;
  readonly in: Map<PeerName, Map<string, StoredDocument>>;
  readonly clients: Map<PeerName, number>;
  readonly history: Map<number, Mark>;
  readonly clientMarks: Map<PeerName, ClientMark>;
  readonly peerMarks: Map<PeerName, StoredPeer>;
  /** The store was put back from a copy since the last start. */
  readonly restored: Json;
  readonly isRaised: boolean;
  readonly chains: { readonly [R in Ring]: Json | undefined };
}

const inner = <K, V>(map: Map<K, Map<string, V>>, key: K): Map<string, V> => {
  const found = map.get(key) ?? new Map<string, V>();
  map.set(key, found);
  return found;
};

type Fields = { readonly [key: string]: Json | undefined };

/** Sorts a store's content. What was not written by this layout is an invariant broken, so it throws. */
export const readStored = (content: ReadonlyMap<string, Json>): StoredNode => {
  const stored: StoredNode = {
    generation: (content.get(storeKey.generation) as number | undefined) ?? 0,
    records: new Map(),
    out: new Map(),
    in: new Map(),
    clients: new Map(),
    history: new Map(),
    clientMarks: new Map(),
    peerMarks: new Map(),
    restored: content.get(storeKey.restored) ?? null,
    isRaised: content.has(storeKey.raised),
    chains: { changes: content.get(storeKey.chains.changes), refusals: content.get(storeKey.chains.refusals) },
  };
  for (const [name, value] of content) {
    if (name === storeKey.generation) continue;
    const slash = name.indexOf("/");
    const rest = name.slice(slash + 1);
    const second = rest.indexOf("/");
    const peer = peerName(rest.slice(0, second));
    const key = rest.slice(second + 1);
    const fields = value as Fields;
    switch (name.slice(0, slash)) {
      case "own":
        stored.records.set(rest, value);
        break;
      case "out":
        inner(stored.out, peer).set(key, fields.value ?? null);
        break;
      case "in": {
        const document = fields.value ?? null;
        const text = textOf(document) ?? "";
        inner(stored.in, peer).set(key, {
          generation: fields.generation as number,
          seq: fields.seq as number,
          value: document,
          text,
        });
        break;
      }
      case "client":
        stored.clients.set(peerName(rest), value as number);
        break;
      case "history":
        takeHistory(stored, rest.slice(0, second), key, value);
        break;
      default:
        throw new Error(`the store holds "${name}", which no version of this service writes`);
    }
  }
  return stored;
};

function takeHistory(stored: StoredNode, kind: string, name: string, value: Json): void {
  if (kind === "start") stored.history.set(Number(name), value as unknown as Mark);
  if (kind === "client") stored.clientMarks.set(peerName(name), value as unknown as ClientMark);
  if (kind === "peer") stored.peerMarks.set(peerName(name), value as unknown as StoredPeer);
}

const goneHostsOf = (hosts: Json | undefined): Pick<Restored, "goneHosts"> => {
  if (hosts === "gone") return { goneHosts: "all" };
  return Array.isArray(hosts) ? { goneHosts: hosts.map(String) } : {};
};
const putBackByOf = (restored: Json): Pick<Restored, "putBackBy"> => {
  const { by, from } = (restored ?? {}) as { readonly by?: AuditActor; readonly from?: string };
  return by === undefined ? {} : { putBackBy: { actor: by, from: from ?? "" } };
};
const putBackOf = ({ restored }: StoredNode): Pick<Restored, "wasRestored" | "putBackBy" | "goneHosts"> => ({
  wasRestored: restored !== null,
  ...putBackByOf(restored),
  ...goneHostsOf((restored as { readonly hosts?: Json } | null)?.hosts),
});

/** What the service itself gets to see of its store. */
export const restoredOf = (stored: StoredNode): Restored => {
  const desiredAt = new Map<PeerName, Map<string, Json>>();
  const releasingAt = new Map<PeerName, Set<string>>();
  for (const [peer, documents] of stored.out) {
    for (const [key, value] of documents) {
      if (value !== null) inner(desiredAt, peer).set(key, value);
      else releasingAt.set(peer, (releasingAt.get(peer) ?? new Set()).add(key));
    }
  }
  const forkedAt = new Map<PeerName, Forks>();
  for (const [peer, { forked, itForked }] of stored.peerMarks)
    if (forked || itForked) forkedAt.set(peer, { forked: forked === true, itForked: itForked === true });
  return { records: stored.records, desiredAt, releasingAt, forkedAt, ...putBackOf(stored) };
};
