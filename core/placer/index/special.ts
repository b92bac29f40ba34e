import type { HostName } from "../../../model/cell/identifiers.ts";
import { isObject } from "../../outbox.ts";
import { apartFrom, type Reservation, spreadAt, spreadOf } from "../candidate.ts";
import { names } from "../filters/affinity.ts";
import type { Asked } from "../judge.ts";
import { allOf } from "./few.ts";

export interface Special {
  readonly hosts: ReadonlySet<HostName>;
  /** No other one is to be looked at. */
  readonly isAll: boolean;
  /** Others of its `x.placement.spread`, where they are; null: there is none. Of many that spread it is all others, so that nobody makes a list of them. */
  readonly spread: ReadonlySet<Reservation> | null;
}
/** Hosts of which the request itself says something. */
export function specialHosts({ request, usage, memberships, wishes, avoid }: Asked): Special {
  const { vm, cell, path, placement } = request;
  const pin = isObject(placement) ? placement.host : undefined;
  if (typeof pin === "string") return { hosts: new Set([pin as HostName]), isAll: true, spread: null };
  for (const { kind, homes } of memberships)
    if (kind === "host affinity" && homes.size > 0)
      return { hosts: new Set(homes.keys()) as Set<HostName>, isAll: true, spread: null };
  const hosts = new Set<HostName>([...avoid] as HostName[]);
  for (const host of allOf(usage.placesOf.get(vm))) hosts.add(host);
  for (const { homes } of memberships) for (const host of homes.keys()) hosts.add(host as HostName);
  for (const { homes } of wishes.groups.values()) for (const host of homes.keys()) hosts.add(host as HostName);
  const ofCell = usage.cells.get(cell);
  if (ofCell === undefined) return { hosts, isAll: false, spread: null };
  for (const named of apartFrom(placement))
    for (const each of [named, `${path.split("/")[0]}/${named}`])
      for (const { host } of usage.at(cell, each)) hosts.add(host);
  for (const other of ofCell.keepingApart) if (names(other.apartFrom, other.path, path)) hosts.add(other.host);
  const spread = spreadOf(placement);
  return { hosts, isAll: false, spread: (spread === null ? undefined : ofCell.bySpread.get(spread)) ?? null };
}
/** Is another of its `x.placement.spread` at that host? */
export function isBeside({ request, usage }: Asked, host: HostName): boolean {
  const use = usage.get(host);
  if (use === undefined) return false;
  for (const _other of spreadAt(use, request)) return true;
  return false;
}
