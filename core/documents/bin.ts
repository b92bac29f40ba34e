import type { CellName, ElementPath, Uid } from "../../model/cell/identifiers.ts";
import type { Json } from "../../model/json/json.ts";

/** Whose a volume is, kept with its file. */
export interface VolumeAbout {
  readonly cell: CellName;
  readonly path: ElementPath;
  /** Of a copy: what it is an overlay of. */
  readonly origin: Uid | null;
  /** Digest of the image that its origin is, unwritten: of that image the origin can be made anew. Absent: not so, or not known. */
  readonly originImage?: string;
}
/** A file whose volume was taken back, `bin/<file>`: kept for a time, and brought back where an operator says so. */
export interface AgentBinned {
  readonly file: string;
  readonly volume: Uid;
  /** Null: it was made by an earlier version. */
  readonly about: VolumeAbout | null;
  /** Its bytes are of use only above its origin's. */
  readonly overlay: boolean;
  readonly sizeMiB: number;
  readonly usedMiB: number;
  /** When it came into the bin, as the server's clock had it: ISO 8601. */
  readonly deleted: string;
  /** The next volume with its cell and path begins with this file. */
  readonly offered: boolean;
  /** Nobody was ever able to write it: it holds what a new one would. */
  readonly untouched?: true;
}
/** Parts of what a Storage Manager wants of a volume. */
export interface VolumeLabel {
  /** Whose it is, kept with the file for people and for a Storage Manager without a store. Absent: of an earlier version. */
  readonly about?: VolumeAbout;
  /** The file in the server's bin that becomes this volume's. Nothing else may: without it there is no volume. */
  readonly from?: string;
}

/** How far a storage server is: which start of its agent, and how many minutes of that (`core/storage/agent/mark.ts`). */
export interface Mark {
  readonly start: string;
  readonly tick: number;
}
/** A part of `AgentServer`. `tick` 0: nobody has confirmed this start yet. */
export interface AgentMark extends Mark {
  /** An operator adopted what an older store has. */
  readonly adopted?: true;
  /** When: a Storage Manager takes each adoption once, however often it is said. Absent: of the previous version, in this start. */
  readonly adoption?: Mark;
}
/** What a Storage Manager saw last of an agent before its start `start`; desired at it under `seen`. */
export interface AgentSeen {
  readonly start: string;
  readonly last: Mark | null;
}
/** Parts of what a storage server says of itself. */
export interface ServerLabel {
  /** What the files in its bin take; absent: it has no bin. */
  readonly binMiB?: number;
  readonly mark?: AgentMark;
}

const nameForm = /^[A-Za-z0-9][A-Za-z0-9-]{0,62}\.[1-9][0-9]{0,8}$/;
/** It becomes a file's name. */
export const isBinFileName = (name: Json | undefined): name is string =>
  typeof name === "string" && nameForm.test(name);
