import type { HaSettings } from "../../model/cell/attributes/ha-settings.ts";
import type { PlacementSettings } from "../../model/cell/attributes/placement-settings.ts";
import type { CellName, ElementPath, HostName, Ipv4, Mac, PeerName, Uid } from "../../model/cell/identifiers.ts";
import type { KnownOffering } from "../../model/cell/tenants/pools/offerings.ts";

/*
 * High availability (decision 91): what controllers, hosts and Storage Managers say to the HA Manager, and it to them
 * (`core/documents/vocabulary.ts` has the table of all other keys).
 *
 * | key                     | desired by → at                    | actual from                       |
 * | protected/<vm uid>      | controller → ha-manager            |                                   |
 * | over/<vm uid>           |                                    | ha-manager → that controller      |
 * | fence/<vm uid>          | ha-manager → storage-manager       | storage-manager → ha-manager      |
 * | guard                   | controller → storage-manager       |                                   |
 * | power/<host>            | ha-manager.<n> → ha-manager        |                                   |
 * | alerts                  | ha-manager.<n> → ha-manager        |                                   |
 * | probe/<host>            | ha-manager → host                  | host → ha-manager                 |
 * | machines                |                                    | host → ha-manager                 |
 * | settings                | controller.root → ha-manager, placers |                                |
 * | spare                   | controller.root → placers          |                                   |
 * | beats                   | ha-manager → host                  |                                   |
 * | beat                    | host → agent.<server>              | agent → that host                 |
 * | heartbeat/<host>        |                                    | agent → ha-manager                |
 * | requests/<host>         | ha-manager → agent.<server>        | agent → ha-manager                |
 */

/** What becomes of a VM whose host is declared dead while something of that host still says that the VM runs. */
export type Isolated = "keep" | "restart";

/**
 * An incarnation that a host was told to run. Desired for as long as nobody knows that it ended, so that somebody asks when its
 * host is lost.
 */
export interface DesiredProtected {
  readonly vm: Uid;
  readonly cell: CellName;
  readonly path: ElementPath;
  readonly incarnation: number;
  readonly host: HostName;
  /** For which it was placed; absent: not known, and no end of a boot says anything of it. */
  readonly boot?: number;
  /**
   * What is to become of it when its host is lost. `restart`: it starts elsewhere; `end`: it is being stopped, and waits for
   * the word that it has; `leave`: it is not started again by itself, so it waits for its host.
   */
  readonly lost: "restart" | "end" | "leave";
  /** `x.priority`: the greater is fenced first. */
  readonly priority: number;
  readonly isolated: Isolated;
  /** Whose leases its volumes have. */
  readonly storageManager: PeerName;
  /** It has left the model, and is to be freed of its host for good. Absent: it has not. */
  readonly deleted?: true;
  /** All that it may write to may be made anew (`x.recreatable`), and its controller does that at the word. Absent: not so. */
  readonly recreatable?: true;
  /** It is to go to another host, by the operator's word or since its host is in maintenance. Absent: not so. */
  readonly leaves?: true;
  /** An operator has freed it of its host, though nobody has seen that it ended; its controller has no part in it any more. Absent: not so. */
  readonly forced?: true;
  /**
   * When the cell was bound to this HA Manager anew, since another one was gone, milliseconds since 1970. What this one did about the incarnation
   * before that counts no more: somebody else has looked after it since. Absent: the cell was made with it.
   */
  readonly boundAt?: number;
  /** Of its first interface that is behind its host's dataplane. Absent: it has none, and nobody asks it there. */
  readonly address?: Ipv4;
}
export const protectedKey = (vm: Uid): string => `protected/${vm}`;

/**
 * This incarnation, at this host, can write nothing any more, and never will: it may be taken for stopped. Durable at the HA
 * Manager before it is said, and not taken back while the incarnation is protected.
 */
export interface ActualOver {
  readonly vm: Uid;
  readonly incarnation: number;
  readonly host: HostName;
  /**
   * The fencer that has fenced it, or `stopped`: it was seen that it does not run. `recreatable`: it may run and write, and is over as soon
   * as its controller has given up all that it may write to.
   */
  readonly by: Fence;
  /** As in `DesiredProtected`: to whose question it is the answer. */
  readonly boundAt?: number;
}
export const fences = ["storage", "stopped", "recreatable"] as const;
export type Fence = (typeof fences)[number];
export const overKey = (vm: Uid): string => `over/${vm}`;

/** Every lease that this incarnation of a VM has, or an earlier one, is to end; it is given none any more. */
export interface DesiredFence {
  readonly vm: Uid;
  /** Whose desires its connections are: nobody else's leases end. */
  readonly cell: CellName;
  readonly incarnation: number;
  /** As in `DesiredProtected`. */
  readonly boundAt?: number;
}
export interface ActualFence {
  readonly incarnation: number;
  /** Of the fence that it is the answer to. */
  readonly boundAt?: number;
  /** Nothing of it can write: each of its leases has ended at the server's own word. */
  readonly complete: boolean;
  /** By volume, the epoch that nobody holds. */
  readonly volumes: readonly FencedVolume[];
  /** What it waits for, a sentence; null: for nothing. */
  readonly reason: string | null;
}
export interface FencedVolume {
  readonly volume: Uid;
  readonly epoch: number;
}
export const fenceKey = (vm: Uid): string => `fence/${vm}`;

/**
 * Which HA Manager looks after a cell, said by its controller: nobody else's fence ends that cell's leases. Not said where it is the first, nor
 * by a controller of the previous version, which knows no other.
 */
export interface DesiredGuard {
  readonly cell: CellName;
  readonly haManager: PeerName;
  /** As in `DesiredProtected`: fences that it wants since then count. */
  readonly boundAt?: number;
}
export const guardKey = "guard";
/** Said by a cell's controller to the first HA Manager as long as the one that it has is gone: nobody else would tell a person. */
export interface DesiredUnguarded {
  readonly cell: CellName;
  readonly haManager: PeerName;
}
export const unguardedKey = "unguarded";

/** What a further HA Manager has open for a person, said to the first one, which alone has the operator's webhook and mail. */
export interface DesiredAlerts {
  readonly alerts: readonly ToldAlert[];
}
export interface ToldAlert {
  readonly kind: (typeof toldKinds)[number];
  readonly subject: string;
  readonly sentence: string;
}
export const toldKinds = ["paused", "held", "isolated", "unfenced", "stuck"] as const;
/** Those that are open longest come first, and no more are told. */
export const mostTold = 256;
export const alertsKey = "alerts";

/**
 * A further HA Manager needs to know whether a host has power: management controllers are the first one's. What that reads as off it tells the
 * Presence group, and so everybody hears it.
 */
export interface DesiredPower {
  readonly host: HostName;
  /** The last one for which something was placed there. */
  readonly boot: number;
  /** A VM of that host waits to be fenced, and its storage does not answer: the power may be cut. Absent: it is only to be read. */
  readonly cut?: true;
}
export const powerKey = (host: HostName): string => `power/${host}`;

/** A host of all machines that are there, whoever wants them. */
export interface ActualMachines {
  readonly host: HostName;
  /** `ActualHost.boot`; absent: a host that does not know it. */
  readonly boot?: number;
  readonly machines: readonly ActualMachine[];
}
export interface ActualMachine {
  readonly vm: Uid;
  readonly incarnation: number;
  /** "off": it has ended, or was refused, and is never started. */
  readonly power: "on" | "off";
}
export const machinesKey = "machines";

/** What the operator has written of `x.ha.*`; the rest is as preset (`model/cell/attributes/ha-settings.ts`). */
export interface DesiredSettings {
  readonly settings: ManagerSettings;
  /** As a Placer says it (`SystemHostsShort`). Absent: as many are left as are to be, or nobody has said. */
  readonly short?: SystemHostsShort;
  /** The cell by which people reach the cloud. Absent: there is none, or the root controller is of a version before. */
  readonly entrance?: CellName;
}
/** Fewer hosts are left to the cloud's own VMs than are to be (`x.placement.systemHosts`). */
export interface SystemHostsShort {
  readonly kept: number;
  readonly left: number;
}
/** Of a Placer to the root controller. Absent: it has not heard all hosts since its start, or is of a version before and finds enough left. */
export type SaidSystemHosts = SystemHostsShort | { readonly enough: true };
export const shortKey = "short";
export type ManagerSettings = Omit<HaSettings, "spareHosts">;
export const settingsKey = "settings";
/** What the operator has written of `x.placement.*`, at a Placer; the rest is as preset (`model/cell/attributes/placement-settings.ts`). */
export interface DesiredPlacementSettings {
  readonly settings: PlacementSettings;
  /** `Offering` elements. Absent: none. */
  readonly offerings?: readonly KnownOffering[];
}
/** Room is kept for the VMs of so many hosts, the fullest (`x.ha.spareHosts`). Nothing is said of none. */
export interface DesiredSpare {
  readonly hosts: number;
}
export const spareKey = "spare";

/** A host is to find out whether another one answers on the underlay. */
export interface DesiredProbe {
  readonly host: HostName;
  readonly address: Ipv4;
  readonly mac: Mac;
  /** Machines that should run there, each to be asked at its address. Absent: none. */
  readonly machines?: readonly ProbedMachine[];
}
export interface ProbedMachine {
  readonly vm: Uid;
  readonly address: Ipv4;
}
/** A host asks no more of them at once. */
export const mostProbed = 64;
/** How often it has asked so far, how often there was an answer, and from where the last one came. */
export interface ActualProbe {
  readonly host: HostName;
  readonly asked: number;
  readonly answered: number;
  /** Null: nobody has answered yet. */
  readonly mac: Mac | null;
  /** Of each machine that it asks there, how often that has answered, by that very host. Absent: it asks none, or cannot. */
  readonly machines?: readonly MachineAnswers[];
}
export interface MachineAnswers {
  readonly vm: Uid;
  readonly answered: number;
}
export const probeKey = (host: HostName): string => `probe/${host}`;

/** A host is to say to the storage servers where its machines write that it is there, for as long as this is desired. */
export interface DesiredBeats {
  readonly host: HostName;
  /** VMs that others take from it when it is lost: where nobody hears it, it ends those of them that write. */
  readonly ends: readonly Uid[];
}
export const beatsKey = "beats";
/** Of this boot, the n-th: it counts once. What a server has made durable it says back. */
export interface DesiredBeat {
  readonly boot: number;
  readonly count: number;
}
export const beatKey = "beat";
/** Whether a server hears a host, said when that changes: a beat of this boot came within the last `lateMs`, or not any more. */
export interface ActualHeartbeat {
  readonly host: HostName;
  readonly boot: number;
  readonly fresh: boolean;
}
export const heartbeatKey = (host: HostName): string => `heartbeat/${host}`;
export const everyBeatMs = 3_000;
/** Three beats that did not come. */
export const lateMs = 9_000;

/** A storage server is to look whether the machines of a host make requests at its exports, for as long as this is desired. */
export interface DesiredRequests {
  readonly host: HostName;
}
/** Of every machine of that host which may write here. */
export interface ActualRequests {
  readonly host: HostName;
  readonly machines: readonly MachineRequests[];
}
export interface MachineRequests {
  readonly vm: Uid;
  readonly incarnation: number;
  /** How often each of its exports was looked at, no further than to `enoughLooks`; how often one had served requests since the look before. */
  readonly looked: number;
  readonly served: number;
}
/** What writes every second or so was seen by then; a look is half a second after the one before. */
export const enoughLooks = 5;
export const lookEveryMs = 500;
export const requestsKey = (host: HostName): string => `requests/${host}`;
