import { isObject, type Json, type JsonObject } from "../../../model/json/json.ts";
import { type JsonPatchOperation, patched, readPatch } from "../../../model/json/patch.ts";
import { refused } from "../../requests/refused.ts";
import { versionsIn, volumesPath } from "./layout.ts";
import { requireStorage, type StorageLimit } from "./quota.ts";

/*
 * What persistent volumes take of the primary cell's model, which all accounts share: its controller has all of it in memory, and
 * refuses everybody where it is full (`model/limits.ts`: 50,000 elements). So each volume and each account has a bound of its own.
 * A share is up to two elements for each version, and that is where they come from.
 *
 * Any number of accounts would fill it with what each may have, so nobody has more than is left for others: all below a domain that
 * stands under ROOT, which the operator alone makes, have together at most as much as is free then, and an account in it at most
 * what is free of that. Whoever takes all he gets leaves as much as he has, two leave a third, and who comes then finds room.
 * (Dynamic thresholds of Choudhury and Hahne, IEEE/ACM Transactions on Networking 6(2), 1998.)
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
  /** Of all accounts: the rest of what a cell may have is for what the primary cell has beside them. */
  all: { bytes: 32 * 1024 * 1024, elements: 40_000 },
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

/** What others have beside it. */
export interface Others {
  readonly account: Weight;
  /** Of all below the same domain under ROOT, the account's own with them, and what was left there for its clones. */
  readonly domain: Weight;
  /** Of everybody, with those of no account. */
  readonly all: Weight;
}
/** The domain under ROOT in which an account is; an account of ROOT stands for itself. */
export const domainUnderRoot = (account: string): string => account.split("/").slice(0, 2).join("/");

const textOf = ({ bytes, elements }: Omit<Weight, "storageMiB">): string =>
  `${bytes / 1024} KiB of names, tags, texts, versions and shares, and ${elements} versions and grants of them`;

/**
 * @param others null: nobody's account has it, the operator is refused nothing here
 * @param limit of the account's storage; null: none
 */
export function requireRoom(
  { name, account }: { readonly name: string; readonly account: string | null },
  before: Weight,
  after: Weight,
  others: Others | null,
  limit: StorageLimit | null,
): void {
  const grows = (kind: keyof Weight): boolean => after[kind] > before[kind];
  for (const kind of ["bytes", "elements"] as const) {
    // What is over it already may become less, and stay.
    if (!grows(kind)) continue;
    if (after[kind] > most.volume[kind])
      throw refused(409, "conflict", `${name} would have more than a persistent volume may: ${textOf(most.volume)}`);
    if (others === null || account === null) continue;
    if (others.account[kind] + after[kind] > most.account[kind])
      throw refused(
        409,
        "conflict",
        `the persistent volumes of the account would have more than an account's may together: ${textOf(most.account)}`,
      );
    requireShare(account, kind, after, others);
  }
  if (limit !== null && grows("storageMiB"))
    requireStorage(name, limit, others?.account.storageMiB ?? 0, after.storageMiB);
}

function requireShare(account: string, kind: "bytes" | "elements", after: Weight, others: Others): void {
  const domain = domainUnderRoot(account);
  const left = most.all[kind] - others.all[kind] - after[kind];
  const ofDomain = others.domain[kind] + after[kind];
  // How much others have is nobody's to know.
  const isCrowded = (who: string, whom: string) =>
    refused(
      409,
      "conflict",
      `the persistent volumes of ${who} would have more than is left for ${whom}, of the room that all have together: delete shares or volumes there, or ask the operator`,
    );
  if (ofDomain > left)
    throw isCrowded(domain === account ? account : `${domain} and all below it`, "all other accounts");
  if (domain !== account && others.account[kind] + after[kind] > left - ofDomain)
    throw isCrowded(account, `the other accounts below ${domain}`);
}
