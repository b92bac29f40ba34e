import { formatIpv4 } from "../../../../../model/addresses/addresses.ts";
import type { SecurityGroup } from "../../../../../model/eucalyptus/view/network-view.ts";
import type { Lookup } from "./lookup.ts";
import type { AddressSet, Table } from "./plan.ts";
import { TableBuilder } from "./tables.ts";

/*
 * The recorded chain asks each group of the cloud in turn whether a packet goes to one of its members, and a flow that nobody answers has each
 * packet asked. iptables has no jump by a map, and what is recorded stays as it is. So a chain of ours stands before it that asks for a bucket of
 * groups first: the members of all groups of a bucket are one set. It enters the same chains of the same groups and ends as the recorded one does,
 * for what goes to an instance; all else goes on to that. Whatever a group's chain takes it accepts, so their order decides nothing.
 *
 * Rejected: a group's number as the packet's mark (`SET --map-mark`): an instance has several groups, and the recorded rules ask for the mark whole.
 */

const name = "CELLS_GROUPS";
/** So few are asked as quickly without. */
const few = 16;

export interface ManyGroups {
  readonly tables: readonly Table[];
  readonly sets: readonly AddressSet[];
}
/**
 * @param hook chain of the site's own rules, behind which this one is entered
 * @param allPrivate set of all instances' private addresses
 */
export function planManyGroups(
  groups: readonly Pick<SecurityGroup, "id">[],
  { members }: Pick<Lookup, "members">,
  hook: string,
  allPrivate: string,
): ManyGroups {
  if (groups.length <= few) return { tables: [], sets: [] };
  const buckets = bucketsFor(groups.length);
  const filter = new TableBuilder("filter", ["FORWARD"]);
  for (const chain of [hook, name]) {
    filter.chain(chain);
    filter.add("FORWARD", `-j ${chain}`);
  }
  // These are the recorded chain's, which counts them, too.
  filter.add(name, "-m conntrack --ctstate ESTABLISHED -j RETURN");
  filter.add(name, `-m set ! --match-set ${allPrivate} dst -j RETURN`);
  for (const counters of ["EUCA_COUNTERS_IN", "EUCA_COUNTERS_OUT"]) {
    filter.chain(counters);
    filter.add(name, `-j ${counters}`);
  }
  const sets = new Map<string, Set<string>>();
  for (const { id } of groups) {
    // While rules of another number of buckets are in force, their sets are.
    const bucket = `CELLS_${buckets}_${hashOf(id) % buckets}`;
    if (!sets.has(bucket)) {
      filter.chain(bucket);
      filter.add(name, `-m set --match-set ${bucket} dst -j ${bucket}`);
    }
    filter.add(bucket, `-m set --match-set ${id} dst -j ${id}`);
    const addresses = sets.get(bucket) ?? new Set();
    sets.set(bucket, addresses);
    for (const { privateIp } of members(id)) if (privateIp !== undefined) addresses.add(`${formatIpv4(privateIp)}/32`);
  }
  filter.add(name, "-j DROP");
  return {
    tables: [filter.table()],
    sets: [...sets].map(([bucket, addresses]) => ({ name: bucket, members: [...addresses], isOfAddresses: true })),
  };
}
/** About as many as groups in each: then the least is asked. A power of two, so that one more group seldom moves the others. */
const bucketsFor = (groups: number): number => 2 ** Math.ceil(Math.log2(Math.sqrt(groups)));
/** FNV-1a: ids that follow one another are apart. */
const hashOf = (id: string): number =>
  [...id].reduce((hash, letter) => Math.imul(hash ^ letter.charCodeAt(0), 0x01000193) >>> 0, 0x811c9dc5);
