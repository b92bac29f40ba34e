import {
  type CellName,
  type ElementPath,
  type HostName,
  type PeerName,
  peerName,
  type Uid,
} from "../../model/cell/identifiers.ts";
import type { GroupKind } from "../../model/cell/tenants/affinity/affinity.ts";
import type { HostRule } from "../../model/cell/tenants/dedication/dedication.ts";
import type { Marks } from "../../model/cell/tenants/dedication/marks.ts";
import type { Limits } from "../../model/contract/tenancy/quotas.ts";
import type { Reach, Rule } from "../../model/contract/tenancy/rules.ts";
import type { Standing } from "../../model/contract/tenancy/tenancy.ts";
import type { InUse } from "./cells.ts";
import type { Progress } from "./vocabulary.ts";

/*
 * What a controller asks the service `tenancy` and hears from it (`core/documents/vocabulary.ts` has the table of all keys): `look/<hash>`, by
 * the SHA-256 (hexadecimal) of a ticket that its gateway was shown. And what the root controller says to it: whose its child cells are, and what of tenants its specification declares; and hears from it:
 * what accounts may have. And to Placers: whose hosts are (`dedicated/<host>`), and whose cells (`owner/<cell>`).
 */

export const tenancy: PeerName = peerName("tenancy");

/** The desire to know what a ticket for this cell is worth, for as long as it is used here. */
export interface DesiredLook {
  /** Its hash. */
  readonly ticket: string;
}
/**
 * What it is worth now: it is said anew when that changes, and a right that was taken back counts from then on. `open` false: nothing. That
 * nothing is said any more is no answer but silence.
 */
export interface ActualLook {
  readonly open: boolean;
  /** As people read it: `ann@ROOT/acme`. */
  readonly user: string;
  readonly account: string;
  readonly rules: readonly Rule[];
  /** The beginning of the hash of his session, for records of what he did; absent: of a version before. */
  readonly session?: string;
  /** At the root controller: it is for this child cell of the root cell alone, which is, or may become, the account's. */
  readonly child?: CellName;
}

/** Of a child cell of the root cell, by the UID of its CellController; said until nothing is left of the cell. */
export interface DesiredOwner {
  readonly uid: Uid;
  readonly cell: CellName;
  /** Path of its account, as the root model has it (`x.account`); null: that says nothing. */
  readonly account: string | null;
  /** What it was granted, with its own children: that is what it uses. Absent: nothing, or an older version says it. */
  readonly has?: Limits;
  /** What of it is in use: its machines that run, and its volumes. Absent: an older version says it, here or in the cell. */
  readonly uses?: InUse;
  /** It has left the model. A cell that is made anew under the name waits for its end. */
  readonly ending?: true;
}

/**
 * At the root controller, by the UID of an account or a domain: what cells whose account is the path, or below it, may have together. The
 * root controller grants by that (`core/controller/model/account-limits.ts`).
 */
export interface DesiredLimits {
  readonly uid: string;
  readonly path: string;
  readonly kind: "account" | "domain";
  readonly limits: Limits;
  /** Of an account: UIDs of the domains that it is in, from within. Absent: of a version before. */
  readonly within?: readonly string[];
  /** It is disabled: machines of those cells are off until that is not said any more. */
  readonly off?: true;
  /** An account: it is being deleted, its cells end, and what is dedicated to it is released. */
  readonly ending?: true;
  /** A domain: the same of what is dedicated to it. Not `ending`: a version before would take it for an account that is called so. */
  readonly domainEnds?: true;
}
/**
 * A domain, an account or a role that stands in the root cell's specification, by the UID of its element; said for as long as it stands there. What
 * is said of it is `ActualDeclared`.
 */
export const declaredKey = (uid: string): string => `declared/${uid}`;
export type DesiredDeclared = DeclaredDomain | DeclaredAccount | DeclaredRole;
interface Declared {
  readonly uid: Uid;
  /** Where it stands. */
  readonly at: ElementPath;
  /** As commands name it; of a role its domain's, with its name behind. */
  readonly path: string;
  /** Of all the rest: what is said is said of this. */
  readonly tag: string;
}
export interface ActualDeclared extends Progress {
  readonly tag: string;
}
interface DeclaredPlace extends Declared {
  readonly state: Standing;
  readonly limits: Limits;
}
export interface DeclaredDomain extends DeclaredPlace {
  readonly kind: "domain";
}
export interface DeclaredAccount extends DeclaredPlace {
  readonly kind: "account";
}
export interface DeclaredRole extends Declared {
  readonly kind: "role";
  readonly reach: Reach;
  readonly rules: readonly Rule[];
  readonly secondFactor?: true;
}
/** What it has granted of them. */
export interface ActualLimits {
  readonly granted: Limits;
  /** Of an account that is being deleted: so many of its cells are still there. */
  readonly left?: number;
}

/** A host is one owner's: the innermost dedication of what it stands in, or of itself. Nothing is said of one that is everybody's. */
export interface DesiredDedicated extends HostRule {
  readonly host: HostName;
  /** Of the claim to the host. Absent: of a version before. */
  readonly epoch?: number;
}
export const dedicatedKey = (host: HostName): string => `dedicated/${host}`;
/** What the operator says of a host that a VM may ask for. Nothing is said of one of which he says nothing. */
export interface DesiredMarks extends Marks {
  readonly host: HostName;
}
export const marksKey = (host: HostName): string => `marks/${host}`;
/** Of a child cell of the root cell, and so of all cells in it. Nothing is said of one that no account has. */
export interface DesiredCellOwner {
  readonly cell: CellName;
  /** Path of its account. */
  readonly account: string;
  /** UID of that account, and of each domain that it is in, from within. Absent: nobody has said them yet, or a version before says it. */
  readonly uids?: readonly string[];
}
export const cellOwnerKey = (cell: CellName): string => `owner/${cell}`;

/** An affinity group of a cell, by the UID of its element, at the cell's Placer: it counts for all cells of the account. */
export interface DesiredGroup {
  readonly uid: Uid;
  readonly path: ElementPath;
  /** What `x.placement.groups` calls it: the last part of its path. */
  readonly name: string;
  readonly kind: GroupKind;
}
export const groupKey = (uid: Uid): string => `group/${uid}`;
