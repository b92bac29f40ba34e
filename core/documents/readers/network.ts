import { mostPools } from "../../../model/addresses/pools.ts";
import type { AddressOffer, PoolOffer } from "../../../model/check/network/check-addresses.ts";
import {
  checked,
  count,
  document,
  either,
  integer,
  list,
  nullable,
  object,
  oneOf,
  optional,
  type Reader,
  text,
} from "../../../model/json/reader.ts";
import {
  type ActualPolicy,
  type ActualPools,
  type ActualSubnet,
  type DesiredDoors,
  type DesiredPlace,
  type DesiredPlaces,
  type DesiredPools,
  type DesiredSubnet,
  type DesiredZone,
  mostHad,
  mostRanges,
  type PolicySlice,
} from "../network/network.ts";
import type { Forwarded, PolicyNetwork, PolicyRouter, PolicyTraits, SliceDigest } from "../network/policy.ts";
import type { ActualLocation, ActualName, CellPolicy, CompiledRule, DesiredName } from "../vocabulary.ts";
import {
  address,
  cellText,
  hostText,
  identityNumber,
  macAddress,
  most,
  network,
  pathText,
  ports,
  progressFields,
  protocol,
  uidText,
  yes,
} from "./values.ts";

/** Readers of what is said about addresses, names, rules and where addresses are. */

export const desiredSubnet = document(
  object<DesiredSubnet>({
    uid: uidText,
    cell: cellText,
    path: pathText,
    size: count,
    addressRange: oneOf("internal", "external"),
    cidr: nullable(network),
    has: optional(network),
  }),
  { key: { field: "uid", of: ({ uid }) => uid } },
);
export const actualSubnet = document(
  object<ActualSubnet>({
    ...progressFields,
    cidr: nullable(network),
    gateway: nullable(address),
    taken: optional(network),
  }),
);
const served = { name: text(253), address, public: yes, heard: yes };
export const desiredName = document(object<DesiredName>({ uid: uidText, ...served }), {
  key: { field: "uid", of: ({ uid }) => uid },
});
export const actualName = document(
  object<ActualName>({ ...progressFields, serves: optional(object<NonNullable<ActualName["serves"]>>(served)) }),
);

export const desiredZone = document(
  object<DesiredZone>({
    zone: text(253),
    servers: list(text(253), most.servers),
    secondaries: list(address, most.servers),
    key: optional(text(253)),
    pools: optional(list(network, mostPools + mostRanges)),
    entrance: optional(object<NonNullable<DesiredZone["entrance"]>>({ cell: cellText, address })),
  }),
);
export const desiredDoors = document(object<DesiredDoors>({ address, roles: list(text(64), most.doors) }));
/** Beside the pools there may be ranges that were given before they were these. */
export const desiredPools = document(
  object<DesiredPools>({ external: list(network, mostPools + mostRanges), had: optional(list(network, mostHad)) }),
);
export const actualPools = document(
  object<ActualPools>({
    external: list(network, mostPools),
    otherwise: network,
    used: list(network, mostPools),
    kept: list(network, mostRanges),
    inside: list(network, mostRanges + 8),
  }),
);

const prefixLength = integer(0, 32);
const pool = object<PoolOffer>({ pool: network, largest: count, fixed: list(network, most.networks) });
export const addressOffer = document(
  object<AddressOffer>({
    internal: pool,
    external: pool,
    reserved: list(network, most.networks),
    kept: optional(list(network, mostRanges)),
    shortestPrefix: prefixLength,
    longestPrefix: prefixLength,
  }),
);

const rule = object<CompiledRule>({
  id: count,
  path: text(2 ** 20),
  from: count,
  to: count,
  protocol,
  sourcePorts: ports,
  ports,
});
export const forwarded: Reader<Forwarded> = either(
  oneOf("internet"),
  network,
  'a network in CIDR notation or "internet"',
);
const policyRouter = object<PolicyRouter>({
  subnet: identityNumber,
  identity: identityNumber,
  address,
  forwards: list(forwarded, most.networks),
});
const policyTraits = object<PolicyTraits>({
  identity: identityNumber,
  forwards: list(forwarded, most.networks),
  groups: list(address, most.networks),
});
const policyNetworks = list(
  object<PolicyNetwork>({ cidr: network, identity: identityNumber, subnet: yes }),
  most.networks,
);
const ownSubnets = list(object({ identity: identityNumber, cidr: network }), most.networks);
const word = integer(0, 2 ** 32 - 1);
export const digest: Reader<SliceDigest> = checked(list(word, 2), ({ length }) =>
  length === 2 ? null : "two numbers",
) as unknown as Reader<SliceDigest>;
export const policy = object<CellPolicy>({
  cell: cellText,
  cellNumber: identityNumber,
  version: count,
  rules: list(rule, most.rules),
  networks: policyNetworks,
  controller: object({ address, mac: macAddress, identity: identityNumber }),
  hosts: list(hostText, most.hosts),
  broadcast: optional(oneOf("off")),
  subnets: optional(ownSubnets),
  routers: optional(list(policyRouter, most.networks)),
  traits: optional(list(policyTraits, most.networks)),
  identities: optional(list(identityNumber, most.networks)),
  slices: optional(object({ count, digest, base: count })),
});
export const cellPolicy = document(policy, { key: { field: "cell", of: ({ cell }) => cell } });
export const policySlice = document(
  object<PolicySlice>({
    digest,
    rules: optional(list(rule, most.rules)),
    networks: optional(policyNetworks),
    hosts: optional(list(hostText, most.hosts)),
    subnets: optional(ownSubnets),
    routers: optional(list(policyRouter, most.networks)),
    traits: optional(list(policyTraits, most.networks)),
  }),
);

const place = { address, host: hostText };
const identities = { identity: identityNumber, vmIdentity: identityNumber, subnetIdentity: identityNumber };
export const desiredPlaces = document(
  object<DesiredPlaces>({
    cell: cellText,
    own: list(object<DesiredPlace>({ ...place, ...identities }), most.networks),
    foreign: nullable(list(object(place), most.networks)),
  }),
  { key: { field: "cell", of: ({ cell }) => cell } },
);
export const actualPolicy = document(
  object<ActualPolicy>({ ...progressFields, version: nullable(count), slices: yes }),
);

export const actualLocation = document(
  object<ActualLocation>({
    address,
    host: hostText,
    hostMac: macAddress,
    cellNumber: identityNumber,
    identity: identityNumber,
    vmIdentity: identityNumber,
    subnetIdentity: identityNumber,
    groups: optional(list(address, most.groups)),
  }),
  {
    key: { field: "address", of: ({ address: at }) => at },
    speaker: { field: "host", of: ({ host }) => `host.${host}` },
  },
);
