import type { HostName, Ipv4, PeerName, Uid } from "../../../model/cell/identifiers.ts";
import type { Mark, VolumeAbout } from "../../documents/bin.ts";
import type { BootRecord, LeaseHolder } from "../../documents/vocabulary.ts";
import type { BinFile, BinOptions } from "../bin.ts";
import type { Looked } from "../heartbeat/requests.ts";

/**
 * What passes between the storage agent's decisions (`agent.ts`) and the executor that has the files and processes.
 * Effectful work is data: the executor asks for the wanted work, makes it so, and reports what became of it. Both
 * directions are idempotent, so that either side may be restarted at any time.
 */

/** Secrets of one export and where it listens. New for each lease; the executor draws them, the service keeps them. */
export interface ExportAccess {
  readonly exportName: string;
  readonly pskIdentity: string;
  readonly pskHex: string;
  readonly port: number;
}

/** An export that must run. `epoch` 0: the read-only export of an origin. */
export interface WantedExport {
  readonly epoch: number;
  readonly writable: boolean;
  /** Virtual size to grow to before the export starts; null: as it is. */
  readonly sizeMiB: number | null;
  /** Null: draw secrets and report them as `prepared` before anything runs. */
  readonly access: ExportAccess | null;
  /** The size to which its host makes the disk grow while it is exported; absent: it has the size that is wanted. */
  readonly growsToMiB?: number;
  /** Where the lease's holder is, the only one that it is for; absent: an origin is for every host. */
  readonly holder?: HostName;
  /** It is to be looked whether it serves requests. */
  readonly counted?: true;
  /** It goes on where it runs, and is not started: nobody has confirmed yet that this server is not older. */
  readonly wait?: true;
}

/** All that must be done or kept up for one volume. A volume that needs nothing has no entry. */
export interface VolumeWork {
  readonly volume: Uid;
  readonly file:
    | {
        readonly action: "create";
        readonly source: VolumeSource;
        readonly sizeMiB: number | null;
        /** The file in the bin that becomes the volume's. */
        readonly from?: string;
        /** Its file is there, or nothing is made: it is one that this store did not know. */
        readonly found?: true;
      }
    /** Says that it is there: it was made, and the store that says so was put back from a copy. */
    | { readonly action: "find" }
    /** Nobody has it open: it becomes larger. */
    | { readonly action: "grow"; readonly sizeMiB: number }
    /** Into the bin, with what is known of it. */
    | { readonly action: "remove"; readonly label: BinLabel }
    | null;
  /** End every export of this volume up to this epoch and confirm it with `fenced`. Never together with `export`. */
  readonly fence: { readonly epoch: number } | null;
  readonly export: WantedExport | null;
}
/** What is kept with a file in the bin. */
export interface BinLabel {
  readonly about: VolumeAbout | null;
  readonly overlay: boolean;
  /** Whose it was; null: of an earlier version, when there was one manager alone. */
  readonly manager: PeerName | null;
  /** See `AgentBinned`. */
  readonly untouched?: true;
}
export type VolumeSource =
  | { readonly kind: "empty" }
  | { readonly kind: "image"; readonly image: string; readonly digest?: string }
  | { readonly kind: "overlay" };

/** Answer to `{kind: "work", known}`: the whole wanted work, held back until its version differs from `known`. */
export interface WorkAnswer {
  readonly version: number;
  readonly work: readonly VolumeWork[];
  /** This server is older than others know it: nothing is started or ended, whatever ran before. */
  readonly hold?: true;
}

/** What the executor says, each as one `request` input; answered with `{ok: true}` once it is durable. */
export type AgentReport =
  | { readonly kind: "work"; readonly known: number }
  | {
      readonly kind: "created";
      readonly volume: Uid;
      readonly sizeMiB: number;
      /** The size up to which its disk can grow while it is exported; absent: not at all. */
      readonly roomMiB?: number;
      readonly boot: BootRecord | null;
      /** Digest of the image that the file was made of now. Absent: of none, or it was there. */
      readonly image?: string;
      /** It was made now. Absent: it was there, or came out of the bin. */
      readonly fresh?: true;
    }
  /** It is there. */
  | { readonly kind: "found"; readonly volume: Uid; readonly sizeMiB: number; readonly roomMiB: number }
  /** The file is larger, whoever has made it so. */
  | { readonly kind: "grown"; readonly volume: Uid; readonly sizeMiB: number; readonly roomMiB: number }
  /** `file`: what it is in the bin now; null: there was none. */
  | { readonly kind: "removed"; readonly volume: Uid; readonly file: BinFile | null }
  /** All that is in the bin; answered with `BinAnswer`: what is to be emptied now. */
  | { readonly kind: "bin"; readonly files: readonly BinFile[] }
  /** The executor's first word: an id for this start, and the mark beside the files; null: there is none. */
  | { readonly kind: "begin"; readonly start: string; readonly found: Mark | null }
  /** A minute has gone by, and `written` is beside the files; answered with `{mark}`, which belongs there now; null: none. */
  | { readonly kind: "tick"; readonly written: Mark | null }
  /** An operator adopts what there is; answered with `{adopted}`: `AdoptedLease[]`, or null where nothing is older. */
  | { readonly kind: "adopt" }
  /** An operator wants these emptied; answered with `BinAnswer`. */
  | { readonly kind: "empty-bin"; readonly files: readonly string[] }
  | {
      readonly kind: "prepared";
      readonly volume: Uid;
      readonly epoch: number;
      readonly exportName: string;
      readonly pskIdentity: string;
      readonly pskHex: string;
    }
  /** The export listens. Also after it was adopted or restarted. */
  | {
      readonly kind: "exported";
      readonly volume: Uid;
      readonly epoch: number;
      readonly exportName: string;
      readonly sizeMiB: number;
      readonly roomMiB?: number;
    }
  /** No export of this volume up to this epoch exists, and every write accepted through one has landed. */
  | { readonly kind: "fenced"; readonly volume: Uid; readonly epoch: number }
  | {
      readonly kind: "failed";
      readonly volume: Uid;
      readonly about: "file" | "export";
      /** A sentence for a person. */
      readonly reason: string;
      /** Somebody else listens on the port. */
      readonly portTaken: boolean;
      /** There is no file of the volume. */
      readonly missing?: true;
      /** Its image is not there, or damaged. */
      readonly badImage?: true;
    }
  /** What was seen of exports that are `counted`. */
  | { readonly kind: "looked"; readonly exports: readonly Looked[] }
  | { readonly kind: "usage"; readonly volumes: readonly { readonly volume: Uid; readonly usedMiB: number }[] }
  /** All hosts (`host.<name>`), members of the Presence group and Storage Managers, as the peers file has them. */
  | {
      readonly kind: "installation";
      readonly hosts: readonly PeerName[];
      readonly members: readonly PeerName[];
      readonly managers: readonly PeerName[];
    }
  | { readonly kind: "server"; readonly totalMiB: number; readonly freeMiB: number }
  | {
      readonly kind: "images";
      readonly images: readonly { readonly name: string; readonly digest: string; readonly sizeMiB: number }[];
    };

/** Files that are to be emptied, and those that are not, with a sentence why. */
export interface BinAnswer {
  readonly empty: readonly string[];
  readonly kept: readonly { readonly file: string; readonly why: string }[];
}

/** Durable: a file of this server. Key `volume/<uid>`. */
export interface VolumeRecord {
  readonly source: VolumeSource;
  /** Virtual size of the file; null: not created yet. */
  readonly sizeMiB: number | null;
  /** Up to which it can grow while it is exported; absent: not at all. */
  readonly roomMiB?: number;
  readonly boot: BootRecord | null;
  /** Digest of the image that its file was made of; absent: of none, or not known. */
  readonly image?: string;
  /** The file is being removed: nothing of this volume can be wanted until it is gone. */
  readonly removing: boolean;
  /** Whose it is; absent: of an earlier version, when there was one manager alone. */
  readonly manager?: PeerName;
  /** As the Storage Manager said last; absent: it is of an earlier version. */
  readonly about?: VolumeAbout;
  /** The file in the bin that it begins with. */
  readonly from?: string;
  /** It was made before this store, which an operator adopted with what there is, knew of it. */
  readonly found?: true;
  /** An operator has adopted this store, which was put back: it is to be seen whether its file is there. */
  readonly doubted?: true;
  /** Its file was made here, and not found or brought back: only who had a lease can have written it. */
  readonly fresh?: true;
}
/** Durable: the truth about who may write. Key `lease/<uid>`; outlives the volume, so that no epoch ever comes back. */
export interface LeaseRecord {
  readonly epoch: number;
  readonly holder: LeaseHolder | null;
  /** Whoever was fenced last, while nobody is the holder: what a host may ask for then follows from it as from a holder. */
  readonly last?: LeaseHolder;
  /**
   * Whoever was fenced for a host since there was evidence that it is lost (`succession-evidence.ts`). The evidence counts for
   * that holder alone, until the next epoch is granted, also when it has gone meanwhile; with the grant it stays, for
   * the VM's other volumes. Absent: nobody was; the previous version keeps no such thing.
   */
  readonly lost?: LeaseHolder;
  /** Nobody was granted it since an operator adopted it: a Manager that is heard later may know of later epochs than were known then. */
  readonly adopted?: true;
  /** Secrets and port, once drawn. */
  readonly access: ExportAccess | null;
  /** It has listened with this access, and others were told. */
  readonly confirmed: boolean;
  readonly fencing: boolean;
}
/** Durable: this volume is an immutable origin. Key `readers/<uid>`; goes only with the volume. */
export interface OriginRecord {
  readonly access: ExportAccess | null;
  readonly confirmed: boolean;
  readonly fencing: boolean;
}

export interface AgentOptions {
  readonly server: string;
  readonly address: Ipv4;
  /** Exports listen from here upward. */
  readonly firstPort: number;
  /** Absent: the usual ones. */
  readonly bin?: BinOptions;
}
