import { formatIpv4 } from "../../addresses/addresses.ts";
import { defaultDomain, defaultMacPrefix, isManaged, otherMode } from "../../cell/network/modes.ts";
import { restrictToMaximumSegment } from "../addresses/segments.ts";
import type { SubnetConfiguration } from "../configuration/configuration.ts";
import { managedSubnetOf, type NetworkConfiguration } from "../configuration/configuration.ts";
import { explode, type Subnet, subnetOf } from "../configuration/effective.ts";
import type { Cluster, Instance, NetworkView, SecurityGroup } from "./network-view.ts";

/** What an installation has beside its configuration. */
export interface World {
  readonly clusters: readonly {
    readonly name: string;
    /** Who is the active network host. */
    readonly ccIp: number;
    readonly nodes: readonly string[];
  }[];
  readonly clcIp: number;
  /** Name servers where the configuration names none. */
  readonly dnsDefault: readonly number[];
  readonly instances: readonly (Instance & { readonly cluster: string; readonly node: string })[];
  readonly securityGroups: readonly SecurityGroup[];
}

const isWhole = (subnet: SubnetConfiguration): subnet is Required<SubnetConfiguration> =>
  subnet.subnet !== undefined && subnet.netmask !== undefined && subnet.gateway !== undefined;

/**
 * The view of an installation. A group without an instance is left out: readers of the paper's time refuse a view that has one.
 * Null: the mode has no view here.
 */
export function buildView(configuration: NetworkConfiguration, world: World): NetworkView | null {
  const { mode } = configuration;
  if (mode === otherMode) return null;
  const full = explode(
    configuration,
    world.clusters.map(({ name }) => name),
  );
  const managed = isManaged(mode) && full.managedSubnet !== undefined ? managedSubnetOf(full.managedSubnet) : null;
  const used = new Set(world.instances.flatMap(({ securityGroups }) => securityGroups));
  const { publicGateway } = full;
  const named = ({ subnet, netmask, gateway }: Subnet): Subnet => ({
    name: formatIpv4(subnet),
    subnet,
    netmask,
    gateway,
  });
  const byNode = new Map<string, string[]>();
  for (const { cluster, node, id } of world.instances) {
    const key = `${cluster}\n${node}`;
    byNode.set(key, [...(byNode.get(key) ?? []), id]);
  }
  return {
    mode,
    publicIps: full.publicIps,
    ...(publicGateway === undefined ? {} : { publicGateway }),
    enabledClcIp: world.clcIp,
    instanceDnsDomain: full.instanceDnsDomain ?? defaultDomain,
    instanceDnsServers: full.instanceDnsServers ?? world.dnsDefault,
    subnets: isManaged(mode) ? [] : full.subnets.filter(isWhole).map(named),
    ...(managed === null
      ? {}
      : { managedSubnet: { ...managed, maxVlan: restrictToMaximumSegment(managed, managed.maxVlan) } }),
    clusters: world.clusters.map(({ name, ccIp, nodes }): Cluster => {
      const cluster = full.clusters.find((each) => each.name === name);
      const subnet = isManaged(mode) ? null : subnetOf(full, name);
      const own = cluster?.subnet;
      const whole = own !== undefined && isWhole(own) ? own : subnet;
      return {
        name,
        ...(whole === null || isManaged(mode) ? {} : { subnet: named(whole) }),
        enabledCcIp: ccIp,
        macPrefix: cluster?.macPrefix ?? defaultMacPrefix,
        privateIps: isManaged(mode) ? [] : (cluster?.privateIps ?? []),
        nodes: nodes.map((node) => ({ name: node, instances: byNode.get(`${name}\n${node}`) ?? [] })),
      };
    }),
    instances: world.instances.map(({ cluster: _, node: __, ...instance }) => instance),
    securityGroups: world.securityGroups.filter(({ id }) => used.has(id)),
  };
}
