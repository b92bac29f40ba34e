import type { Advice, RefusedBy, Refusing } from "../../model/cause/cause.ts";
import type { HostAdministration } from "../../model/cell/cell.ts";
import type {
  CellName,
  Cidr,
  ElementPath,
  HostName,
  Ipv4,
  Mac,
  PeerName,
  ServerName,
  Uid,
} from "../../model/cell/identifiers.ts";
import type { KnownOffering } from "../../model/cell/tenants/pools/offerings.ts";
import type { HostOffer, KnownMarks } from "../../model/check/check-hosts.ts";
import type { StorageOffer } from "../../model/check/check-storage.ts";
import type { Json } from "../../model/json/json.ts";
import type { ServerLabel, VolumeAbout, VolumeLabel } from "./bin.ts";
import type { DesiredLiveness, GuestFacts } from "./guest.ts";
import type { OfHeard, OfInstance, OfMode } from "./network/modes.ts";
import type { ActualRouter } from "./network/outside.ts";
import type { PolicyNetwork, PolicyRouter, PolicyTraits, Sliced } from "./network/policy.ts";
import type { BesideGuest, BootsFrom, Crossed, GivenMore, HadBefore, PlacedTerms, WishesMet } from "./pools.ts";
import type { SavedState } from "./saved-state.ts";
import type { Granted, GrownDisk, Holding, Kept, MadeOf, OriginLacks, VolumeSize } from "./volumes.ts";

/**
 * The documents that services publish to each other: the whole vocabulary of "desired down, actual up". One table: who says it to whom, under which key. Those
 * between cells are in `cells.ts`, what is believed of the network in `network.ts`, those of the bin in `bin.ts`, those of Presence, the authority, the HA Manager and tenants
 * in `presence.ts`, `identity.ts`, `ha.ts` and `tenancy.ts`, all beside this. Who may say it is in `permissions.ts`, what is well-formed in `readers/table.ts`.
 *
 * | key                     | desired by → at                    | actual from                       |
 * | volume/<uid>            | controller → storage-manager       | storage-manager → that controller |
 * | connection/<uid>        | controller → storage-manager       | storage-manager → that controller |
 * | host/<name>             | controller.root → placers, ha-manager |                                |
 * | grant/<uid>             | controller → storage-manager       | storage-manager → that controller |
 * | let-go/<volume uid>     | controller → storage-manager       |                                   |
 * | volume/<uid>            | storage-manager → agent.<server>   | agent → storage-manager           |
 * | lease/, readers/<volume uid> | storage-manager → agent.<server> | agent → storage-manager        |
 * | succession/<volume uid> | host → agent.<server>              | agent → that host                 |
 * | successor/<volume uid>  |                                    | agent → hosts                     |
 * | server, image/<name>    |                                    | agent → storage-manager           |
 * | seen, bin/<file>        | storage-manager → agent.<server>, of seen | agent → storage-manager, of a file |
 * | subnet/<uid>, name/<uid> | controller → address-manager, dns-manager | that → that controller    |
 * | placement/<vm uid>      | controller → placer                | placer → that controller          |
 * | vm/<uid>, policy/<cell> | controller → host.<name>           | host → that controller            |
 * | places/<cell>           | controller → host.<name>           |                                   |
 * | root-vm, claim/<host>   | root controller → host.<name>      | host → root controller, of a claim |
 * | pools                   | root controller → address-manager, host.<name> | address-manager → root controller |
 * | host                    |                                    | host → placer, controllers        |
 * | taken/<vm uid>          |                                    | host → placer, placer.<n>         |
 * | hosts, storage, addresses |                                  | placer, storage-manager, address-manager → controllers |
 * | owner/<cell>            | root controller → placers, storage managers | root controller → hosts  |
 * | public/<uid>            | controller → directory             |                                   |
 * | want/<domain>/<path>    | controller → directory             | directory → that controller       |
 * | reach/<rule uid>        | controller → directory             | directory → that controller       |
 * | location/<address>      |                                    | host → host                       |
 * | cell/<uid>              | controller → cell-manager          | cell-manager → that controller    |
 * | life                    | cell-manager → its controller      | that controller → cell-manager    |
 * | presence/…, vote/<host> |                                    | host, presence.<n> → presence.<n> |
 * | dead/<host>             |                                    | presence.<n> → whoever asks; suspected/<host> → ha-manager; missed/<host> → host |
 * | enrolment/<id>          | controller → authority             | authority → that controller; pin/<name> → hosts, root controller |
 * | limits/<name>           | tenancy → root controller          | root controller → tenancy         |
 * | look/<ticket's hash>, owner/<uid>, declared/<uid> | controller → tenancy | tenancy → that controller, but of an owner |
 *
 * Keys that name an element use its UID. The client of a desired document is known from the connection, so a controller
 * sees only what concerns its own documents: the source publishes under `<client>/<key>` where several clients share it
 * (`controller.shop/volume/ab12-3`), and the client subscribes to its own prefix. `actualKey` builds these.
 */
export const actualKey = (client: PeerName, key: string): string => `${client}/${key}`;

/** How far something is. `since` is for people, milliseconds since 1970. */
export type Phase = "waiting" | "working" | "ready" | "failed" | "deleting";
export interface Progress {
  readonly phase: Phase;
  /** A sentence a person can act on; null when there is nothing to say. Waiting and failed always have one. */
  readonly reason: string | null;
}

// --- storage: controller ↔ Storage Manager ---------------------------------------------------------------------

export interface DesiredVolume extends Holding {
  readonly uid: Uid;
  readonly cell: CellName;
  readonly path: ElementPath;
  /** Where its first bytes come from. */
  readonly origin:
    | { readonly kind: "empty" }
    | { readonly kind: "image"; readonly image: string }
    | { readonly kind: "copy"; readonly volume: Uid };
  /** Null: as large as the origin. */
  readonly sizeMiB: number | null;
  readonly access: "rw" | "ro";
}
export interface ActualVolume extends Progress, VolumeSize, OriginLacks, Kept {
  readonly server: ServerName | null;
  readonly sizeMiB: number | null;
  /** False: it is there, but cannot be read or written now; `reason` says why. Absent: nothing is known against it. */
  readonly available?: false;
}

/** The desire that one VM incarnation may use a volume. Taken back when that incarnation is confirmed stopped. */
export interface DesiredConnection {
  readonly uid: Uid;
  readonly volume: Uid;
  readonly vm: Uid;
  readonly incarnation: number;
  readonly host: HostName;
  readonly cell: CellName;
  /** The VM is that of the root controller: hosts may give its next incarnation the lease themselves (decision 35). */
  readonly succession?: true;
  /**
   * Its controller's store was put back, and another incarnation may run where nobody knows of it (decision 74): its lease
   * is not ended, and who has it is said.
   */
  readonly asksFirst?: true;
}
export interface ActualConnection extends Progress {
  readonly incarnation: number;
  /** Present exactly when ready. */
  readonly attachment: Attachment | null;
  /** The volume is not there, or not for this cell: which of the two is not said. */
  readonly hidden?: true;
  /**
   * Of a connection that hosts may take over (`succession`) or whose controller asks first for this very VM: who has the volume's lease by the agent's own word; null:
   * nobody, or nobody knows. Absent: any other connection, or a Storage Manager of the previous version.
   */
  readonly holder?: LeaseHolder | null;
}
export interface DesiredGrant extends Granted {
  readonly uid: Uid;
}

/** With what is granted, once it is `ready`. `copied`: the copy that it holds the volume for is made. */
export interface ActualGrant extends Progress {
  readonly copied?: true;
  readonly grants?: Granted;
}

/** One exported qcow2 file. The export serves the file's bytes; the qcow2 driver runs on the VM's host. */
export interface Layer {
  readonly volume: Uid;
  readonly address: Ipv4;
  readonly port: number;
  /** Unguessable, new for each lease. */
  readonly exportName: string;
  /** TLS-PSK of this export: identity and key (hexadecimal). A secret: never logged, never in an argument list. */
  readonly pskIdentity: string;
  readonly pskHex: string;
  readonly writable: boolean;
}
/** All that a host needs to compose a volume: the volume itself first, then its origin, then that one's, … */
export interface Attachment {
  readonly volume: Uid;
  /** Fencing epoch of the writable lease; 0 for a volume attached read-only. */
  readonly epoch: number;
  readonly sizeMiB: number;
  /** The disk was smaller at the grant, and there is room: its host makes it grow to this. Absent: not so. */
  readonly growToMiB?: number;
  readonly layers: readonly Layer[];
  /** The kernel recorded with the image that this volume descends from; null: it has its own boot loader. */
  readonly boot: BootRecord | null;
  /** No VM could ever write it or an origin of it before this lease: it is still what its image is. Absent: not so. */
  readonly pristine?: true;
}
/** Fetched by the host from `https://<address>:<port>/boot/<digest>/{kernel,initrd}` (mutual TLS), cached by digest. */
export interface BootRecord {
  readonly digest: string;
  readonly address: Ipv4;
  readonly port: number;
  readonly commandLine: string;
  /** SHA-256 (hexadecimal) of the two files, where the image's record has them. */
  readonly kernelSha256?: string;
  readonly initrdSha256?: string;
  /** Its guest has QEMU's guest agent. Absent: not known. */
  readonly agent?: true;
  /** Absent: the image has no saved state, machines of it can only boot. */
  readonly saved?: SavedState;
  /** Of an image that is saved in several sizes; `saved` is absent then. Each has files of its own (`savedPart`). */
  readonly savedSizes?: readonly SavedState[];
}

// --- storage: Storage Manager ↔ storage agent ------------------------------------------------------------------

/** A file on this server. For a copy, the origin's bytes may lie on another server: the overlay only records its size. */
export interface AgentVolume extends VolumeLabel {
  readonly uid: Uid;
  readonly source:
    | { readonly kind: "empty" }
    /** `digest`: of no other image of that name. Absent: of whichever is there. */
    | { readonly kind: "image"; readonly image: string; readonly digest?: string }
    | { readonly kind: "overlay" };
  /** Null only for an image: as large as the image. */
  readonly sizeMiB: number | null;
  /** It was made before: a server that has no file of it (its disk is not mounted) must not make an empty one. */
  readonly made?: true;
}
export interface AgentVolumeActual extends Progress, MadeOf {
  readonly sizeMiB: number | null;
  /** The size up to which its disk can grow while it is exported; absent: not at all. */
  readonly roomMiB?: number;
  readonly usedMiB: number | null;
  readonly boot: BootRecord | null;
  readonly about?: VolumeAbout;
}
/**
 * Compare-and-set: the agent grants `epoch` only if it is exactly one above the durable current one, after everything of
 * the current one is fenced (QEMU's BLOCK_EXPORT_DELETED). `holder` null means: fence, and let nobody write.
 * A document whose epoch is not above the current one changes nothing; the actual state says what holds.
 */
export interface AgentLease {
  readonly volume: Uid;
  readonly epoch: number;
  readonly holder: LeaseHolder | null;
  /** Hosts may ask for the next epochs themselves, each in its own name: `succession/<volume uid>`, an `AgentLease` as well. */
  readonly succession?: true;
}
/** Who holds a volume that hosts may take over, `successor/<volume uid>`; without its secrets, for every host. */
export interface ActualSuccessor {
  readonly epoch: number;
  readonly holder: LeaseHolder | null;
}
export interface LeaseHolder {
  readonly vm: Uid;
  readonly incarnation: number;
  readonly host: HostName;
}
export interface AgentLeaseActual extends Progress {
  readonly epoch: number;
  readonly holder: LeaseHolder | null;
  /** Present when ready with a holder. */
  readonly layer: Layer | null;
}
/** The volume is an immutable origin from now on: serve it read-only. Written once, it can never be leased again. */
export interface AgentReaders {
  readonly volume: Uid;
}
export interface AgentReadersActual extends Progress {
  readonly layer: Layer | null;
}
export interface AgentServer extends ServerLabel {
  readonly server: ServerName;
  readonly address: Ipv4;
  readonly totalMiB: number;
  readonly freeMiB: number;
  /** Sizes of all volumes there, for each of several Storage Managers by its name. Absent: of one alone, which knows it. */
  readonly promisedMiB?: { readonly [manager: string]: number };
}
/** An image that the operator provides, known by name to every cell. */
export interface AgentImage {
  readonly name: string;
  readonly digest: string;
  readonly sizeMiB: number;
}

/** What all servers could hold. `complete` false: some server was never heard of, and might hold more. */
export interface StorageOffers extends StorageOffer {
  readonly complete: boolean;
  /** It answers each grant. Absent: a Storage Manager of the previous version. */
  readonly saysGrants?: true;
}

/**
 * Storage Manager → controller, key `kept`; absent: nothing. Deleted volumes, each by its size and once: under copies of this
 * cell, whoever left them; and by the UID of the cell that left them, what others have copied or connected.
 */
export interface ActualKept {
  readonly keptMiB: number;
  readonly left?: { readonly [cell: string]: number };
}

// --- addresses and names ---------------------------------------------------------------------------------------

export interface DesiredName extends OfHeard {
  readonly uid: Uid;
  /** Fully qualified, without the final dot: `web1.shop.cells.internal`. */
  readonly name: string;
  readonly address: Ipv4;
  /** Other cells may look it up: its interface is public, or the VM is. */
  readonly public?: true;
}
/** With what is served, once it is `ready`. Absent: a DNS Manager of the previous version. */
export interface ActualName extends Progress {
  readonly serves?: Omit<DesiredName, "uid">;
}

// --- placement -------------------------------------------------------------------------------------------------

export interface DesiredPlacement extends OfMode, HadBefore, BootsFrom {
  readonly vm: Uid;
  readonly path: ElementPath;
  readonly cell: CellName;
  readonly incarnation: number;
  readonly memoryMiB: number;
  readonly cpus: number;
  readonly cpuSpeedMHz: number;
  readonly placement: Json;
  /** Hosts where it could not be started lately: taken only when no other one can hold it. */
  readonly avoid?: readonly HostName[];
  /** This incarnation runs there already, whoever started it: its place is there and nowhere else. */
  readonly on?: HostName;
  /** Where a Placer placed this incarnation before: what one goes by whose store does not know it. */
  readonly at?: HostName;
  /** `x.priority`: of VMs that leave a host, the higher goes first. Absent: 0. */
  readonly priority?: number;
  /** The operator has it go to that host. */
  readonly moveTo?: HostName;
  /** Its host was lost: it may have a place that is kept for that. */
  readonly restart?: true;
  /** It was stopped there lately: it takes no room, and counts for groups and for what is held by who is there. */
  readonly off?: true;
}
/** What the operator says of a host that is not to take all that fits; `reserved` (tag `ha`): VMs alone whose host was lost. */
export interface DesiredHost {
  readonly host: HostName;
  readonly state: Exclude<HostAdministration, "enabled"> | "reserved";
}
export const hostKey = (host: HostName): string => `host/${host}`;
export type HostRefusal = RefusedBy;
export interface ActualPlacement extends Progress, Refusing, WishesMet, GivenMore, Crossed {
  readonly incarnation: number;
  readonly host: HostName | null;
  /** `ActualHost.boot` of that host when it was chosen. */
  readonly boot?: number;
  readonly terms?: PlacedTerms;
  readonly advice?: Advice;
  /** It is to go elsewhere, where room is kept (`to`), or nowhere yet (null), and per host why. Absent: it stays. */
  readonly leave?: Leave;
}
export interface Leave extends Refusing {
  readonly to: HostName | null;
}
/** What hosts can hold when empty, and what is said of them (absent: of a version before). `complete` false: some host was never heard of. */
export interface HostOffers {
  readonly hosts: readonly HostOffer[];
  readonly complete: boolean;
  readonly marks?: KnownMarks;
  /** What the operator offers by names. Absent: of a version before. */
  readonly offerings?: readonly KnownOffering[];
  /** `x.placement.lastHostS` of the root cell; absent: as preset. */
  readonly lastHostS?: number;
}
export interface ActualHost extends OfMode {
  readonly host: HostName;
  readonly state: "up" | "draining";
  /** On the underlay. */
  readonly address: Ipv4;
  readonly mac: Mac;
  readonly memoryMiB: number;
  /** For the management; not offered to VMs. */
  readonly reservedMiB: number;
  /** What each machine takes of that beside its guest's memory; a large one twice (`machineShares`). Absent: nothing. */
  readonly machineMiB?: number;
  readonly cpus: number;
  readonly cpuSpeedMHz: number;
  readonly accelerator: "kvm" | "tcg";
  /** Which start of the machine this is: above that of every earlier one. What began in one boot never runs in another. */
  readonly boot?: number;
  /** Upstream routers on its way out of the installation. Absent: it has none. */
  readonly routers?: readonly ActualRouter[];
}

/** What a VM takes of a host that runs it or is about to; so each Placer learns of the others' VMs (decisions/0037). */
export interface ActualTaken {
  readonly memoryMiB: number;
  readonly cpus: number;
  /** Its controller, by whose certificate. Absent: a host of the previous version. */
  readonly by?: PeerName;
  readonly terms?: PlacedTerms;
}
export const takenKey = (vm: Uid): string => `taken/${vm}`;

// --- Host Manager ----------------------------------------------------------------------------------------------

/** One VM incarnation at one host, with its links. A tombstone stops it and frees everything. */
export interface DesiredVm extends WishesMet, BesideGuest {
  readonly uid: Uid;
  readonly cell: CellName;
  readonly path: ElementPath;
  /** DNS host name the guest gets when no interface names one. */
  readonly name: string;
  readonly incarnation: number;
  readonly power: "on" | "off";
  readonly memoryMiB: number;
  readonly cpus: number;
  readonly disks: readonly DesiredDisk[];
  readonly interfaces: readonly DesiredInterface[];
  readonly data: Json;
  /** `x.liveness`: probes sent as if from the gateway of an interface. Absent: none. */
  readonly liveness?: DesiredLiveness;
  /** Its host says of its guest whether it has come up (`ActualVm.guest`). Absent: nobody asks. */
  readonly ready?: "booted";
  /** `x.start`: from its boot loader or kernel, or from the saved state of its image. Absent: "boot". */
  readonly start?: "boot" | "resume";
  /** `x.display`. Absent: none. A host of the previous version gives none. */
  readonly display?: "vga";
  /** Its host starts it again by itself when it ends: the VM of the root controller, whom nobody else would start. */
  readonly restart?: "host";
  /** The boot of the host that this incarnation was placed for: a later one never starts it, so its end is this one's. Absent: for any boot. */
  readonly boot?: number;
  /** By what it was placed. Absent: its controller or Placer is of a version before. */
  readonly terms?: PlacedTerms;
  /** Only beside `restart`. */
  readonly trial?: DesiredTrial;
}
/**
 * Another boot disk for a VM that its host starts again by itself (decision 34): the host starts it with that one, and goes
 * back to `disks` unless whoever runs in it takes the new disk into `disks` in time.
 */
export interface DesiredTrial {
  /** In place of the one of `disks` with the connection `replaces`. */
  readonly disk: DesiredDisk;
  readonly replaces: Uid;
  /** Counted from each start with it. */
  readonly withinMs: number;
}
export interface DesiredDisk {
  readonly connection: Uid;
  /** Of the volume; for people. */
  readonly path?: ElementPath;
  readonly busType: "virtio" | "ide" | "scsi";
  readonly busNumber: number | null;
  readonly busSlot: number | null;
  readonly bootOrder: number | null;
  readonly readOnly: boolean;
  readonly attachment: Attachment;
}
export interface DesiredInterface extends OfInstance {
  readonly uid: Uid;
  readonly path: ElementPath;
  readonly mac: Mac;
  readonly address: Ipv4;
  readonly prefixLength: number;
  readonly gateway: Ipv4;
  readonly nameServer: Ipv4;
  readonly hostName: string;
  readonly domain: string;
  /** Identities, unique within the cell: the interface itself, its VM, its subnet. Never 0. */
  readonly identity: number;
  readonly vmIdentity: number;
  readonly subnetIdentity: number;
  /** Hosts that may know where this address is: those with an endpoint that may talk to it. */
  readonly audience: readonly HostName[];
  /** On the underlay itself, past Diverter; of the root cell alone (decision 31). `gateway` is then 0.0.0.0. */
  readonly management?: true;
}
/** Why a VM is not running. `exited`: the guest powered off by itself; `crashed`: its QEMU died. */
export interface ActualVm extends Progress, GuestFacts {
  readonly incarnation: number;
  readonly power: "on" | "off";
  readonly ended: "exited" | "crashed" | "stopped" | null;
  /** Of the disks with `growToMiB`: the size that the guest was shown; null: not yet, and why. */
  readonly disks?: readonly GrownDisk[];
  /** From a trial's document on, until the VM runs with its `disks` and nothing else is desired. */
  readonly trial?: ActualTrial;
}
export interface ActualTrial {
  /** Of the disk on trial. */
  readonly connection: Uid;
  /** Its machine was started with it. */
  readonly boots: boolean;
  /** Why its host has gone back for good, a sentence; null: it has not. */
  readonly refused: string | null;
}

/**
 * The compiled rules of one cell, replaced as a whole and at once. With `slices` it is a manifest, and its lists are in
 * slices beside it (`PolicySlice`): what is in the document belongs to the view as well.
 */
export interface CellPolicy {
  readonly cell: CellName;
  /** Unique in the installation, never 0. */
  readonly cellNumber: number;
  /** Grows with each change. */
  readonly version: number;
  /** Directed: who may open a flow to whom. Answers to an open flow always pass. */
  readonly rules: readonly CompiledRule[];
  /** Identities of addresses that are no interface: CIDRs that rules name, and the cell's controller. Longest match. */
  readonly networks: readonly PolicyNetwork[];
  /** Where the cell's controller is on the underlay: its machine, reached without a host in between. */
  readonly controller: { readonly address: Ipv4; readonly mac: Mac; readonly identity: number };
  /** Who may be asked for which location: every host that runs a VM of the cell or of one that it agreed with, sorted. */
  readonly hosts: readonly HostName[];
  /** `x.policy.broadcast`: nothing to a broadcast address or a group reaches anybody. Absent: rules decide. */
  readonly broadcast?: "off";
  /** Ranges of the cell's own subnets, whose last address is a directed broadcast. Absent: a controller of the previous version. */
  readonly subnets?: readonly { readonly identity: number; readonly cidr: Cidr }[];
  /** `x.router` of subnets. Absent: what has no external address has no way out. */
  readonly routers?: readonly PolicyRouter[];
  /** What interfaces may beside what is their own. Absent: none may. */
  readonly traits?: readonly PolicyTraits[];
  /** Of a manifest: the identities of whose interfaces, VMs and subnets it speaks, sorted. Absent: of all of the cell. */
  readonly identities?: readonly number[];
  readonly slices?: Sliced;
}
export interface CompiledRule {
  /** Unique in the cell: what counters and `why` name. */
  readonly id: number;
  /** The element it comes from, or a name in brackets for a built-in one: `[name service]`, `[subnet connectivity]`. */
  readonly path: string;
  readonly from: number;
  readonly to: number;
  readonly protocol: "any" | "tcp" | "udp" | "icmp";
  readonly sourcePorts: { readonly from: number; readonly to: number };
  /** Inclusive; 0-65535 is any. Meaningless for icmp. */
  readonly ports: { readonly from: number; readonly to: number };
}

/** Published by the host where the address is, to its audience. `hostMac`: of that host on the underlay; `groups`: joined by its guest, sorted. */
export interface ActualLocation {
  readonly address: Ipv4;
  readonly host: HostName;
  readonly hostMac: Mac;
  readonly cellNumber: number;
  readonly identity: number;
  readonly vmIdentity: number;
  readonly subnetIdentity: number;
  readonly groups?: readonly Ipv4[];
}
