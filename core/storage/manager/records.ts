import type { PeerName, Uid } from "../../../model/cell/identifiers.ts";
import type { DesiredFence } from "../../documents/ha.ts";

/** An incarnation that is fenced (`fences/fences.ts`). */
export interface WantedFence {
  readonly client: PeerName;
  readonly document: DesiredFence;
  /** Volumes that the VM's connections name, or that it has; null: they have to be found anew. */
  concerned: Set<Uid> | null;
}

/** What stays of deleted volumes, and who pays for it (`left/kept.ts`). */
export interface Kept {
  /** What may be otherwise than it was counted. */
  readonly touched: Set<Uid>;
  readonly counted: Map<Uid, Counted>;
  /** How many volumes over it, at any distance, each client wants. */
  readonly over: Map<Uid, Map<PeerName, number>>;
  /** MiB by client, and there by the UID of the cell that left them; "": what lies under its copies. */
  readonly sums: Map<PeerName, Map<Uid | "", number>>;
  /** Whose sums were touched, and what each client was told last, as JSON. */
  readonly unsaid: Set<PeerName>;
  readonly said: Map<PeerName, string>;
}

/** How far a Storage Manager without its store has come (`recovery/recovery.ts`). */
export interface Recovery {
  /** Servers that have not said, since the store was lost, what they have. Durable: record `recovery`. */
  readonly waitsFor: readonly PeerName[];
  /** By client that has seen more of this store than it contains: servers that have not said, since it said so, what they have. */
  readonly behind?: { readonly [client: string]: readonly PeerName[] };
  /** While servers are waited for: one of the others had something, whether it still has it or not. */
  readonly found?: true;
}

export interface Counted {
  /** Who wants it. */
  readonly client: PeerName | null;
  readonly origin: Uid | null;
  readonly left: Left | null;
}

/** Nobody wants it, and it is there. */
export interface Left {
  readonly sizeMiB: number;
  readonly by: PeerName;
  /** Others have it connected. */
  readonly inUse: boolean;
}

export const createKept = (): Kept => ({
  touched: new Set(),
  counted: new Map(),
  over: new Map(),
  sums: new Map(),
  unsaid: new Set(),
  said: new Map(),
});
