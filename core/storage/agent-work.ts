import type { Ipv4, PeerName, Uid } from "../../model/identifiers.ts";
import type { BootRecord, LeaseHolder } from "../documents.ts";

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
}

/** All that must be done or kept up for one volume. A volume that needs nothing has no entry. */
export interface VolumeWork {
  readonly volume: Uid;
  readonly file:
    | { readonly action: "create"; readonly source: VolumeSource; readonly sizeMiB: number | null }
    | { readonly action: "remove" }
    | null;
  /** End every export of this volume up to this epoch and confirm it with `fenced`. Never together with `export`. */
  readonly fence: { readonly epoch: number } | null;
  readonly export: WantedExport | null;
}
export type VolumeSource =
  | { readonly kind: "empty" }
  | { readonly kind: "image"; readonly image: string }
  | { readonly kind: "overlay" };

/** Answer to `{kind: "work", known}`: the whole wanted work, held back until its version differs from `known`. */
export interface WorkAnswer {
  readonly version: number;
  readonly work: readonly VolumeWork[];
}

/** What the executor says, each as one `request` input; answered with `{ok: true}` once it is durable. */
export type AgentReport =
  | { readonly kind: "work"; readonly known: number }
  | {
      readonly kind: "created";
      readonly volume: Uid;
      readonly sizeMiB: number;
      readonly boot: BootRecord | null;
    }
  | { readonly kind: "removed"; readonly volume: Uid }
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
    }
  | { readonly kind: "usage"; readonly volumes: readonly { readonly volume: Uid; readonly usedMiB: number }[] }
  | { readonly kind: "server"; readonly totalMiB: number; readonly freeMiB: number }
  | {
      readonly kind: "images";
      readonly images: readonly { readonly name: string; readonly digest: string; readonly sizeMiB: number }[];
    };

/** Durable: a file of this server. Key `volume/<uid>`. */
export interface VolumeRecord {
  readonly source: VolumeSource;
  /** Virtual size of the file; null: not created yet. */
  readonly sizeMiB: number | null;
  readonly boot: BootRecord | null;
  /** The file is being removed: nothing of this volume can be wanted until it is gone. */
  readonly removing: boolean;
  /** Whose it is; absent: of an earlier version, when there was one manager alone. */
  readonly manager?: PeerName;
}
/** Durable: the truth about who may write. Key `lease/<uid>`; outlives the volume, so that no epoch ever comes back. */
export interface LeaseRecord {
  readonly epoch: number;
  readonly holder: LeaseHolder | null;
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
}
