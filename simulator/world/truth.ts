import type { ActualLocation, CellPolicy, DesiredDisk, DesiredInterface } from "../../core/documents/vocabulary.ts";
import type { InterfaceCounters, RuleCounters } from "../../host/drivers/network/driver.ts";
import type { HostName, Ipv4, ServerName, Uid } from "../../model/cell/identifiers.ts";
import type { NetworkView } from "../../model/eucalyptus/view/network-view.ts";

/**
 * What is physically so, whoever believes what: machines that run, exports that take writes, bytes that landed, rules in
 * force, packets that arrived. Drivers change it; services never see it; the invariants look at nothing else.
 */
export interface MachineTruth {
  readonly vm: Uid;
  readonly incarnation: number;
  readonly host: HostName;
  readonly cell: string;
  readonly name: string;
  readonly memoryMiB: number;
  readonly cpus: number;
  readonly disks: readonly DesiredDisk[];
  readonly interfaces: readonly DesiredInterface[];
  readonly startedMs: number;
  readonly pid: number;
  /** Its CPUs stand still because of a disk. */
  stalled: boolean;
  /** Its guest answers nothing. */
  hung: boolean;
  /** Multicast groups that its guest is a member of. */
  readonly groups: Set<Ipv4>;
}
export interface ExportTruth {
  readonly server: ServerName;
  readonly volume: Uid;
  readonly epoch: number;
  readonly exportName: string;
  readonly writable: boolean;
  readonly pid: number;
  /** Its process exists. */
  alive: boolean;
  /** It takes new writes. */
  accepting: boolean;
  /** Accepted, not landed yet. */
  pending: number;
  /** Bytes of requests that it has carried out. */
  moved: number;
}
/** A write has landed on a server's disk. */
export interface Landed {
  readonly volume: Uid;
  readonly epoch: number;
  readonly vm: Uid;
  readonly incarnation: number;
  readonly host: HostName;
}
export interface InterfaceTruth {
  readonly vm: Uid;
  readonly cellNumber: number;
  readonly desired: DesiredInterface;
}
/** Who may get a copy of what is sent to many, at a host; here, or at another one. */
export interface MemberTruth {
  readonly address: Ipv4;
  readonly host: HostName;
  readonly identity: number;
  readonly vmIdentity: number;
  readonly subnetIdentity: number;
}
/** What the agent of a mode of Eucalyptus has in place at a host. */
export interface ModeTruth {
  /** Whose rules are in force; null: none. */
  view: NetworkView | null;
  /** By private or elastic address, the instance that has it here. */
  readonly addresses: Map<string, string>;
  /** Cluster that it carries to the outside: gateways and elastic addresses; null: none. */
  carries: string | null;
}
/** The dataplane of one host; it outlives the Host Manager and dies with the machine. */
export interface DataplaneTruth {
  readonly taps: Set<Uid>;
  policies: Map<string, CellPolicy>;
  endpoints: Map<string, InterfaceTruth>;
  locations: Map<string, ActualLocation>;
  /** Pools of external addresses; null: those of the configuration. */
  external: readonly string[] | null;
  /** By interface, what its guest has reported at its tap, and when it last did. */
  readonly memberships: Map<Uid, Map<Ipv4, number>>;
  /** By cell, subnet and group, as they were written last. */
  lists: ReadonlyMap<string, readonly MemberTruth[]>;
  /** A guest has reported. */
  reported: () => void;
  readonly mode: ModeTruth;
  readonly counts: PacketCounts;
}
/** What a guest sends to another one. */
export interface Packet {
  readonly from: MachineTruth;
  readonly fromInterface: DesiredInterface;
  readonly to: MachineTruth;
  readonly toInterface: DesiredInterface;
  readonly protocol: "tcp" | "udp";
  readonly port: number;
}
/** A packet has arrived at a guest. */
export interface Delivered {
  readonly from: MachineTruth;
  readonly to: MachineTruth;
  readonly fromInterface: DesiredInterface;
  readonly toInterface: DesiredInterface;
  readonly fromCell: number;
  readonly toCell: number;
  readonly protocol: "tcp" | "udp";
  readonly port: number;
}
/** A copy of what was sent to a group, or to all of a subnet, has arrived at a guest. */
export interface Copied extends Delivered {
  readonly group: Ipv4;
}
export interface TruthWatcher {
  machineStarted?(machine: MachineTruth): void;
  machineEnded?(machine: MachineTruth, how: string): void;
  exportStarted?(started: ExportTruth): void;
  /** It takes nothing any more and everything has landed. */
  exportEnded?(ended: ExportTruth): void;
  landed?(write: Landed): void;
  /** A volume has a file from now on. */
  fileMade?(server: ServerName, volume: Uid): void;
  /** A volume's file is removed, or put where removed ones are kept for a while. */
  fileRemoved?(server: ServerName, volume: Uid): void;
  /** An interface of a machine that runs, or is about to, can send and receive. */
  endpointOpened?(host: HostName, endpoint: InterfaceTruth, dataplane: DataplaneTruth): void;
  /** The rules of its cells at a host are these. */
  rulesSet?(host: HostName, policies: Iterable<CellPolicy>): void;
  delivered?(packet: Delivered): void;
  /** It was let out where it was sent, and is not believed where it arrives. */
  dropped?(packet: Packet): void;
  copied?(copy: Copied): void;
  /** An instance's private address is in place at a host from now on. */
  addressPlaced?(host: HostName, address: string, instance: string): void;
  /** A host carries a cluster to the outside from now on. */
  carried?(host: HostName, cluster: string): void;
  /** A guest has reported at its tap that it has left a group. */
  left?(interfaceUid: Uid, group: Ipv4): void;
}

export class Truth {
  readonly machines = new Set<MachineTruth>();
  readonly exports = new Set<ExportTruth>();
  readonly dataplanes = new Map<HostName, DataplaneTruth>();
  /** By VM, the groups that its software joins whenever it starts. */
  readonly joins = new Map<Uid, Set<Ipv4>>();
  /** Of cells, by their names. */
  readonly cellNumbers = new Map<string, number>();
  readonly watchers: TruthWatcher[] = [];
  #pid = 1000;

  nextPid(): number {
    this.#pid += 1;
    return this.#pid;
  }

  tell(what: (watcher: TruthWatcher) => void): void {
    for (const watcher of this.watchers) what(watcher);
  }

  machineAt(host: HostName, vm: Uid): MachineTruth | undefined {
    for (const machine of this.machines) if (machine.host === host && machine.vm === vm) return machine;
    return undefined;
  }

  dataplane(host: HostName): DataplaneTruth {
    const found = this.dataplanes.get(host) ?? {
      taps: new Set(),
      policies: new Map(),
      endpoints: new Map(),
      locations: new Map(),
      external: null,
      memberships: new Map(),
      lists: new Map(),
      reported: () => undefined,
      mode: { view: null, addresses: new Map<string, string>(), carries: null },
      counts: new PacketCounts(),
    };
    this.dataplanes.set(host, found);
    return found;
  }
}

const packetBytes = 100;
type Changing = { packets: number; bytes: number };
const nothing = (): Changing => ({ packets: 0, bytes: 0 });
function add(to: Changing): void {
  to.packets += 1;
  to.bytes += packetBytes;
}

/** What the dataplane of one host has counted, as Diverter's does: each rule where a packet leaves and where it arrives. */
export class PacketCounts {
  readonly #interfaces = new Map<Uid, { sent: Changing; received: Changing; drops: Record<string, number> }>();
  readonly #rules = new Map<string, { readonly cellNumber: number; readonly rule: number } & Changing>();

  #of(uid: Uid) {
    const found = this.#interfaces.get(uid) ?? { sent: nothing(), received: nothing(), drops: {} };
    this.#interfaces.set(uid, found);
    return found;
  }
  sent(uid: Uid): void {
    add(this.#of(uid).sent);
  }
  received(uid: Uid): void {
    add(this.#of(uid).received);
  }
  dropped(uid: Uid, reason: string): void {
    const { drops } = this.#of(uid);
    drops[reason] = (drops[reason] ?? 0) + 1;
  }
  passed(cellNumber: number, rule: number): void {
    const key = `${cellNumber} ${rule}`;
    const found = this.#rules.get(key) ?? { cellNumber, rule, ...nothing() };
    this.#rules.set(key, found);
    add(found);
  }
  read(): { readonly interfaces: readonly InterfaceCounters[]; readonly rules: readonly RuleCounters[] } {
    return {
      interfaces: [...this.#interfaces].map(([uid, counted]) => ({ interface: uid, ...counted })),
      rules: [...this.#rules.values()],
    };
  }
}
