import type { Cidr, Ipv4 } from "../../../model/cell/identifiers.ts";

/** Parts of a cell's policy (`CellPolicy`). */
export interface PolicyNetwork {
  readonly cidr: Cidr;
  readonly identity: number;
  /** It is a whole Subnet of another cell: its last address is a directed broadcast. */
  readonly subnet?: true;
}
/** What goes from a subnet to the outside is handed to an interface of the cell, which may answer for `forwards`. */
export interface PolicyRouter {
  /** Identity of the subnet. */
  readonly subnet: number;
  /** Of the interface that takes it: where that is, its location says. */
  readonly identity: number;
  readonly address: Ipv4;
  readonly forwards: readonly Forwarded[];
}
/** Of an interface. */
export interface PolicyTraits {
  readonly identity: number;
  /** `x.forwards`: whom it may speak for to machines of its cell, beside its own address. */
  readonly forwards: readonly Forwarded[];
  /** `x.groups`: multicast groups that it is a member of without asking. */
  readonly groups: readonly Ipv4[];
}
/** "internet": every address that is not of the installation. */
export type Forwarded = Cidr | "internet";
/** What its manifest says of its slices. `base`: those whose names begin with another one are of a history of this cell that is over. */
export interface Sliced extends Summary {
  readonly base: number;
}

// A view that is larger than a document: a manifest, and slices beside it (`core/distribution/views/`).

/** Two words of 32 bits. */
export type SliceDigest = readonly [number, number];

/** What a manifest says of its slices: how many there are, and the exclusive or of their digests. */
export interface Summary {
  readonly count: number;
  readonly digest: SliceDigest;
}
