import type { ElementPath, HostName, Uid } from "../../../../model/cell/identifiers.ts";
import type { PoolWishes } from "../../../documents/pools.ts";
import type { TrackedMap } from "../../changes/tracked.ts";

/** Record `pooled/<uid of the PoolHost>`, of the root controller: it has that host until nobody asks for it and nothing stands there. */
export interface PooledRecord extends PoolWishes {
  readonly uid: Uid;
  readonly host: HostName;
  readonly flavor: string;
  /** The child of the root cell that asks. */
  readonly child: Uid;
  readonly cell: string;
  readonly pool: Uid;
  readonly path: ElementPath;
  readonly name: string;
  readonly enabled: boolean;
  readonly authorised: readonly string[];
}
export interface Pooling {
  /** Hosts that are in pools, by their PoolHosts; of the root controller. */
  readonly pooled: Map<Uid, PooledRecord>;
  /** Since when each host is whose it is; of the root controller. */
  readonly claims: TrackedMap<HostName, ClaimRecord>;
}
/** Record `claim/<host>`. It outlasts what it says, so that an epoch never comes twice. */
export interface ClaimRecord {
  readonly epoch: number;
  /** The claim, as text; null: the host is everybody's. */
  readonly what: string | null;
}
