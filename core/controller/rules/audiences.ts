import type { HostName, Uid } from "../../../model/cell/identifiers.ts";
import type { DesiredPlace } from "../../documents/network/network.ts";
import type { CellPolicy } from "../../documents/vocabulary.ts";
import { Counted } from "../changes/indexes.ts";
import type { Tracking } from "../changes/tracked.ts";
import type { PlacedInterface } from "../network/policy.ts";
import type { Derived } from "./derived.ts";

/**
 * Which host may know where which interface is: those with another endpoint that a rule connects with it (`audiences`), here and
 * in other cells that agreed. An interface that comes or goes concerns those alone that a rule connects with it.
 */
export interface Audiences {
  /** By identity, the hosts where it is. */
  readonly hostsOf: Map<number, Counted<HostName>>;
  /** By VM, what was said of it, to be taken back. */
  readonly said: Map<Uid, readonly Said[]>;
  /** VMs that are nowhere any more, of which that was not yet taken back. */
  readonly left: Set<Uid>;
  /** The policy of which neighbours were worked out last. */
  neighbours: Pick<CellPolicy, "rules" | "routers"> | null;
}
export interface Said {
  readonly place: DesiredPlace;
  /** Its audience; that it is not told of itself goes without saying. */
  readonly hosts: readonly HostName[];
}

export const identitiesOf = ({ identity, vmIdentity, subnetIdentity }: PlacedInterface): readonly number[] => [
  identity,
  vmIdentity,
  subnetIdentity,
];

export function createAudiences(tracking: Tracking, { placed, audience }: Derived): Audiences {
  const hostsOf = new Map<number, Counted<HostName>>();
  const left = new Set<Uid>();
  placed.watch((vm, before = [], after = []) => {
    if (after.length === 0) left.add(vm);
    for (const [entries, isThere] of [
      [after, true],
      [before, false],
    ] as const)
      for (const entry of entries)
        for (const identity of identitiesOf(entry)) {
          const hosts = hostsAt(hostsOf, tracking, identity);
          hosts.change(isThere ? [] : [entry.host], isThere ? [entry.host] : []);
        }
    const still = new Set(after.map(({ identity }) => identity));
    for (const { identity } of before) if (!still.has(identity)) audience.delete(identity);
  });
  return { hostsOf, said: new Map(), left, neighbours: null };
}
export function hostsAt(
  hostsOf: Map<number, Counted<HostName>>,
  tracking: Tracking,
  identity: number,
): Counted<HostName> {
  const hosts = hostsOf.get(identity) ?? new Counted<HostName>(tracking);
  hostsOf.set(identity, hosts);
  return hosts;
}
