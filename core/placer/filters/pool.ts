import { type HostName, hostName } from "../../../model/cell/identifiers.ts";
import { mayStandInPool } from "../../../model/cell/tenants/pools/pools.ts";
import type { DesiredPlacement } from "../../documents/vocabulary.ts";
import { type Asker, type Filter, type Pooled, poolOf } from "../candidate.ts";

/** The pool at a host that a request asks for: by its UID, or from the cell that has it by its path there. */
export function poolAsked({ placement, cell }: DesiredPlacement, pooled: Pooled | undefined): string | null {
  const [written, there] = [poolOf(placement), pooled?.pool ?? null];
  const isByPath =
    there !== null && there.cell === cell && (there.path === written || there.path === `${pathIn(cell)}/${written}`);
  return isByPath ? there.uid : written;
}
const pathIn = (cell: string): string => cell.split(".")[0] ?? cell;

/**
 * Whether nothing at all is said of the host to whoever asks: it is in a pool that is not asked for, or one is asked for that it is not in, or that is
 * not for his account. So nobody learns from a refusal which hosts others have, nor that a pool is there.
 */
export function isOutside(pooled: Pooled | undefined, request: DesiredPlacement, { account }: Asker): boolean {
  const pool = poolAsked(request, pooled);
  if (pool === null) return pooled !== undefined;
  const there = pooled?.pool ?? null;
  return there === null || there.uid !== pool || account === null || !there.authorised.includes(account);
}
/** What a host is called in a refusal: within a pool by the name that its owner gave it. */
export const shownName = (host: HostName, pooled: Pooled | undefined): HostName =>
  pooled?.pool == null ? host : hostName(pooled.pool.name);

/** A host of a flavour takes VMs alone that ask for the pool that it is in, of accounts that the pool authorises, as long as it is enabled there. */
export const pool: Filter = ({ pooled }, request, _ratios, { account }) => {
  if (mayStandInPool(pooled ?? null, poolAsked(request, pooled), account)) return null;
  const isDisabled = pooled?.pool?.enabled === false;
  return {
    kind: "dedicated",
    why: isDisabled ? "it is disabled in its pool" : "it is not of the pool that the VM asks for",
    lifts: isDisabled
      ? "write `x.enabled true` at its PoolHost"
      : "ask for another pool, or leave x.placement.pool out",
  };
};

/** Why no host could be looked at by name, as a sentence; null: no pool is asked for. */
export function whyNoPool({ placement }: DesiredPlacement): string | null {
  const written = poolOf(placement);
  return written === null
    ? null
    : `there is no pool ${JSON.stringify(written)} with a host that its account may use, which x.placement.pool asks for`;
}
