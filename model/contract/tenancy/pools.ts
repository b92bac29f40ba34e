import type { Openness } from "../../cell/cell.ts";
import type { Level, Owner } from "../../cell/tenants/dedication/dedication.ts";
import { levels } from "../../cell/tenants/dedication/dedication.ts";
import { fills } from "../../cell/tenants/pools/attributes.ts";
import { flavorPattern, mostUnits } from "../../cell/tenants/pools/flavors.ts";
import { mostAllowed } from "../../cell/tenants/pools/offerings.ts";
import { boolean, integer, list, nullable, oneOf, optional, pattern, record, text } from "../schema.ts";
import { pathPattern, pathRule } from "./tenancy.ts";

/*
 * Whole hosts: what the operator has of them, and the pools in which accounts have some. What is asked here becomes, or is read off, elements of
 * cells: the same that a specification writes.
 */
export interface ListedFlavor {
  readonly name: string;
  readonly description: string;
  /** What one host costs of an account's units. */
  readonly units: number;
  /** How many whoever asks could have now. */
  readonly free: number;
  /** To the operator alone: which are of it. */
  readonly hosts?: readonly string[];
}
export interface NewFlavor {
  readonly name: string;
  readonly description?: string;
  readonly units: number;
}
/** To a domain, or to an account in it. */
export interface NewDedication {
  readonly of: string;
  /** By its path: `ROOT/acme`. */
  readonly domain: string;
  readonly account?: string;
}
/** `released`: what the very same owner had below it, and that goes into it. */
export interface Dedicated extends ListedDedication {
  readonly group: string;
  readonly released: readonly string[];
}
export interface ListedDedication {
  /** To the operator alone, by which it is released. */
  readonly uid?: string;
  /** The place, or to the operator the host; null: a host, whose name is the operator's to know. */
  readonly of: string | null;
  readonly level: Level;
  readonly to: Owner;
}
export interface Holdings {
  readonly flavors: readonly ListedFlavor[];
  readonly dedications: readonly ListedDedication[];
  /** What cells that are made below this one have open where they say nothing, and at most. Absent: nobody bounds them. */
  readonly bound?: Omit<Openness, "resolvers">;
}

/** How a pool's hosts are used. Absent: as elsewhere. */
export interface PoolUse {
  readonly cpuRatio?: number;
  readonly memoryPercent?: number;
  readonly fill?: "spread" | "pack";
  /** Of which of these offerings its VMs are, and what they boot from. Absent: whatever they like. */
  readonly offerings?: readonly string[];
  readonly images?: readonly string[];
}
export interface PoolSummary extends PoolUse {
  readonly uid: string;
  readonly cell: string;
  readonly path: string;
  readonly name: string;
  /** Whose it is; null: the operator's, or it is not known. */
  readonly account: string | null;
  /** Paths of accounts; null: the account of its cell alone. */
  readonly authorised: readonly string[] | null;
  /** How many it has, or waits for. */
  readonly hosts: number;
}
export interface PoolHostSummary {
  readonly uid: string;
  readonly name: string;
  readonly path: string;
  readonly flavor: string;
  readonly zone: string | null;
  /** Whether new VMs come there. */
  readonly enabled: boolean;
  readonly phase: string;
  readonly reason: string | null;
  /** UIDs of all that stand there, whosever they are. */
  readonly vms: readonly string[];
}
export interface NewPool extends PoolUse {
  readonly cell: string;
  readonly name: string;
}
export interface NewPoolHost {
  readonly name: string;
  readonly flavor: string;
  readonly zone?: string;
}
/** All of them, in place of those before; null: the account of its cell alone. */
export interface Authorised {
  readonly authorised: readonly string[] | null;
}

const label = pattern(flavorPattern, "a label of small letters, digits and hyphens");
const use = {
  cpuRatio: optional(integer(1, 16)),
  memoryPercent: optional(integer(1, 100)),
  fill: optional(oneOf(...fills)),
  offerings: optional(list(label, { most: mostAllowed })),
  images: optional(list(text(512), { most: mostAllowed })),
} as const;
const owner = record<Owner>({ kind: oneOf("domain", "account"), path: text() });
export const listedFlavor = record<ListedFlavor>({
  name: text(),
  description: text(),
  units: integer(),
  free: integer(),
  hosts: optional(list(text())),
});
const dedicationFields = { uid: optional(text()), of: nullable(text()), level: oneOf(...levels), to: owner } as const;
export const listedDedication = record<ListedDedication>(dedicationFields);
export const dedicated = record<Dedicated>({ ...dedicationFields, group: text(), released: list(text()) });
export const newFlavor = record<NewFlavor>({
  name: label,
  description: optional(text(1024)),
  units: integer(1, mostUnits),
});
export const newDedication = record<NewDedication>({
  of: text(253),
  domain: pattern(pathPattern, pathRule),
  account: optional(label),
});
export const holdings = record<Holdings>({
  flavors: list(listedFlavor),
  dedications: list(listedDedication),
  bound: optional(
    record<NonNullable<Holdings["bound"]>>({
      subnetConnectivity: optional(boolean),
      internet: optional(oneOf("none", "out")),
      broadcast: optional(oneOf("off", "on")),
    }),
  ),
});
export const poolSummary = record<PoolSummary>({
  uid: text(),
  cell: text(),
  path: text(),
  name: text(),
  account: nullable(text()),
  authorised: nullable(list(text())),
  hosts: integer(),
  ...use,
});
export const poolHostSummary = record<PoolHostSummary>({
  uid: text(),
  name: text(),
  path: text(),
  flavor: text(),
  zone: nullable(text()),
  enabled: boolean,
  phase: text(),
  reason: nullable(text()),
  vms: list(text()),
});
export const newPool = record<NewPool>({ cell: text(253), name: label, ...use });
export const poolUse = record<PoolUse>(use);
export const newPoolHost = record<NewPoolHost>({ name: label, flavor: label, zone: optional(label) });
export const poolHostChange = record<{ readonly enabled: boolean }>({ enabled: boolean });
export const authorisedOf = record<Authorised>({ authorised: nullable(list(text(1024), { most: 1000 })) });
