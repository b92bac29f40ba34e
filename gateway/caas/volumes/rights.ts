import type { Reach } from "../../../model/contract/tenancy/rules.ts";
import type { VolumeRight } from "../../../model/contract/tenancy/volumes/volumes.ts";
import { volumeRights } from "../../../model/contract/tenancy/volumes/volumes.ts";
import type { StoredShare, StoredVolume } from "./layout.ts";

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
  /** UIDs of the accounts that he may see, by their paths and by the names of their cells. */
  readonly accounts: ReadonlyMap<string, string>;
  /** UIDs of the domains that his account is in, and of those below that he administers, by their paths. */
  readonly domains: ReadonlyMap<string, string>;
  /** Names of his account's cells: those of others that he may look at make him nobody there. */
  readonly cells: ReadonlySet<string>;
}

export const domainOf = (account: string): string => account.slice(0, Math.max(account.lastIndexOf("/"), 0));
const isBelow = (domain: string, path: string): boolean => path.startsWith(`${domain}/`);

/** Whether the account with that path is in his reach; null: the operator's own. */
export function reaches({ account, reach }: Asker, owner: string | null): boolean {
  if (account === null || reach === "installation") return true;
  if (owner === null) return false;
  return reach === "domain" ? isBelow(domainOf(account), owner) : owner === account;
}

/**
 * The same of the account that has a volume. A path is free again when its account is deleted: whoever has it then is another one,
 * and what the one before had falls to the operator.
 */
const owns = (asker: Asker, { account, owner }: Pick<StoredVolume, "account" | "owner">): boolean =>
  reaches(asker, account) &&
  (asker.account === null ||
    asker.reach === "installation" ||
    owner === null ||
    asker.accounts.get(account ?? "") === owner);

export function isSharedWith(
  { account, accounts, domains, cells }: Asker,
  { kind, path = "", holder }: StoredShare,
): boolean {
  if (kind === "all") return true;
  if (kind === "domain")
    return account !== null && isBelow(path, account) && (holder === undefined || domains.get(path) === holder);
  if (holder !== undefined && accounts.get(account ?? "") !== holder) return false;
  return kind === "cell" ? cells.has(path) : account === path;
}

/** In the order of `volumeRights`; none: for him there is no such volume. */
export function rightsOf(asker: Asker, volume: StoredVolume): readonly VolumeRight[] {
  if (!asker.mayRead) return [];
  const given = new Set<VolumeRight>(
    volume.shares.filter((share) => isSharedWith(asker, share)).map(({ right }) => right),
  );
  if (owns(asker, volume)) given.add("manage");
  const isManager = given.has("manage");
  return volumeRights.filter((right) => (isManager ? true : given.has(right)));
}

/** Whether he manages it: what changes it, or says with whom it is shared, is for these. */
export const manages = (asker: Asker, volume: StoredVolume): boolean => rightsOf(asker, volume).includes("manage");
