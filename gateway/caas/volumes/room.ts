import { isObject, type Json, type JsonObject } from "../../../model/json/json.ts";
import { type JsonPatchOperation, patched, readPatch } from "../../../model/json/patch.ts";
import { refused } from "../../requests/refused.ts";
import { versionsIn, volumesPath } from "./layout.ts";
import { requireStorage, type StorageLimit } from "./quota.ts";

/*
 * What persistent volumes take of the primary cell's model, which all accounts share: its controller has all of it in memory, and
 * refuses everybody where it is full (`model/limits.ts`: 50,000 elements). So each volume and each account has a bound of its own.
 * A share is up to two elements for each version, and that is where they come from.
 */
export interface Weight {
  /** Of its JSON text, states apart. */
  readonly bytes: number;
  readonly elements: number;
  /** Of all versions. */
  readonly storageMiB: number;
}
export const most = {
  volume: { bytes: 128 * 1024, elements: 800 },
  account: { bytes: 2 * 1024 * 1024, elements: 4000 },
} as const satisfies Readonly<Record<string, Omit<Weight, "storageMiB">>>;

export const weightOf = (group: Json): Weight => ({
  bytes: Buffer.byteLength(JSON.stringify(group, (name, value: unknown) => (name === "$state" ? undefined : value))),
  elements: isObject(group) ? Object.values(group).filter((each) => isObject(each) && "x.type" in each).length : 0,
  storageMiB: isObject(group) ? versionsIn(group).reduce((sum, { countedMiB }) => sum + countedMiB, 0) : 0,
});

/** What a volume weighs once this is done. Null: it is gone, or cannot be done. */
export function weightAfter(uid: string, group: Json, operations: readonly JsonPatchOperation[]): Weight | null {
  const patch = readPatch(operations as unknown as Json);
  const [component = "", folder = ""] = volumesPath.split("/");
  const done = patch.ok ? patched({ [component]: { [folder]: { [uid]: group } } }, patch.value) : patch;
  const after = done.ok
    ? ((done.value as JsonObject)[component] as Record<string, JsonObject>)[folder]?.[uid]
    : undefined;
  return after === undefined ? null : weightOf(after);
}

const textOf = ({ bytes, elements }: Omit<Weight, "storageMiB">): string =>
  `${bytes / 1024} KiB of names, tags, texts, versions and shares, and ${elements} versions and grants of them`;

/**
 * @param others what the account's other volumes weigh together; null: nobody's account has it
 * @param limit of the account's storage; null: none
 */
export function requireRoom(
  name: string,
  before: Weight,
  after: Weight,
  others: Weight | null,
  limit: StorageLimit | null,
): void {
  const grows = (kind: keyof Weight): boolean => after[kind] > before[kind];
  for (const kind of ["bytes", "elements"] as const) {
    // What is over it already may become less, and stay.
    if (!grows(kind)) continue;
    if (after[kind] > most.volume[kind])
      throw refused(409, "conflict", `${name} would have more than a persistent volume may: ${textOf(most.volume)}`);
    if (others !== null && others[kind] + after[kind] > most.account[kind])
      throw refused(
        409,
        "conflict",
        `the persistent volumes of the account would have more than an account's may together: ${textOf(most.account)}`,
      );
  }
  if (limit !== null && grows("storageMiB")) requireStorage(name, limit, others?.storageMiB ?? 0, after.storageMiB);
}
