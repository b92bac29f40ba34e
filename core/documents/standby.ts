import type { HostName, PeerName, Uid } from "../../model/cell/identifiers.ts";
import type { CellPolicy, DesiredVm } from "./vocabulary.ts";

/**
 * What every host keeps of the VM of the root controller, document `root-vm`: all that one needs to start its next incarnation
 * when nobody is left who could ask for that (decision 35). Without the secrets of the present leases.
 */
export interface DesiredStandby {
  /** As it runs now; the layers of what it writes are left out, those that it reads are not. */
  readonly vm: DesiredVm;
  readonly host: HostName;
  /** Without rules: enough to put its interface on the management network. */
  readonly policy: CellPolicy;
  /** What it writes, in the order in which the leases are taken: who has the first one decides for all. */
  readonly volumes: readonly StandbyVolume[];
  /**
   * Hosts that take their turn after all others, in this order: those that have a VM with the same `x.placement.spread`, so that one more
   * loss does not take two of these, then those that the operator has closed. Absent: none, or an earlier version.
   */
  readonly last?: readonly HostName[];
}
export interface StandbyVolume {
  readonly volume: Uid;
  readonly connection: Uid;
  readonly agent: PeerName;
  /** Of the lease that `vm` has. */
  readonly epoch: number;
}
export const standbyKey = "root-vm";
