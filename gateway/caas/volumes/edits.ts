import { createHash } from "node:crypto";
import type { NewShare, NewVolume, VolumeChange } from "../../../model/contract/tenancy/volumes/volumes.ts";
import { isObject, type Json, type JsonObject } from "../../../model/json/json.ts";
import type { JsonPatchOperation } from "../../../model/json/patch.ts";
import {
  grantsFor,
  heldOf,
  originSizeOf,
  pointerOf,
  type StoredShare,
  type StoredVersion,
  type StoredVolume,
  sharesOf,
  written,
} from "./layout.ts";
import { domainUnderRoot } from "./room.ts";
import type { Made } from "./sources.ts";

/*
 * Requests about persistent volumes as changes of the primary cell's model: each rests by a `test` on just what it goes by, and on
 * nothing else.
 */
type Operations = readonly JsonPatchOperation[];
const put = (path: string, value: JsonPatchOperation["value"]): JsonPatchOperation => ({
  op: "add",
  path,
  ...(value === undefined ? {} : { value }),
});
const test = (path: string, value: NonNullable<JsonPatchOperation["value"]>): JsonPatchOperation => ({
  op: "test",
  path,
  value,
});

/** A new one, whose first version is this element. */
export function newGroup(
  { name, tags = [], text = "" }: NewVolume,
  {
    account,
    owner,
    made,
    asked,
    element,
    originMiB,
    held,
  }: Pick<StoredVolume, "account" | "owner" | "made"> & {
    /** Stands for the request that made it under an Idempotency-Key. */
    readonly asked: string | null;
    readonly element: JsonObject;
    readonly originMiB: number | null;
    readonly held: string | null;
  },
): JsonObject {
  return {
    name,
    ...(account === null ? {} : { account }),
    ...(owner === null ? {} : { owner }),
    ...(asked === null ? {} : { asked }),
    tags: tags.map(written),
    text: written(text),
    made,
    version: 1,
    versions: 1,
    shares: {},
    v1: element,
    ...(originMiB === null ? {} : { [originSizeOf(1)]: originMiB }),
    ...(held === null ? {} : { [heldOf(1)]: held }),
    ...Object.assign({}, ...sharesOf({ account, owner, shares: [] }).map((share) => grantsFor(1, share))),
  };
}

const sharesAsData = (shares: readonly StoredShare[]): JsonObject =>
  Object.fromEntries(shares.map(({ id, ...data }) => [id, data as JsonObject]));

/** The next version, with what all may do with it that may do something with the others. */
export function withVersion(
  volume: StoredVolume,
  { element, originMiB, held }: Pick<Made, "element" | "originMiB" | "held">,
): Operations {
  const at = pointerOf(volume.uid);
  const number = volume.last + 1;
  const grants = Object.assign({}, ...sharesOf(volume).map((share) => grantsFor(number, share))) as JsonObject;
  return [
    test(`${at}/versions`, volume.last),
    test(`${at}/shares`, sharesAsData(volume.shares)),
    put(`${at}/v${number}`, element),
    ...(originMiB === null ? [] : [put(`${at}/${originSizeOf(number)}`, originMiB)]),
    ...(held === null ? [] : [put(`${at}/${heldOf(number)}`, held)]),
    ...Object.entries(grants).map(([name, grant]) => put(`${at}/${name}`, grant)),
    put(`${at}/versions`, number),
    put(`${at}/version`, number),
  ];
}
/** Takes that back, where it could not be done as a whole. */
export function withoutVersion(
  volume: StoredVolume,
  { number, originMiB, held }: { readonly number: number } & Pick<Made, "originMiB" | "held">,
  before: number,
): Operations {
  const at = pointerOf(volume.uid);
  if (!volume.versions.some((each) => each.number === number)) return [];
  return [
    ...sharesOf(volume).flatMap((share) =>
      Object.keys(grantsFor(number, share)).map((name) => ({ op: "remove", path: `${at}/${name}` }) as const),
    ),
    { op: "remove", path: `${at}/v${number}` },
    ...(originMiB === null ? [] : [{ op: "remove", path: `${at}/${originSizeOf(number)}` } as const]),
    ...(held === null ? [] : [{ op: "remove", path: `${at}/${heldOf(number)}` } as const]),
    ...(volume.version === number ? [put(`${at}/version`, before)] : []),
  ];
}

/** Of what is left: versions that nobody needs go, since they count in nobody's storage any more. */
export function withoutLost(volume: StoredVolume, group: Json, lost: readonly StoredVersion[]): Operations {
  const at = pointerOf(volume.uid);
  const newest = volume.versions.filter((version) => !lost.includes(version)).at(-1);
  if (newest === undefined || lost.length === 0) return [];
  const names = lost.flatMap(({ number }) => [`v${number}`, originSizeOf(number), heldOf(number)]);
  return [
    ...names.flatMap((name) =>
      isObject(group) && Object.hasOwn(group, name) ? [{ op: "remove", path: `${at}/${name}` } as const] : [],
    ),
    put(`${at}/version`, newest.number),
  ];
}

/**
 * It was deleted by those whose it was, and others are clones of it: it stays with the provider, of no account, shared with nobody and
 * under a name that nobody gave, until the last of these is gone.
 * @param lost versions that nobody needs
 */
export function leftBehind(volume: StoredVolume, group: Json, lost: readonly StoredVersion[]): Operations {
  const { uid, name, account, owner, last, shares, versions } = volume;
  const at = pointerOf(uid);
  const grants = sharesOf(volume).flatMap((share) =>
    versions.flatMap(({ number }) => Object.keys(grantsFor(number, share))),
  );
  return [
    test(`${at}/name`, name),
    test(`${at}/versions`, last),
    test(`${at}/shares`, sharesAsData(shares)),
    ...grants.map((grant) => ({ op: "remove", path: `${at}/${grant}` }) as const),
    ...withoutLost(volume, group, lost),
    ...(account === null ? [] : [{ op: "remove", path: `${at}/account` } as const]),
    ...(owner === null ? [] : [{ op: "remove", path: `${at}/owner` } as const]),
    put(`${at}/name`, uid),
    put(`${at}/tags`, []),
    put(`${at}/text`, written("")),
    put(`${at}/shares`, {}),
    // All below it together have no more than is left for others: by rows of clones of clones it would be without end else.
    put(`${at}/left`, account === null ? true : domainUnderRoot(account)),
  ];
}

/** All of the request that made it is done: asked for again it is answered by what there is, and its cell not asked any more. */
export const markedDone = (uid: string, asked: string): Operations => [
  test(`${pointerOf(uid)}/asked`, asked),
  put(`${pointerOf(uid)}/done`, true),
];

/** The grant that held what a version is a copy of is taken back. */
export const letGo = (uid: string, { number, held }: StoredVersion): Operations =>
  held === null
    ? []
    : [
        test(`${pointerOf(uid)}/${heldOf(number)}`, held),
        { op: "remove", path: `${pointerOf(uid)}/${heldOf(number)}` },
      ];

export function changed(volume: StoredVolume, { name, tags, text, sizeMiB, version }: VolumeChange): Operations {
  const at = pointerOf(volume.uid);
  const of = version ?? volume.version;
  return [
    ...(name === undefined || name === volume.name ? [] : [test(`${at}/name`, volume.name), put(`${at}/name`, name)]),
    ...(tags === undefined ? [] : [put(`${at}/tags`, tags.map(written))]),
    ...(text === undefined ? [] : [put(`${at}/text`, written(text))]),
    ...(version === undefined || version === volume.version
      ? []
      : [test(`${at}/version`, volume.version), put(`${at}/version`, version)]),
    ...(sizeMiB === undefined ? [] : [test(`${at}/version`, of), put(`${at}/v${of}/x.size`, sizeMiB)]),
  ];
}

/** The same for the same: who shares twice has shared once. */
export const shareId = ({ kind, path = "", right }: NewShare, holder?: string): string =>
  `s-${createHash("sha256")
    .update(JSON.stringify([kind, path, right, ...(holder === undefined ? [] : [holder])]))
    .digest("hex")
    .slice(0, 12)}`;

export function shared(volume: StoredVolume, share: StoredShare): Operations {
  const at = pointerOf(volume.uid);
  if (volume.shares.some(({ id }) => id === share.id)) return [];
  const { id, ...data } = share;
  return [
    test(`${at}/versions`, volume.last),
    put(`${at}/shares/${id}`, data as JsonObject),
    ...volume.versions.flatMap(({ number }) =>
      Object.entries(grantsFor(number, share)).map(([name, grant]) => put(`${at}/${name}`, grant)),
    ),
  ];
}
export function unshared(volume: StoredVolume, id: string): Operations {
  const at = pointerOf(volume.uid);
  const share = volume.shares.find((each) => each.id === id);
  if (share === undefined) return [];
  return [
    test(`${at}/versions`, volume.last),
    { op: "remove", path: `${at}/shares/${id}` },
    ...volume.versions.flatMap(({ number }) =>
      Object.keys(grantsFor(number, share)).map((name) => ({ op: "remove", path: `${at}/${name}` }) as const),
    ),
  ];
}
