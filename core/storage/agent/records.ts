import type { PeerName, Uid } from "../../../model/cell/identifiers.ts";
import type { AgentLease, AgentReaders, AgentVolume } from "../../documents/vocabulary.ts";
import type { BinFile } from "../bin.ts";
import type { Evidence } from "../succession-evidence.ts";
import type { Marks } from "./mark.ts";
import type { Owner } from "./owners.ts";
import type { AgentOptions, LeaseRecord, OriginRecord, VolumeRecord, VolumeWork } from "./work.ts";

/** What a storage agent knows; the maps `volumes`, `leases` and `origins` are its durable records. */
export interface AgentState {
  readonly options: AgentOptions;
  started: boolean;
  readonly desired: {
    readonly volume: Map<Uid, AgentVolume>;
    readonly lease: Map<Uid, AgentLease>;
    readonly readers: Map<Uid, AgentReaders>;
    /** What hosts ask for themselves, by volume. */
    readonly succession: Map<Uid, Map<PeerName, AgentLease>>;
  };
  readonly evidence: Evidence;
  readonly volumes: Map<Uid, VolumeRecord>;
  readonly leases: Map<Uid, LeaseRecord>;
  readonly origins: Map<Uid, OriginRecord>;
  /** Of every volume of which something is wanted or there; and the sum for each manager. */
  readonly owners: Map<Uid, Owner>;
  readonly promisedMiB: Map<PeerName, number>;
  /** As the executor told of it last. */
  space: { readonly totalMiB: number; readonly freeMiB: number } | null;
  /** Cells whose writers wait, so that the rest of the server is left to others (`agent-reserve.ts`). */
  readonly heldBack: Set<string>;
  readonly portsInUse: Set<number>;
  /** Last failure the executor told of, per volume and subject (`<uid>/file`, `<uid>/export`). */
  readonly failures: Map<string, string>;
  readonly usedMiB: Map<Uid, number>;
  readonly images: Set<string>;
  /** Files in the bin, as the executor told of them last; null: it has not yet. */
  bin: Map<string, BinFile> | null;
  readonly marks: Marks;
  readonly work: Map<Uid, VolumeWork>;
  workVersion: number;
  /** Requests for work that wait for a newer version. */
  waiting: { readonly id: number; readonly known: number }[];
  /** What was published, as text: the same is not said twice. */
  readonly published: Map<string, string>;
}
