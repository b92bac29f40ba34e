import type { Share, VolumeRight } from "../../../model/contract/tenancy/volumes/volumes.ts";
import { granteeKinds, uidPattern, volumeRights } from "../../../model/contract/tenancy/volumes/volumes.ts";
import { isObject, type Json, type JsonObject } from "../../../model/json/json.ts";
import { network } from "../../../runtime/installation.ts";

/*
 * Persistent volumes as they stand in the model of the primary cell, which is the only truth about them:
 *
 *   primary/volumes/change  an id of the change that was the last: no other has it, in a cell put back from a backup neither
 *   primary/volumes/<uid> { name, account, owner, tags, text, made, asked, done, version, versions,
 *                           left (it was deleted below this domain under ROOT, and stays with the provider for its clones)
 *                           shares { <id> { kind, path, right, holder } }
 *                           v1 (Volume or VolumeCopy), v2, …
 *                           v1-size (MiB that a copy's origin has), …
 *                           v1-held (a path of a cell: its grant there that holds the origin, until the copy is made), …
 *                           v1-copy-owner, v1-connect-owner, v1-copy-<share>, … (VolumeGrant) }
 *
 * All of it is plain data and elements that name nothing but each other and volumes of other cells, so a credential of
 * `primary/volumes` suffices (decision 140). A UID names it and nothing else does: an account may be given another name.
 */
export const primaryCell = "primary";
export const volumesPath = `${primaryCell}/volumes`;
export const lastChange = `${volumesPath}/change`;
export const pathOf = (uid: string): string => `${volumesPath}/${uid}`;
export const pointerOf = (uid: string): string => `/${pathOf(uid)}`;
export const referenceOf = (uid: string, version: number): string =>
  `<ref://${primaryCell}.${network.domain}/${pathOf(uid)}/v${version}>`;

export interface StoredVersion {
  readonly number: number;
  readonly access: "rw" | "ro";
  readonly sizeMiB: number | null;
  /** As it counts in what an account may have, also before it is made. 0: nobody knows yet. */
  readonly countedMiB: number;
  /** `<cell>/<path>` of the grant that holds what it is a copy of; null: none does. */
  readonly held: string | null;
  readonly phase: string;
  readonly reason: string | null;
}
export interface StoredShare extends Share {
  /** UID of the account or domain that it is for, or whose cell it is for; absent: who shared it could not see that. */
  readonly holder?: string;
}
export interface StoredVolume {
  readonly uid: string;
  readonly name: string;
  readonly account: string | null;
  /** UID of that account: another one may have the path later. Null: a previous version wrote it, or it is the operator's. */
  readonly owner: string | null;
  readonly tags: readonly string[];
  readonly text: string;
  readonly made: string;
  readonly version: number;
  /** The number that was given last. */
  readonly last: number;
  readonly versions: readonly StoredVersion[];
  readonly shares: readonly StoredShare[];
}

/** What people wrote stands behind a blank there: so no text of theirs is a reference, or anything else of the language. */
export const written = (text: string): string => ` ${text}`;
const unwritten = (json: Json | undefined): string => (typeof json === "string" ? json.replace(/^ /, "") : "");

const textIn = (json: Json | undefined, otherwise = ""): string => (typeof json === "string" ? json : otherwise);
const numberIn = (json: Json | undefined): number | null => (typeof json === "number" ? json : null);

/** Null: it is none. Somebody may have written there by hand, so whatever is missing is made up for. */
export function readVolume(uid: string, json: Json | undefined): StoredVolume | null {
  if (!uidPattern.test(uid) || !isObject(json)) return null;
  const versions = versionsIn(json);
  const newest = versions.at(-1)?.number ?? 0;
  const { account, tags } = json;
  return {
    uid,
    name: textIn(json.name, uid),
    account: typeof account === "string" ? account : null,
    owner: typeof json.owner === "string" ? json.owner : null,
    tags: Array.isArray(tags) ? tags.map(unwritten) : [],
    text: unwritten(json.text),
    made: textIn(json.made, "1970-01-01T00:00:00.000Z"),
    version: numberIn(json.version) ?? newest,
    last: Math.max(numberIn(json.versions) ?? 0, newest),
    versions,
    shares: Object.entries(isObject(json.shares) ? json.shares : {}).flatMap(([id, share]) => shareOf(id, share)),
  };
}
/** By their numbers. */
export function versionsIn(group: JsonObject): readonly StoredVersion[] {
  const versions = Object.entries(group).flatMap(([name, element]) => {
    const number = /^v([1-9]\d{0,6})$/.exec(name)?.[1];
    if (number === undefined || !isObject(element)) return [];
    const held = group[heldOf(Number(number))];
    const originMiB = numberIn(group[originSizeOf(Number(number))]) ?? 0;
    return [{ ...versionOf(Number(number), element, originMiB), held: typeof held === "string" ? held : null }];
  });
  return versions.sort((one, other) => one.number - other.number);
}
/**
 * Whether all was done that the request asked for which made it: of a harvest its cell has said that it holds the origin, or need
 * hold it no more.
 */
export function isDone(group: Json): boolean {
  if (!isObject(group)) return false;
  const [first] = versionsIn(group);
  return group.done === true || first?.number !== 1 || first.held === null || first.phase === "ready";
}
/** What stands beside a copy: the size that its origin had. */
export const originSizeOf = (version: number): string => `v${version}-size`;
export const heldOf = (version: number): string => `v${version}-held`;
function versionOf(number: number, element: JsonObject, originMiB: number): Omit<StoredVersion, "held"> {
  const state = isObject(element.$state) ? element.$state : {};
  return {
    number,
    access: element["x.access"] === "ro" ? "ro" : "rw",
    sizeMiB: numberIn(state.sizeMiB) ?? numberIn(element["x.size"]),
    countedMiB: Math.max(numberIn(state.sizeMiB) ?? 0, numberIn(element["x.size"]) ?? 0, originMiB),
    phase: textIn(state.phase, "waiting"),
    reason: typeof state.reason === "string" ? state.reason : null,
  };
}
function shareOf(id: string, json: Json): readonly StoredShare[] {
  if (!isObject(json)) return [];
  const kind = granteeKinds.find((each) => each === json.kind);
  const right = volumeRights.find((each) => each === json.right);
  if (kind === undefined || right === undefined) return [];
  const path = typeof json.path === "string" ? { path: json.path } : {};
  const holder = typeof json.holder === "string" ? { holder: json.holder } : {};
  return [{ id, kind, right, ...path, ...holder }];
}
/** It was left to the provider, for its clones alone. */
export const isLeft = (group: Json): boolean =>
  isObject(group) && (group.left === true || typeof group.left === "string");
/** In whose room it is, beside the account that has it: below which domain it was left. Null: nobody's. */
export const roomIn = (group: Json): string | null => {
  const { account, left } = isObject(group) ? group : {};
  return typeof account === "string" ? account : typeof left === "string" ? left : null;
};
/** What a version is a clone of; null: of no persistent volume. */
function originOf(element: Json | undefined): { readonly uid: string; readonly number: number } | null {
  const image = isObject(element) ? textIn(element["x.image"]) : "";
  const [, uid, number] = /^<ref:\/primary\/volumes\/(pv-[0-9a-f-]{36})\/v(\d+)>$/.exec(image) ?? [];
  return uid === undefined ? null : { uid, number: Number(number) };
}
const originsOf = (group: Json) =>
  (isObject(group) ? Object.values(group) : []).flatMap((each) => originOf(each) ?? []);
/** UIDs of the persistent volumes that its versions are clones of. */
export const originsIn = (group: Json): readonly string[] => originsOf(group).map(({ uid }) => uid);
/** Versions of one that others are clones of, with those of its own that these are made of in turn. */
export function neededOf(uid: string, own: Json, others: readonly Json[]): ReadonlySet<number> {
  const needed = new Set(others.flatMap(originsOf).flatMap((each) => (each.uid === uid ? [each.number] : [])));
  for (const number of needed) {
    const origin = isObject(own) ? originOf(own[`v${number}`]) : null;
    if (origin?.uid === uid) needed.add(origin.number);
  }
  return needed;
}
export const versionIn = ({ versions }: StoredVolume, number: number): StoredVersion | undefined =>
  versions.find((each) => each.number === number);

// --- grants ---------------------------------------------------------------------------------------------------------

/** What the storage layer must let somebody do for a right. */
const grantsOf: Readonly<Record<VolumeRight, readonly ("copy" | "connect")[]>> = {
  copy: ["copy"],
  read: ["connect"],
  write: ["connect"],
  manage: ["copy", "connect"],
};
const granteeOf = ({ kind, path = "", holder }: StoredShare): JsonObject => {
  const meant = holder === undefined ? {} : { "x.holder": holder };
  if (kind === "cell") return { "x.cell": `<ref://${path}.${network.domain}/>`, ...meant };
  if (kind === "account") return { "x.account": path, ...meant };
  return kind === "all" ? { "x.domain": "ROOT" } : { "x.domain": path, ...meant };
};
/** The account that has it may do all with it, as somebody with whom it is shared. */
const ownerShare = (path: string, owner: string | null): StoredShare => ({
  id: "owner",
  kind: "account",
  path,
  right: "manage",
  ...(owner === null ? {} : { holder: owner }),
});
export const sharesOf = ({
  account,
  owner,
  shares,
}: Pick<StoredVolume, "account" | "owner" | "shares">): readonly StoredShare[] =>
  account === null ? shares : [ownerShare(account, owner), ...shares];

/** By their names, beside the version. */
export const grantsFor = (version: number, share: StoredShare): Readonly<Record<string, JsonObject>> =>
  Object.fromEntries(
    grantsOf[share.right].map((grant) => [
      `v${version}-${grant}-${share.id}`,
      { "x.type": "VolumeGrant", "x.volume": `<ref:../v${version}>`, ...granteeOf(share), "x.grant": grant },
    ]),
  );
