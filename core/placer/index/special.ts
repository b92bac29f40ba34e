import type { HostName } from "../../../model/cell/identifiers.ts";
import { isObject } from "../../outbox.ts";
import { apartFrom, spreadOf } from "../candidate.ts";
import { names } from "../filters/affinity.ts";
import type { Asked } from "../judge.ts";

/** Hosts of which the request itself says something; `isAll`: no other one is to be looked at. */
export function specialHosts({ request, usage, memberships, wishes, avoid }: Asked): {
  readonly hosts: ReadonlySet<HostName>;
  readonly isAll: boolean;
} {
  const { vm, cell, path, placement } = request;
  const pin = isObject(placement) ? placement.host : undefined;
  if (typeof pin === "string") return { hosts: new Set([pin as HostName]), isAll: true };
  for (const { kind, homes } of memberships)
    if (kind === "host affinity" && homes.size > 0)
      return { hosts: new Set(homes.keys()) as Set<HostName>, isAll: true };
  const hosts = new Set<HostName>([...avoid] as HostName[]);
  for (const host of usage.placesOf.get(vm) ?? []) hosts.add(host);
  for (const { homes } of memberships) for (const host of homes.keys()) hosts.add(host as HostName);
  for (const { homes } of wishes.groups.values()) for (const host of homes.keys()) hosts.add(host as HostName);
  const ofCell = usage.cells.get(cell);
  if (ofCell === undefined) return { hosts, isAll: false };
  const spread = spreadOf(placement);
  if (spread !== null) for (const { host } of ofCell.bySpread.get(spread) ?? []) hosts.add(host);
  for (const named of apartFrom(placement))
    for (const each of [named, `${path.split("/")[0]}/${named}`])
      for (const { host } of ofCell.byPath.get(each) ?? []) hosts.add(host);
  for (const other of ofCell.keepingApart) if (names(other.apartFrom, other.path, path)) hosts.add(other.host);
  return { hosts, isAll: false };
}
