import type { ActualLocation, CellPolicy, DesiredVm } from "../core/documents/vocabulary.ts";
import type { Cidr, PeerName, Uid } from "../model/cell/identifiers.ts";
import type { NetworkAllocation } from "./drivers/network/driver.ts";
import type { ClaimState } from "./machine/claims/claims.ts";
import type { Claims } from "./network/addresses.ts";
import type { Entrances } from "./network/management.ts";
import type { VmRecord } from "./vm-record.ts";

/** What a host is to run, and what it found: all that its planner (`service/planner.ts`) goes by. */
export interface WantedVm {
  readonly client: PeerName;
  readonly desired: DesiredVm;
}
export interface Wanted {
  readonly vms: ReadonlyMap<Uid, WantedVm>;
  readonly policies: readonly CellPolicy[];
  readonly locations: readonly ActualLocation[];
  readonly entrances: Entrances;
  /** Pools of external addresses. Absent: nobody has said which. */
  readonly external?: readonly Cidr[];
  /** There may be more of them: the authority has not spoken since this host's start. */
  readonly entrancesUnheard?: true;
  /** Addresses that are somebody's already. Absent: none is known. */
  readonly claims?: Claims;
  /** Whose this host is, and whose the cells. Absent: nothing is known, and nobody is refused by it. */
  readonly claimed?: ClaimState;
}
export interface Found {
  /** Reconciled with the machines that run; before that nothing is planned. */
  readonly records: ReadonlyMap<Uid, VmRecord>;
  /** `revision` of the global network that was implemented last by this process; null: none yet. */
  readonly revision: string | null;
  readonly allocation: NetworkAllocation;
  /** Why an instance of a mode of Eucalyptus has no tap yet, a sentence; null: it has. Absent: this host offers no mode. */
  readonly whyNoTap?: (instance: string, cell: string) => string | null;
  /** VMs, or `network`, with an action under way or resting after a failure. */
  readonly busy: ReadonlySet<Uid | "network">;
  /** VMs whose CPUs stand still because of a disk, with a sentence. */
  readonly stalled: ReadonlyMap<Uid, string>;
  /** VMs to be ended since nobody hears this host. Absent: none. */
  readonly isolated?: ReadonlySet<Uid>;
  /** VMs that must not be started yet, with a sentence, and those that another host has started as a later incarnation. */
  readonly held?: ReadonlyMap<Uid, string>;
  readonly succeeded?: ReadonlySet<Uid>;
  /** Incarnations that are over here (machine/over.ts). Absent: none. */
  readonly over?: ReadonlyMap<string, number>;
  /** Memory for VMs, all together. */
  readonly capacityMiB: number;
  /** Of this machine (`ActualHost.boot`); null: not told. */
  readonly boot: number | null;
  /** What runs was placed for this boot, though its document says an earlier one (`PresenceState`). Absent: not so. */
  readonly isSameBoot?: boolean;
  /** Virtual CPUs for VMs, all together. */
  readonly capacityCpus: number;
}
