import type { AuditEntry, AuditHead, AuditRecord, Ring } from "./audit.ts";
import { aged, type Chain, emptyChain, type Linked, linked, mostRecords } from "./chain.ts";

/*
 * A service keeps what was changed apart from what was refused: a chain and a ring of records for each. A refusal costs whoever is refused nothing,
 * and where both were in one ring, whoever went on asking pushed out who had changed what.
 *
 * Each chain counts for itself. A record of a refusal says behind which change it is, so both together have an order, whatever the clock did.
 *
 * A version before had one chain, that of changes now, with refusals in it: it goes on as it is, and so it does where such a version takes over
 * again. What that version does not know, the ring of refusals, it leaves as it is.
 */
export type Chains = { readonly [R in Ring]: Chain };
/** How many records of each are kept. */
export type Room = { readonly [R in Ring]: number };
/** Of a service that nobody gives more. */
export const usualRoom: Room = { changes: mostRecords, refusals: 2048 };

/** @param kept the chains as they were written; absent: there is none yet */
export const chainsOf = (kept: { readonly [R in Ring]: Chain | undefined }): Chains => ({
  changes: kept.changes ?? emptyChain,
  refusals: kept.refusals ?? emptyChain,
});

/** The one of the two that this is not. */
export const otherRing = (ring: Ring): Ring => (ring === "changes" ? "refusals" : "changes");
/** In which ring a record of this is. */
const ringFor = ({ outcome }: Pick<AuditEntry, "outcome">): Ring => (outcome === "refused" ? "refusals" : "changes");
/** In which ring this record is: one of a version before that was refused is among the changes. */
export const ringOf = ({ behind }: Pick<AuditRecord, "behind">): Ring =>
  behind === undefined ? "changes" : "refusals";

export interface Taken extends Omit<Linked, "chain"> {
  readonly ring: Ring;
  readonly chains: Chains;
  /** Of the other ring: numbers of records that are too old. */
  readonly oldOnes: readonly number[];
}
export function takenInto(chains: Chains, entry: AuditEntry, wallMs: number, room: Room = usualRoom): Taken {
  const ring = ringFor(entry);
  const placed = ring === "refusals" ? { ...entry, behind: chains.changes.next - 1 } : entry;
  const { chain, ...rest } = linked(chains[ring], placed, wallMs, room[ring]);
  // One that takes nothing for years would keep its old ones as long.
  const other = otherRing(ring);
  const old = aged(chains[other], wallMs);
  const after = { ...chains, [ring]: chain, ...(old === null ? {} : { [other]: old.chain }) };
  return { ...rest, ring, chains: after, oldOnes: old?.dropped ?? [] };
}

const bare = ({ first, next, hash }: Chain): AuditHead => ({ first, next, hash });
export const headOf = ({ changes, refusals }: Chains): AuditHead => ({ ...bare(changes), refusals: bare(refusals) });

/** Of two records of one service, which one comes first. Of whoever sees a part, all are in one count. */
export function inOrder(one: AuditRecord, other: AuditRecord): number {
  const [place, otherPlace] = [one.behind ?? one.n, other.behind ?? other.n];
  if (place !== otherPlace) return place - otherPlace;
  if (ringOf(one) !== ringOf(other)) return ringOf(one) === "changes" ? -1 : 1;
  return one.n - other.n;
}
