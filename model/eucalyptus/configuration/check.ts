import { formatIpv4 } from "../../addresses/addresses.ts";
import { isManaged, type Mode, otherMode } from "../../cell/network/modes.ts";
import type { Pointer } from "../../json/pointer.ts";
import { type AddressRange, contains, formatRange, hostsOfSubnet, networkOf, overlaps } from "../addresses/ranges.ts";
import { firstTag, isValidSegment, lastSegment, type ManagedSubnet, usableTags } from "../addresses/segments.ts";
import {
  type ClusterConfiguration,
  type ManagedConfiguration,
  managedDefaults,
  managedSubnetOf,
  type NetworkConfiguration,
  nameOf,
  type SubnetConfiguration,
} from "./configuration.ts";
import { subnetOf } from "./effective.ts";
import type { Faults } from "./faults.ts";

const leastSegment = 16;
const mostSegment = 2048;
const mostTag = 4095;

/** Ranges that something else of the installation hands out. */
export interface Pool {
  readonly name: string;
  readonly range: AddressRange;
}

/** What the fields mean together. */
export function checkConfiguration(
  configuration: NetworkConfiguration,
  faults: Faults,
  pools: readonly Pool[] = [],
): void {
  const { mode, subnets, managedSubnet, clusters, publicIps } = configuration;
  if (mode === otherMode) return;
  if (publicIps.length === 0 && mode !== "STATIC" && mode !== "SYSTEM" && !faults.told(["PublicIps"]))
    faults.add([], "PublicIps are missing: the addresses that instances have outside, at least one");
  namesOnce(subnets.map(nameOf), ["Subnets"], "a subnet", faults);
  namesOnce(
    clusters.map(({ name }) => (name === "" ? undefined : name)),
    ["Clusters"],
    "a cluster",
    faults,
  );
  if (isManaged(mode)) checkManaged(configuration, mode, faults);
  else {
    if (managedSubnet !== undefined)
      faults.add(["ManagedSubnet"], `in mode ${mode} there is no ManagedSubnet: MANAGED and MANAGED-NOVLAN have one`);
    if (mode !== "SYSTEM") checkSubnets(configuration, mode, faults);
  }
  checkPools(configuration, pools, faults);
  for (const [field, ranges] of listsOf(configuration))
    ranges.forEach((range, index) => {
      if (range.first === 0) faults.add([...field, String(index)], "0.0.0.0 is nobody's address");
    });
}

const listsOf = ({ publicIps, privateIps, clusters }: NetworkConfiguration): [Pointer, readonly AddressRange[]][] => [
  [["PublicIps"], publicIps],
  [["PrivateIps"], privateIps ?? []],
  ...clusters.map(({ privateIps: own }, index): [Pointer, readonly AddressRange[]] => [
    ["Clusters", String(index), "PrivateIps"],
    own ?? [],
  ]),
];

function namesOnce(names: readonly (string | undefined)[], path: Pointer, what: string, faults: Faults): void {
  const seen = new Set<string>();
  names.forEach((name, index) => {
    if (name === undefined) return;
    if (seen.has(name)) faults.add([...path, String(index)], `${what} of the name ${name} is there already`);
    seen.add(name);
  });
}

function checkPools(configuration: NetworkConfiguration, pools: readonly Pool[], faults: Faults): void {
  const say = (path: Pointer, range: AddressRange): void => {
    const pool = pools.find((each) => overlaps(each.range, range));
    if (pool !== undefined)
      faults.add(
        path,
        `${formatRange(range)} overlaps ${formatRange(pool.range)}, which this installation has for ${pool.name}`,
      );
  };
  for (const [path, ranges] of listsOf(configuration))
    ranges.forEach((range, index) => {
      say([...path, String(index)], range);
    });
  const { subnet, netmask } = configuration.managedSubnet ?? {};
  if (subnet !== undefined && netmask !== undefined) say(["ManagedSubnet", "Subnet"], networkOf(subnet, netmask));
}

// --- a subnet for each cluster --------------------------------------------------------------------------------------

function checkSubnets(configuration: NetworkConfiguration, mode: Mode, faults: Faults): void {
  const { subnets, clusters, privateIps } = configuration;
  subnets.forEach((subnet, index) => {
    checkSubnet(subnet, ["Subnets", String(index)], faults);
  });
  if (clusters.length === 0) {
    const [only] = subnets;
    if (subnets.length !== 1)
      faults.add(
        subnets.length === 0 ? [] : ["Subnets"],
        subnets.length === 0
          ? `mode ${mode} needs a subnet: one in Subnets, or one of each cluster`
          : "there are several Subnets and no cluster says which is its own",
      );
    else if (only !== undefined) checkPrivate(only, privateIps ?? [], ["PrivateIps"], "", faults);
    return;
  }
  clusters.forEach((cluster, index) => {
    checkCluster(configuration, cluster, index, faults);
  });
}

function checkCluster(
  configuration: NetworkConfiguration,
  cluster: ClusterConfiguration,
  index: number,
  faults: Faults,
): void {
  const path = ["Clusters", String(index)];
  const { subnet, name } = cluster;
  const called = name === "" ? "the cluster" : `the cluster ${name}`;
  const within = [...path, "Subnet"];
  if (subnet === undefined) {
    if (configuration.subnets.length !== 1 && !faults.told(within))
      faults.add(
        path,
        configuration.subnets.length === 0
          ? `${called} has no Subnet, and there is none in Subnets`
          : `there are several Subnets, and ${called} does not say which is its own`,
      );
  } else if (isReference(configuration, subnet)) {
    if (!configuration.subnets.some((each) => nameOf(each) === subnet.name))
      faults.add(
        subnet.name === undefined ? within : [...within, "Name"],
        subnet.name === undefined
          ? `the Subnet of ${called} is empty`
          : `there is no ${JSON.stringify(subnet.name)} in Subnets, and ${called} says neither Subnet, Netmask nor Gateway itself`,
      );
  } else checkSubnet(subnet, within, faults);
  const effective = subnetOf(configuration, name);
  if (effective === null) return;
  const own = cluster.privateIps !== undefined;
  const ranges = cluster.privateIps ?? configuration.privateIps ?? [];
  checkPrivate(effective, ranges, own ? [...path, "PrivateIps"] : ["PrivateIps"], ` of ${called}`, faults);
}

/** It says a name, and nothing of the subnet itself. */
const isReference = (_: NetworkConfiguration, { subnet, netmask, gateway }: SubnetConfiguration): boolean =>
  subnet === undefined && netmask === undefined && gateway === undefined;

function needed<T extends object>(
  value: T,
  fields: readonly (readonly [keyof T, string])[],
  path: Pointer,
  faults: Faults,
): boolean {
  const missing = fields.filter(([key]) => value[key] === undefined).map(([, field]) => field);
  for (const field of missing)
    if (!faults.told([...path, field]))
      faults.add(path, `${field} is missing${path.length === 0 ? "" : ` in ${path[0]}`}`);
  return missing.length === 0;
}

function checkSubnet(subnet: SubnetConfiguration, path: Pointer, faults: Faults): void {
  needed(
    subnet,
    [
      ["subnet", "Subnet"],
      ["netmask", "Netmask"],
      ["gateway", "Gateway"],
    ],
    path,
    faults,
  );
  hostBits(subnet, path, faults);
  const { subnet: address, netmask, gateway } = subnet;
  if (address === undefined || netmask === undefined || gateway === undefined) return;
  const network = networkOf(address, netmask);
  const at = [...path, "Gateway"];
  if (gateway === address) faults.add(at, `the gateway ${formatIpv4(gateway)} is the address of the subnet itself`);
  else if (gateway < network.first || gateway > network.last)
    faults.add(at, `the gateway ${formatIpv4(gateway)} is not in the subnet ${formatRange(network)}`);
  else if (gateway === network.last)
    faults.add(at, `the gateway ${formatIpv4(gateway)} is the broadcast address of the subnet`);
}

function hostBits({ subnet, netmask }: ManagedConfiguration, path: Pointer, faults: Faults): void {
  if (subnet === undefined || netmask === undefined) return;
  const { first } = networkOf(subnet, netmask);
  if (first !== subnet)
    faults.add(
      [...path, "Subnet"],
      `${formatIpv4(subnet)} has bits that the netmask ${formatIpv4(netmask)} leaves to hosts; the subnet is ${formatIpv4(first)}`,
    );
}

function checkPrivate(
  { subnet, netmask }: SubnetConfiguration,
  ranges: readonly AddressRange[],
  path: Pointer,
  whose: string,
  faults: Faults,
): void {
  if (subnet === undefined || netmask === undefined) return;
  const hosts = hostsOfSubnet(subnet, netmask);
  ranges.forEach((range, index) => {
    const at = [...path, String(index)];
    if (!contains(hosts, range) && !faults.told(at))
      faults.add(
        at,
        `the private addresses ${formatRange(range)} are not within the subnet ${formatRange(hosts)}${whose}`,
      );
  });
}

// --- one subnet, in segments ----------------------------------------------------------------------------------------

function checkManaged(configuration: NetworkConfiguration, mode: Mode, faults: Faults): void {
  const { subnets, managedSubnet, clusters } = configuration;
  const path = ["ManagedSubnet"];
  if (subnets.length > 0)
    faults.add(["Subnets"], `in mode ${mode} there are no Subnets: ManagedSubnet is the only one`);
  clusters.forEach(({ subnet }, index) => {
    if (subnet !== undefined)
      faults.add(
        ["Clusters", String(index), "Subnet"],
        `in mode ${mode} a cluster has no Subnet: ManagedSubnet is the only one`,
      );
  });
  if (managedSubnet === undefined) {
    if (!faults.told(path)) faults.add([], `mode ${mode} needs a ManagedSubnet`);
    return;
  }
  needed(
    managedSubnet,
    [
      ["subnet", "Subnet"],
      ["netmask", "Netmask"],
    ],
    path,
    faults,
  );
  hostBits(managedSubnet, path, faults);
  const { segmentSize = managedDefaults.segmentSize } = managedSubnet;
  const isSize = segmentSize >= leastSegment && segmentSize <= mostSegment && Number.isInteger(Math.log2(segmentSize));
  if (!isSize)
    faults.add(
      [...path, "SegmentSize"],
      `a segment has ${leastSegment} to ${mostSegment} addresses, a power of two, not ${segmentSize}`,
    );
  const { minVlan = managedDefaults.minVlan, maxVlan = managedDefaults.maxVlan } = managedSubnet;
  for (const [field, tag] of [
    ["MinVlan", minVlan],
    ["MaxVlan", maxVlan],
  ] as const)
    if (tag < firstTag || tag > mostTag)
      faults.add([...path, field], `tags go from ${firstTag} to ${mostTag}, ${field} is ${tag}`);
  if (minVlan > maxVlan) faults.add([...path, "MinVlan"], `MinVlan ${minVlan} is above MaxVlan ${maxVlan}`);
  const full = managedSubnetOf(managedSubnet);
  if (isSize && full !== null) checkTags(full, path, faults);
}

function checkTags(subnet: ManagedSubnet, path: Pointer, faults: Faults): void {
  const { minVlan, maxVlan } = subnet;
  if (faults.told([...path, "MinVlan"])) return;
  const { first, last } = usableTags(subnet);
  const end = lastSegment(subnet);
  if (!isValidSegment(subnet, minVlan) || (first > last && minVlan <= maxVlan))
    faults.add(
      [...path, minVlan === firstTag ? "Netmask" : "MinVlan"],
      end < firstTag
        ? "the subnet is too small for a segment of this size"
        : `MinVlan ${minVlan} is past the subnet, whose last segment has the tag ${end}`,
    );
}
