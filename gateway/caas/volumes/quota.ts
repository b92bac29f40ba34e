import type { QuotaSummary } from "../../../model/contract/tenancy/quotas.ts";
import { refused } from "../../requests/refused.ts";
import type { Asker } from "./rights.ts";

/*
 * What an account's persistent volumes have counts in its limit of storage (`x.limits.storage`), beside what its cells were granted.
 * The gateway says both, to whoever asks for a volume. What the domains above may have their own administrators see alone, and it
 * does not count here.
 */
export interface StorageLimit {
  readonly path: string;
  readonly limitMiB: number;
  /** To the account's cells. */
  readonly grantedMiB: number;
}
/** Null: nothing limits it. Rejects where who asks is not told. */
export type StorageOf = (account: string | null) => Promise<StorageLimit | null>;

/** Whoever is not told what an account may have uses up none of it: what he manages of others grows by their own people alone. */
export function requireTold({ account: own, reach, accounts }: Asker, account: string): void {
  if (own === null || reach === "installation" || accounts.has(account)) return;
  throw refused(
    403,
    "forbidden",
    "what it has counts in the limit of an account of which you are told nothing: its own people make it larger",
  );
}

export function storageLimitIn(quotas: readonly QuotaSummary[], account: string): StorageLimit | null {
  const its = quotas.find(({ kind, path }) => kind === "account" && path === account);
  const limitMiB = its?.limits.storageMiB;
  return limitMiB === undefined ? null : { path: account, limitMiB, grantedMiB: its?.granted?.storageMiB ?? 0 };
}

/**
 * @param othersMiB what the account's other persistent volumes have
 * @param afterMiB what this one would have, with all its versions
 */
export function requireStorage(
  name: string,
  { path, limitMiB, grantedMiB }: StorageLimit,
  othersMiB: number,
  afterMiB: number,
): void {
  if (grantedMiB + othersMiB + afterMiB <= limitMiB) return;
  const has = `its cells have ${grantedMiB} MiB and its other persistent volumes ${othersMiB} MiB`;
  throw refused(
    409,
    "conflict",
    `${path} may have ${limitMiB} MiB of storage, of which ${has}: ${name} would have ${afterMiB} MiB with all its versions`,
  );
}
