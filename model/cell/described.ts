import type { Json } from "../json/json.ts";
import type {
  Cell,
  DedicationElement,
  Element,
  HostElement,
  Openness,
  PlaceElement,
  PortRange,
  RuleEnd,
  VmElement,
  VolumeGrantElement,
} from "./cell.ts";
import type { ElementPath } from "./identifiers.ts";
import { diverter } from "./network/network-mode.ts";
import { describedTenant } from "./tenants/fields.ts";
import { describedPool, isPoolElement } from "./tenants/pools/attributes.ts";

const portsText = (range: PortRange | undefined): Json | undefined =>
  range && (range.from === range.to ? range.from : `${range.from}-${range.to}`);

/**
 * The attributes of an element under the names in which they are written, with references followed and defaults filled
 * in; links are paths. Absent ones are left out. `rename` maps the paths of links.
 */
export function describedAttributes(
  element: Element,
  rename: (path: ElementPath) => ElementPath = (path) => path,
): ReadonlyMap<string, Json> {
  const all: [string, Json | undefined][] = [["x.public", element.public], ...own(element, rename)];
  return new Map(all.filter((pair): pair is [string, Json] => pair[1] !== undefined));
}

/** The same of the cell itself: what is written beside its elements. A list is one text. */
export function describedCell(cell: Cell): ReadonlyMap<string, Json> {
  const { limits = {}, backup } = cell;
  const all: [string, Json | undefined][] = [
    ["x.name", cell.name],
    ...openness("x.policy", cell.policy),
    ...openness("x.defaults", cell.defaults ?? {}),
    ["x.policy.deploy", cell.deploy],
    ["x.policy.forward", cell.forward],
    ["x.policy.isolation", cell.isolation],
    ["x.limits.vms", limits.vms],
    ["x.limits.memory", limits.memoryMiB],
    ["x.limits.cpus", limits.cpus],
    ["x.limits.volumes", limits.volumes],
    ["x.limits.storage", limits.storageMiB],
    ["x.limits.subnets", limits.subnets],
    ["x.limits.addresses", limits.addresses],
    ["x.limits.publicAddresses", limits.publicAddresses],
    ["x.limits.vmStartsPerMinute", limits.vmStartsPerMinute],
    ["x.backup.publicKey", backup?.publicKey],
    ["x.backup.period", backup?.periodMinutes],
    ["x.backup.keep", backup?.keep],
    ["x.zone.name", cell.zone?.name],
    ["x.zone.servers", cell.zone?.servers.join(" ")],
    ["x.zone.secondaries", cell.zone?.secondaries.join(" ")],
    ["x.zone.key", cell.zone?.key],
    ["x.pools.external", cell.externalPools?.join(" ")],
    ...Object.entries(cell.ha ?? {}).map(([name, value]): [string, Json] => [
      `x.ha.${name}`,
      typeof value === "number" ? value : value.join(" "),
    ]),
  ];
  return new Map(all.filter((pair): pair is [string, Json] => pair[1] !== undefined));
}

const openness = (prefix: string, said: Openness): readonly [string, Json | undefined][] => [
  [`${prefix}.subnetConnectivity`, said.subnetConnectivity],
  [`${prefix}.internet`, said.internet],
  [`${prefix}.broadcast`, said.broadcast],
  [`${prefix}.resolvers`, said.resolvers?.join(" ")],
];

function ownOfVm(element: VmElement, rename: (path: ElementPath) => ElementPath): [string, Json | undefined][] {
  return [
    ["x.memory", element.memoryMiB],
    ["x.cpus", element.cpus],
    ["x.cpuSpeed", element.cpuSpeedMHz],
    ["x.desiredState", element.desiredState],
    ["x.restart", element.restart],
    ["x.start", element.start],
    ["x.display", element.display],
    ["x.ready", element.ready],
    ["x.restartOnFailure", element.restartOnFailure],
    ["x.liveness.protocol", element.liveness?.protocol],
    ["x.liveness.port", element.liveness?.port],
    ["x.liveness.interface", element.liveness?.interface && rename(element.liveness.interface)],
    ["x.liveness.intervalMs", element.liveness?.intervalMs],
    ["x.liveness.failures", element.liveness?.failures],
    ["x.data", element.data],
    ["x.priority", element.priority],
    ["x.ha.isolated", element.ha.isolated],
    ...Object.entries(element.placement).map(([name, value]): [string, Json] => [`x.placement.${name}`, value]),
  ];
}

function own(element: Element, rename: (path: ElementPath) => ElementPath): [string, Json | undefined][] {
  switch (element.type) {
    case "VM":
      return ownOfVm(element, rename);
    case "Volume":
      return [
        ["x.size", element.sizeMiB],
        ["x.access", element.access],
        ["x.import", element.import],
        ["x.recreatable", element.recreatable],
      ];
    case "VolumeCopy":
      return [
        ["x.image", rename(element.image)],
        ["x.size", element.sizeMiB],
        ["x.recreatable", element.recreatable],
      ];
    case "Subnet":
      return [
        ["x.size", element.size === 0 ? undefined : element.size],
        ["x.addressRange", element.addressRange],
        ["x.cidr", element.cidr],
        ["x.router", element.router && rename(element.router)],
      ];
    case "VolumeConnection":
      return [
        ["x.vm", rename(element.vm)],
        ["x.volume", rename(element.volume)],
        ["x.busType", element.busType],
        ["x.busNumber", element.busNumber],
        ["x.busSlot", element.busSlot],
        ["x.bootOrder", element.bootOrder],
        ["x.requires", element.requires],
      ];
    case "VirtualInterface":
      return [
        ["x.vm", rename(element.vm)],
        ["x.subnet", rename(element.subnet)],
        ["x.vifName", element.vifName],
        ["x.mac", element.mac],
        ["x.address", element.address],
        ["x.forwards", element.forwards],
        ["x.groups", element.groups],
        ["x.requires", element.requires],
      ];
    case "NetworkRule":
      return [
        ["x.address1", endText(element.address1, rename)],
        ["x.address2", endText(element.address2, rename)],
        ["x.protocol", element.protocol],
        ["x.port1", portsText(element.port1)],
        ["x.port2", portsText(element.port2)],
        ["x.direction", element.direction],
      ];
    case "VolumeGrant":
      return ownOfGrant(element, rename);
    case "CellController":
      return [
        ["x.name", element.name],
        ["x.cell", element.cell],
        ["x.services.placer", element.services?.placer],
        ["x.services.storageManager", element.services?.storageManager],
        ["x.services.haManager", element.services?.haManager],
        ["x.networkMode", element.networkMode ?? diverter],
        ["x.account", element.account],
        ["x.gateway", element.gateway],
      ];
    case "Domain":
    case "Account":
    case "Role":
      return describedTenant(element);
    case "AffinityGroup":
      return [["x.kind", element.kind]];
    default:
      return isPoolElement(element) ? describedPool(element, rename) : ownOfInstallation(element);
  }
}

function ownOfInstallation(element: HostElement | DedicationElement | PlaceElement): [string, Json | undefined][] {
  if (element.type === "Host")
    return [
      ["x.state", element.state],
      ["x.tags", element.tags],
      ["x.cluster", element.cluster],
      ["x.properties", element.properties],
      ["x.flavor", element.flavor],
    ];
  if (element.type !== "Dedication") return [];
  return [
    ["x.of", element.of],
    ["x.to", element.to],
    ["x.account", element.account],
  ];
}

function ownOfGrant(
  { volume, to, grant, hold, holder }: VolumeGrantElement,
  rename: (path: ElementPath) => ElementPath,
): [string, Json | undefined][] {
  return [
    ["x.volume", rename(volume)],
    ["x.vm", to.kind === "vm" ? rename(to.vm) : undefined],
    ["x.cell", to.kind === "cell" ? to.domain : undefined],
    ["x.account", to.kind === "account" ? to.path : undefined],
    ["x.domain", to.kind === "tenants" ? to.path : undefined],
    ["x.grant", grant],
    ["x.hold", hold],
    ["x.holder", holder],
  ];
}

function endText(end: RuleEnd, rename: (path: ElementPath) => ElementPath): string {
  if (end.kind === "element") return rename(end.path);
  if (end.kind === "cidr") return end.cidr;
  return end.kind === "foreign" ? `//${end.domain}/${end.path}` : end.kind;
}
