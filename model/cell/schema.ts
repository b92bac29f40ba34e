import {
  type AttributeSchema,
  choice,
  data,
  flag,
  foreignLink,
  integer,
  label,
  largest,
  link,
  type TypeSchema,
} from "./attributes/kinds.ts";
import { cellAttributes } from "./attributes/of-cells.ts";
import type { ElementType } from "./cell.ts";
import { networkModeAttribute } from "./network/network-mode.ts";
import { affinityGroupAttributes } from "./tenants/affinity/attributes.ts";
import { dedicationAttributes, hostPlaceAttributes } from "./tenants/dedication/attributes.ts";
import { grantAttributes } from "./tenants/grants/attributes.ts";
import { hostFlavorAttribute, poolDocs, poolSchemas } from "./tenants/pools/attributes.ts";
import { tenantDocs, tenantSchemas } from "./tenants/schemas.ts";

/*
 * The one table of element types and their attributes. Checks, defaults, the plan and the reference page come from it;
 * nothing else knows what an attribute may be. Its field in a cell: `cell.ts` and `elements.ts`; what the plan compares:
 * `described.ts`.
 */

/** Attributes that every element may have. */
export const commonAttributes: TypeSchema = {
  "x.type": {
    kind: { kind: "text" },
    effect: "replace",
    docs: "The element's type; in SmartFrog it comes from `extends`.",
  },
  "x.public": { kind: flag, default: false, effect: "change", docs: "Whether other cells may refer to the element." },
  "x.movedFrom": {
    kind: { kind: "path" },
    effect: "none",
    docs: "The path that the element had before, such as `shop/web/vm`: it keeps its identity and its data under the new name. On a component that is no element: the path that it had before, with everything in it.",
  },
};

const bus = (docs: string): AttributeSchema => ({ kind: integer(0, 255), effect: "restart", docs });
const end = (docs: string): AttributeSchema => ({ kind: { kind: "end" }, required: true, effect: "change", docs });
const instance = (of: string, more = ""): AttributeSchema => ({
  kind: integer(1, 9999),
  effect: "none",
  docs: `Number of the ${of} that decides for the child cell, for good; absent: that of this cell, and for a cell of the operator's the one with the fewest cells.${more}`,
});
const ports = (docs: string): AttributeSchema => ({ kind: { kind: "ports" }, effect: "change", docs });

const recreatable: AttributeSchema = {
  kind: flag,
  default: false,
  effect: "change",
  docs: "Whether what is written there may be lost, as of a cache: where the host of a VM is lost, nobody can end its writing, and all that it writes is such, the VM starts elsewhere with new volumes in place of these, which start as these did. What runs is not touched when this changes.",
};

/** What can be asked for at all. */
export const smallestVm = { memoryMiB: 16, cpus: 1 } as const;

export const elementSchemas: Readonly<Record<ElementType, TypeSchema>> = {
  VM: {
    "x.memory": {
      kind: integer(smallestVm.memoryMiB, 16_777_216),
      unit: "MiB",
      required: true,
      effect: "restart",
      docs: "Main memory.",
    },
    "x.cpus": {
      kind: integer(smallestVm.cpus, 1024),
      default: 1,
      effect: "restart",
      docs: "Number of virtual processors.",
    },
    "x.cpuSpeed": {
      kind: integer(0, 100_000),
      unit: "MHz",
      default: 0,
      effect: "restart",
      docs: "Least speed of a processor; 0 is any.",
    },
    "x.desiredState": { kind: choice("on", "off"), default: "on", effect: "change", docs: "Whether the VM runs." },
    "x.restart": {
      kind: integer(0, Number.MAX_SAFE_INTEGER),
      effect: "restart",
      docs: "A counter: the VM is started again when it grows, and left alone when it falls or goes; absent is 0.",
    },
    "x.start": {
      kind: choice("boot", "resume"),
      default: "boot",
      effect: "change",
      docs: "How the VM first starts on a new disk: booting, or going on from the saved state of its image, where it has one.",
    },
    "x.display": {
      kind: choice("none", "vga"),
      default: "none",
      effect: "restart",
      docs: "Whether the VM has a screen, a keyboard and a pointer, which `cells display` and the web page show to whoever may (`vm.display`).",
    },
    "x.ready": {
      kind: choice("booted", "started"),
      effect: "change",
      docs: 'When the VM counts as ready: once the agent of its guest has answered ("booted"), or as soon as its machine runs ("started"). Absent: "booted" where its image is known to have an agent, else "started".',
    },
    "x.restartOnFailure": {
      kind: flag,
      default: false,
      effect: "change",
      docs: "Whether a VM that crashed, powered itself off or stopped answering its probes is started again.",
    },
    "x.liveness.protocol": {
      kind: choice("icmp", "udp"),
      effect: "change",
      docs: "How the VM is asked whether it lives; absent: not at all.",
    },
    "x.liveness.port": {
      kind: integer(1, 65_535),
      effect: "change",
      docs: "The port that a UDP probe is sent to; needed for one.",
    },
    "x.liveness.interface": {
      kind: link("VirtualInterface"),
      effect: "change",
      docs: "The VM's interface that is asked, as if by the gateway of its subnet; absent: the first.",
    },
    "x.liveness.intervalMs": {
      kind: integer(100, 3_600_000),
      unit: "ms",
      default: 2000,
      effect: "change",
      docs: "Time between two probes.",
    },
    "x.liveness.failures": {
      kind: integer(1, 1000),
      default: 3,
      effect: "change",
      docs: "Probes in a row without an answer that make a VM failed.",
    },
    "x.data": { kind: data, effect: "restart", docs: "Any structure, shown to the guest as a mounted file system." },
    "x.priority": {
      kind: integer(-1000, 1000),
      default: 0,
      effect: "change",
      docs: "The higher goes first when resources are short.",
    },
    "x.ha.isolated": {
      kind: choice("keep", "restart"),
      default: "keep",
      effect: "change",
      docs: 'What becomes of the VM when its host is declared dead, though something says for 5 minutes that the VM still runs there: "keep" leaves it, "restart" fences it and starts it elsewhere. Only with `x.restartOnFailure`.',
    },
    "x.placement.*": {
      kind: data,
      effect: "restart",
      docs: "Wishes about the host: `zone`, `pod`, `cluster`, `tags`, `properties`, `groups`, `dedication`, `offering`, `pool`, `apartFrom`; and which of the hosts that take it: `nice`, `spread`, `spreadOver`, `fill`.",
    },
  },
  Volume: {
    "x.size": { kind: integer(1, largest), unit: "MiB", required: true, effect: "change", docs: "Size of the volume." },
    "x.access": {
      kind: choice("rw", "ro"),
      default: "rw",
      effect: "replace",
      docs: 'Whether guests may write to it ("rw") or only read it ("ro").',
    },
    "x.import": {
      kind: { kind: "text" },
      effect: "replace",
      docs: "Name of an uploaded image whose content the volume starts with; absent: it starts empty.",
    },
    "x.recreatable": recreatable,
  },
  VolumeCopy: {
    "x.image": {
      kind: foreignLink("Volume", "VolumeCopy"),
      required: true,
      effect: "replace",
      docs: "The volume that it is a copy of.",
    },
    "x.size": {
      kind: integer(1, largest),
      unit: "MiB",
      effect: "change",
      docs: "Size, at least the origin's; absent: the origin's, and what it has where a size was left out.",
    },
    "x.recreatable": recreatable,
  },
  Subnet: {
    "x.size": {
      kind: integer(4, 1_048_576),
      unit: "addresses",
      effect: "replace",
      docs: "Addresses, those of network, gateway and broadcast included. A management subnet has those of the underlay.",
    },
    "x.addressRange": {
      kind: choice("internal", "external", "management"),
      default: "internal",
      effect: "replace",
      docs: 'Private to the installation, or routable outside; in a mode of Eucalyptus each member of an external subnet has an elastic address beside its own; "management" is the network of the hosts themselves, which only the operator\'s root cell and its child with `x.gateway` may have.',
    },
    "x.cidr": { kind: { kind: "network" }, effect: "replace", docs: "A fixed range instead of any free one." },
    "x.router": {
      kind: link("VirtualInterface"),
      effect: "change",
      docs: 'The interface that takes what goes from here to the outside of the installation, such as that of a VM which translates addresses; its `x.forwards` has to have "internet". Absent: nothing of an internal subnet goes there.',
    },
  },
  VolumeConnection: {
    "x.vm": { kind: link("VM"), required: true, effect: "replace", docs: "The VM that gets a disk." },
    "x.volume": {
      kind: foreignLink("Volume", "VolumeCopy"),
      required: true,
      effect: "replace",
      docs: "The volume that is the disk.",
    },
    "x.busType": {
      kind: choice("virtio", "ide", "scsi"),
      default: "virtio",
      effect: "restart",
      docs: "Bus on which the guest sees the disk.",
    },
    "x.busNumber": bus("Number of the bus."),
    "x.busSlot": bus("Slot on the bus."),
    "x.bootOrder": bus("Of its disks, a VM boots from the one with the lowest number."),
    "x.requires": {
      kind: flag,
      default: true,
      effect: "change",
      docs: "Whether the volume must be ready before the VM starts.",
    },
  },
  VirtualInterface: {
    "x.vm": { kind: link("VM"), required: true, effect: "replace", docs: "The VM that gets a network interface." },
    "x.subnet": {
      kind: link("Subnet"),
      required: true,
      effect: "replace",
      docs: "The subnet that its address is from.",
    },
    "x.vifName": {
      kind: { kind: "label", mixedCase: true },
      effect: "change",
      docs: "DNS host name within the cell's domain.",
    },
    "x.mac": { kind: { kind: "mac" }, effect: "restart", docs: "A fixed MAC address." },
    "x.address": { kind: { kind: "address" }, effect: "restart", docs: "A fixed address of the subnet." },
    "x.forwards": {
      kind: { kind: "networks" },
      effect: "change",
      docs: 'Networks in whose name the VM may send to machines of the cell beside its own, as a router or a VPN gateway does; "internet" is every address outside. None may be of the installation.',
    },
    "x.groups": {
      kind: { kind: "groups" },
      effect: "change",
      docs: "Multicast groups of which the interface is a member for good, for a guest that does not join them by IGMP itself.",
    },
    "x.requires": {
      kind: flag,
      default: true,
      effect: "change",
      docs: "Whether the subnet must be ready before the VM starts.",
    },
  },
  NetworkRule: {
    "x.address1": end('One end: a subnet, VM or interface, an address or CIDR, "internet" or "controller".'),
    "x.address2": end("The other end."),
    "x.protocol": {
      kind: choice("any", "tcp", "udp", "icmp"),
      default: "any",
      effect: "change",
      docs: "The protocol that may pass.",
    },
    "x.port1": ports('Port or "from-to" of the first end; absent: any.'),
    "x.port2": ports('Port or "from-to" of the second end; absent: any.'),
    "x.direction": {
      kind: choice("both", "1to2"),
      default: "both",
      effect: "change",
      docs: 'Who may open a connection: both ends, or only the first ("1to2"); answers always pass.',
    },
  },
  VolumeGrant: grantAttributes,
  CellController: {
    "x.name": { kind: label, effect: "replace", docs: "Name of the child cell." },
    "x.cell": {
      kind: data,
      required: true,
      effect: "change",
      docs: "The initial model of the child cell: a component of type Cell, or a document with one.",
    },
    "x.services.placer": instance("Placer"),
    "x.services.storageManager": instance("Storage Manager"),
    "x.services.haManager": instance(
      "HA Manager",
      " Another number counts where the one that the child has is gone from the installation.",
    ),
    "x.networkMode": networkModeAttribute,
    "x.account": {
      kind: { kind: "text" },
      effect: "change",
      docs: 'Whose the child cell is, as the path of an account: "ROOT/acme/dev"; absent: the operator\'s. Only the root cell gives its child cells to accounts; what is in these goes with them.',
    },
    "x.gateway": {
      kind: { kind: "address" },
      effect: "change",
      docs: "The child cell is the way into the cloud: one VM of it, with the role `gateway`, has this address on the management network. Only the operator's root cell gives that, to one child.",
    },
  },
  Host: {
    "x.state": {
      kind: choice("enabled", "disabled", "maintenance"),
      default: "enabled",
      effect: "change",
      docs: 'Whether VMs are placed at the host: all that fit ("enabled"), no new ones ("disabled"), or none at all ("maintenance"): those that run there are stopped in order, one after the other as room is found, and started elsewhere with their data.',
    },
    "x.tags": {
      kind: { kind: "labels" },
      effect: "change",
      docs: "Words about the host, by which a VM asks for it (`x.placement.tags`). One says more: a host with `ha` takes VMs alone whose host was lost; what runs there stays.",
    },
    ...hostPlaceAttributes,
    ...hostFlavorAttribute,
  },
  ...tenantSchemas,
  Zone: {},
  Pod: {},
  Cluster: {},
  Dedication: dedicationAttributes,
  AffinityGroup: affinityGroupAttributes,
  ...poolSchemas,
};

/** What each type is, in one sentence or two. */
export const typeDocs: Readonly<Record<ElementType | "Cell", string>> = {
  Cell: "A private cloud within the cloud: its elements, and the rules for what may be deployed.",
  VM: "A virtual machine. Its disks and network interfaces are elements of their own, which refer to it.",
  Volume: "A virtual disk with its own data. Deleting it destroys them.",
  VolumeCopy:
    "A writable copy of a volume, which takes room only for what is different. Deleting it destroys its data.",
  Subnet: "A range of addresses, and the virtual network on which the interfaces in it meet.",
  VolumeConnection: "A volume as a disk of a VM.",
  VirtualInterface: "A network interface of a VM, with an address of a subnet.",
  NetworkRule: "Traffic that may pass. Without a rule, nothing passes.",
  VolumeGrant: "Leave for a VM or a cell to use a volume of this cell.",
  CellController: "A child cell, with a controller of its own.",
  Host: "A machine of the installation, in the root cell alone: `root/hosts/<its name>`. It is written there when the machine joins; what leaves the text destroys nothing of the machine.",
  ...tenantDocs,
  Zone: "A part of the installation that stands for itself, such as a building: `root/places/<zone>`. An installation that names none is one zone.",
  Pod: "A part of a zone, such as a row of racks, within its zone: `root/places/<zone>/<pod>`.",
  Cluster: "Machines of a pod that stand together, within their pod: `root/places/<zone>/<pod>/<cluster>`.",
  Dedication:
    "A zone, pod, cluster or host that one domain or account has for itself, in the root cell alone: `root/dedications/<any name>`.",
  AffinityGroup:
    "VMs of one account, of whichever of its cells, that stand at one host or at different ones. A VM is in it by its name in `x.placement.groups`.",
  ...poolDocs,
};

export const elementTypes = Object.keys(elementSchemas) as readonly ElementType[];
/** Prototypes that are always in scope of a SmartFrog document. */
export const standardPrototypes: readonly string[] = ["Cell", ...elementTypes];

export const isElementType = (name: string): name is ElementType => Object.hasOwn(elementSchemas, name);

/** The attribute of that name, common ones included; undefined if the type has none. */
export function attributeSchema(type: ElementType | "Cell", name: string): AttributeSchema | undefined {
  const table = type === "Cell" ? cellAttributes : elementSchemas[type];
  if (Object.hasOwn(table, name)) return table[name];
  if (Object.hasOwn(commonAttributes, name)) return commonAttributes[name];
  return type === "VM" && /^x\.placement\.[^.]+$/.test(name) ? table["x.placement.*"] : undefined;
}
export function attributeNames(type: ElementType | "Cell"): string[] {
  return [...Object.keys(type === "Cell" ? cellAttributes : elementSchemas[type]), ...Object.keys(commonAttributes)];
}
