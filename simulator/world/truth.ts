import type { ActualLocation, CellPolicy, DesiredDisk, DesiredInterface } from "../../core/documents/vocabulary.ts";
import type { HostName, ServerName, Uid } from "../../model/cell/identifiers.ts";

/**
 * What is physically so, whoever believes what: machines that run, exports that take writes, bytes that landed, rules in
 * force, packets that arrived. Drivers change it; services never see it; the invariants look at nothing else.
 */
export interface MachineTruth {
  readonly vm: Uid;
  readonly incarnation: number;
  readonly host: HostName;
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
/** The dataplane of one host; it outlives the Host Manager and dies with the machine. */
export interface DataplaneTruth {
  readonly taps: Set<Uid>;
  policies: Map<string, CellPolicy>;
  endpoints: Map<string, InterfaceTruth>;
  locations: Map<string, ActualLocation>;
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
export interface TruthWatcher {
  machineStarted?(machine: MachineTruth): void;
  machineEnded?(machine: MachineTruth, how: string): void;
  exportStarted?(started: ExportTruth): void;
  /** It takes nothing any more and everything has landed. */
  exportEnded?(ended: ExportTruth): void;
  landed?(write: Landed): void;
  /** A volume's file is removed, or put where removed ones are kept for a while. */
  fileRemoved?(server: ServerName, volume: Uid): void;
  /** An interface of a machine that runs, or is about to, can send and receive. */
  endpointOpened?(host: HostName, endpoint: InterfaceTruth, dataplane: DataplaneTruth): void;
  /** The rules of its cells at a host are these. */
  rulesSet?(host: HostName, policies: Iterable<CellPolicy>): void;
  delivered?(packet: Delivered): void;
}

export class Truth {
  readonly machines = new Set<MachineTruth>();
  readonly exports = new Set<ExportTruth>();
  readonly dataplanes = new Map<HostName, DataplaneTruth>();
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
    };
    this.dataplanes.set(host, found);
    return found;
  }
}
