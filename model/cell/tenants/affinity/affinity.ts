/*
 * Affinity: VMs of an account that say they belong to a group stand together, or apart, whichever of the account's cells they are of. A strict
 * group refuses hosts; one that is not only prefers some. A member counts where it has a place, running or not yet, and where it was
 * stopped lately: it would rather start there again, and what stands apart from it would be in its way.
 *
 * A member at a host that was declared dead, or that is being emptied, holds nobody there: else the first of several that have to be together
 * could never leave, and so none of them.
 */
export const groupKinds = [
  "host affinity",
  "host anti-affinity",
  "non-strict host affinity",
  "non-strict host anti-affinity",
] as const;
export type GroupKind = (typeof groupKinds)[number];

/** By which a VM names its group: the last name of an `AffinityGroup`, or of what a dedication makes. */
export const isGroupName = (name: string): boolean => /^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/.test(name);
export const groupNameRule = "letters, digits, points, - and _, 63 at most, the first a letter or a digit";

/** `DedicatedGrp-…` are names of groups that are made by a dedication. */
export const reservedGroupName = /^DedicatedGrp-/;

/** A group that a newcomer is in. */
export interface Membership {
  readonly name: string;
  readonly kind: GroupKind;
  /** How many others of it count at each host; none of those that hold nobody. */
  readonly homes: ReadonlyMap<string, number>;
}

/** The group by which the host is refused; null: none refuses it. */
export function whichRefuses(groups: readonly Membership[], host: string): Membership | null {
  return groups.find((group) => !mayStandIn(group, host)) ?? null;
}
function mayStandIn({ kind, homes }: Membership, host: string): boolean {
  if (kind === "host anti-affinity") return !homes.has(host);
  return kind !== "host affinity" || homes.size === 0 || homes.has(host);
}

/** Of hosts that pass, the less the better: how many it would rather stand apart from, and how many groups it would rather stand beside. */
export function softRank(groups: readonly Membership[], host: string): number {
  let rank = 0;
  for (const { kind, homes } of groups) {
    if (kind === "non-strict host anti-affinity") rank += homes.get(host) ?? 0;
    else if (kind === "non-strict host affinity" && homes.size > 0 && !homes.has(host)) rank += 1;
  }
  return rank;
}
