import type { ActualLocation, CellPolicy, DesiredInterface } from "../../../core/documents/vocabulary.ts";
import type { CellName, Cidr, Ipv4, Mac, Uid } from "../../../model/cell/identifiers.ts";

/** The view that a network driver implements (GNI, after eucanetd): all that concerns this host, and nothing else. */
export interface GlobalNetwork {
  readonly policies: readonly CellPolicy[];
  readonly interfaces: readonly LocalInterface[];
  /** Where addresses on other hosts are, as far as this host may know. */
  readonly locations: readonly ActualLocation[];
  /** The installation's pools of external addresses. Absent: those that the driver was set up with. */
  readonly external?: readonly Cidr[];
}
export interface LocalInterface {
  readonly vm: Uid;
  /** Of the guest as it runs: how many flows are remembered for it grows with it. */
  readonly memoryMiB: number;
  readonly cellNumber: number;
  readonly desired: DesiredInterface;
}
/** What the driver finds in place on this machine. */
export interface LocalNetwork {
  readonly taps: readonly string[];
}
/** What `scrub` says must be done; a part that is false is already in place. */
export interface NetworkChanges {
  /** Devices: taps and programs to make or take away. */
  readonly network: boolean;
  /** Rules. */
  readonly securityGroup: boolean;
  /** Endpoints, locations, DHCP. */
  readonly addressing: boolean;
}
/** What was achieved (NRA): an interface may be used by a machine only when it is listed here. */
export interface NetworkAllocation {
  readonly interfaces: readonly {
    readonly interface: Uid;
    readonly tap: string;
    readonly ready: boolean;
    readonly reason: string | null;
    /** This host can never have it; `reason` says what would have to be configured. Absent: it can. */
    readonly refused?: true;
  }[];
  /** Of every cell whose rules should be here. */
  readonly policies: readonly PolicyInForce[];
}
export interface PolicyInForce {
  readonly cell: CellName;
  /** Of the rules that packets meet; null: none. */
  readonly version: number | null;
  /** Why the wanted version cannot be put in force, a sentence; null: it is. */
  readonly problem: string | null;
}

/** One question about a packet, for `why`. */
export interface PacketQuestion {
  /** `behind-sender`, `before-receiver`: at the network host of that end's cluster, in the MANAGED modes. */
  readonly side: "sender" | "receiver" | "behind-sender" | "before-receiver";
  readonly source: Ipv4;
  readonly destination: Ipv4;
  readonly protocol: "tcp" | "udp" | "icmp";
  readonly port: number | null;
}
export interface PacketCheck {
  readonly check: string;
  readonly passes: boolean;
  /** Told to whoever asks: no address of a machine of the installation, and no rule of the site's own. */
  readonly detail: string;
  /** What who runs the machines is told besides. */
  readonly apart?: string;
  /** Address of another host that the packet meets behind this one or before it, and that is to be asked too. Absent: there is none. */
  readonly ask?: string;
}
export interface InterfaceCounters {
  readonly interface: Uid;
  readonly sent: { readonly packets: number; readonly bytes: number };
  readonly received: { readonly packets: number; readonly bytes: number };
  readonly drops: { readonly [reason: string]: number };
}
export interface RuleCounters {
  readonly cellNumber: number;
  readonly rule: number;
  readonly packets: number;
  readonly bytes: number;
}

/** A question to a guest, put as if by the gateway of its subnet; it learns nothing of the host. */
export interface LivenessProbe {
  readonly protocol: "icmp" | "udp";
  /** Of a UDP probe; null for ICMP. */
  readonly port: number | null;
}

/** A machine of another host, whose MAC on the underlay that is. */
export interface MachineElsewhere {
  readonly address: Ipv4;
  readonly mac: Mac;
}

/** A network driver that other hosts' drivers of its kind answer. */
export interface AsksElsewhere {
  /**
   * Asks a machine of another host whether it answers at its address, by that host's dataplane, whatever else of it still works: an ICMP echo, put as
   * if by the machine's gateway. True as soon as that very host has sent the answer; false when it did not within `timeoutMs` (from 1 to 60000).
   * Needs no rule and no location.
   */
  ask(machine: MachineElsewhere, timeoutMs: number): Promise<boolean>;
}

/** The device on the underlay; address and MAC are the host's. */
export interface Uplink {
  readonly device: string;
  readonly address: Ipv4;
  readonly mac: Mac;
  /** Bridge that has the device as a port, and the host's address; absent: no VM here can be on the management network. */
  readonly bridge?: string;
  /** Absent: nothing of this host's machines leaves the installation. */
  readonly outside?: Outside;
  /** The installation's pools of external addresses, and its other networks, where `outside` does not say so. */
  readonly networks?: Pick<Outside, "external" | "inside">;
}
/** The way out of the installation, to upstream routers of which the first that answers gets what goes there. */
export interface Outside {
  /** The uplink, or a device of its own. */
  readonly device: string;
  /** Of this host there. */
  readonly address: Ipv4;
  readonly prefixLength: number;
  readonly mac: Mac;
  /** From 1 to 4, on the device's network. */
  readonly routers: readonly Ipv4[];
  /** Kernel table with a route for each external address that is here; absent: nobody announces them by BGP. */
  readonly table?: number;
  /** Pools of external addresses, and the installation's other networks. */
  readonly external: readonly Cidr[];
  readonly inside: readonly Cidr[];
}
/** What a host knows of an upstream router. */
export interface RouterFact {
  readonly address: Ipv4;
  /** Null: it has not answered yet. */
  readonly mac: string | null;
  /** It did, when it was asked last. */
  readonly answers: boolean;
  /** It gets what goes out. */
  readonly isUsed: boolean;
  /** This host's own address there. */
  readonly from?: Ipv4;
}

/** External addresses that are here and are to be announced by BGP, as far as this machine can see it. */
export interface Announced {
  /** Of the kernel, from which a daemon announces them. */
  readonly table: number;
  /** With whom a BGP connection stands. */
  readonly peers: readonly string[];
  readonly addresses: readonly {
    readonly address: Ipv4;
    /** Of the route, milliseconds since 1970; null: since before this process. */
    readonly sinceMs: number | null;
    /** The table has a route for it. */
    readonly isRouted: boolean;
  }[];
}

/** Multicast groups that the guest of an interface here has joined, sorted. */
export interface InterfaceGroups {
  readonly interface: Uid;
  readonly groups: readonly Ipv4[];
}

export interface NetworkDriver {
  /** Programs on the uplink, maps pinned. Adopts what an earlier process left in force, without a gap. */
  init(uplink: Uplink): Promise<void>;
  /** What is in place. */
  inspect(): Promise<LocalNetwork>;
  scrub(global: GlobalNetwork, local: LocalNetwork): NetworkChanges;
  /** Taps with their programs, closed until rules are there; removes those that no interface needs. */
  implementNetwork(global: GlobalNetwork): Promise<void>;
  implementSecurityGroup(global: GlobalNetwork): Promise<void>;
  implementAddressing(global: GlobalNetwork): Promise<NetworkAllocation>;
  /** Takes every interface away, keeps the uplink's programs. */
  flush(): Promise<void>;
  /** Takes everything away. */
  cleanup(): Promise<void>;
  /**
   * Asks a guest whether it is alive, as if its subnet's gateway did, or as this host on the management network: an ICMP echo, or a datagram to a UDP port, from which
   * any datagram back counts. True as soon as it answered; false when it did not within `timeoutMs` (from 1 to 60000), or
   * when there is no such interface here. Needs no rule. Any number may wait at once.
   */
  probe(interfaceUid: Uid, probe: LivenessProbe, timeoutMs: number): Promise<boolean>;
  /** Reads the maps in force, never the model. */
  examine(question: PacketQuestion): Promise<readonly PacketCheck[]>;
  /** Null: no address is to be announced by BGP. */
  announced(): Promise<Announced | null>;
  counters(): Promise<{ readonly interfaces: readonly InterfaceCounters[]; readonly rules: readonly RuleCounters[] }>;
}
/** Name of the tap of an interface: at most 15 characters, `t` and a short hash of the UID. */
