import { defaultMacPrefix, isManaged, otherMode } from "../../cell/network/modes.ts";
import { type AddressRange, hostsOfSubnet, without } from "../addresses/ranges.ts";
import {
  type ClusterConfiguration,
  type NetworkConfiguration,
  nameOf,
  type SubnetConfiguration,
} from "./configuration.ts";

/** A subnet of which everything is known. */
export interface Subnet {
  readonly name: string;
  readonly subnet: number;
  readonly netmask: number;
  readonly gateway: number;
}

const hasClusterSubnets = ({ mode }: NetworkConfiguration): boolean => mode === otherMode || !isManaged(mode);

/** The subnet of a cluster: its own, the one that it names, or the only one there is. Null: none of them is whole. */
export function subnetOf(configuration: NetworkConfiguration, cluster: string): Subnet | null {
  const only = configuration.subnets.length === 1 ? configuration.subnets[0] : undefined;
  const own = configuration.clusters.find(({ name }) => name === cluster)?.subnet;
  const named = own?.name === undefined ? undefined : configuration.subnets.find((each) => nameOf(each) === own.name);
  const other: SubnetConfiguration = named ?? only ?? {};
  const subnet = own?.subnet ?? other.subnet;
  const netmask = own?.netmask ?? other.netmask;
  const gateway = own?.gateway ?? other.gateway;
  if (subnet === undefined || netmask === undefined || gateway === undefined) return null;
  return { name: nameOf(own ?? {}) ?? nameOf(other) ?? nameOf({ subnet }) ?? "", subnet, netmask, gateway };
}

/** All of a subnet but its gateway: what instances have where nobody says which addresses. */
export function addressesOf({ subnet, netmask, gateway }: SubnetConfiguration): readonly AddressRange[] | undefined {
  if (subnet === undefined || netmask === undefined || gateway === undefined) return undefined;
  return without(hostsOfSubnet(subnet, netmask), gateway);
}

/** With what holds for one cluster where it says nothing itself. */
function exploded(configuration: NetworkConfiguration, cluster: ClusterConfiguration): ClusterConfiguration {
  const macPrefix = cluster.macPrefix ?? configuration.macPrefix ?? defaultMacPrefix;
  if (!hasClusterSubnets(configuration)) return { ...cluster, macPrefix };
  const own = cluster.subnet;
  const needs = own?.subnet === undefined;
  const subnet = needs ? (subnetOf(configuration, cluster.name) ?? own) : own;
  const ranges = cluster.privateIps ?? configuration.privateIps;
  const privateIps =
    ranges !== undefined && (ranges.length > 0 || subnet === undefined)
      ? ranges
      : subnet === undefined
        ? undefined
        : addressesOf(subnet);
  return {
    ...cluster,
    macPrefix,
    ...(subnet === undefined ? {} : { subnet }),
    ...(privateIps === undefined ? {} : { privateIps }),
  };
}

/**
 * The same configuration with everything at its clusters: MAC prefix, subnet, private addresses. Subnets that a cluster uses
 * stand there alone.
 * @param clusters names of clusters that are there though the configuration does not speak of them
 */
export function explode(configuration: NetworkConfiguration, clusters: readonly string[] = []): NetworkConfiguration {
  const known = new Set(configuration.clusters.map(({ name }) => name));
  const further = [...new Set(clusters)].filter((name) => !known.has(name)).map((name) => ({ name }));
  const full = { ...configuration, clusters: [...configuration.clusters, ...further] };
  const all = full.clusters.map((cluster) => exploded(full, cluster));
  const used = new Set(all.map(({ subnet }) => `${subnet?.subnet}/${subnet?.netmask}`));
  const subnets = configuration.subnets.filter(({ subnet, netmask }) => !used.has(`${subnet}/${netmask}`));
  return { ...configuration, subnets, clusters: all };
}

/** By which MAC addresses of new instances begin: a single cluster's, else the configuration's. */
export function macPrefixOf(configuration: NetworkConfiguration): string {
  const { clusters, macPrefix } = explode(configuration);
  const [only] = clusters;
  return (clusters.length === 1 ? only?.macPrefix : undefined) ?? macPrefix ?? defaultMacPrefix;
}

/** What instances of a cluster may have; empty where nothing says. */
export const privateAddressesOf = (configuration: NetworkConfiguration, cluster: string): readonly AddressRange[] =>
  explode(configuration, [cluster]).clusters.find(({ name }) => name === cluster)?.privateIps ?? [];
