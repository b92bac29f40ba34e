import type { DesiredStandby } from "../../core/documents/standby.ts";
import type { ActualSuccessor, AgentLease, AgentLeaseActual, DesiredVm } from "../../core/documents/vocabulary.ts";
import type { HostName, PeerName, Uid } from "../../model/cell/identifiers.ts";

/** What a host knows of the root controller's VM (`succession.ts`). */
export interface SuccessionState {
  readonly self: HostName;
  standby: DesiredStandby | null;
  /** All hosts of the installation, as far as they are known. */
  hosts: ReadonlySet<HostName>;
  /** Those that are heard, in which generation. */
  readonly heard: Map<HostName, number>;
  /** The latest life of a host that the Presence group declared over, and the latest that is known to have come after. */
  readonly dead: Map<HostName, number>;
  readonly returned: Map<HostName, number>;
  /** What agents say of the volumes, of whoever holds them, and of this host's own desires. */
  readonly leases: Map<Uid, ActualSuccessor>;
  readonly grants: Map<Uid, AgentLeaseActual>;
  readonly unreachable: Set<PeerName>;
  readonly followed: Set<PeerName>;
  /** Desired at agents; durable, as all documents are. */
  readonly asked: Map<Uid, Asked>;
  /** What this host says at agents instead while it asks for nothing: that whoever holds the epoch before is lost. Durable. */
  readonly votes: Map<Uid, Asked>;
  /** All leases were had: this incarnation runs here until the controller in it says so itself. Record `succession`. */
  taken: DesiredVm | null;
  /** Since when a host that has the VM, or a lease of it, is silent while more than half of all are heard, or (not `enough`) fewer. */
  silent: ReadonlyMap<HostName, Silence>;
  /** Since when it counts as lost. */
  dueSince: number | null;
  /** It was this host's turn: the agents are followed until a newer document says where the VM runs, or its host is heard. */
  watching: boolean;
  /** Since when this host waits to hear whether it may still start the VM. */
  doubtSince: number | null;
  /** Why the VM's host counts as lost and nothing is done about it here, as a sentence. */
  trouble: string | null;
  wakeAt: number | null;
}

export interface Silence {
  readonly since: number;
  readonly enough: boolean;
}

/** A document of this host at an agent. */
export interface Asked {
  readonly agent: PeerName;
  readonly lease: AgentLease;
}
