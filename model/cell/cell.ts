import type { Position } from "../diagnostics/diagnostic.ts";
import type { Json, JsonObject } from "../json/json.ts";
import type { HaSettings } from "./attributes/ha-settings.ts";
import type { PlacementSettings } from "./attributes/placement-settings.ts";
import type { Evaluated } from "./evaluated.ts";
import type { CellName, Cidr, ElementPath, Ipv4, Mac } from "./identifiers.ts";
import type { Mode } from "./network/modes.ts";
import type { GroupKind } from "./tenants/affinity/affinity.ts";

/**
 * A checked cell specification: frozen data, every reference resolved. `document` is the canonical JSON form (the whole
 * document, parameters and templates included), what a controller stores and `GET /model` returns.
 */
export interface Cell {
  readonly name: CellName;
  /** Path of the component of type Cell, always one part: the first part of every element's path. */
  readonly path: ElementPath;
  readonly document: JsonObject;
  /** `x.policy.*` as written: what is open without a rule. */
  readonly policy: Openness;
  /** `x.defaults.*`: the same of child cells, as a default and as a bound. Absent: nothing is said of them. */
  readonly defaults?: Openness;
  readonly deploy: "as-possible" | "all-or-none";
  /** `x.policy.forward`; absent: nobody. */
  readonly forward?: true;
  /** `x.policy.isolation "none"`: a mode that isolates nothing may make its networks. Absent: none may. */
  readonly isolation?: "none";
  /** `x.limits.*`: what the cell and its child cells may have together. Absent: nothing is limited. */
  readonly limits?: CellLimits;
  /** `x.backup.*`, of the root cell alone. Absent: no backups are made by themselves. */
  readonly backup?: BackupSchedule;
  /** `x.ha.*`, of the root cell alone, as far as it is written. */
  readonly ha?: HaSettings;
  /** `x.placement.*`, of the root cell alone, as far as it is written. */
  readonly placement?: PlacementSettings;
  /** `x.zone.*`, of the root cell alone. Absent: nobody outside is told names of the cloud. */
  readonly zone?: OutwardZone;
  /** `x.pools.external`, of the root cell alone. Absent: 198.18.0.0/15. */
  readonly externalPools?: readonly Cidr[];
  /** In document order. The Cell component itself is not among them. */
  readonly elements: ReadonlyMap<ElementPath, Element>;
}

/** What is open without a rule, each from closed to open; absent: as whoever is above has it (`check/openness.ts`). */
export interface Openness {
  /** Two VMs of one subnet may talk. */
  readonly subnetConnectivity?: boolean;
  /** "out": VMs that have a way out of the installation may open connections there. */
  readonly internet?: "none" | "out";
  /** "on": a packet to many reaches those to whom a rule admits it. */
  readonly broadcast?: "off" | "on";
  /** Whom its name server asks for names outside. */
  readonly resolvers?: readonly Ipv4[];
}

/** Names of external addresses, as the operator's own name servers fetch and serve them. */
export interface OutwardZone {
  readonly name: string;
  /** Names of these servers. */
  readonly servers: readonly string[];
  /** Their addresses on the management network. */
  readonly secondaries: readonly Ipv4[];
  /** Name of the key by which transfers are signed; absent: the addresses alone count. */
  readonly key?: string;
}
/** When backups of the management are made, and to whom they are sealed. */
export interface BackupSchedule {
  /** X25519, base64url. */
  readonly publicKey: string;
  readonly periodMinutes: number;
  /** How many each storage server keeps. */
  readonly keep: number;
}

/** Each absent one is no limit. */
export interface CellLimits {
  readonly vms?: number;
  readonly memoryMiB?: number;
  readonly cpus?: number;
  readonly volumes?: number;
  readonly storageMiB?: number;
  readonly subnets?: number;
  readonly addresses?: number;
  /** Those of them that are known outside. */
  readonly publicAddresses?: number;
  /** A rate: what its child cells may start a minute is a part of it. */
  readonly vmStartsPerMinute?: number;
}

interface ElementBase {
  readonly path: ElementPath;
  readonly public: boolean;
  /** `x.movedFrom`: the path that this element had before. */
  readonly movedFrom?: ElementPath;
  /** Where it was written; absent for JSON. */
  readonly position?: Position;
}

export interface VmElement extends ElementBase {
  readonly type: "VM";
  readonly memoryMiB: number;
  readonly cpus: number;
  /** 0 = any. */
  readonly cpuSpeedMHz: number;
  readonly desiredState: "on" | "off";
  /** `x.restart`, which starts it again by growing; absent: 0. */
  readonly restart?: number;
  /** "resume": its first start on an unwritten disk goes on from the saved state of the image, where that can be. */
  readonly start: "boot" | "resume";
  /** `x.display`; absent: none. */
  readonly display?: "vga";
  /** Absent: "booted" if the image that it boots from has an agent, else "started". */
  readonly ready?: "booted" | "started";
  readonly restartOnFailure: boolean;
  readonly liveness?: {
    readonly protocol: "icmp" | "udp";
    readonly port?: number;
    /** Absent: the VM's first one. */
    readonly interface?: ElementPath;
    readonly intervalMs: number;
    readonly failures: number;
  };
  /** `x.data`, shown to the guest as a mounted file system. */
  readonly data?: Json;
  /** `x.placement.*` as written, without the prefix. */
  readonly placement: JsonObject;
  readonly priority: number;
  /** `x.ha.*`: what becomes of it when its host is lost. */
  readonly ha: {
    /** Its host is declared dead, and something says that it runs there. */
    readonly isolated: "keep" | "restart";
  };
}
export interface VolumeElement extends ElementBase {
  readonly type: "Volume";
  readonly sizeMiB: number;
  readonly access: "rw" | "ro";
  readonly import?: string;
  /** What is written there may be lost: a new one in its place will do. */
  readonly recreatable: boolean;
}
export interface VolumeCopyElement extends ElementBase {
  readonly type: "VolumeCopy";
  readonly image: ElementPath;
  /** Absent: as large as its origin. */
  readonly sizeMiB?: number;
  /** As of a `VolumeElement`. */
  readonly recreatable: boolean;
}
export interface SubnetElement extends ElementBase {
  readonly type: "Subnet";
  /** Addresses, network, gateway and broadcast included; 0: those of the underlay. */
  readonly size: number;
  readonly addressRange: "internal" | "external" | "management";
  readonly cidr?: Cidr;
  /** The interface that takes what goes outside. */
  readonly router?: ElementPath;
}
export interface VolumeConnectionElement extends ElementBase {
  readonly type: "VolumeConnection";
  readonly vm: ElementPath;
  readonly volume: ElementPath;
  readonly busType: "virtio" | "ide" | "scsi";
  readonly busNumber?: number;
  readonly busSlot?: number;
  readonly bootOrder?: number;
  /** The volume must be ready before the VM starts. */
  readonly requires: boolean;
}
export interface VirtualInterfaceElement extends ElementBase {
  readonly type: "VirtualInterface";
  readonly vm: ElementPath;
  readonly subnet: ElementPath;
  /** DNS host name inside the cell's domain. */
  readonly vifName?: string;
  readonly mac?: Mac;
  readonly address?: Ipv4;
  /** Networks that it may speak for beside its own address. */
  readonly forwards?: readonly (Cidr | "internet")[];
  /** Multicast groups that it is a member of without asking. */
  readonly groups?: readonly Ipv4[];
  readonly requires: boolean;
}
export interface PortRange {
  readonly from: number;
  readonly to: number;
}
export type RuleEnd =
  | { readonly kind: "element"; readonly path: ElementPath; readonly type: "Subnet" | "VM" | "VirtualInterface" }
  | { readonly kind: "cidr"; readonly cidr: Cidr }
  | { readonly kind: "internet" }
  | { readonly kind: "controller" }
  /** Into another cell: waits without effect until that cell shows it. */
  | { readonly kind: "foreign"; readonly domain: string; readonly path: string };
export interface NetworkRuleElement extends ElementBase {
  readonly type: "NetworkRule";
  readonly address1: RuleEnd;
  readonly address2: RuleEnd;
  readonly protocol: "any" | "tcp" | "udp" | "icmp";
  /** Port of address1 and of address2; absent: any. */
  readonly port1?: PortRange;
  readonly port2?: PortRange;
  readonly direction: "both" | "1to2";
}
export interface VolumeGrantElement extends ElementBase {
  readonly type: "VolumeGrant";
  readonly volume: ElementPath;
  /** `cell`: of that domain name. `account`, `tenants`: of an account, of a domain of accounts with all below, by their paths. */
  readonly to:
    | { readonly kind: "vm"; readonly vm: ElementPath }
    | { readonly kind: "cell"; readonly domain: string }
    | { readonly kind: "account" | "tenants"; readonly path: string };
  readonly grant: "copy" | "connect";
  /** `x.hold`: path of a copy in that cell, until which the volume is not destroyed. */
  readonly hold?: ElementPath;
  /** `x.holder`: UID of that account or domain, or of the account whose the cell is. */
  readonly holder?: string;
}
export interface CellControllerElement extends ElementBase {
  readonly type: "CellController";
  readonly name?: string;
  readonly cell: Json;
  /** `x.account`: path of the account that the child belongs to; absent: the operator's. */
  readonly account?: string;
  /** `x.gateway`: the child is the way into the cloud, through a gateway at this address of the management network. */
  readonly gateway?: Ipv4;
  /** Which of several decide for the child, by their numbers; absent: whoever makes it chooses. */
  readonly services?: ServiceNumbers;
  /** `x.networkMode`: the rules by which the child's networks are made, for good; absent: Diverter's. */
  readonly networkMode?: Mode;
}
/** A machine of the installation; its name is the last part of the path. */
export interface HostElement extends ElementBase {
  readonly type: "Host";
  readonly state: HostAdministration;
  readonly tags?: readonly string[];
  /** Where it stands, by names from the zone down: "z1/p1/c1". Absent: in no place that has a name. */
  readonly cluster?: string;
  readonly properties?: Json;
  /** `x.flavor`: it serves nobody but the pool that it is in. Absent: of no flavour. */
  readonly flavor?: string;
}
/** What machines of one kind have, and where they stand; its name is the last part of the path. */
export interface OfferingElement extends ElementBase {
  readonly type: "Offering";
  readonly displayText: string;
  readonly memoryMiB: number;
  readonly cpus: number;
  readonly cpuSpeedMHz: number;
  readonly tags?: readonly string[];
  readonly planner: "FirstFitPlanner" | "ImplicitDedicationPlanner";
  /** Absent: as the planner has it, "Strict". */
  readonly mode?: "Strict" | "Preferred";
  readonly ha: boolean;
}
/** A kind of whole hosts that can be had for a pool; its name is the last part of the path. */
export interface HostFlavorElement extends ElementBase {
  readonly type: "HostFlavor";
  readonly description: string;
  /** What one host costs of its owner's units. */
  readonly units: number;
}
/** Whole hosts that the cell's account has for itself and for whom it authorises. */
export interface PoolElement extends ElementBase {
  readonly type: "Pool";
  /** Paths of accounts. Absent: the cell's own. */
  readonly authorised?: readonly string[];
  /** Virtual processors for each processor. Absent: as elsewhere. */
  readonly cpuRatio?: number;
  /** How much of its hosts' memory is promised. Absent: all that is there. */
  readonly memoryPercent?: number;
  /** Absent: spread. */
  readonly fill?: "spread" | "pack";
  /** Names of offerings of which its VMs are. Absent: of any, or of none. */
  readonly offerings?: readonly string[];
  /** What its VMs boot from. Absent: whatever they like. */
  readonly images?: readonly string[];
}
/** A host of a pool, whichever it is; its name is the last part of the path. */
export interface PoolHostElement extends ElementBase {
  readonly type: "PoolHost";
  readonly pool: ElementPath;
  readonly flavor: string;
  /** Absent: anywhere. */
  readonly zone?: string;
  /** Whether new VMs come there. */
  readonly enabled: boolean;
}
/** A part of the installation; its names from the zone down are its path within `root/places`. */
export interface PlaceElement extends ElementBase {
  readonly type: "Zone" | "Pod" | "Cluster";
}
/** A place or a host is one owner's. */
export interface DedicationElement extends ElementBase {
  readonly type: "Dedication";
  /** A host's name, or a place's names from the zone down. */
  readonly of: string;
  /** Path of a domain. */
  readonly to: string;
  /** Name of the account in it that has it alone; absent: the whole domain. */
  readonly account?: string;
}
/** VMs of an account that name it in `x.placement.groups` stand together, or apart. Its name is the last part of its path. */
export interface AffinityGroupElement extends ElementBase {
  readonly type: "AffinityGroup";
  readonly kind: GroupKind;
}
/** What a domain or an account may have together, all of its cells: what a cell may, and how many cells there are. */
export interface TenantLimits extends Omit<CellLimits, "vmStartsPerMinute"> {
  readonly cells?: number;
  /** Of whole hosts in pools. */
  readonly units?: number;
}
/** A domain of tenants, at `root/tenants/<its path below ROOT>`. */
export interface DomainElement extends ElementBase {
  readonly type: "Domain";
  readonly state: TenantState;
  readonly limits: TenantLimits;
}
/** An account, in the domain in whose component it stands. */
export interface AccountElement extends ElementBase {
  readonly type: "Account";
  readonly state: TenantState;
  readonly limits: TenantLimits;
}
/** A role, to be had in the domain in whose component it stands, and below. */
export interface RoleElement extends ElementBase {
  readonly type: "Role";
  readonly reach: RoleReach;
  /** In their order: the first that has a verb decides. */
  readonly rules: readonly RoleRule[];
  readonly secondFactor: boolean;
}
export type TenantState = "enabled" | "locked" | "disabled";
export type RoleReach = "installation" | "domain" | "account";
export interface RoleRule {
  /** A verb, or a pattern of verbs. */
  readonly verb: string;
  readonly effect: "allow" | "deny";
}
/** `disabled`: nothing new is placed there. `maintenance`: what runs there goes elsewhere as well. */
export type HostAdministration = "enabled" | "disabled" | "maintenance";
export interface ServiceNumbers {
  readonly placer?: number;
  readonly storageManager?: number;
  /** Absent: the first, which looks after all for whom there is no further one. */
  readonly haManager?: number;
}
/** As a controller says it. */
export type BoundServices = {
  readonly placer: number;
  readonly storageManager: number;
  readonly haManager?: number;
  /** That HA Manager is gone: a sentence. Absent: it is there, or an earlier version answered. */
  readonly unguarded?: string;
  readonly networkMode?: Mode;
};
/** What a cell has for good, since it was made. */
export interface CellBinding extends ServiceNumbers {
  /** Absent: Diverter. */
  readonly networkMode?: Mode;
}
export type Element =
  | VmElement
  | VolumeElement
  | VolumeCopyElement
  | SubnetElement
  | VolumeConnectionElement
  | VirtualInterfaceElement
  | NetworkRuleElement
  | VolumeGrantElement
  | CellControllerElement
  | HostElement
  | DomainElement
  | AccountElement
  | RoleElement
  | PlaceElement
  | DedicationElement
  | AffinityGroupElement
  | OfferingElement
  | HostFlavorElement
  | PoolElement
  | PoolHostElement;
export type ElementType = Element["type"];

/** The submitted texts of one specification. Names are relative paths with `/`; `#include` sees these and nothing else. */
export interface Bundle {
  /** The file to start from; its extension says the language. */
  readonly main: string;
  readonly files: Readonly<Record<string, string>>;
  /** What the main text evaluates to, in the languages that the model does not read itself. */
  readonly evaluated?: Evaluated;
}
