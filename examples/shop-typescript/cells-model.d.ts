// Types of Cells specifications in TypeScript, made by `cells spec types`: do not edit, make them again.

/** What is printed is shown to who runs `cells`, and is no part of the cell. */
declare var console: {
  log(...values: readonly unknown[]): void;
  info(...values: readonly unknown[]): void;
  warn(...values: readonly unknown[]): void;
  error(...values: readonly unknown[]): void;
  debug(...values: readonly unknown[]): void;
};

declare module "cells/model" {
  const type: unique symbol;
  const reference: unique symbol;
  /** An element. It gets its path from where it stands in the cell, and stands there once; others refer to it by itself. */
  interface Element<Type extends string> {
    readonly [type]: Type;
  }
  /** A reference as text; see `ref`. */
  export interface Reference {
    readonly [reference]: true;
  }
  /** A whole cell; see `cell`. */
  export interface Cell {
    readonly [type]: "Cell";
  }
  export type Vm = Element<"VM">;
  export type Volume = Element<"Volume">;
  export type VolumeCopy = Element<"VolumeCopy">;
  export type Subnet = Element<"Subnet">;
  export type Connection = Element<"VolumeConnection">;
  export type Vif = Element<"VirtualInterface">;
  export type Rule = Element<"NetworkRule">;
  export type Grant = Element<"VolumeGrant">;
  export type Controller = Element<"CellController">;
  export type Host = Element<"Host">;
  export type Domain = Element<"Domain">;
  export type Account = Element<"Account">;
  export type Role = Element<"Role">;
  export type Zone = Element<"Zone">;
  export type Pod = Element<"Pod">;
  export type Cluster = Element<"Cluster">;
  export type Dedication = Element<"Dedication">;
  export type AffinityGroup = Element<"AffinityGroup">;
  export type Offering = Element<"Offering">;
  export type HostFlavor = Element<"HostFlavor">;
  export type Pool = Element<"Pool">;
  export type PoolHost = Element<"PoolHost">;
  type CellElement = Vm | Volume | VolumeCopy | Subnet | Connection | Vif | Rule | Grant | Controller;
  type RootElement = Host | Domain | Account | Role | Zone | Pod | Cluster | Dedication | AffinityGroup | Offering;
  type PoolElement = HostFlavor | Pool | PoolHost;
  export type AnyElement = CellElement | RootElement | PoolElement;
  /** Any structure. An element in it means its path. */
  export type Data =
    | string
    | number
    | boolean
    | null
    | AnyElement
    | Reference
    | readonly Data[]
    | { readonly [name: string]: Data };
  /** What stands under a name of a cell, of a group or of an element: an element, a group of more, or a value of your own. */
  export interface Content {
    readonly [name: string]: Data;
  }

  /**
   * The cell: `export default cell("shop", { … })` is what a specification's main file gives. Groups are plain objects:
   * `{ web: { machine: vm({ … }) } }` puts the VM at `shop/web/machine`.
   */
  export function cell(name: string, content: Content, attributes?: CellAttributes): Cell;
  /**
   * A reference where there is no object to refer by: into another cell (`ref("//other.cells.example.com/a/b")`), or to
   * what stands elsewhere in the document (`ref("/shop/web/machine")`).
   */
  export function ref(path: string): Reference;

  export interface CellAttributes {
    /** Name of the cell, if not that of its component. */
    readonly name?: string;
    readonly policy?: {
      /** Whether two VMs of one subnet may talk without a rule. Absent: as its parent has it for its child cells (`x.defaults`), and never more open than that; false where nobody says otherwise. A change takes effect in place. */
      readonly subnetConnectivity?: boolean;
      /** Whether VMs that have a way out of the installation may open connections there without a rule ("out"). Absent: as its parent has it for its child cells (`x.defaults`), and never more open than that; "none" where nobody says otherwise. A change takes effect in place. */
      readonly internet?: "none" | "out";
      /** Whether a packet to a broadcast address or a multicast group reaches those to whom a rule lets its sender send it ("on"), or nobody ("off"). Absent: as its parent has it for its child cells (`x.defaults`), and never more open than that; "on" where nobody says otherwise. A change takes effect in place. */
      readonly broadcast?: "off" | "on";
      /** Which of the resolvers that its parent lets it have the cell's name server asks for names outside, for as long as a rule of the cell opens something towards "internet"; an empty list: none. Absent: all of them. A change takes effect in place. */
      readonly resolvers?: readonly string[];
      /** Whether whoever may (`vm.forward`) reaches a TCP port of a VM by `cells forward`, though no rule lets anybody in. The root cell lets nobody. Default: false. */
      readonly forward?: boolean;
      /** Whether nobody reaches a VM whom no rule lets in ("by-rules"), or the cell puts up with machines that anybody in the site's own network reaches ("none"): without that word its networks are made by no mode that isolates nothing (STATIC, SYSTEM). Where rules can hold they do, whatever it says. Default: "by-rules". */
      readonly isolation?: "by-rules" | "none";
      /** Whether as much is deployed as can be had ("as-possible"), or nothing until all of it can be ("all-or-none"). Default: "as-possible". */
      readonly deploy?: "as-possible" | "all-or-none";
    };
    readonly defaults?: {
      /** `x.policy.subnetConnectivity` of child cells that say nothing of it, and the most that they may have; of the root cell: of all cells. Absent: as its own parent has it for this cell. A change takes effect in place. */
      readonly subnetConnectivity?: boolean;
      /** `x.policy.internet` of child cells that say nothing of it, and the most that they may have; of the root cell: of all cells. Absent: as its own parent has it for this cell. A change takes effect in place. */
      readonly internet?: "none" | "out";
      /** `x.policy.broadcast` of child cells that say nothing of it, and the most that they may have; of the root cell: of all cells. Absent: as its own parent has it for this cell. A change takes effect in place. */
      readonly broadcast?: "off" | "on";
      /** Resolvers that child cells may ask for names outside. The root cell declares them, on the management network, from where controllers ask; any other cell may only name some of those that it has itself. Absent: as its own parent has it for this cell, and none where nobody says so. A change takes effect in place. */
      readonly resolvers?: readonly string[];
    };
    readonly limits?: {
      /** Most VMs, running or not. What a child cell has counts here too, and so in each limit. 0 to 9007199254740991. */
      readonly vms?: number;
      /** Most memory of all VMs. In MiB, 0 to 9007199254740991. */
      readonly memory?: number;
      /** Most processors of all VMs. 0 to 9007199254740991. */
      readonly cpus?: number;
      /** Most volumes and volume copies. 0 to 9007199254740991. */
      readonly volumes?: number;
      /** Most storage of all volumes. In MiB, 0 to 9007199254740991. */
      readonly storage?: number;
      /** Most subnets. 0 to 9007199254740991. */
      readonly subnets?: number;
      /** Most addresses of all subnets. 0 to 9007199254740991. */
      readonly addresses?: number;
      /** Most addresses of subnets with `x.addressRange "external"`, which count among all too. 0 to 9007199254740991. */
      readonly publicAddresses?: number;
      /** Most starts of VMs a minute, its child cells' included; ten minutes' worth may come at once. Never more than its parent lets it have, which is 120 where nobody says otherwise. 1 to 1000000. */
      readonly vmStartsPerMinute?: number;
    };
    readonly backup?: {
      /** Of the root cell alone: backups of the management are made by themselves, sealed to this key of `cells management key`, and kept on every storage server. */
      readonly publicKey?: string;
      /** How often, beside `x.backup.publicKey`. In min, 10 to 525600. Default: 1440. */
      readonly period?: number;
      /** How many each storage server keeps. 1 to 100. Default: 14. */
      readonly keep?: number;
    };
    readonly ha?: {
      /** How often all that hosts list is compared with all that is looked after, whatever is heard. Of the root cell alone. Absent: 60. In s, 5 to 3600. */
      readonly syncInterval?: number;
      /** How often work on lost VMs that waits is looked at again, whatever is heard. Of the root cell alone. Absent: 60. In s, 1 to 3600. */
      readonly timeToSleep?: number;
      /** As long as a VM of a lost host is not fenced since something says that it runs, other machines are asked after this whether its host answers on the network, in place of those that got no answer. Of the root cell alone. Absent: 60. In s, 10 to 86400. */
      readonly investigateRetryInterval?: number;
      /** A VM that its machine, which is heard, has not stopped after this is told to you (`stuck`). Of the root cell alone. Absent: 600. In s, 10 to 86400. */
      readonly stopRetryInterval?: number;
      /** How long `cells ha` shows work that has ended. It counts for `maxRetries`, so it is no shorter than `timeBetweenFailures`. Of the root cell alone. Absent: 86400. In s, 3600 to 2592000. */
      readonly timeBetweenCleanup?: number;
      /** Within this time a VM is started elsewhere `maxRetries` times. Of the root cell alone. Absent: 3600. In s, 60 to 604800. */
      readonly timeBetweenFailures?: number;
      /** When the power of a lost host could not be cut, it is tried again after this; a VM that its machine, which is heard, has not started after this is told to you (`stuck`). Of the root cell alone. Absent: 600. In s, 10 to 86400. */
      readonly restartRetryInterval?: number;
      /** Of so many lost hosts at once the power is read or cut; fences at the storage do not wait for one another. Of the root cell alone. Absent: 5. 1 to 100. */
      readonly haWorkers?: number;
      /** So often a VM whose host is lost is started elsewhere by itself within `timeBetweenFailures`; then it waits for `cells ha release`. Of the root cell alone. Absent: 5. 1 to 100. */
      readonly maxRetries?: number;
      /** Room is kept for the VMs of so many hosts, the fullest: a new VM is placed only where these would still find memory and processors on the others. VMs whose host was lost, those that leave a host, and the cloud's own take it. `cells status` says whether there is enough. Of the root cell alone. Absent: 0. 0 to 16. */
      readonly spareHosts?: number;
      /** What is asked whether a VM of a lost host runs, in the order in which `cells ha why VM` shows it; what is left out is not asked. None of them makes anything start elsewhere that can still write. Of the root cell alone. Absent: all, in this order. */
      readonly investigators?: readonly ("power" | "host-manager" | "heartbeat" | "export" | "neighbours" | "vm")[];
    };
    readonly placement?: {
      /** So long a VM that was stopped, and not deleted, still counts at its last host for its affinity groups and for implicit dedication, without taking room there; 0: not at all. It is about stops from then on. Of the root cell alone. Absent: 3600. In s, 0 to 86400. */
      readonly lastHostS?: number;
      /** So many hosts are left to the cloud's own VMs: no VM with `x.placement.dedication "strict"` makes one of the last its account's alone, and none of the last goes into a flavour. What stands there already stays. Not written, it is none where no more than 4 hosts are open to all VMs. Of the root cell alone. Absent: 1. 0 to 16. */
      readonly systemHosts?: number;
    };
    readonly pools?: {
      /** Of the root cell alone: from one to eight networks that are routed to the hosts, from which subnets with `x.addressRange "external"` get addresses, in this order. One of which a subnet has addresses stays in the list until they are given back. Absent: 198.18.0.0/15. */
      readonly external?: readonly string[];
    };
    readonly zone?: {
      /** Of the root cell alone: the domain under which external addresses that have a public name are found outside. The DNS Manager hands it to `x.zone.secondaries`, whom everybody asks. */
      readonly name?: string;
      /** Beside `x.zone.name`: names of the name servers that answer for it, one to eight with blanks between them, as the zone above it names them. */
      readonly servers?: string;
      /** Beside `x.zone.name`: addresses on the management network from which these servers fetch the zone (AXFR). */
      readonly secondaries?: readonly string[];
      /** Beside `x.zone.name`: name of the key with which the zone's transfers are signed (TSIG, hmac-sha256). With it what is not signed is refused. Its secret is in no specification: `cells zone key` takes it. */
      readonly key?: string;
    };
    /** Whether other cells may refer to the element. Default: false. A change takes effect in place. */
    readonly public?: boolean;
    /** The path that the element had before, such as `shop/web/vm`: it keeps its identity and its data under the new name. On a component that is no element: the path that it had before, with everything in it. */
    readonly movedFrom?: string;
  }

  export interface VmAttributes {
    /** Main memory. In MiB, 16 to 16777216. A change restarts the VM. */
    readonly memory: number;
    /** Number of virtual processors. 1 to 1024. Default: 1. A change restarts the VM. */
    readonly cpus?: number;
    /** Least speed of a processor; 0 is any. In MHz, 0 to 100000. Default: 0. A change restarts the VM. */
    readonly cpuSpeed?: number;
    /** Whether the VM runs. Default: "on". A change takes effect in place. */
    readonly desiredState?: "on" | "off";
    /** A counter: the VM is started again when it grows, and left alone when it falls or goes; absent is 0. 0 to 9007199254740991. A change restarts the VM. */
    readonly restart?: number;
    /** How the VM first starts on a new disk: booting, or going on from the saved state of its image, where it has one. Default: "boot". A change takes effect in place. */
    readonly start?: "boot" | "resume";
    /** Whether the VM has a screen, a keyboard and a pointer, which `cells display` and the web page show to whoever may (`vm.display`). Default: "none". A change restarts the VM. */
    readonly display?: "none" | "vga";
    /** When the VM counts as ready: once the agent of its guest has answered ("booted"), or as soon as its machine runs ("started"). Absent: "booted" where its image is known to have an agent, else "started". A change takes effect in place. */
    readonly ready?: "booted" | "started";
    /** Whether a VM that crashed, powered itself off or stopped answering its probes is started again. Default: false. A change takes effect in place. */
    readonly restartOnFailure?: boolean;
    readonly liveness?: {
      /** How the VM is asked whether it lives; absent: not at all. A change takes effect in place. */
      readonly protocol?: "icmp" | "udp";
      /** The port that a UDP probe is sent to; needed for one. 1 to 65535. A change takes effect in place. */
      readonly port?: number;
      /** The VM's interface that is asked, as if by the gateway of its subnet; absent: the first. A change takes effect in place. */
      readonly interface?: Vif | Reference;
      /** Time between two probes. In ms, 100 to 3600000. Default: 2000. A change takes effect in place. */
      readonly intervalMs?: number;
      /** Probes in a row without an answer that make a VM failed. 1 to 1000. Default: 3. A change takes effect in place. */
      readonly failures?: number;
    };
    /** Any structure, shown to the guest as a mounted file system. A change restarts the VM. */
    readonly data?: Data;
    /** The higher goes first when resources are short. -1000 to 1000. Default: 0. A change takes effect in place. */
    readonly priority?: number;
    readonly ha?: {
      /** What becomes of the VM when its host is declared dead, though something says for 5 minutes that the VM still runs there: "keep" leaves it, "restart" fences it and starts it elsewhere. Only with `x.restartOnFailure`. Default: "keep". A change takes effect in place. */
      readonly isolated?: "keep" | "restart";
    };
    readonly placement?: {
      /** Wishes about the host: `zone`, `pod`, `cluster`, `tags`, `properties`, `groups`, `dedication`, `offering`, `pool`, `apartFrom`; and which of the hosts that take it: `nice`, `spread`, `spreadOver`, `fill`. A change restarts the VM. */
      readonly [name: string]: Data;
    };
    /** Whether other cells may refer to the element. Default: false. A change takes effect in place. */
    readonly public?: boolean;
    /** The path that the element had before, such as `shop/web/vm`: it keeps its identity and its data under the new name. On a component that is no element: the path that it had before, with everything in it. */
    readonly movedFrom?: string;
  }
  /** An element of type VM; `content` is what stands inside it and means nothing to the cloud, or elements of their own. */
  export function vm(attributes: VmAttributes, content?: Content): Vm;

  export interface VolumeAttributes {
    /** Size of the volume. In MiB, 1 to 2147483647. A change takes effect in place. */
    readonly size: number;
    /** Whether guests may write to it ("rw") or only read it ("ro"). Default: "rw". A change replaces the element by a new one. */
    readonly access?: "rw" | "ro";
    /** Name of an uploaded image whose content the volume starts with; absent: it starts empty. A change replaces the element by a new one. */
    readonly import?: string;
    /** Whether what is written there may be lost, as of a cache: where the host of a VM is lost, nobody can end its writing, and all that it writes is such, the VM starts elsewhere with new volumes in place of these, which start as these did. What runs is not touched when this changes. Default: false. A change takes effect in place. */
    readonly recreatable?: boolean;
    /** Whether other cells may refer to the element. Default: false. A change takes effect in place. */
    readonly public?: boolean;
    /** The path that the element had before, such as `shop/web/vm`: it keeps its identity and its data under the new name. On a component that is no element: the path that it had before, with everything in it. */
    readonly movedFrom?: string;
  }
  /** An element of type Volume; `content` is what stands inside it and means nothing to the cloud, or elements of their own. */
  export function volume(attributes: VolumeAttributes, content?: Content): Volume;

  export interface VolumeCopyAttributes {
    /** The volume that it is a copy of. A change replaces the element by a new one. */
    readonly image: Volume | VolumeCopy | Reference;
    /** Size, at least the origin's; absent: the origin's, and what it has where a size was left out. In MiB, 1 to 2147483647. A change takes effect in place. */
    readonly size?: number;
    /** Whether what is written there may be lost, as of a cache: where the host of a VM is lost, nobody can end its writing, and all that it writes is such, the VM starts elsewhere with new volumes in place of these, which start as these did. What runs is not touched when this changes. Default: false. A change takes effect in place. */
    readonly recreatable?: boolean;
    /** Whether other cells may refer to the element. Default: false. A change takes effect in place. */
    readonly public?: boolean;
    /** The path that the element had before, such as `shop/web/vm`: it keeps its identity and its data under the new name. On a component that is no element: the path that it had before, with everything in it. */
    readonly movedFrom?: string;
  }
  /** An element of type VolumeCopy; `content` is what stands inside it and means nothing to the cloud, or elements of their own. */
  export function volumeCopy(attributes: VolumeCopyAttributes, content?: Content): VolumeCopy;

  export interface SubnetAttributes {
    /** Addresses, those of network, gateway and broadcast included. A management subnet has those of the underlay. In addresses, 4 to 1048576. A change replaces the element by a new one. */
    readonly size?: number;
    /** Private to the installation, or routable outside; in a mode of Eucalyptus each member of an external subnet has an elastic address beside its own; "management" is the network of the hosts themselves, which only the operator's root cell and its child with `x.gateway` may have. Default: "internal". A change replaces the element by a new one. */
    readonly addressRange?: "internal" | "external" | "management";
    /** A fixed range instead of any free one. A change replaces the element by a new one. */
    readonly cidr?: string;
    /** The interface that takes what goes from here to the outside of the installation, such as that of a VM which translates addresses; its `x.forwards` has to have "internet". Absent: nothing of an internal subnet goes there. A change takes effect in place. */
    readonly router?: Vif | Reference;
    /** Whether other cells may refer to the element. Default: false. A change takes effect in place. */
    readonly public?: boolean;
    /** The path that the element had before, such as `shop/web/vm`: it keeps its identity and its data under the new name. On a component that is no element: the path that it had before, with everything in it. */
    readonly movedFrom?: string;
  }
  /** An element of type Subnet; `content` is what stands inside it and means nothing to the cloud, or elements of their own. */
  export function subnet(attributes: SubnetAttributes, content?: Content): Subnet;

  export interface ConnectionAttributes {
    /** The VM that gets a disk. A change replaces the element by a new one. */
    readonly vm: Vm | Reference;
    /** The volume that is the disk. A change replaces the element by a new one. */
    readonly volume: Volume | VolumeCopy | Reference;
    /** Bus on which the guest sees the disk. Default: "virtio". A change restarts the VM. */
    readonly busType?: "virtio" | "ide" | "scsi";
    /** Number of the bus. 0 to 255. A change restarts the VM. */
    readonly busNumber?: number;
    /** Slot on the bus. 0 to 255. A change restarts the VM. */
    readonly busSlot?: number;
    /** Of its disks, a VM boots from the one with the lowest number. 0 to 255. A change restarts the VM. */
    readonly bootOrder?: number;
    /** Whether the volume must be ready before the VM starts. Default: true. A change takes effect in place. */
    readonly requires?: boolean;
    /** Whether other cells may refer to the element. Default: false. A change takes effect in place. */
    readonly public?: boolean;
    /** The path that the element had before, such as `shop/web/vm`: it keeps its identity and its data under the new name. On a component that is no element: the path that it had before, with everything in it. */
    readonly movedFrom?: string;
  }
  /** An element of type VolumeConnection; `content` is what stands inside it and means nothing to the cloud, or elements of their own. */
  export function connection(attributes: ConnectionAttributes, content?: Content): Connection;

  export interface VifAttributes {
    /** The VM that gets a network interface. A change replaces the element by a new one. */
    readonly vm: Vm | Reference;
    /** The subnet that its address is from. A change replaces the element by a new one. */
    readonly subnet: Subnet | Reference;
    /** DNS host name within the cell's domain. A change takes effect in place. */
    readonly vifName?: string;
    /** A fixed MAC address. A change restarts the VM. */
    readonly mac?: string;
    /** A fixed address of the subnet. A change restarts the VM. */
    readonly address?: string;
    /** Networks in whose name the VM may send to machines of the cell beside its own, as a router or a VPN gateway does; "internet" is every address outside. None may be of the installation. A change takes effect in place. */
    readonly forwards?: readonly string[];
    /** Multicast groups of which the interface is a member for good, for a guest that does not join them by IGMP itself. A change takes effect in place. */
    readonly groups?: readonly string[];
    /** Whether the subnet must be ready before the VM starts. Default: true. A change takes effect in place. */
    readonly requires?: boolean;
    /** Whether other cells may refer to the element. Default: false. A change takes effect in place. */
    readonly public?: boolean;
    /** The path that the element had before, such as `shop/web/vm`: it keeps its identity and its data under the new name. On a component that is no element: the path that it had before, with everything in it. */
    readonly movedFrom?: string;
  }
  /** An element of type VirtualInterface; `content` is what stands inside it and means nothing to the cloud, or elements of their own. */
  export function vif(attributes: VifAttributes, content?: Content): Vif;

  export interface RuleAttributes {
    /** One end: a subnet, VM or interface, an address or CIDR, "internet" or "controller". A change takes effect in place. */
    readonly address1: Subnet | Vm | Vif | Reference | "internet" | "controller" | (string & {});
    /** The other end. A change takes effect in place. */
    readonly address2: Subnet | Vm | Vif | Reference | "internet" | "controller" | (string & {});
    /** The protocol that may pass. Default: "any". A change takes effect in place. */
    readonly protocol?: "any" | "tcp" | "udp" | "icmp";
    /** Port or "from-to" of the first end; absent: any. A change takes effect in place. */
    readonly port1?: number | string;
    /** Port or "from-to" of the second end; absent: any. A change takes effect in place. */
    readonly port2?: number | string;
    /** Who may open a connection: both ends, or only the first ("1to2"); answers always pass. Default: "both". A change takes effect in place. */
    readonly direction?: "both" | "1to2";
    /** Whether other cells may refer to the element. Default: false. A change takes effect in place. */
    readonly public?: boolean;
    /** The path that the element had before, such as `shop/web/vm`: it keeps its identity and its data under the new name. On a component that is no element: the path that it had before, with everything in it. */
    readonly movedFrom?: string;
  }
  /** An element of type NetworkRule; `content` is what stands inside it and means nothing to the cloud, or elements of their own. */
  export function rule(attributes: RuleAttributes, content?: Content): Rule;

  export interface GrantAttributes {
    /** The volume that is opened to others. A change takes effect in place. */
    readonly volume: Volume | VolumeCopy | Reference;
    /** The VM that may use it. A change takes effect in place. */
    readonly vm?: Vm | Reference;
    /** The cell that may use it, as `<ref://domain/>`. A change takes effect in place. */
    readonly cell?: Reference;
    /** The account whose cells may: "ROOT/acme/dev". A change takes effect in place. */
    readonly account?: string;
    /** The domain whose cells may: "ROOT/acme", "ROOT". A change takes effect in place. */
    readonly domain?: string;
    /** What is permitted: to make copies of the volume ("copy"), or to connect it as a disk ("connect"). A change takes effect in place. */
    readonly grant: "copy" | "connect";
    /** The path of a copy in the cell that `x.cell` names, such as `primary/volumes/a1`. Until that copy has been made the volume is shown to other cells and not destroyed: it may leave the model, or its cell be deleted, and its bytes stay. Taken back by removing the grant or this attribute, and the volume not with it. A change takes effect in place. */
    readonly hold?: string;
    /** The UID of the account or the domain that `x.account` or `x.domain` names, as `cells account list` and `cells domain list` show it; beside `x.cell`, of the account that has the cell. One that is made later by the same name is another, and may not use the volume. Without it whoever has the name may. A change takes effect in place. */
    readonly holder?: string;
    /** Whether other cells may refer to the element. Default: false. A change takes effect in place. */
    readonly public?: boolean;
    /** The path that the element had before, such as `shop/web/vm`: it keeps its identity and its data under the new name. On a component that is no element: the path that it had before, with everything in it. */
    readonly movedFrom?: string;
  }
  /** An element of type VolumeGrant; `content` is what stands inside it and means nothing to the cloud, or elements of their own. */
  export function grant(attributes: GrantAttributes, content?: Content): Grant;

  export interface ControllerAttributes {
    /** Name of the child cell. A change replaces the element by a new one. */
    readonly name?: string;
    /** The initial model of the child cell: a component of type Cell, or a document with one. A change takes effect in place. */
    readonly cell: Cell | Data;
    readonly services?: {
      /** Number of the Placer that decides for the child cell, for good; absent: that of this cell, and for a cell of the operator's the one with the fewest cells. 1 to 9999. */
      readonly placer?: number;
      /** Number of the Storage Manager that decides for the child cell, for good; absent: that of this cell, and for a cell of the operator's the one with the fewest cells. 1 to 9999. */
      readonly storageManager?: number;
      /** Number of the HA Manager that decides for the child cell, for good; absent: that of this cell, and for a cell of the operator's the one with the fewest cells. Another number counts where the one that the child has is gone from the installation. 1 to 9999. */
      readonly haManager?: number;
    };
    /** By which rules the child cell's networks are made, for good: Diverter's, or those of a mode of Eucalyptus, on hosts that offer it. There a `Subnet` is a security group, whose members always reach one another, and addresses come from the network configuration; of STATIC and SYSTEM, which isolate nothing, the child says `x.policy.isolation`. Default: "DIVERTER". A change replaces the element by a new one. */
    readonly networkMode?: "DIVERTER" | "EDGE" | "MANAGED" | "MANAGED-NOVLAN" | "STATIC" | "SYSTEM";
    /** Whose the child cell is, as the path of an account: "ROOT/acme/dev"; absent: the operator's. Only the root cell gives its child cells to accounts; what is in these goes with them. A change takes effect in place. */
    readonly account?: string;
    /** The child cell is the way into the cloud: one VM of it, with the role `gateway`, has this address on the management network. Only the operator's root cell gives that, to one child. A change takes effect in place. */
    readonly gateway?: string;
    /** Whether other cells may refer to the element. Default: false. A change takes effect in place. */
    readonly public?: boolean;
    /** The path that the element had before, such as `shop/web/vm`: it keeps its identity and its data under the new name. On a component that is no element: the path that it had before, with everything in it. */
    readonly movedFrom?: string;
  }
  /** An element of type CellController; `content` is what stands inside it and means nothing to the cloud, or elements of their own. */
  export function controller(attributes: ControllerAttributes, content?: Content): Controller;

  export interface HostAttributes {
    /** Whether VMs are placed at the host: all that fit ("enabled"), no new ones ("disabled"), or none at all ("maintenance"): those that run there are stopped in order, one after the other as room is found, and started elsewhere with their data. Default: "enabled". A change takes effect in place. */
    readonly state?: "enabled" | "disabled" | "maintenance";
    /** Words about the host, by which a VM asks for it (`x.placement.tags`). One says more: a host with `ha` takes VMs alone whose host was lost; what runs there stays. A change takes effect in place. */
    readonly tags?: readonly string[];
    /** Where the machine stands: the names of zone, pod and cluster, "z1/p1/c1". Absent: in no place that has a name. A change takes effect in place. */
    readonly cluster?: string;
    /** What the machine has, by names: texts and whole numbers, `{ gpu: "a100", sriov: 8 }`. A VM asks for the same text, or for at least that number, by `x.placement.properties`. A change takes effect in place. */
    readonly properties?: Data;
    /** The host is of this HostFlavor: it takes VMs of the pool alone that it is in, and none as long as it is in none. It goes into a flavour disabled and empty. A change takes effect in place. */
    readonly flavor?: string;
    /** Whether other cells may refer to the element. Default: false. A change takes effect in place. */
    readonly public?: boolean;
    /** The path that the element had before, such as `shop/web/vm`: it keeps its identity and its data under the new name. On a component that is no element: the path that it had before, with everything in it. */
    readonly movedFrom?: string;
  }
  /** An element of type Host; `content` is what stands inside it and means nothing to the cloud, or elements of their own. */
  export function host(attributes: HostAttributes, content?: Content): Host;

  export interface DomainAttributes {
    /** Whether the domain, with all that is in it, is used: "locked" lets nothing new be made, "disabled" lets nobody in, and its machines are off. Default: "enabled". A change takes effect in place. */
    readonly state?: "enabled" | "locked" | "disabled";
    readonly limits?: {
      /** Most VMs of all accounts in the domain and below together. Absent: not limited. 0 to 1099511627776. A change takes effect in place. */
      readonly vms?: number;
      /** Most memory of all VMs of all accounts in the domain and below together. Absent: not limited. In MiB, 0 to 1099511627776. A change takes effect in place. */
      readonly memory?: number;
      /** Most processors of all VMs of all accounts in the domain and below together. Absent: not limited. 0 to 1099511627776. A change takes effect in place. */
      readonly cpus?: number;
      /** Most volumes and volume copies of all accounts in the domain and below together. Absent: not limited. 0 to 1099511627776. A change takes effect in place. */
      readonly volumes?: number;
      /** Most storage of all volumes of all accounts in the domain and below together. Absent: not limited. In MiB, 0 to 1099511627776. A change takes effect in place. */
      readonly storage?: number;
      /** Most subnets of all accounts in the domain and below together. Absent: not limited. 0 to 1099511627776. A change takes effect in place. */
      readonly subnets?: number;
      /** Most addresses of all subnets of all accounts in the domain and below together. Absent: not limited. 0 to 1099511627776. A change takes effect in place. */
      readonly addresses?: number;
      /** Most addresses of subnets with `x.addressRange "external"` of all accounts in the domain and below together. Absent: not limited. 0 to 1099511627776. A change takes effect in place. */
      readonly publicAddresses?: number;
      /** Most cells of all accounts in the domain and below together. Absent: not limited. 0 to 1099511627776. A change takes effect in place. */
      readonly cells?: number;
      /** Most units of whole hosts in pools of all accounts in the domain and below together. Absent: not limited. 0 to 1099511627776. A change takes effect in place. */
      readonly units?: number;
    };
    /** Whether other cells may refer to the element. Default: false. A change takes effect in place. */
    readonly public?: boolean;
    /** The path that the element had before, such as `shop/web/vm`: it keeps its identity and its data under the new name. On a component that is no element: the path that it had before, with everything in it. */
    readonly movedFrom?: string;
  }
  /** An element of type Domain; `content` is what stands inside it and means nothing to the cloud, or elements of their own. */
  export function domain(attributes: DomainAttributes, content?: Content): Domain;

  export interface AccountAttributes {
    /** Whether the account is used: "locked" lets nothing new be made, "disabled" lets nobody in, and its machines are off. Default: "enabled". A change takes effect in place. */
    readonly state?: "enabled" | "locked" | "disabled";
    readonly limits?: {
      /** Most VMs of all cells of the account together. Absent: not limited. 0 to 1099511627776. A change takes effect in place. */
      readonly vms?: number;
      /** Most memory of all VMs of all cells of the account together. Absent: not limited. In MiB, 0 to 1099511627776. A change takes effect in place. */
      readonly memory?: number;
      /** Most processors of all VMs of all cells of the account together. Absent: not limited. 0 to 1099511627776. A change takes effect in place. */
      readonly cpus?: number;
      /** Most volumes and volume copies of all cells of the account together. Absent: not limited. 0 to 1099511627776. A change takes effect in place. */
      readonly volumes?: number;
      /** Most storage of all volumes of all cells of the account together. Absent: not limited. In MiB, 0 to 1099511627776. A change takes effect in place. */
      readonly storage?: number;
      /** Most subnets of all cells of the account together. Absent: not limited. 0 to 1099511627776. A change takes effect in place. */
      readonly subnets?: number;
      /** Most addresses of all subnets of all cells of the account together. Absent: not limited. 0 to 1099511627776. A change takes effect in place. */
      readonly addresses?: number;
      /** Most addresses of subnets with `x.addressRange "external"` of all cells of the account together. Absent: not limited. 0 to 1099511627776. A change takes effect in place. */
      readonly publicAddresses?: number;
      /** Most cells of all cells of the account together. Absent: not limited. 0 to 1099511627776. A change takes effect in place. */
      readonly cells?: number;
      /** Most units of whole hosts in pools of all cells of the account together. Absent: not limited. 0 to 1099511627776. A change takes effect in place. */
      readonly units?: number;
    };
    /** Whether other cells may refer to the element. Default: false. A change takes effect in place. */
    readonly public?: boolean;
    /** The path that the element had before, such as `shop/web/vm`: it keeps its identity and its data under the new name. On a component that is no element: the path that it had before, with everything in it. */
    readonly movedFrom?: string;
  }
  /** An element of type Account; `content` is what stands inside it and means nothing to the cloud, or elements of their own. */
  export function account(attributes: AccountAttributes, content?: Content): Account;

  export interface RoleAttributes {
    /** On what it counts: the account of the user who has it, the domain of that account and all below, or everything. Default: "account". A change takes effect in place. */
    readonly reach?: "account" | "domain" | "installation";
    /** What it allows: the first rule that has a verb decides, and what none has is denied. A change takes effect in place. */
    readonly rules: readonly string[];
    /** Whether who has it may nothing before he has a second factor. Default: false. A change takes effect in place. */
    readonly secondFactor?: boolean;
    /** Whether other cells may refer to the element. Default: false. A change takes effect in place. */
    readonly public?: boolean;
    /** The path that the element had before, such as `shop/web/vm`: it keeps its identity and its data under the new name. On a component that is no element: the path that it had before, with everything in it. */
    readonly movedFrom?: string;
  }
  /** An element of type Role; `content` is what stands inside it and means nothing to the cloud, or elements of their own. */
  export function role(attributes: RoleAttributes, content?: Content): Role;

  export interface ZoneAttributes {
    /** Whether other cells may refer to the element. Default: false. A change takes effect in place. */
    readonly public?: boolean;
    /** The path that the element had before, such as `shop/web/vm`: it keeps its identity and its data under the new name. On a component that is no element: the path that it had before, with everything in it. */
    readonly movedFrom?: string;
  }
  /** An element of type Zone; `content` is what stands inside it and means nothing to the cloud, or elements of their own. */
  export function zone(attributes: ZoneAttributes, content?: Content): Zone;

  export interface PodAttributes {
    /** Whether other cells may refer to the element. Default: false. A change takes effect in place. */
    readonly public?: boolean;
    /** The path that the element had before, such as `shop/web/vm`: it keeps its identity and its data under the new name. On a component that is no element: the path that it had before, with everything in it. */
    readonly movedFrom?: string;
  }
  /** An element of type Pod; `content` is what stands inside it and means nothing to the cloud, or elements of their own. */
  export function pod(attributes: PodAttributes, content?: Content): Pod;

  export interface ClusterAttributes {
    /** Whether other cells may refer to the element. Default: false. A change takes effect in place. */
    readonly public?: boolean;
    /** The path that the element had before, such as `shop/web/vm`: it keeps its identity and its data under the new name. On a component that is no element: the path that it had before, with everything in it. */
    readonly movedFrom?: string;
  }
  /** An element of type Cluster; `content` is what stands inside it and means nothing to the cloud, or elements of their own. */
  export function cluster(attributes: ClusterAttributes, content?: Content): Cluster;

  export interface DedicationAttributes {
    /** The zone, pod, cluster or host that is somebody's: "z1", "z1/p1", "z1/p1/c1", or the name of a host. A change takes effect in place. */
    readonly of: string;
    /** The domain whose it is, by its path: "ROOT/acme". A change takes effect in place. */
    readonly to: string;
    /** Name of the account in that domain whose it is alone; absent: all accounts of the domain and below may use it. A change takes effect in place. */
    readonly account?: string;
    /** Whether other cells may refer to the element. Default: false. A change takes effect in place. */
    readonly public?: boolean;
    /** The path that the element had before, such as `shop/web/vm`: it keeps its identity and its data under the new name. On a component that is no element: the path that it had before, with everything in it. */
    readonly movedFrom?: string;
  }
  /** An element of type Dedication; `content` is what stands inside it and means nothing to the cloud, or elements of their own. */
  export function dedication(attributes: DedicationAttributes, content?: Content): Dedication;

  export interface AffinityGroupAttributes {
    /** How its VMs stand: at one host or at different ones, and whether that is a condition or, non-strict, a wish. A change takes effect in place. */
    readonly kind:
      | "host affinity"
      | "host anti-affinity"
      | "non-strict host affinity"
      | "non-strict host anti-affinity";
    /** Whether other cells may refer to the element. Default: false. A change takes effect in place. */
    readonly public?: boolean;
    /** The path that the element had before, such as `shop/web/vm`: it keeps its identity and its data under the new name. On a component that is no element: the path that it had before, with everything in it. */
    readonly movedFrom?: string;
  }
  /** An element of type AffinityGroup; `content` is what stands inside it and means nothing to the cloud, or elements of their own. */
  export function affinityGroup(attributes: AffinityGroupAttributes, content?: Content): AffinityGroup;

  export interface OfferingAttributes {
    /** What it is, for people. Default: "". A change takes effect in place. */
    readonly displayText?: string;
    /** Memory of such a VM. In MiB, 16 to 2147483647. A change takes effect in place. */
    readonly memory: number;
    /** Its virtual processors. 1 to 1024. Default: 1. A change takes effect in place. */
    readonly cpus?: number;
    /** Least speed of a processor; 0: any. In MHz, 0 to 2147483647. Default: 0. A change takes effect in place. */
    readonly cpuSpeed?: number;
    /** Tags that its host has (`x.tags` of a Host). A change takes effect in place. */
    readonly tags?: readonly string[];
    /** Which hosts it may have: any that fit ("FirstFitPlanner"), or such as its account has by what runs there ("ImplicitDedicationPlanner"). Default: "FirstFitPlanner". A change takes effect in place. */
    readonly planner?: "FirstFitPlanner" | "ImplicitDedicationPlanner";
    /** ImplicitDedicationMode, beside `x.planner "ImplicitDedicationPlanner"`: where nobody else's VMs are, or nowhere ("Strict"), or there as long as there is such a host ("Preferred"). Absent: "Strict". A change takes effect in place. */
    readonly mode?: "Strict" | "Preferred";
    /** Whether such a VM is started elsewhere when its host is lost. Default: false. A change takes effect in place. */
    readonly ha?: boolean;
    /** Whether other cells may refer to the element. Default: false. A change takes effect in place. */
    readonly public?: boolean;
    /** The path that the element had before, such as `shop/web/vm`: it keeps its identity and its data under the new name. On a component that is no element: the path that it had before, with everything in it. */
    readonly movedFrom?: string;
  }
  /** An element of type Offering; `content` is what stands inside it and means nothing to the cloud, or elements of their own. */
  export function offering(attributes: OfferingAttributes, content?: Content): Offering;

  export interface HostFlavorAttributes {
    /** What such a host is, for people: processors, memory, and whatever tells it from others. Default: "". A change takes effect in place. */
    readonly description?: string;
    /** What one such host costs of an account's units. 1 to 1048576. A change takes effect in place. */
    readonly units: number;
    /** Whether other cells may refer to the element. Default: false. A change takes effect in place. */
    readonly public?: boolean;
    /** The path that the element had before, such as `shop/web/vm`: it keeps its identity and its data under the new name. On a component that is no element: the path that it had before, with everything in it. */
    readonly movedFrom?: string;
  }
  /** An element of type HostFlavor; `content` is what stands inside it and means nothing to the cloud, or elements of their own. */
  export function hostFlavor(attributes: HostFlavorAttributes, content?: Content): HostFlavor;

  export interface PoolAttributes {
    /** Accounts whose VMs may stand at its hosts, by their paths. Absent: the cell's own; a list without that shuts it out. A change takes effect in place. */
    readonly authorised?: readonly string[];
    /** How many virtual processors are promised for each processor of its hosts. Absent: 16, as elsewhere. 1 to 16. A change takes effect in place. */
    readonly cpuRatio?: number;
    /** How much of the memory of its hosts is promised, in hundredths. What is left nobody gets, whatever is lost. Absent: 100, as elsewhere. 1 to 100. A change takes effect in place. */
    readonly memoryPercent?: number;
    /** Which of its hosts a VM gets: "spread" the emptiest, "pack" the fullest that has room. Absent: "spread". A change takes effect in place. */
    readonly fill?: "spread" | "pack";
    /** Offerings of which a VM has to be that comes to its hosts (`x.placement.offering`); what runs there goes on. Absent: of any, or of none. A change takes effect in place. */
    readonly offerings?: readonly string[];
    /** What a VM has to boot from that comes to its hosts: names of images, or volumes of other cells, `//images.cells.internal/debian`. Absent: whatever it likes. A change takes effect in place. */
    readonly images?: readonly string[];
    /** Whether other cells may refer to the element. Default: false. A change takes effect in place. */
    readonly public?: boolean;
    /** The path that the element had before, such as `shop/web/vm`: it keeps its identity and its data under the new name. On a component that is no element: the path that it had before, with everything in it. */
    readonly movedFrom?: string;
  }
  /** An element of type Pool; `content` is what stands inside it and means nothing to the cloud, or elements of their own. */
  export function pool(attributes: PoolAttributes, content?: Content): Pool;

  export interface PoolHostAttributes {
    /** The pool that it is in. Its name, the last part of its path, is the only one of the pool. A change replaces the element by a new one. */
    readonly pool: Pool | Reference;
    /** Of which HostFlavor it is to be: the operator says which there are. A change replaces the element by a new one. */
    readonly flavor: string;
    /** Zone in which it is to stand. Absent: in any. A change replaces the element by a new one. */
    readonly zone?: string;
    /** Whether new VMs come there. Those that run there go on; it leaves the pool disabled and empty. Default: false. A change takes effect in place. */
    readonly enabled?: boolean;
    /** Whether other cells may refer to the element. Default: false. A change takes effect in place. */
    readonly public?: boolean;
    /** The path that the element had before, such as `shop/web/vm`: it keeps its identity and its data under the new name. On a component that is no element: the path that it had before, with everything in it. */
    readonly movedFrom?: string;
  }
  /** An element of type PoolHost; `content` is what stands inside it and means nothing to the cloud, or elements of their own. */
  export function poolHost(attributes: PoolHostAttributes, content?: Content): PoolHost;
}
