import type { CellName, ElementPath, HostName, Uid } from "../../model/cell/identifiers.ts";
import type { GroupKind } from "../../model/cell/tenants/affinity/affinity.ts";
import type { HostRule } from "../../model/cell/tenants/dedication/dedication.ts";
import type { ImplicitMode } from "../../model/cell/tenants/dedication/implicit.ts";
import type { PoolAllows } from "../../model/cell/tenants/pools/offerings.ts";
import type { PoolRule } from "../../model/cell/tenants/pools/pools.ts";

/*
 * Whole hosts that are somebody's. Which host a pool has is said by the root controller alone, and to Placers alone; a cell asks its parent for hosts
 * by a flavour (with its `life`, `cells.ts`), and hears which it has by the names that it gave them.
 */

/** At Placers, of the root controller: the host is of a flavour, and in that pool. Nothing is said of others. */
export interface DesiredPooled {
  readonly host: HostName;
  readonly flavor: string;
  /** Of this all: whoever says what runs there says it of this. */
  readonly tag: string;
  /** Of the claim to the host. Absent: of a version before. */
  readonly epoch?: number;
  /** null: it is in none, and takes nothing. */
  readonly pool: PooledAs | null;
}
export interface PooledAs extends NonNullable<PoolRule["pool"]>, PoolWishes {
  /** The pool's, and its path in the cell that has it. */
  readonly uid: Uid;
  readonly cell: string;
  readonly path: ElementPath;
  /** What its owner calls the host. */
  readonly name: string;
}
/** How its owner has a pool's hosts used. Absent: as elsewhere, or the word is of a version before. */
export interface PoolWishes extends PoolAllows {
  readonly cpuRatio?: number;
  readonly memoryPercent?: number;
  readonly fill?: "spread" | "pack";
}
export const pooledKey = (host: HostName): string => `pooled/${host}`;

/**
 * What a Placer says to the root controller of a host that is disabled, or of a flavour: UIDs of all that it has placed there, or that the host says it has. Nothing
 * is said of one that was not heard.
 */
export interface ActualStanding {
  readonly vms: readonly Uid[];
  /** The `DesiredPooled` by which it places; null: none. */
  readonly tag: string | null;
}
export const standingKey = (host: HostName): string => `standing/${host}`;

/**
 * By what a Placer has placed a VM, as far as it concerns who stands beside it. The VM's controller hands it on to the host as it is; whose the VM is
 * does not stand here, since that is no controller's to say.
 */
export interface PlacedTerms {
  /** `x.placement.dedication`; absent: it asks for none. */
  readonly implicit?: ImplicitMode;
  /** Groups that it names; of those of dedicated hosts the kind is null. Absent: none. */
  readonly groups?: readonly PlacedGroup[];
  /** The pool that it asks for. */
  readonly pool?: Uid;
  /** Its cell is an account's: which one, the root controller says. */
  readonly owned?: true;
  /** Epoch of the claim to that host; absent: there was none. */
  readonly claim?: number;
}
export interface PlacedGroup {
  readonly name: string;
  readonly kind: GroupKind | null;
}

/**
 * At the host itself, of the root controller: whose it is. The host starts nothing that is not lawful under it. Its epoch grows with each change, and a
 * host that has taken one takes none that is older.
 */
export interface DesiredClaim {
  readonly host: HostName;
  readonly epoch: number;
  readonly rule: HostRule | null;
  readonly pooled: Omit<DesiredPooled, "host" | "tag" | "epoch"> | null;
}
export const claimKey = (host: HostName): string => `claim/${host}`;
/** Of a host: the highest epoch that it has ever taken. Of a Placer: one by which it has placed a VM there, and which the root controller does not know any more. */
export interface ActualClaim {
  readonly epoch: number;
}
/** Of the root controller, to hosts: whose a child cell of the root cell is, and so all cells in it; null: no account's. */
export interface ActualCellOwner {
  readonly cell: CellName;
  readonly account: string | null;
}

/** Of a cell that the root cell has made: a pool of its account, and the hosts that it is to have. */
export interface PoolAsked extends PoolWishes {
  readonly uid: Uid;
  readonly path: ElementPath;
  /** Paths of accounts. Absent: its own. */
  readonly authorised?: readonly string[];
  readonly hosts: readonly PoolHostAsked[];
}
export interface PoolHostAsked {
  readonly uid: Uid;
  readonly name: string;
  readonly flavor: string;
  readonly zone?: string;
  readonly enabled: boolean;
}
/** Why a host that is asked for waits, as long as nobody has said anything of it. */
export const poolHostWaits = "its parent has not answered yet";
/** What became of one of them, for as long as it is asked for or there. */
export interface PoolHostGiven {
  readonly uid: Uid;
  /** Why it has none yet; null: it has one. */
  readonly reason: string | null;
  /** All that stand there, whosever they are. */
  readonly vms: readonly Uid[];
}

/** What a VM gets of its host. */
export type PlacedAmounts = { readonly memoryMiB: number; readonly cpus: number };
export interface WishesMet {
  /** Names of its nice wishes that are so there, which its guest is told. Absent: none, or a Placer of a version before. */
  readonly nice?: readonly string[];
}
export interface GivenMore {
  /** By its nice wishes more than it has to have. Absent: no more. */
  readonly given?: PlacedAmounts;
}
export interface HadBefore {
  /** What it has at `at`, by its nice wishes more than it has to have. Absent: that. */
  readonly has?: PlacedAmounts;
}
export interface BootsFrom {
  /** The image, or the volume of another cell, where it asks for a pool. Absent: nothing that has a name, or its controller is of a version before. */
  readonly image?: string;
}

/** Of a place: it was reached from another host, and the root administrator is told so (`CrossingAlert`). Absent: nothing is to be told. */
export interface Crossed {
  readonly crossed?: readonly string[];
}
/** Of a machine: what its place has beside its guest, for its screen. Absent: its controller is of a version before, which asked for none. */
export interface BesideGuest {
  readonly besideMiB?: number;
}
