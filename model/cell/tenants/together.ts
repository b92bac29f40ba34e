import { type Membership, whichRefuses } from "./affinity/affinity.ts";
import { type HostRule, mayStand, mayUse, type Owner } from "./dedication/dedication.ts";
import { type ImplicitMode, type Neighbour, preferenceOf, type Standing, standingOf } from "./dedication/implicit.ts";
import { mayStandInPool, type PoolRule } from "./pools/pools.ts";

/*
 * May a VM stand at a host, beside who is there? The one answer for whoever places VMs and for the host that is to run them: what two Placers
 * promise at once, neither of which has heard of the other's, the host judges by the same rules and has the last word.
 */
export interface There {
  readonly host: string;
  /** Whose the host is; null: everybody's. */
  readonly rule: HostRule | null;
  readonly pooled: PoolRule | null;
  /** Who is there, without the newcomer itself. */
  readonly neighbours: () => Iterable<Neighbour>;
}
export interface Newcomer {
  /** Path of its account; null: nobody knows of one. */
  readonly account: string | null;
  /** One of the cloud's own VMs, which stand anywhere but at hosts of a flavour. */
  readonly isSystem: boolean;
  /** Whose dedicated hosts it asks for by a group; null: nobody's. */
  readonly group: Owner | null;
  readonly mode: ImplicitMode | null;
  /** UID of the pool that it asks for; null: none. */
  readonly pool: string | null;
  /** Affinity groups that it is in. */
  readonly memberships: readonly Membership[];
}
/** `strangers`: the host is its owner's, and VMs are there that may not use what is. */
export type Against =
  | { readonly by: "pool" | "dedication" | "strangers" }
  | { readonly by: "implicit"; readonly standing: Standing }
  | { readonly by: "group"; readonly group: Membership };

/** @returns what stands against it; null: it may */
export function mayStandTogether({ host, rule, pooled, neighbours }: There, newcomer: Newcomer): Against | null {
  const { account, isSystem, group, mode, pool, memberships } = newcomer;
  if (!mayStandInPool(pooled, pool, account)) return { by: "pool" };
  if (!isSystem) {
    if (!mayStand(rule, account, group)) return { by: "dedication" };
    if (rule !== null && areStrangers(rule.to, neighbours())) return { by: "strangers" };
    const standing = standingOf(neighbours(), account);
    if (preferenceOf(standing, mode) === null) return { by: "implicit", standing };
  }
  const refusing = whichRefuses(memberships, host);
  return refusing === null ? null : { by: "group", group: refusing };
}

/** Is anybody there who may not use what is the owner's? The cloud's own VMs do not count. */
export function areStrangers(owner: Owner, neighbours: Iterable<Neighbour>): boolean {
  for (const { account, isSystem } of neighbours)
    if (isSystem !== true && (account === null || !mayUse(owner, account))) return true;
  return false;
}
