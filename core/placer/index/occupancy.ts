import type { PeerName } from "../../../model/cell/identifiers.ts";
import type { Standing } from "../../../model/cell/tenants/dedication/implicit.ts";
import type { HostUse } from "../candidate.ts";
import { neighboursOf } from "../filters/implicit.ts";

/** Who is at a host, as far as implicit dedication asks: what `standingOf` says to any account follows from it. */
export interface Occupancy {
  readonly isEmpty: boolean;
  /** All that is there is this account's, and asks for dedication; null: that is not so. */
  readonly holder: string | null;
  /** Accounts with a strict VM there, "" for one of nobody who is known. */
  readonly strict: readonly string[];
}
const [empty, plain]: readonly [Occupancy, Occupancy] = [
  { isEmpty: true, holder: null, strict: [] },
  { isEmpty: false, holder: null, strict: [] },
];

export function occupancyOf(use: HostUse, accountOf: (client: PeerName) => string | null): Occupancy {
  if (use.implicit === 0) return use.reservations.size === 0 && use.taken.size === 0 ? empty : plain;
  const strict = new Set<string>();
  const holders = new Set<string | null>();
  for (const { account, mode } of neighboursOf(use, "" as never, { accountOf })) {
    holders.add(mode === null ? null : account);
    if (mode === "strict") strict.add(account ?? "");
  }
  const [holder = null] = holders.size === 1 ? holders : [];
  return { isEmpty: false, holder, strict: [...strict].sort() };
}
export const keyOf = ({ isEmpty, holder, strict }: Occupancy): string =>
  isEmpty ? "empty" : JSON.stringify([holder, strict]);

export function standingFor({ isEmpty, holder, strict }: Occupancy, account: string | null): Standing {
  if (strict.some((each) => each !== account)) return "strangers";
  if (isEmpty) return "empty";
  return account !== null && holder === account ? "own" : "mixed";
}
