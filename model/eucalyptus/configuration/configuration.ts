import { formatIpv4 } from "../../addresses/addresses.ts";
import type { Mode, otherMode } from "../../cell/network/modes.ts";
import type { Json, JsonObject } from "../../json/json.ts";
import { type AddressRange, formatRange } from "../addresses/ranges.ts";
import { firstTag, type ManagedSubnet } from "../addresses/segments.ts";

/** A subnet as an operator writes it. A cluster may name one that stands above, and then says nothing else of it. */
export interface SubnetConfiguration {
  readonly name?: string;
  readonly subnet?: number;
  readonly netmask?: number;
  readonly gateway?: number;
}
export interface ManagedConfiguration {
  readonly subnet?: number;
  readonly netmask?: number;
  readonly segmentSize?: number;
  readonly minVlan?: number;
  readonly maxVlan?: number;
}
export interface ClusterConfiguration {
  readonly name: string;
  readonly macPrefix?: string;
  readonly subnet?: SubnetConfiguration;
  readonly privateIps?: readonly AddressRange[];
}
/**
 * The network configuration of an installation, as `cloud.network.network_configuration` of Eucalyptus has it. What is absent was
 * not written; `effective.ts` fills in what then holds.
 */
export interface NetworkConfiguration {
  readonly mode: Mode | typeof otherMode;
  readonly instanceDnsDomain?: string;
  readonly instanceDnsServers?: readonly number[];
  readonly macPrefix?: string;
  readonly publicIps: readonly AddressRange[];
  readonly publicGateway?: number;
  readonly privateIps?: readonly AddressRange[];
  readonly subnets: readonly SubnetConfiguration[];
  readonly managedSubnet?: ManagedConfiguration;
  readonly clusters: readonly ClusterConfiguration[];
  /** Minutes of silence of its host after which an instance leaves the view. Absent: none does. */
  readonly instanceTimeout?: number;
}

export const managedDefaults = { minVlan: firstTag, maxVlan: 4095, segmentSize: 32 } as const;

/** With defaults; null where address or netmask is missing. */
export function managedSubnetOf(managed: ManagedConfiguration): ManagedSubnet | null {
  const { subnet, netmask } = managed;
  return subnet === undefined || netmask === undefined ? null : { ...managedDefaults, ...managed, subnet, netmask };
}

/** By which a cluster refers to it. */
export const nameOf = ({ name, subnet }: SubnetConfiguration): string | undefined =>
  name ?? (subnet === undefined ? undefined : formatIpv4(subnet));

const texts = (ranges: readonly AddressRange[]): readonly string[] => ranges.map(formatRange);
const withValues = (entries: readonly (readonly [string, Json | undefined])[]): JsonObject =>
  Object.fromEntries(entries.filter((entry): entry is readonly [string, Json] => entry[1] !== undefined));
const address = (value: number | undefined): string | undefined =>
  value === undefined ? undefined : formatIpv4(value);

const subnetJson = ({ name, subnet, netmask, gateway }: SubnetConfiguration): JsonObject =>
  withValues([
    ["Name", name],
    ["Subnet", address(subnet)],
    ["Netmask", address(netmask)],
    ["Gateway", address(gateway)],
  ]);

/** As an operator would write it; what is absent stays so. */
export function configurationJson(configuration: NetworkConfiguration): JsonObject {
  const { mode, macPrefix, publicIps, publicGateway, privateIps, subnets, managedSubnet, clusters } = configuration;
  const { instanceDnsDomain, instanceDnsServers, instanceTimeout } = configuration;
  return withValues([
    ["Mode", mode],
    ["InstanceDnsDomain", instanceDnsDomain],
    ["InstanceDnsServers", instanceDnsServers?.map(formatIpv4)],
    ["MacPrefix", macPrefix],
    ["PublicIps", publicIps.length > 0 ? texts(publicIps) : undefined],
    ["PublicGateway", address(publicGateway)],
    ["PrivateIps", privateIps === undefined ? undefined : texts(privateIps)],
    ["Subnets", subnets.length > 0 ? subnets.map(subnetJson) : undefined],
    [
      "ManagedSubnet",
      managedSubnet === undefined
        ? undefined
        : withValues([
            ["Subnet", address(managedSubnet.subnet)],
            ["Netmask", address(managedSubnet.netmask)],
            ["MinVlan", managedSubnet.minVlan],
            ["MaxVlan", managedSubnet.maxVlan],
            ["SegmentSize", managedSubnet.segmentSize],
          ]),
    ],
    [
      "Clusters",
      clusters.length === 0
        ? undefined
        : clusters.map((cluster) =>
            withValues([
              ["Name", cluster.name],
              ["MacPrefix", cluster.macPrefix],
              ["Subnet", cluster.subnet === undefined ? undefined : subnetJson(cluster.subnet)],
              ["PrivateIps", cluster.privateIps === undefined ? undefined : texts(cluster.privateIps)],
            ]),
          ),
    ],
    ["InstanceTimeout", instanceTimeout],
  ]);
}
