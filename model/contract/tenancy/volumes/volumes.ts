import {
  integer,
  list,
  nullable,
  type OrLater,
  oneOf,
  optional,
  orLater,
  pattern,
  record,
  text,
  time,
} from "../../schema.ts";
import { pathPattern, pathRule } from "../tenancy.ts";
import { uploadId } from "./uploads.ts";

/*
 * Persistent volumes: they are of an account and of no cell, and outlive every cell that they came from or are used in. CaaS keeps
 * them in the primary cell (`gateway/caas/volumes/`).
 */

/** `read` and `write`: to connect it as a disk. Which of the two there is, its `access` says. `manage`: all, as its owner. */
export const volumeRights = ["copy", "read", "write", "manage"] as const;
export type VolumeRight = (typeof volumeRights)[number];
export const granteeKinds = ["cell", "account", "domain", "all"] as const;
export type GranteeKind = (typeof granteeKinds)[number];

/** With whom it is shared. */
export interface NewShare {
  readonly kind: GranteeKind;
  /** Name of the cell, or path of the account or domain; absent: of `all`. */
  readonly path?: string;
  readonly right: VolumeRight;
}
export interface Share extends NewShare {
  readonly id: string;
}

/** Where its bytes come from: a version of another one, or a volume of a cell. */
export interface VolumeOrigin {
  /** UID of another persistent volume. */
  readonly volume?: string;
  /** Of that; absent: the one that its name stands for. */
  readonly version?: number;
  /** Name of a cell; with `path`. */
  readonly cell?: string;
  /** Of a volume there, as `shop/db/disk`. It is held there until the copy is made, also if its cell is deleted meanwhile. */
  readonly path?: string;
}
export interface VolumeSource {
  /** Of an empty one, or at least the size of where it comes from. */
  readonly sizeMiB?: number;
  /** Name of an image of the installation. */
  readonly image?: string;
  /** `id` of what the account has uploaded. */
  readonly upload?: string;
  readonly from?: VolumeOrigin;
  /** `ro`: any number of VMs read it; absent: `rw`, one VM writes it. A copy is writable. */
  readonly access?: "rw" | "ro";
}
export interface NewVolume extends VolumeSource {
  /** Unique in its account. */
  readonly name: string;
  /** Path; absent: the account of who asks. */
  readonly account?: string;
  readonly tags?: readonly string[];
  readonly text?: string;
}
/** What is left out stays. */
export interface VolumeChange {
  readonly name?: string;
  readonly tags?: readonly string[];
  readonly text?: string;
  /** Of the version that its name stands for; it grows. */
  readonly sizeMiB?: number;
  /** That its name stands for from now on. */
  readonly version?: number;
}

export interface PersistentVolume {
  readonly uid: string;
  readonly name: string;
  /** Path; null: the operator's. */
  readonly account: string | null;
  readonly tags: readonly string[];
  readonly text: string;
  /** ISO 8601. */
  readonly made: string;
  /** That its name stands for. A copy names the version that it was made of, so nothing changes under anybody. */
  readonly version: number;
  /** Of that version; null: it is not known yet. */
  readonly sizeMiB: number | null;
  readonly access: "rw" | "ro";
  /** For `x.image` of a VolumeCopy, or `x.volume` of a VolumeConnection: that version. */
  readonly reference: string;
  /** Of who asks. */
  readonly rights: readonly VolumeRight[];
}
export interface VolumeVersion {
  readonly number: number;
  readonly sizeMiB: number | null;
  readonly access: "rw" | "ro";
  readonly reference: string;
  readonly phase: OrLater<"waiting" | "working" | "ready" | "failed" | "deleting">;
  readonly reason: string | null;
}
export interface VolumeDetails extends PersistentVolume {
  readonly versions: readonly VolumeVersion[];
  /** Null: who asks does not manage it. */
  readonly shares: readonly Share[] | null;
}
/** Of a deletion that is done, or that is asked about. */
export interface VolumeDeletion {
  readonly uid: string;
  readonly name: string;
  readonly versions: readonly number[];
  /** Elements in cells of who asks that are a copy of it, or connect it. There may be others. */
  readonly users: readonly string[];
  readonly dryRun: boolean;
  /** It is nobody's any more, and stays with the provider as long as other persistent volumes are clones of it. */
  readonly stays?: boolean;
}

const label = pattern(
  /^[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$/,
  "at most 63 letters, digits, points, hyphens and underscores",
);
const tag = pattern(/^[A-Za-z0-9](?:[A-Za-z0-9._:=/-]{0,126}[A-Za-z0-9])?$/, "a word of at most 128 characters");
const tags = list(tag, { most: 64 });
const words = text(4096);
export const uidPattern = /^pv-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;
const uid = pattern(uidPattern, "the UID of a persistent volume, as lists have it");
const size = integer(1, 2 ** 31 - 1);
const number = integer(1, 1_000_000);
const access = oneOf("rw", "ro");
const origin = record<VolumeOrigin>({
  volume: optional(uid),
  version: optional(number),
  cell: optional(text(253)),
  path: optional(text(1024)),
});
const source = {
  sizeMiB: optional(size),
  image: optional(text(63)),
  upload: optional(uploadId),
  from: optional(origin),
  access: optional(access),
} as const;
export const volumeSource = record<VolumeSource>(source);
export const newVolume = record<NewVolume>({
  name: label,
  account: optional(pattern(pathPattern, pathRule)),
  tags: optional(tags),
  text: optional(words),
  ...source,
});
export const volumeChange = record<VolumeChange>({
  name: optional(label),
  tags: optional(tags),
  text: optional(words),
  sizeMiB: optional(size),
  version: optional(number),
});
const share = { kind: oneOf(...granteeKinds), path: optional(text(2048)), right: oneOf(...volumeRights) } as const;
export const newShare = record<NewShare>(share);
const known = {
  uid: text(),
  name: text(),
  account: nullable(text()),
  tags: list(text()),
  text: text(),
  made: time,

  version: integer(),
  sizeMiB: nullable(integer()),
  access,
  reference: text(),
  rights: list(oneOf(...volumeRights)),
} as const;
export const persistentVolume = record<PersistentVolume>(known);
const version = record<VolumeVersion>({
  number: integer(),
  sizeMiB: nullable(integer()),
  access,
  reference: text(),
  phase: orLater("waiting", "working", "ready", "failed", "deleting"),
  reason: nullable(text()),
});
export const volumeDetails = record<VolumeDetails>({
  ...known,
  versions: list(version),
  shares: nullable(list(record<Share>({ id: text(), ...share }))),
});
export const volumeDeletion = record<VolumeDeletion>({
  uid: text(),
  name: text(),
  versions: list(integer()),
  users: list(text()),
  dryRun: { type: "boolean" },
  stays: optional({ type: "boolean" }),
});
