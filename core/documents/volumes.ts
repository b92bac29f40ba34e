import type { ElementPath, Uid } from "../../model/cell/identifiers.ts";

/** What a Storage Manager says of a volume's size beside `sizeMiB`, which is what it promised. */
export interface VolumeSize {
  /** The size that its server says its disk has, while it is less than `sizeMiB`. */
  readonly smallerMiB?: number;
  /** The size up to which it can grow while it is exported; absent: not at all. */
  readonly roomMiB?: number;
  /** Others were made from it or read it: it never changes. */
  readonly frozen?: true;
  /** It can be used and is not as it is declared. Absent: it is. */
  readonly owes?: { readonly phase: "waiting" | "failed"; readonly reason: string };
}

/** The copy for which a volume is held, in another cell (`x.hold`). */
export interface HeldFor {
  /** Of the cell. */
  readonly domain: string;
  /** Of the copy in it. */
  readonly path: ElementPath;
}
/**
 * What a volume is held for, said with the desire for it. A Storage Manager keeps that, and destroys nothing that is held, whoever takes it back: a controller of a
 * version that does not know of holds would. Absent: it is held for nothing.
 */
export interface Holding {
  /** At most `mostHeldFor`. */
  readonly heldFor?: readonly HeldFor[];
}
export const mostHeldFor = 1000;
/** Desired as `let-go/<uid>`: what the volume is held for is given up, and whoever takes it back has it destroyed. */
export interface DesiredLetGo {
  readonly uid: Uid;
}
export const letGoKey = (uid: Uid): string => `let-go/${uid}`;
/** What a Storage Manager says of a volume that it keeps for copies that are not made. */
export interface Kept {
  readonly held?: true;
  /** Those copies. Absent: it keeps it for none, or is of a version before. */
  readonly heldFor?: readonly HeldFor[];
}

/** A disk that was to grow while its machine runs, as its host says. */
export interface GrownDisk {
  readonly connection: Uid;
  /** That the guest was shown; null: nothing larger yet. */
  readonly sizeMiB: number | null;
  /** A sentence; null: there is nothing to say. */
  readonly reason: string | null;
}

/** Why a volume is not made, where that is on account of what it begins with. */
export interface OriginLacks {
  /** What it shall be a copy of is not there, or not for this cell: which of the two is not said. */
  readonly hidden?: true;
  /**
   * Each storage server is heard, and none has the image; or the one that is to make it finds the image damaged. Only who adds or
   * replaces that changes it.
   */
  readonly noImage?: true;
  /** Each storage server is heard, and none has room for it. */
  readonly noRoom?: true;
}

/** What a storage agent says of the image that a volume's file is made of. */
export interface MadeOf {
  /** Its digest. Absent: it was made of none, or that is not known. */
  readonly image?: string;
  /** It cannot be made of it, which is not there or damaged: only who replaces that changes it. */
  readonly badImage?: true;
}

/** Who may use a volume: a VM; a cell by its domain name; all cells of an account, or of a domain of accounts with those below, by their paths. */
export type Grantee =
  | { readonly vm: Uid }
  | { readonly domain: string }
  | { readonly account: string }
  | { readonly tenants: string };

/** What is granted of a volume of the cell that grants it. */
export interface Granted {
  readonly volume: Uid;
  readonly to: Grantee;
  readonly grant: "copy" | "connect";
  /** Path of a copy in the cell that it is for: until that is made the volume is not taken back. */
  readonly hold?: ElementPath;
  /**
   * UID of the account or the domain that is meant, or of the account whose the cell is: whoever has its path later is somebody else. Absent: a version
   * before says it, or whoever the path is of.
   */
  readonly holder?: string;
}
