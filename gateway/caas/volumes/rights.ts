import type { Reach } from "../../../model/contract/tenancy/rules.ts";
import type { Share, VolumeRight } from "../../../model/contract/tenancy/volumes/volumes.ts";
import { volumeRights } from "../../../model/contract/tenancy/volumes/volumes.ts";
import type { StoredVolume } from "./layout.ts";

/*
 * What somebody may do with a persistent volume, by what the service `tenancy` says of him: its owner's people all of it, others
 * what it is shared with them for. CaaS has the credential of all of them, so this is where it is decided.
 */
export interface Asker {
  /** Path; null: the operator, by the operator's credential. */
  readonly account: string | null;
  readonly reach: Reach;
  /** By the rules of his role: `cell.read` and `cell.change`. */
  readonly mayRead: boolean;
  readonly mayChange: boolean;
  /** Names of his account's cells: those of others that he may look at make him nobody there. */
  readonly cells: ReadonlySet<string>;
}

export const domainOf = (account: string): string => account.slice(0, Math.max(account.lastIndexOf("/"), 0));
const isBelow = (domain: string, path: string): boolean => path.startsWith(`${domain}/`);

/** Whether that account is in his reach; null: the operator's own. */
export function reaches({ account, reach }: Asker, owner: string | null): boolean {
  if (account === null || reach === "installation") return true;
  if (owner === null) return false;
  return reach === "domain" ? isBelow(domainOf(account), owner) : owner === account;
}

export function isSharedWith({ account, cells }: Asker, { kind, path = "" }: Share): boolean {
  if (kind === "all") return true;
  if (kind === "cell") return cells.has(path);
  if (account === null) return false;
  return kind === "account" ? account === path : isBelow(path, account);
}

/** In the order of `volumeRights`; none: for him there is no such volume. */
export function rightsOf(asker: Asker, volume: StoredVolume): readonly VolumeRight[] {
  if (!asker.mayRead) return [];
  const given = new Set<VolumeRight>(
    volume.shares.filter((share) => isSharedWith(asker, share)).map(({ right }) => right),
  );
  if (reaches(asker, volume.account)) given.add("manage");
  const isManager = given.has("manage");
  return volumeRights.filter((right) => (isManager ? true : given.has(right)));
}

/** Whether he manages it: what changes it, or says with whom it is shared, is for these. */
export const manages = (asker: Asker, volume: StoredVolume): boolean => rightsOf(asker, volume).includes("manage");
