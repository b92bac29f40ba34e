import type { Mode } from "../../../../../model/cell/network/modes.ts";
import type { AddressRange } from "../../../../../model/eucalyptus/addresses/ranges.ts";
import type { Segment } from "../../../../../model/eucalyptus/addresses/segments.ts";
import type { NetworkView } from "../../../../../model/eucalyptus/view/network-view.ts";

/*
 * What one machine has to have, by a view: frozen data, made by a pure function of view, self and local configuration. Handlers have
 * no choices left, and no value reaches a shell: rules are lists of arguments.
 */

/** A machine in a view. */
export interface Self {
  /** As the view names it. */
  readonly address: string;
  /** A node has instances; a network host carries a cluster's traffic to the outside. */
  readonly peer: "node" | "network";
}

/** What each machine keeps for itself. */
export interface LocalConfiguration {
  readonly publicInterface: string;
  readonly privateInterface: string;
  readonly bridge: string;
  /** Of the bridge: whoever asks for the gateway is answered with it. */
  readonly bridgeMac: string;
  /** Instances reach the metadata service from their private address. */
  readonly metadataPrivate: boolean;
  /** The site has a router at the gateway's address; otherwise each node is the gateway of its instances. */
  readonly siteGateway: boolean;
  /** No tunnels between clusters. */
  readonly tunnelsDisabled: boolean;
  /** This machine answers its own instances for metadata; otherwise the cloud controller does. */
  readonly metadataHere: boolean;
  /** What instances send out needs a rule of their groups; the original lets all out. */
  readonly outgoingClosed: boolean;
  /** Networks (`a.b.c.d/n`) of the installation's own machines: with `outgoingClosed` no rule about a network lets instances send there. */
  readonly underlay: readonly string[];
  /** The operator lets such rules. */
  readonly underlayOpen: boolean;
}
export const localDefaults: LocalConfiguration = Object.freeze({
  publicInterface: "em1",
  privateInterface: "em1",
  bridge: "br0",
  bridgeMac: "00:00:00:00:00:00",
  metadataPrivate: false,
  siteGateway: false,
  tunnelsDisabled: false,
  metadataHere: false,
  outgoingClosed: false,
  underlay: Object.freeze([]),
  underlayOpen: false,
});

/** Arguments of one rule behind the name of its chain. */
export type Rule = readonly string[];
export interface Chain {
  readonly name: string;
  /** Of the system's own chains: what happens to what no rule takes. */
  readonly policy: "ACCEPT" | "DROP" | null;
  readonly rules: readonly Rule[];
  /** One of the system's own chains that has these rules and no others; otherwise jumps alone stand beside the site's. */
  readonly isWhole?: true;
}
export interface Table {
  readonly name: string;
  readonly chains: readonly Chain[];
}
export interface AddressSet {
  readonly name: string;
  /** Networks, as 10.0.0.1/32. */
  readonly members: readonly string[];
  /** Addresses alone, and many of them. */
  readonly isOfAddresses?: true;
}
export interface DhcpSubnet {
  readonly subnet: number;
  readonly netmask: number;
  readonly broadcast: number;
  readonly router: number;
  /** By which it is asked; null: by none of this machine. */
  readonly device: string | null;
}
export interface DhcpPlan {
  readonly domain: string;
  readonly nameServers: readonly number[];
  readonly subnets: readonly DhcpSubnet[];
  readonly hosts: readonly { readonly mac: string; readonly address: number }[];
}
export interface BridgePlan {
  readonly name: string;
  /** The VLAN of the private interface that is a port of it. */
  readonly tag: number;
  /** Null: on nodes. */
  readonly gateway: number | null;
  readonly prefixLength: number;
}
/** Of a group that has members in other clusters: what is sent in its VLAN there is here, too. */
export interface TunnelPlan {
  /** The VLAN's, and the tunnel's number. */
  readonly tag: number;
  readonly bridge: string;
  /** This machine's address. */
  readonly local: string;
  /** Those of the other clusters' active network hosts. */
  readonly remotes: readonly string[];
}
/** A device of an instance, which is a port of a bridge. */
export interface TapPlan {
  readonly name: string;
  readonly bridge: string;
  /** Of its instance, if that has one. */
  readonly mac?: string;
}
/** An address that a device has. */
export interface DeviceAddress {
  readonly device: string;
  readonly address: number;
  readonly prefixLength: number;
  /** Told to neighbours when it comes. */
  readonly announced: boolean;
}
export interface LocalPlan {
  readonly mode: Mode;
  readonly peer: Self["peer"];
  readonly iptables: readonly Table[];
  readonly sets: readonly AddressSet[];
  readonly ebtables: readonly Table[];
  readonly dhcp: DhcpPlan | null;
  /** What the original has not, in chains of other names. */
  readonly own: {
    readonly iptables: readonly Table[];
    readonly ebtables: readonly Table[];
    readonly sets?: readonly AddressSet[];
  };
  /** The machine's own bridge, whose MAC stays as it is; null: none is needed. */
  readonly bridge: { readonly name: string; readonly mac: string } | null;
  readonly bridges: readonly BridgePlan[];
  /** The device whose VLANs are ports of `bridges`. */
  readonly wire: string;
  readonly tunnels: readonly TunnelPlan[];
  readonly taps: readonly TapPlan[];
  /** Addresses of instances are as they say at their taps. */
  readonly learns: boolean;
  /** DHCP servers are asked at a tap for its own MAC alone. */
  readonly holds: boolean;
  /** Packets are passed from device to device here. */
  readonly forwards: boolean;
  /** Whether iptables see what passes a bridge here; null: as it is. */
  readonly filtersBridges: boolean | null;
  readonly addresses: readonly DeviceAddress[];
  /** Addresses that a device has only where the plan gives it them. */
  readonly managed: readonly { readonly device: string; readonly ranges: readonly AddressRange[] }[];
  /** Of the MANAGED modes. */
  readonly segments: readonly Segment[];
  /** What is left out, as sentences. */
  readonly warnings: readonly string[];
}

export type Planner = (view: NetworkView, self: Self, local: LocalConfiguration) => LocalPlan;

/** Nothing to do. */
export const emptyPlan = ({ mode }: NetworkView, { peer }: Self, warnings: readonly string[] = []): LocalPlan => ({
  mode,
  peer,
  iptables: [],
  sets: [],
  ebtables: [],
  dhcp: null,
  bridges: [],
  wire: "",
  tunnels: [],
  addresses: [],
  managed: [],
  own: { iptables: [], ebtables: [] },
  bridge: null,
  taps: [],
  learns: false,
  holds: false,
  forwards: false,
  filtersBridges: null,
  segments: [],
  warnings,
});

export const frozen = (plan: LocalPlan): LocalPlan => {
  for (const part of Object.values(plan)) if (typeof part === "object" && part !== null) Object.freeze(part);
  return Object.freeze(plan);
};
