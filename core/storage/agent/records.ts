import type { PeerName, Uid } from "../../../model/cell/identifiers.ts";
import type { AgentSeen, Mark } from "../../documents/bin.ts";
import type { AgentLease, AgentReaders, AgentVolume } from "../../documents/vocabulary.ts";
import type { BinFile } from "../bin.ts";
import type { Beats } from "../heartbeat/beats.ts";
import type { Requests } from "../heartbeat/requests.ts";
import type { Evidence } from "../succession-evidence.ts";
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
  readonly beats: Beats;
  readonly requests: Requests;
  readonly volumes: Map<Uid, VolumeRecord>;
  readonly leases: Map<Uid, LeaseRecord>;
  readonly origins: Map<Uid, OriginRecord>;
  /** Of every volume of which something is wanted or there; and the sum for each manager. */
  readonly owners: Map<Uid, Owner>;
  readonly promisedMiB: Map<PeerName, number>;
  /** As the executor told of it last. */
  space: { readonly totalMiB: number; readonly freeMiB: number } | null;
  /** Cells whose writers wait, so that the rest of the server is left to others (`reserve.ts`). */
  readonly heldBack: Set<string>;
  readonly portsInUse: Set<number>;
  /** Last failure the executor told of, per volume and subject (`<uid>/file`, `<uid>/export`). */
  readonly failures: Map<string, string>;
  /** Whose file cannot be made on account of their image. */
  readonly badImages: Set<Uid>;
  readonly usedMiB: Map<Uid, number>;
  /** Looked for, and not there, since this start. */
  readonly missing: Set<Uid>;
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

/** What a server knows of its own history (`mark.ts`). */
export interface Marks {
  /** Oldest first, each with its last count. Durable: record `mark`. */
  starts: readonly Mark[];
  /** Drawn for this start; null: the executor has not begun. */
  start: string | null;
  /** Minutes of this start; 0: it has not been confirmed. */
  tick: number;
  /** The mark at which an operator adopted an older store last; null: nobody did. Durable, with `starts`. */
  adopted: Mark | null;
  /** Beside the files at this start. */
  found: Mark | null;
  /** What was beside the files when an operator adopted them, until another one is written there. Durable, with `starts`. */
  accepted: { readonly found: Mark | null } | null;
  /** An operator has adopted what there is: a file counts that the store does not know. Durable, with `starts`. */
  finds: boolean;
  /** The files' mark is not the store's: a sentence. */
  foreign: string | null;
  readonly seen: Map<PeerName, AgentSeen>;
  /** Volumes whose lease skips an epoch. */
  readonly behind: Set<Uid>;
  /** What was said last. */
  older: string | null;
}

/** Who decides for a volume (`owners.ts`). */
export interface Owner {
  readonly manager: PeerName;
  /** What its file may become, as it is counted in `promisedMiB`. */
  countedMiB: number;
}
