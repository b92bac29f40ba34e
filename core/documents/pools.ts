import type { ElementPath, HostName, Uid } from "../../model/cell/identifiers.ts";
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
  /** null: it is in none, and takes nothing. */
  readonly pool: PooledAs | null;
}
export interface PooledAs extends NonNullable<PoolRule["pool"]> {
  /** The pool's, and its path in the cell that has it. */
  readonly uid: Uid;
  readonly cell: string;
  readonly path: ElementPath;
  /** What its owner calls the host. */
  readonly name: string;
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

/** Of a cell that the root cell has made: a pool of its account, and the hosts that it is to have. */
export interface PoolAsked {
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
/** What became of one of them, for as long as it is asked for or there. */
export interface PoolHostGiven {
  readonly uid: Uid;
  /** Why it has none yet; null: it has one. */
  readonly reason: string | null;
  /** All that stand there, whosever they are. */
  readonly vms: readonly Uid[];
}
