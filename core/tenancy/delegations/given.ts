import type { Rule } from "../../../model/contract/tenancy/rules.ts";
import type { DelegationRecord, RoleRecord, UserRecord } from "../records.ts";
import { accountStanding, lacksSecondFactor, lockedOut, roleOf, save, type TenancyState } from "../state.ts";

/** What outlasts a delegation, or is not a cell's own, is not given by one: names, and credentials that go on when it ends. */
const notGiven: readonly Rule[] = ["cell.create", "cell.delete", "credential.add", "credential.revoke"].map((verb) => ({
  verb,
  effect: "deny",
}));

const isOf = ({ cells }: DelegationRecord, cell: string): boolean => cells.length === 0 || cells.includes(cell);

/** UIDs of those that an account has given. */
export function delegationsOf(state: TenancyState, account: string): readonly string[] {
  if (state.delegationsOf === null) {
    const all = new Map<string, string[]>();
    for (const { uid, account: from } of state.tables.delegation.values())
      all.set(from, [...(all.get(from) ?? []), uid]);
    state.delegationsOf = all;
  }
  return state.delegationsOf.get(account) ?? [];
}

/** What a user, who gets in, may do with a cell of an account that his own role does not reach; null: it is not there for him. */
export function delegatedTo(
  state: TenancyState,
  user: UserRecord,
  account: string,
  cell: string,
): Pick<RoleRecord, "rules"> | null {
  const owner = state.tables.account.get(account);
  // A child cell is given with the cell around it.
  const around = cell.split(".").at(-1) ?? cell;
  if (owner === undefined) return null;
  const given = delegationsOf(state, account)
    .flatMap((uid) => state.tables.delegation.get(uid) ?? [])
    .filter((each) => isOf(each, around) && (each.to === user.uid || each.to === user.account));
  // What was given to himself counts before what was given to all of his account, and what names the cell before what is of all.
  const weight = ({ to, cells }: DelegationRecord): number => (to === user.uid ? 2 : 0) + (cells.length > 0 ? 1 : 0);
  const [first] = given.sort((one, other) => weight(other) - weight(one));
  const role = first === undefined ? undefined : roleOf(state, first.role);
  const standing = accountStanding(state, owner);
  if (role === undefined || standing === "disabled") return null;
  if (lacksSecondFactor(user, role)) return { rules: [] };
  return { rules: [...notGiven, ...(standing === "locked" ? lockedOut : []), ...role.rules] };
}

/** Nobody has what was given to an account or a user that is no more. */
export function dropDelegations(state: TenancyState, to: string): void {
  for (const [uid, delegation] of state.tables.delegation)
    if (delegation.to === to) save(state, "delegation", uid, null);
}
