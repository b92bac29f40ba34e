import type { PeerName } from "../../../model/cell/identifiers.ts";
import type { HostRule } from "../../../model/cell/tenants/dedication/dedication.ts";
import type { Standing } from "../../../model/cell/tenants/dedication/implicit.ts";
import { areStrangers } from "../../../model/cell/tenants/together.ts";
import type { HostUse } from "../candidate.ts";
import { neighboursOf } from "../filters/implicit.ts";

/** Who is at a host, as far as implicit dedication asks: what `standingOf` says to any account follows from it. */
export interface Occupancy {
  readonly isEmpty: boolean;
  /** All that is there is this account's, and asks for dedication; null: that is not so. */
  readonly holder: string | null;
  /** Accounts with a strict VM there, "" for one of nobody who is known. */
  readonly strict: readonly string[];
  /** At a host that is somebody's: VMs are there of who may not use it. */
  readonly strangers: boolean;
}
const [empty, plain]: readonly [Occupancy, Occupancy] = [
  { isEmpty: true, holder: null, strict: [], strangers: false },
  { isEmpty: false, holder: null, strict: [], strangers: false },
];

export function occupancyOf(
  use: HostUse,
  rule: HostRule | undefined,
  accountOf: (client: PeerName) => string | null,
): Occupancy {
  const neighbours = () => neighboursOf(use, "" as never, { accountOf });
  const strangers = rule !== undefined && areStrangers(rule.to, neighbours());
  if (use.implicit === 0) {
    const { size } = use.reservations;
    return size === 0 && use.taken.size === 0 ? empty : strangers ? { ...plain, strangers } : plain;
  }
  const strict = new Set<string>();
  const holders = new Set<string | null>();
  for (const { account, mode } of neighbours()) {
    holders.add(mode === null ? null : account);
    if (mode === "strict") strict.add(account ?? "");
  }
  const [holder = null] = holders.size === 1 ? holders : [];
  return { isEmpty: false, holder, strict: [...strict].sort(), strangers };
}
export const keyOf = ({ isEmpty, holder, strict, strangers }: Occupancy): string =>
  isEmpty ? "empty" : JSON.stringify([holder, strict, strangers]);

export function standingFor({ isEmpty, holder, strict }: Occupancy, account: string | null): Standing {
  if (strict.some((each) => each !== account)) return "strangers";
  if (isEmpty) return "empty";
  return account !== null && holder === account ? "own" : "mixed";
}
