import { formatIpv4 } from "../../../../../model/addresses/addresses.ts";
import {
  type Cluster,
  type Instance,
  membersOf,
  type NetworkView,
  type Node,
  type SecurityGroup,
} from "../../../../../model/eucalyptus/view/network-view.ts";

/** A view by its names, for one machine. */
export interface Lookup {
  readonly cluster: Cluster | null;
  /** The cluster's place among the clusters, from 0. */
  readonly clusterIndex: number;
  readonly node: Node | null;
  readonly groups: ReadonlyMap<string, SecurityGroup>;
  instancesOf(node: Node): readonly Instance[];
  /** Members of a group, in the order of the view. */
  members(group: string): readonly Instance[];
}

export function lookUp(view: NetworkView, self: string): Lookup {
  const byId = new Map(view.instances.map((instance) => [instance.id, instance]));
  const members = membersOf(view);
  const clusterIndex = view.clusters.findIndex(
    ({ enabledCcIp, nodes }) => formatIpv4(enabledCcIp) === self || nodes.some(({ name }) => name === self),
  );
  const node = view.clusters.flatMap(({ nodes }) => nodes).find(({ name }) => name === self) ?? null;
  return {
    cluster: view.clusters[clusterIndex] ?? null,
    clusterIndex,
    node,
    groups: new Map(view.securityGroups.map((group) => [group.id, group])),
    instancesOf: ({ instances }) => instances.flatMap((id) => byId.get(id) ?? []),
    members: (group) => members.get(group) ?? [],
  };
}

export const unknownSelf = (self: string): string => `no cluster of the view has the machine ${self}`;
