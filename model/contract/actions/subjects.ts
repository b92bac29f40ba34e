/*
 * What actions are about, as little of each as decides whether it may be done now. Who knows less of it says null: then nothing stands against
 * the action here, and whoever carries it out looks himself.
 */

export interface VmSubject {
  /** As sentences name it. */
  readonly path: string;
  /** Of its state. */
  readonly phase: string;
  readonly reason: string | null;
  readonly wanted: "on" | "off" | null;
  readonly power: "on" | "off" | null;
  /** Where it runs, or ran last without having confirmed its end; null: nowhere. */
  readonly host: string | null;
  readonly isHostHeard: boolean | null;
}
export interface HostSubject {
  readonly host: string;
  readonly administration: "enabled" | "disabled" | "maintenance" | "reserved";
  /** By the Presence group; `off`: somebody has said that its power is off. */
  readonly presence: "up" | "suspected" | "dead" | "off" | "unknown";
}
/** What the HA Manager works on. */
export interface WorkSubject {
  readonly path: string;
  readonly type: string;
  readonly step: string;
  readonly isHeld: boolean;
}
export interface AlertSubject {
  readonly kind: string;
  readonly isAcknowledged: boolean;
}
/** The HA Manager's queue as a whole. `asked`: by an operator's word; `storm`: many hosts were lost at once. */
export interface QueueSubject {
  readonly paused: "asked" | "storm" | null;
}
export interface CellSubject {
  readonly cell: string;
  /** False: nothing was heard of it. */
  readonly isHeard: boolean;
}
export interface PlaceSubject {
  readonly place: string;
  /** `the domain ROOT/acme`; null: nobody's. */
  readonly dedicatedTo: string | null;
}
export interface PoolSubject {
  readonly pool: string;
  /** By the names that its owner gave them. */
  readonly hosts: readonly string[];
}
export interface PoolHostSubject {
  readonly name: string;
  readonly isEnabled: boolean;
  /** UIDs of what stands there. */
  readonly vms: readonly string[];
}
/** A persistent volume. */
export interface VolumeSubject {
  readonly volume: string;
  /** Of who asks, as lists have them. */
  readonly rights: readonly string[];
}
/** A domain, an account or a user. */
export interface PartySubject {
  readonly party: string;
  readonly state: string;
}
export interface VersionSubject {
  readonly version: number;
  readonly isPresent: boolean;
  readonly hasText: boolean;
}

export interface Subjects {
  readonly vm: VmSubject;
  readonly host: HostSubject;
  readonly work: WorkSubject;
  readonly alert: AlertSubject;
  readonly queue: QueueSubject;
  readonly cell: CellSubject;
  readonly place: PlaceSubject;
  readonly pool: PoolSubject;
  readonly poolHost: PoolHostSubject;
  readonly volume: VolumeSubject;
  readonly party: PartySubject;
  readonly version: VersionSubject;
}
