import { isWithin, mostPools } from "../../../model/addresses/pools.ts";
import type { Cidr, ElementPath } from "../../../model/cell/identifiers.ts";
import { type DesiredDoors, type DesiredZone, doorsKey, mostRanges, zoneKey } from "../../documents/network/network.ts";
import { desiredZone } from "../../documents/readers/network.ts";
import type { DesiredName } from "../../documents/vocabulary.ts";
import type { Desires } from "../changes/desires.ts";
import type { ElementRecord } from "../records.ts";
import { addDesire, type ControllerState, desiredNow, dnsManager, elementOf, saveElement } from "../state.ts";
import { doorsOf, entranceIn, entranceOf } from "./entrance.ts";
import { addressOf, isOfTheSite } from "./instances.ts";
import { poolsInForce, poolsSaid } from "./pools.ts";

/** Domain of the cell itself: its name qualified by its parent's (paper, III.A). */
export const cellDomain = (state: ControllerState): string => `${state.options.cell}.${state.options.domain}`;

/** Host name that a guest gets when no interface names one: the last part of its path, as a DNS label. */
export function hostNameOf(path: ElementPath): string {
  const label = (path.split("/").at(-1) ?? path).toLowerCase().replaceAll(/[^a-z0-9-]+/g, "-");
  return label.replaceAll(/^-+|-+$/g, "").slice(0, 63) || "vm";
}

/** A name is desired as soon as its address is known, and no longer than its interface is in the model. */
export function desireNames(state: ControllerState): void {
  state.pass.each("names", state.elements, (record, _uid, desires) => desireName(state, record, desires), {
    of: ({ type }) => type === "VirtualInterface",
  });
}

/** Of the root cell: to whom names are handed for the outside. */
export function desireZone(state: ControllerState, desires: Desires): void {
  const { cell, options } = state;
  if (options.root === undefined || cell?.zone === undefined) return;
  const { name: zone, ...rest } = cell.zone;
  const pools = zonePools(state, cell.externalPools);
  const entrance = entranceIn(cell);
  const document: DesiredZone = {
    zone,
    ...rest,
    ...(pools === undefined ? {} : { pools }),
    ...(entrance === null ? {} : { entrance }),
  };
  addDesire(desires, dnsManager, zoneKey, document);
}

/** Of the cell that is the way in: what has a name for the outside there, if the root cell hands any. */
export function desireDoors(state: ControllerState, desires: Desires): void {
  const address = entranceOf(state);
  if (address === null || state.cell === null) return;
  const document: DesiredDoors = { address, roles: doorsOf(state.cell, address) };
  addDesire(desires, dnsManager, doorsKey, document);
}

/**
 * Undefined: those of the DNS Manager's configuration. A pool of which machines still have a part stays as it is, since its zone is delegated by that
 * name, and what machines may have is not left out while it is not known.
 */
function zonePools(state: ControllerState, declared: readonly Cidr[] | undefined): readonly Cidr[] | undefined {
  const now = poolsInForce(state);
  if (now === null) return undefined;
  const before = desiredZone.of(desiredNow(state, dnsManager, zoneKey))?.pools;
  if (now === undefined && before === undefined) return declared;
  const inForce = poolsSaid(state)?.external ?? [];
  const pools = now ?? [...(declared ?? []), ...(before ?? [])];
  const asDelegated = (pool: Cidr): Cidr =>
    (inForce.includes(pool) ? undefined : before?.find((each) => isWithin(pool, [each]))) ?? pool;
  return [...new Set(pools.map(asDelegated))].slice(0, mostPools + mostRanges);
}

function desireName(state: ControllerState, record: ElementRecord, desires: Desires): void {
  const element = elementOf(state, record);
  if (element?.type !== "VirtualInterface" || record.allocation === null) return;
  const name = element.vifName === undefined ? null : `${element.vifName}.${cellDomain(state)}`;
  if (record.name !== name) saveElement(state, { ...record, name });
  const address = addressOf(state, record);
  if (name === null || address === null) return;
  const isPublic = element.public || state.cell?.elements.get(element.vm)?.public === true;
  const seen = isPublic ? { public: true as const } : {};
  const heard = isOfTheSite(state, record) ? { heard: true as const } : {};
  const document: DesiredName = { uid: record.uid, name, address, ...seen, ...heard };
  addDesire(desires, dnsManager, `name/${record.uid}`, document);
}
