import type { Mark } from "../../core/documents/bin.ts";
import type { BootRecord } from "../../core/documents/vocabulary.ts";
import type { BinLabel, ExportAccess, VolumeSource } from "../../core/storage/agent/work.ts";
import type { BinFile } from "../../core/storage/bin.ts";
import type { HostName, Uid } from "../../model/cell/identifiers.ts";

/** A running export, and the process that runs it. */
export interface RunningExport {
  readonly volume: Uid;
  /** 0: the read-only export of an origin. */
  readonly epoch: number;
  readonly process: { readonly pid: number; readonly startTime: string };
}
/** There is no file of the volume. */
export class FileMissing extends Error {}
/** The port of an export belongs to somebody else. */
export class PortTaken extends Error {}
/**
 * An export did not start, and its process was killed and is not confirmed gone: what it was given may still land. Whoever is
 * told keeps `found` until `endExport` has confirmed its end.
 */
export class ExportNotGone extends Error {
  readonly found: RunningExport;

  constructor(message: string, found: RunningExport) {
    super(message);
    this.found = found;
  }
}

export interface ReadyFile {
  readonly sizeMiB: number;
  /** The size up to which its disk can grow while it is exported; less than its own: not at all. */
  readonly roomMiB: number;
}
export interface CreatedFile extends ReadyFile {
  readonly boot: BootRecord | null;
  /** Digest of the image that the file was made of now; absent: of none, or it was there. */
  readonly image?: string;
  /** It was made now; absent: it was there, or came out of the bin. */
  readonly fresh?: true;
}
export interface DesiredExport {
  readonly volume: Uid;
  readonly epoch: number;
  readonly writable: boolean;
  readonly access: ExportAccess;
}
export interface ServedExport {
  readonly volume: Uid;
  readonly writable: boolean;
  readonly port: number;
  /** Null: every host. */
  readonly holder: HostName | null;
}
export interface ImageReport {
  readonly name: string;
  readonly digest: string;
  readonly sizeMiB: number;
}

/**
 * Everything of a storage server that the executor touches: files, exports, time and chance. It has no other effects, so
 * that the simulator runs the same executor over a machine of its own. Methods that return promises reject with a sentence.
 */
export interface AgentMachinery {
  prepare(): Promise<void>;
  /** An id that no other start of any agent has. */
  drawStart(): string;
  /** The mark beside the volumes' files; null: there is none. */
  readMark(): Promise<Mark | null>;
  writeMark(mark: Mark): Promise<void>;
  /** Whether root of this machine wants what there is adopted; said once. */
  takeAdoption(): Promise<boolean>;
  /** `from`: the file in the bin that it begins with. */
  create(volume: Uid, source: VolumeSource, sizeMiB: number | null, from?: string): Promise<CreatedFile>;
  /** Grows the file if it is smaller and makes room to grow; null: says how it is. Rejects with `FileMissing` where there is none. */
  ready(volume: Uid, sizeMiB: number | null): Promise<ReadyFile>;
  /** Into the bin. Null: there was no file. */
  remove(volume: Uid, label: BinLabel): Promise<BinFile | null>;
  /** All that is in the bin. */
  bin(): Promise<readonly BinFile[]>;
  /** Removes a file of the bin for good. */
  empty(file: string): Promise<void>;
  usage(): Promise<readonly { readonly volume: Uid; readonly usedMiB: number }[]>;
  space(): Promise<{ readonly totalMiB: number; readonly freeMiB: number }>;
  images(): Promise<readonly ImageReport[]>;
  findExports(): readonly RunningExport[];
  /** Rejects with `PortTaken` where somebody else listens, with `ExportNotGone` where something of it is still there. */
  startExport(desire: DesiredExport): Promise<RunningExport>;
  /** Resolves when no write through it can land any more. */
  endExport(found: RunningExport): Promise<void>;
  isServing(found: RunningExport, access: ExportAccess): Promise<boolean>;
  isAlive(found: RunningExport): boolean;
  /** How much its process has read and written so far, in bytes; null: that is not known. */
  moved(found: RunningExport): number | null;
  /** Lets nobody keep those out for whom an export is; resolves with how many connections were ended, by volume. */
  putOutStrangers(exports: readonly ServedExport[]): Promise<ReadonlyMap<Uid, number>>;
  drawSecrets(): Omit<ExportAccess, "port">;
  /** Runs something once, later; returns what cancels it. */
  after(ms: number, run: () => void): () => void;
}
