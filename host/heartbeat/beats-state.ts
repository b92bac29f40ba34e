import { beatKey } from "../../core/documents/ha.ts";
import { desiredBeat } from "../../core/documents/readers/ha.ts";
import type { Restored } from "../../core/env.ts";
import type { PeerName, Uid } from "../../model/cell/identifiers.ts";

/** What a host says to the storage servers that it uses, and whether they hear it (`beats.ts`). */
export interface BeatsState {
  wanted: boolean;
  /** By HA Manager, the VMs that it takes from this host when that is lost. */
  readonly wantedBy: Map<PeerName, readonly Uid[]>;
  /** All of these. */
  ends: ReadonlySet<Uid>;
  /** Of the last beat; above every one that a server may have. */
  count: number;
  sentMs: number | null;
  /** The server and what this host knows of it: when the last beat was sent that it has made durable. */
  readonly to: Map<PeerName, { ackedMs: number | null }>;
  /** Beats that may still be acknowledged. */
  readonly sent: Map<number, number>;
  /** Silence counts from here on; null: it does not. */
  sinceMs: number | null;
  /** How often it was given time to hear somebody after it had stood still, since anybody heard it. */
  listens: number;
  /** When the timer is due; null: it is not set. */
  dueMs: number | null;
  /** This host's part in Presence believes that it is itself cut off. */
  doubts: boolean;
  /** VMs that are ended since nobody hears this host. */
  readonly isolated: Set<Uid>;
  /** Up to when somebody had heard this host when its watchdog was fed last; null: it rests. */
  fedMs: number | null;
}

/** Said when it changes. */
export interface DoubtsRequest {
  readonly kind: "presence-doubts";
  readonly doubts: boolean;
}

export const restoreBeats = ({ desiredAt }: Restored): BeatsState => {
  const known = [...desiredAt].flatMap(([peer, documents]) => {
    const beat = desiredBeat.of(documents.get(beatKey) ?? null);
    return beat === null ? [] : [[peer, beat] as const];
  });
  return {
    wanted: false,
    wantedBy: new Map(),
    ends: new Set(),
    count: Math.max(0, ...known.map(([, { count }]) => count)),
    sentMs: null,
    to: new Map(known.map(([peer]) => [peer, { ackedMs: null }])),
    sent: new Map(),
    sinceMs: null,
    listens: 0,
    dueMs: null,
    doubts: false,
    isolated: new Set(),
    fedMs: null,
  };
};
