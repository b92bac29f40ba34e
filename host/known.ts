import type { ActualProbe, DesiredProbe } from "../core/documents/ha.ts";
import type { DesiredPlaces } from "../core/documents/network/network.ts";
import type { ActualLocation, CellPolicy, DesiredVm } from "../core/documents/vocabulary.ts";
import type { Cidr, HostName, Ipv4, PeerName, Uid } from "../model/cell/identifiers.ts";
import type { FoundMachine } from "./drivers/hypervisor/driver.ts";
import type { NetworkAllocation, RouterFact } from "./drivers/network/driver.ts";
import type { BeatsState } from "./heartbeat/beats-state.ts";
import type { ClaimState } from "./machine/claims/claims.ts";
import type { Claims } from "./network/addresses.ts";
import type { EntranceState } from "./network/entrances.ts";
import type { NetworkAtHost } from "./network/network-view.ts";
import type { PolicyAtHost } from "./network/policy-view.ts";
import type { PresenceState } from "./presence/presence-state.ts";
import type { SuccessionState } from "./root-vm/succession-state.ts";
import type { VmRecord } from "./vm-record.ts";

/** What of a cell's policy says whom it believes. */
export type Reaching = Pick<CellPolicy, "cell" | "cellNumber">;

/** What counts of all that hosts say of where addresses are, by policies and places that are as they were. */
export interface Believed {
  /** Cells whose policies here name it, by host, in the policies' order. */
  readonly byHost: Map<HostName, readonly Reaching[]>;
  readonly byAddress: Map<string, ActualLocation>;
  /** Of which somebody has said something else since. */
  readonly changed: Set<string>;
  /** The values of `byAddress`; null: they have changed. */
  all: readonly ActualLocation[] | null;
}

/** What this host has to do and what it knows. Everything in `records` and `locations` is durable. */
export interface HostState {
  /** Incarnations that have ended here, and whose records are gone (machine/over.ts). */
  readonly over: Map<string, number>;
  readonly vms: Map<Uid, { readonly client: PeerName; readonly desired: DesiredVm }>;
  readonly policies: Map<string, CellPolicy>;
  /** By cell: what `policies` has of it is the last whole one. */
  readonly views: Map<string, PolicyAtHost>;
  /** Host → address → location. Kept over a restart, so that the dataplane is never blanked. */
  readonly locations: Map<PeerName, Map<string, ActualLocation>>;
  /** What controllers say of where addresses are, by cell; absent: one of the previous version. */
  readonly places: Map<string, Places>;
  /** Pools of external addresses, by the root controller's word; null: those of the configuration. */
  external: readonly Cidr[] | null;
  /** By cell: its number here. Durable. */
  readonly numbers: Map<string, number>;
  /** As controllers sent them; `policies` is what of it counts here. */
  readonly saidPolicies: Map<string, CellPolicy>;
  /** Where peers are on the underlay; null: not known, and what controllers say of themselves is believed. */
  peerAddresses: ReadonlyMap<string, string> | null;
  /** Of `locations` what counts; null: to be worked out as a whole. And the number of the cell whose each address then is. */
  believed: Believed | null;
  held: Map<string, number>;
  readonly ownAddress: string;
  /** Null: to be worked out. */
  claims: Claims | null;
  /** Hosts that said of more addresses than one can have. */
  readonly overfull: Set<PeerName>;
  /** Stored locations that their host has not repeated since this start. */
  readonly unconfirmed: Map<PeerName, Set<string>>;
  readonly records: Map<Uid, VmRecord>;
  readonly entrances: EntranceState;
  /** Machines without a record, and null before the machines were listed. */
  strangers: Map<Uid, FoundMachine> | null;
  started: boolean;
  revision: string | null;
  allocation: NetworkAllocation;
  /** Upstream routers, as the network driver found them; empty: this host has no way outside. */
  routers: readonly RouterFact[];
  /** Multicast groups that guests have joined, by interface. */
  groups: ReadonlyMap<Uid, readonly Ipv4[]>;
  readonly busy: Set<Uid | "network">;
  /** VMs whose CPUs stand still because of a disk, with a sentence. Told anew after a start. */
  readonly stalled: Map<Uid, string>;
  /** By VM, the incarnation whose guest boots with a timer. */
  readonly guestTimers: Map<Uid, number>;
  /** Failures whose action rests until its timer. */
  readonly troubles: Map<Uid | "network", string>;
  readonly published: Map<string, string>;
  /** Address → who may see where it is; another map whenever that changes. */
  audiences: ReadonlyMap<string, ReadonlySet<PeerName>>;
  readonly subscribed: Set<PeerName>;
  readonly presence: PresenceState;
  /** Whose this host is, and whose the cells. */
  readonly claimed: ClaimState;
  /** This host's part in bringing the root controller's VM back when its host is lost. */
  readonly succession: SuccessionState;
  /** Other hosts that are to be asked on the network, and how often they were, and answered, for each HA Manager that wants it. */
  readonly probes: Map<HostName, Map<PeerName, { readonly wanted: DesiredProbe; readonly said: ActualProbe }>>;
  /** What it puts in place beside Diverter. */
  readonly network: NetworkAtHost;
  /** What it says to storage servers, and whether they hear it. */
  readonly beats: BeatsState;
  /** Of the step: monotonic. */
  now: number;
}

/** `places/<cell>`, to be looked up. */
export interface Places {
  readonly own: ReadonlyMap<string, DesiredPlaces["own"][number]>;
  readonly foreign: ReadonlySet<string> | null;
}
