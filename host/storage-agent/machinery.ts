import type { BootRecord } from "../../core/documents.ts";
import type { ExportAccess, VolumeSource } from "../../core/storage/agent-work.ts";
import type { Uid } from "../../model/identifiers.ts";

/** A running export, and the process that runs it. */
export interface RunningExport {
  readonly volume: Uid;
  /** 0: the read-only export of an origin. */
  readonly epoch: number;
  readonly process: { readonly pid: number; readonly startTime: string };
}
/** The port of an export belongs to somebody else. */
export class PortTaken extends Error {}

export interface CreatedFile {
  readonly sizeMiB: number;
  readonly boot: BootRecord | null;
}
export interface ExportWish {
  readonly volume: Uid;
  readonly epoch: number;
  readonly writable: boolean;
  readonly access: ExportAccess;
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
  create(volume: Uid, source: VolumeSource, sizeMiB: number | null): Promise<CreatedFile>;
  /** Grows the file if it is smaller; resolves with its size in MiB. */
  ready(volume: Uid, sizeMiB: number | null): Promise<number>;
  remove(volume: Uid): Promise<void>;
  usage(): Promise<readonly { readonly volume: Uid; readonly usedMiB: number }[]>;
  space(): Promise<{ readonly totalMiB: number; readonly freeMiB: number }>;
  images(): Promise<readonly ImageReport[]>;
  findExports(): readonly RunningExport[];
  /** Rejects with `PortTaken` where somebody else listens. */
  startExport(wish: ExportWish): Promise<RunningExport>;
  /** Resolves when no write through it can land any more. */
  endExport(found: RunningExport): Promise<void>;
  isServing(found: RunningExport, access: ExportAccess): Promise<boolean>;
  isAlive(found: RunningExport): boolean;
  drawSecrets(): Omit<ExportAccess, "port">;
  /** Runs something once, later; returns what cancels it. */
  after(ms: number, run: () => void): () => void;
}
