import type {
  GranteeKind,
  NewShare,
  NewVolume,
  VolumeChange,
  VolumeDetails,
  VolumeRight,
} from "../../../model/contract/tenancy/volumes/volumes.ts";
import { commandOf, withOptions } from "../command.ts";

/** Where a new persistent volume's bytes come from, as a form has it. */
export const origins = ["empty", "file", "image", "volume", "cell"] as const;
export type OriginKind = (typeof origins)[number];
export const originNames: Readonly<Record<OriginKind, string>> = {
  empty: "nothing: it is empty",
  file: "a file of this machine",
  image: "an image of the installation",
  volume: "another persistent volume",
  cell: "a volume of a cell",
};
export interface VolumeForm {
  readonly name: string;
  readonly origin: OriginKind;
  /** Name of the file or the image, UID of the volume, or path in the cell. */
  readonly of: string;
  /** What the file is, as it is declared. */
  readonly format: "raw" | "qcow2";
  /** MiB, as it was written; "": as much as its origin has. */
  readonly size: string;
  readonly text: string;
  /** Words with blanks between. */
  readonly tags: string;
}
export const emptyForm: VolumeForm = {
  name: "",
  origin: "empty",
  of: "",
  format: "qcow2",
  size: "",
  text: "",
  tags: "",
};

/** `shop` of `shop/db/disk`: what a cell's model begins with is its name. */
const cellOf = (path: string): string => path.split("/")[0] ?? "";
/** As a form has them. */
export const tagsOf = (tags: string): readonly string[] => tags.split(/\s+/).filter((tag) => tag !== "");
/** What it asks for. @param upload number of the file's bytes, which were brought before */
export function newVolumeOf({ name, origin, of, size, text, tags }: VolumeForm, upload?: string): NewVolume {
  const more = tagsOf(tags);
  const common = {
    name: name.trim(),
    ...(size === "" ? {} : { sizeMiB: Number(size) }),
    ...(text === "" ? {} : { text }),
    ...(more.length === 0 ? {} : { tags: more }),
  };
  if (origin === "file") return upload === undefined ? common : { ...common, upload };
  if (origin === "image") return { ...common, image: of };
  if (origin === "volume") return { ...common, from: { volume: of } };
  return origin === "cell" ? { ...common, from: { cell: cellOf(of), path: of } } : common;
}
const flags: Readonly<Record<OriginKind, string>> = {
  empty: "",
  file: "--upload",
  image: "--image",
  volume: "--of",
  cell: "--from",
};
/** The same for a shell; null: not by a command that could be copied. */
export function commandOfNew({ name, origin, of, format, size, text, tags }: VolumeForm): string | null {
  const options = [
    ...(flags[origin] === "" ? [] : [[flags[origin], of]]),
    ...(origin === "file" ? [["--format", format]] : []),
    ...(size === "" ? [] : [["--size", size]]),
    ...(text === "" ? [] : [["--text", text]]),
    ...tagsOf(tags).map((tag) => ["--tag", tag]),
  ];
  if (name.trim() === "" || (flags[origin] !== "" && of === "")) return null;
  return withOptions("cells volume create", name.trim(), options);
}

/** What somebody may change of one, as a form has it. */
export type ChangeForm = Pick<VolumeForm, "name" | "text" | "tags" | "size">;
/** Only what he has written: the rest may have become another one since he began to look. */
export function changeOf(before: ChangeForm, { name, text, tags, size }: ChangeForm): VolumeChange {
  return {
    ...(name.trim() === before.name.trim() ? {} : { name: name.trim() }),
    ...(text === before.text ? {} : { text }),
    ...(tags === before.tags ? {} : { tags: tagsOf(tags) }),
    ...(size === "" ? {} : { sizeMiB: Number(size) }),
  };
}

/** What a volume of a cell is called when it outlives it, until somebody says otherwise. */
export const nameOfHarvested = (path: string): string =>
  path
    .replace(/[^A-Za-z0-9._-]+/g, "-")
    .slice(0, 63)
    .replace(/^[^A-Za-z0-9]+|[^A-Za-z0-9]+$/g, "");

/** `copy for the account ROOT/acme/gold`. */
export const shareText = ({ kind, path, right }: NewShare): string =>
  kind === "all" ? `${right} for everybody` : `${right} for the ${kind} ${path ?? ""}`;
export function commandOfShare(
  volume: string,
  verb: "share" | "unshare",
  { kind, path, right }: NewShare,
): string | null {
  const grantee = kind === "all" ? "--all" : commandOf(`--${kind}`, path ?? "");
  const command = commandOf(`cells volume ${verb}`, volume, right);
  return grantee === null || command === null ? null : `${command} ${grantee}`;
}
export const newShareOf = (kind: GranteeKind, path: string, right: VolumeRight): NewShare =>
  kind === "all" ? { kind, right } : { kind, path: path.trim(), right };

/** Something of it is still to become so: whoever looks asks again. */
export const isBecoming = ({ versions }: Pick<VolumeDetails, "versions">): boolean =>
  versions.some(({ phase }) => phase === "waiting" || phase === "working");

/** Declared with an upload; the file's name is where a guess begins, and who uploads has the last word. */
export const formatOf = (file: string): "qcow2" | "raw" => (/\.qcow2?$/i.test(file) ? "qcow2" : "raw");
export const imageNameOf = (file: string): string =>
  file
    .replace(/\.(?:qcow2?|img|raw)$/i, "")
    .toLowerCase()
    .replace(/[^a-z0-9._-]+/g, "-")
    .slice(0, 63)
    .replace(/^[^a-z0-9]+/, "");
/** As a form shows a file that was chosen. */
export const sizeText = (octets: number): string => `${(octets / 1024 / 1024).toFixed(1)} MiB`;
/** How much of an upload is sent; what comes then is the servers' work. */
export function sentText(sent: number, all: number): string {
  if (sent >= all) return "All of it is sent: the storage servers look at it.";
  const mib = (octets: number): string => `${Math.floor(octets / 1024 / 1024)}`;
  return `${mib(sent)} of ${mib(all)} MiB sent`;
}
