import type { RecordWrite, Replaced, Whole } from "../../core/distribution/views/view.ts";
import { View } from "../../core/distribution/views/view.ts";
import { type PolicySlice, policyView } from "../../core/documents/network/network.ts";
import { cellPolicy, policySlice } from "../../core/documents/readers/network.ts";
import type { CellPolicy } from "../../core/documents/vocabulary.ts";
import type { Effect } from "../../core/env.ts";
import type { Json } from "../../model/json/json.ts";

/** A cell's policy at a host: from its manifest and slices, or from the one document of a small one or an earlier controller. */
export type PolicyAtHost = View<CellPolicy, PolicySlice>;

/** Record `replaced/<cell>/<name>`: `{ was }`, of a view that is between two versions. */
export const replacedRecord = "replaced";

/** @param records of that cell, by the name of the slice; "" of the manifest */
export function viewOf(records: ReadonlyMap<string, Json> = new Map()): PolicyAtHost {
  const replaced = new Map<string, CellPolicy | PolicySlice | null>();
  for (const [name, record] of records) {
    const was = (record as { readonly was?: Json } | null)?.was ?? null;
    replaced.set(name, name === "" ? cellPolicy.of(was) : policySlice.of(was));
  }
  return new View<CellPolicy, PolicySlice>(policyView, replaced as Replaced<CellPolicy, PolicySlice>);
}

export function writeReplaced(
  cell: string,
  writes: readonly RecordWrite<CellPolicy, PolicySlice>[],
  effects: Effect[],
): void {
  for (const { name, record } of writes)
    effects.push({ kind: "write", key: `${replacedRecord}/${cell}/${name}`, value: record as unknown as Json });
}

/** All of a policy in one, as a controller of the previous version would have said it. */
export function policyOf({ manifest, slices }: Whole<CellPolicy, PolicySlice>): CellPolicy {
  if (manifest.slices === undefined) return manifest;
  const rules = new Map(manifest.rules.map((rule) => [rule.id, rule]));
  const networks = new Map(manifest.networks.map((network) => [network.cidr, network]));
  const subnets = new Map((manifest.subnets ?? []).map((subnet) => [subnet.identity, subnet]));
  const routers = new Map((manifest.routers ?? []).map((router) => [router.subnet, router]));
  const traits = new Map((manifest.traits ?? []).map((trait) => [trait.identity, trait]));
  const hosts = new Set(manifest.hosts);
  for (const slice of slices.values()) {
    for (const rule of slice.rules ?? []) rules.set(rule.id, rule);
    for (const network of slice.networks ?? []) networks.set(network.cidr, network);
    for (const subnet of slice.subnets ?? []) subnets.set(subnet.identity, subnet);
    for (const router of slice.routers ?? []) routers.set(router.subnet, router);
    for (const trait of slice.traits ?? []) traits.set(trait.identity, trait);
    for (const host of slice.hosts ?? []) hosts.add(host);
  }
  return {
    ...manifest,
    rules: [...rules.values()].sort((one, other) => one.id - other.id),
    networks: sorted(networks),
    subnets: sorted(subnets),
    ...(routers.size === 0 ? {} : { routers: sorted(routers) }),
    ...(traits.size === 0 ? {} : { traits: sorted(traits) }),
    hosts: [...hosts].sort(),
  };
}
const sorted = <Key extends string | number, Value>(values: ReadonlyMap<Key, Value>): readonly Value[] =>
  [...values].sort(([one], [other]) => (one < other ? -1 : 1)).map(([, value]) => value);
