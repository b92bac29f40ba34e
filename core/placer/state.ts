import type { Advice } from "../../model/cause/cause.ts";
import type { PlacementSettings } from "../../model/cell/attributes/placement-settings.ts";
import type { CellName, HostName, PeerName, Uid } from "../../model/cell/identifiers.ts";
import type { KnownOffering } from "../../model/cell/tenants/pools/offerings.ts";
import type { DesiredGroup } from "../documents/tenancy.ts";
import type { DesiredPlacement, Leave } from "../documents/vocabulary.ts";
import type { Outbox } from "../outbox.ts";
import type { Deaths } from "../presence/group/deaths.ts";
import type { Ratios, Reservation, UsageTable } from "./candidate.ts";
import type { PlacerIndex } from "./index/classes.ts";
import type { ByVm } from "./index/few.ts";
import type { OwnerTable } from "./index/owner-table.ts";
import type { HostTable } from "./tables.ts";
import type { Questions } from "./what-if/question.ts";

export interface PlacerState {
  /** Of hosts and usage, for decisions that look at few hosts. */
  readonly index: PlacerIndex;
  readonly outbox: Outbox;
  readonly ratios: Ratios;
  started: boolean;
  readonly hosts: HostTable;
  /** Nothing is placed at a host that is not heard; these say why it is not. */
  readonly deaths: Deaths;
  /** Paths of the accounts of the root cell's child cells. Not durable, as whose hosts are: both are desired here. */
  readonly owners: OwnerTable;
  /** Affinity groups. Not durable either. */
  readonly groups: Map<Uid, KnownGroup>;
  readonly groupsByName: Map<string, KnownGroups>;
  readonly wanted: ByVm<Wanted>;
  /** Stored desires that cannot be read: their places stay theirs. */
  readonly unread: Set<Uid>;
  readonly reservations: ByVm<Reservation>;
  readonly usage: UsageTable;
  /**
   * Hosts that have neither answered nor been found unreachable since the start. Nothing is placed before: the first that
   * answers would get everything.
   */
  readonly silent: Set<PeerName>;
  /**
   * Hosts that were heard since the start, and whether they were once more than half of those that are not declared dead. No
   * VM of the root cell is placed before: it would share what few hosts came up first with all others (decision 37, Quorum).
   */
  readonly heard: Set<PeerName>;
  hasQuorum: boolean;
  /**
   * The root controller has said all that it desires since the start. A store that was lost does not have what the operator says of hosts,
   * and of how many are to be left.
   */
  isToldAll: boolean;
  /** In order of arrival. */
  readonly waiting: Set<Uid>;
  /** Of these, of whom is said which host refuses them, and why. */
  readonly refused: Set<Uid>;
  /** How often those that wait were tried again. */
  retries: number;
  /** How many were told in a round what to change. */
  readonly advised: { round: number; count: number; readonly last: Map<Uid, Advice> };
  /** Hosts in maintenance, and VMs that the operator has go elsewhere. */
  readonly maintained: Set<HostName>;
  readonly asked: Set<Uid>;
  /** What is said of VMs that are to leave their hosts, and the room that is kept for them. Records `next/<vm>`. */
  readonly leaving: Map<Uid, Leave>;
  readonly next: Map<Uid, Reservation>;
  /** Room is kept for the VMs of so many hosts. Not durable: it is desired here. */
  spareHosts: number;
  /** `x.placement.*` of the root cell, as far as it is written. Not durable either. */
  settings: PlacementSettings;
  /** What the operator offers by names, for controllers to check. */
  offerings: readonly KnownOffering[];
  /** VMs whose place was theirs until now, and that have not got the next one yet: where they were. */
  readonly continuing: Map<Uid, Reservation>;
  /** Hosts that were lost, and had VMs which asked for implicit dedication: of those that leave one by one the last finds nobody there. */
  readonly wereHeld: Set<HostName>;
  /** Hosts of which the root controller has heard what stands there, or by which claim. */
  readonly told: Set<HostName>;
  /** That the operator waits for answers of. */
  readonly questions: Questions;
}

/** An affinity group, and whose. */
export interface KnownGroup {
  readonly client: PeerName;
  readonly document: DesiredGroup;
}
/** Of one name, by the child cells of the root cell in which they are written. */
export type KnownGroups = Map<CellName, Map<Uid, KnownGroup>>;
export interface Wanted {
  readonly client: PeerName;
  readonly document: DesiredPlacement;
}
