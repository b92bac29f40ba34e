/**
 * A small installation, as the fuzz draws it and as both the oracle and the program under test are told of it. Addresses and
 * MACs are numbers, so that neither side needs the other's way to read them.
 *
 * Two hosts run the program; at a third one addresses are only said to be, and frames come from it that nobody checked. Who
 * may know which address is drawn, too: what a host was not told is part of what the oracle judges by.
 */
export const hostKeys = ["a", "b"] as const;
export type HostKey = (typeof hostKeys)[number];
/** A place of an interface: one of the two hosts, another one, or none. */
export type Place = HostKey | "c" | null;

const macBase = 0x020000000000;
export const hostMacs = { a: macBase + 0x0101, b: macBase + 0x0102, c: macBase + 0x0103 } as const;
export const outsideMacs = { a: macBase + 0x0f01, b: macBase + 0x0f02 } as const;
export const routerMacs = [macBase + 0xfe01, macBase + 0xfe02] as const;
export const strangerMac = macBase + 0xfe66;
export const gatewayMac = 0x02ce115d0001;
export const mtu = 1500;

export const address = (text: string): number => text.split(".").reduce((sum, part) => sum * 256 + Number(part), 0);
export const hostAddresses = { a: address("10.0.1.1"), b: address("10.0.1.2"), c: address("10.0.1.3") } as const;
export const routerAddresses = [address("192.0.2.1"), address("192.0.2.2")] as const;
/** Addresses that are in no network of the installation, and some that nobody outside can have. */
export const strangers = ["203.0.113.9", "203.0.113.10", "8.8.8.8"].map(address);
export const nobody = ["127.0.0.1", "169.254.3.3", "0.0.0.0", "240.1.1.1", "192.0.2.77"].map(address);

export interface Range {
  readonly first: number;
  readonly prefixLength: number;
}
export const lastOf = ({ first, prefixLength }: Range): number => first + 2 ** (32 - prefixLength) - 1;
export const holds = (range: Range, at: number): boolean => at >= range.first && at <= lastOf(range);
export const range = (text: string): Range => {
  const [first = "", length = "32"] = text.split("/");
  return { first: address(first), prefixLength: Number(length) };
};
/** What the configuration of both hosts says. */
export const networks = {
  underlay: range("10.0.0.0/16"),
  internal: range("10.64.0.0/10"),
  external: range("198.18.0.0/15"),
  outside: range("192.0.2.0/24"),
} as const;

export interface Subnet {
  readonly name: string;
  readonly cell: number;
  readonly range: Range;
  readonly identity: number;
}
export interface Interface {
  /** Its place in the list of all, which is also its tap. */
  readonly at: number;
  readonly name: string;
  readonly cell: number;
  readonly subnet: Subnet;
  readonly vm: string;
  readonly vmIdentity: number;
  readonly identity: number;
  readonly address: number;
  readonly mac: number;
}
export interface Cell {
  readonly number: number;
  readonly controller: { readonly address: number; readonly mac: number };
  readonly subnets: readonly Subnet[];
  readonly interfaces: readonly Interface[];
}

/** An end of a rule, in the specification's words. */
export type End =
  | { readonly kind: "interface" | "vm" | "subnet"; readonly name: string }
  | { readonly kind: "cidr"; readonly range: Range }
  | { readonly kind: "internet" }
  | { readonly kind: "controller" }
  | {
      readonly kind: "foreign";
      readonly cell: number;
      readonly of: "interface" | "vm" | "subnet";
      readonly name: string;
    };
export interface Ports {
  readonly from: number;
  readonly to: number;
}
export interface Rule {
  readonly name: string;
  readonly ends: readonly [End, End];
  readonly protocol: "any" | "tcp" | "udp" | "icmp";
  readonly ports: readonly [Ports | null, Ports | null];
  readonly direction: "both" | "1to2";
}
/** `x.forwards` of an interface: networks that it may speak for, null for every address outside. */
export interface Forwards {
  readonly interface: number;
  readonly networks: readonly (Range | null)[];
}
export interface RuleSet {
  readonly version: number;
  readonly rules: readonly Rule[];
  /** `x.policy.subnetConnectivity`. */
  readonly subnetConnectivity: boolean;
  /** `x.router` of subnets: an interface by a subnet's name. */
  readonly routers: ReadonlyMap<string, number>;
  readonly forwards: readonly Forwards[];
  /** `x.groups`, by interface. */
  readonly groups: ReadonlyMap<number, readonly number[]>;
  /** `x.policy.broadcast`. */
  readonly broadcast: "on" | "off";
}

/** Where an address is, as a host was told. */
export interface Told {
  readonly interface: number;
  readonly place: Exclude<Place, null>;
  /** The host was told who it is within its cell; of an interface of another cell that no rule here is about, only where. */
  readonly isOwn: boolean;
}
/** What one host goes by. */
export interface View {
  readonly rules: ReadonlyMap<number, RuleSet>;
  /** Interfaces that it has. */
  readonly here: readonly number[];
  readonly elsewhere: readonly Told[];
}

/** How hosts get outside: by a device of their own, by the uplink, or not at all. */
export type WayOut = "own" | "uplink" | "none";
export interface World {
  readonly wayOut: WayOut;
  readonly cells: readonly Cell[];
  readonly interfaces: readonly Interface[];
}

/** Where a frame comes to a host. */
export type Port =
  | { readonly host: HostKey; readonly kind: "tap"; readonly interface: number }
  | { readonly host: HostKey; readonly kind: "wire" | "outside" };
/** One thing that happens. All that is needed to do it again. */
export type Step =
  | { readonly kind: "frame"; readonly port: Port; readonly frame: Buffer; readonly pieces: number }
  | { readonly kind: "tell"; readonly host: HostKey; readonly view: View }
  | { readonly kind: "time"; readonly seconds: number }
  | { readonly kind: "restart"; readonly host: HostKey }
  /** MACs at which the upstream routers have answered, 0 for one that has not, and which of them gets what goes out. */
  | { readonly kind: "routers"; readonly host: HostKey; readonly macs: readonly number[]; readonly used: number };
