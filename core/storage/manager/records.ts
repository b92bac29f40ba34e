import type { PeerName, Uid } from "../../../model/cell/identifiers.ts";

/** What stays of deleted volumes, and who pays for it (`kept.ts`). */
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

/**
 * A Storage Manager whose store is lost, blank or older than what others have seen. All that it decides follows from what
 * controllers wish and what agents hold, so it finds its own way back:
 *
 *  - A volume that some agent has is where that agent has it. It is adopted, never placed.
 *  - Nothing is placed before each server has said what it has: a blank file under the UID of a volume that lies on a server
 *    which is still silent would be taken for that volume.
 *  - A holder that only an agent remembers is left alone until its controller has spoken, and has had time to say that it
 *    wishes for it. It is fenced sooner only for a later incarnation of itself, and where the volume goes.
 *  - An agent has the last word on epochs, so the next one that is asked for exceeds what it has.
 *
 * That an old store is one is heard from the agents (`forked`); a blank one shows itself.
 */
export interface Recovery {
  /** Servers that have not said, since the store was lost, what they have. Durable: record `recovery`. */
  readonly waitsFor: readonly PeerName[];
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
  ...{ touched: new Set(), counted: new Map(), over: new Map(), sums: new Map(), unsaid: new Set(), said: new Map() },
});
