import { parseIpv4, parseNetwork } from "../addresses/addresses.ts";
import type {
  Cell,
  Element,
  NetworkRuleElement,
  SubnetElement,
  VirtualInterfaceElement,
  VmElement,
  VolumeCopyElement,
  VolumeGrantElement,
} from "../cell/cell.ts";
import type { ElementPath } from "../cell/identifiers.ts";
import { reservedGroupName } from "../cell/tenants/affinity/affinity.ts";
import { implicitModes } from "../cell/tenants/dedication/implicit.ts";
import { mostMarks, propertiesForm, readProperties, readTags } from "../cell/tenants/dedication/marks.ts";
import { rootDomainPath, tenantPath } from "../cell/tenants/path.ts";
import { closestName } from "../diagnostics/closest-name.ts";
import type { Json } from "../json/json.ts";
import { sizeOf } from "./check-limits.ts";
import { checkManagement } from "./check-management.ts";
import { checkRecreatable } from "./check-recreatable.ts";
import type { ReportFault } from "./fault.ts";
import { checkBackup } from "./root-cell/check-backup.ts";
import { checkHa } from "./root-cell/check-ha.ts";
import { checkPlacementSettings } from "./root-cell/check-placement.ts";
import { checkPools } from "./root-cell/check-pools.ts";
import { checkTenants } from "./root-cell/check-tenants.ts";
import { checkWishes } from "./root-cell/check-wishes.ts";
import { checkZone } from "./root-cell/check-zone.ts";

/** What no element shows alone: names and addresses that clash, copies in circles, links that make no sense together. */
export function checkCell(cell: Cell, fault: ReportFault): void {
  const elements = [...cell.elements.values()];
  checkUnique(elements, fault);
  checkOverlaps(elements, fault);
  checkManagement(cell, fault);
  checkBackup(cell, fault);
  checkHa(cell, fault);
  checkPlacementSettings(cell, fault);
  checkZone(cell, fault);
  checkPools(cell, fault);
  checkTenants(cell, fault);
  checkRecreatable(cell, fault);
  const cycles = copyCycles(elements, cell);
  for (const element of elements) {
    if (element.type === "Subnet") checkSubnet(element, fault);
    else if (element.type === "VirtualInterface") checkAddress(cell, element, fault);
    else if (element.type === "VolumeCopy") checkCopy(cell, element, cycles, fault);
    else if (element.type === "NetworkRule") checkRule(element, fault);
    else if (element.type === "VM") checkMachine(cell, element, fault);
    else if (element.type === "Host" && element.properties !== undefined)
      checkProperties(element.path, "x.properties", element.properties, fault);
    else if (element.type === "VolumeGrant") checkGrant(element, fault);
    else if (element.type === "AffinityGroup" && reservedGroupName.test(lastName(element)))
      fault(
        "cell/dedication",
        `\`${element.path}\` has the name of a group that is made by a dedication`,
        element.path,
        {
          hint: "Give the affinity group a name that does not begin with `DedicatedGrp-`.",
        },
      );
    if (element.movedFrom !== undefined) checkMove(cell, element, element.movedFrom, fault);
  }
}

function checkMachine(cell: Cell, machine: VmElement, fault: ReportFault): void {
  const { path, liveness } = machine;
  checkPlacement(machine, fault);
  if (machine.display !== undefined && machine.start === "resume")
    fault(
      "schema/value",
      'A VM that goes on from a saved state has no display: with `x.start "resume"` it has none',
      path,
      {
        attribute: "x.display",
        hint: 'Leave `x.display` out, or write `x.start "boot";`: then it boots, and has a display.',
      },
    );
  const asked = liveness?.interface === undefined ? undefined : cell.elements.get(liveness.interface);
  if (asked?.type === "VirtualInterface" && asked.vm !== path)
    fault("cell/liveness", `\`${asked.path}\` is an interface of \`${asked.vm}\`, and not of this VM`, path, {
      attribute: "x.liveness.interface",
      hint: "Name an interface of the VM itself, or leave it out: then the first is asked.",
    });
  if (liveness?.protocol === "udp" && liveness.port === undefined)
    fault("schema/required", "A UDP probe needs `x.liveness.port`", path, {
      attribute: "x.liveness.protocol",
      hint: "Name the port at which the VM answers, as in `x.liveness.port 7000;`.",
    });
}

/** Wishes about the host whose words are known; whatever else is written as `x.placement.…` asks for nothing. */
function checkPlacement(vm: VmElement, fault: ReportFault): void {
  const { path, placement } = vm;
  checkWishes(vm, fault);
  const { dedication, groups, tags, properties, offering } = placement;
  if (offering !== undefined && typeof offering !== "string")
    fault("schema/value", "`x.placement.offering` is the name of an offering", path, {
      attribute: "x.placement.offering",
      hint: 'Write a name, as in `x.placement.offering "small";`.',
    });
  if (tags !== undefined && readTags(tags) === null)
    fault("schema/value", "`x.placement.tags` is a list of tags of hosts", path, {
      attribute: "x.placement.tags",
      hint: 'Write it as `x.placement.tags ["ssd"];`.',
    });
  if (properties !== undefined) checkProperties(path, "x.placement.properties", properties, fault);
  for (const level of ["zone", "pod", "cluster"])
    if (placement[level] !== undefined && typeof placement[level] !== "string")
      fault("schema/value", `\`x.placement.${level}\` is the name of a ${level}`, path, {
        attribute: `x.placement.${level}`,
        hint: 'Write a name, as in `x.placement.zone "z1";`.',
      });
  if (dedication !== undefined && !implicitModes.some((mode) => mode === dedication)) {
    const close = typeof dedication === "string" ? closestName(dedication.toLowerCase(), implicitModes) : undefined;
    const means = [
      '"strict" stands where nobody else\'s VMs are, or nowhere',
      '"preferred" stands there as long as there is such a host',
    ];
    fault(
      "schema/value",
      `\`x.placement.dedication\` is ${implicitModes.map((mode) => `"${mode}"`).join(" or ")}`,
      path,
      {
        attribute: "x.placement.dedication",
        hint: `${close === undefined ? "" : `Did you mean "${close}"? `}${means.join("; ")}.`,
      },
    );
  }
  const names = Array.isArray(groups) ? groups : [groups];
  if (groups !== undefined && !names.every((name) => typeof name === "string"))
    fault("schema/value", "`x.placement.groups` is a list of names of affinity groups of the cell's account", path, {
      attribute: "x.placement.groups",
      hint: 'Write it as `x.placement.groups ["DedicatedGrp-dev"];`.',
    });
}

function checkProperties(path: ElementPath, attribute: string, properties: Json, fault: ReportFault): void {
  if (readProperties(properties) !== null) return;
  fault("schema/value", `\`${attribute}\` has texts and whole numbers by names, at most ${mostMarks}`, path, {
    attribute,
    hint: `Write it as \`${attribute} ${propertiesForm}\`.`,
  });
}

/** By which `x.placement.groups` names it. */
const lastName = ({ path }: Element): string => path.slice(path.lastIndexOf("/") + 1);

/** Each value may occur once in the cell. */
function checkUnique(elements: readonly Element[], fault: ReportFault): void {
  const seen = new Map<string, ElementPath>();
  const once = (element: Element, attribute: string, key: string | undefined, what: string, as = attribute): void => {
    if (key === undefined) return;
    const other = seen.get(`${as} ${key}`);
    if (other === undefined) seen.set(`${as} ${key}`, element.path);
    else
      fault("cell/duplicate", `${what} \`${key}\` is already that of \`${other}\``, element.path, {
        attribute,
        hint: "Give one of the two another value.",
      });
  };
  for (const element of elements) {
    if (element.type === "VirtualInterface") {
      once(element, "x.address", element.address, "The address");
      once(element, "x.mac", element.mac, "The MAC address");
      once(element, "x.vifName", element.vifName?.toLowerCase(), "The host name");
    }
    // The child's gateway and a VM of this cell would be on one network.
    if (element.type === "AffinityGroup")
      once(element, "x.kind", lastName(element), "The name of an affinity group", "a group");
    if (element.type === "CellController") once(element, "x.gateway", element.gateway, "The address", "x.address");
    if (element.type === "VolumeConnection") {
      const key = `${element.vm} ${element.volume}`;
      const other = seen.get(key);
      if (other !== undefined)
        fault(
          "cell/duplicate",
          `\`${element.volume}\` is connected to \`${element.vm}\` already, by \`${other}\``,
          element.path,
          {
            attribute: "x.volume",
            hint: "Remove one of the two connections.",
          },
        );
      seen.set(key, element.path);
    }
    if (element.movedFrom !== undefined) once(element, "x.movedFrom", element.movedFrom, "The former path");
  }
}

/** Two subnets whose fixed ranges share an address. */
function checkOverlaps(elements: readonly Element[], fault: ReportFault): void {
  const fixed = elements.flatMap((element) => {
    const network = element.type === "Subnet" && element.cidr !== undefined ? parseNetwork(element.cidr) : null;
    return network ? [{ path: element.path, first: network.first, last: network.last }] : [];
  });
  fixed.sort((a, b) => a.first - b.first);
  let widest = fixed[0];
  for (const range of fixed.slice(1)) {
    if (widest !== undefined && range.first <= widest.last)
      fault("cell/overlap", `The range of \`${range.path}\` overlaps that of \`${widest.path}\``, range.path, {
        attribute: "x.cidr",
        hint: "Every address belongs to one subnet: move or shrink one of the two.",
      });
    if (widest === undefined || range.last > widest.last) widest = range;
  }
}

function checkSubnet(subnet: SubnetElement, fault: ReportFault): void {
  if (subnet.size === 0 && subnet.addressRange !== "management") {
    fault("schema/required", `\`${subnet.path}\` has neither \`x.size\` nor \`x.cidr\``, subnet.path, {
      hint: "Say how many addresses the subnet has, as in `x.size 8;`.",
    });
    return;
  }
  const network = subnet.cidr === undefined ? null : parseNetwork(subnet.cidr);
  if (!network) return;
  const whole = network.last - network.first + 1;
  if (network.prefixLength > 30)
    fault(
      "schema/range",
      `${subnet.cidr} has no room for a VM beside network, gateway and broadcast address`,
      subnet.path,
      {
        attribute: "x.cidr",
        hint: "Use a prefix of at most 30.",
      },
    );
  else if (subnet.size > whole)
    fault(
      "cell/subnet-size",
      `${subnet.cidr} has ${whole} addresses, fewer than \`x.size\` asks for (${subnet.size})`,
      subnet.path,
      {
        attribute: "x.size",
        hint: "Leave out `x.size` beside `x.cidr`.",
      },
    );
}

function checkAddress(cell: Cell, link: VirtualInterfaceElement, fault: ReportFault): void {
  const subnet = cell.elements.get(link.subnet);
  if (link.address === undefined || subnet?.type !== "Subnet") return;
  const network = subnet.cidr === undefined ? null : parseNetwork(subnet.cidr);
  const address = parseIpv4(link.address);
  // Which range the underlay is, the controller knows.
  if (subnet.addressRange === "management" && !network) return;
  if (!network || address === null) {
    fault("cell/address", `${link.address} is fixed, but the range of \`${subnet.path}\` is not`, link.path, {
      attribute: "x.address",
      hint: "Give the subnet an `x.cidr`, or leave out `x.address`.",
    });
    return;
  }
  if (address < network.first || address > network.last)
    fault("cell/address", `${link.address} is outside ${subnet.cidr}, the range of \`${subnet.path}\``, link.path, {
      attribute: "x.address",
      hint: "Choose an address of that range, after its first two and before its last.",
    });
  else if (address <= network.first + 1 || address === network.last)
    fault("cell/address", `${link.address} is the network, gateway or broadcast address of ${subnet.cidr}`, link.path, {
      attribute: "x.address",
      hint: "VMs get the addresses after the first two and before the last.",
    });
}

/** Where a copy stands in the circle of copies that it is a part of. */
interface InCycle {
  readonly cycle: readonly ElementPath[];
  readonly index: number;
}
/** The copies that are copies of themselves. Each copy is gone through once. */
function copyCycles(elements: readonly Element[], cell: Cell): ReadonlyMap<ElementPath, InCycle> {
  const cycles = new Map<ElementPath, InCycle>();
  const seen = new Set<ElementPath>();
  for (const element of elements) {
    const way: ElementPath[] = [];
    let at: Element | undefined = element;
    for (; at?.type === "VolumeCopy" && !seen.has(at.path); at = cell.elements.get(at.image)) {
      seen.add(at.path);
      way.push(at.path);
    }
    const cycle = at && way.includes(at.path) ? way.slice(way.indexOf(at.path)) : [];
    for (const [index, path] of cycle.entries()) cycles.set(path, { cycle, index });
  }
  return cycles;
}

function checkCopy(
  cell: Cell,
  copy: VolumeCopyElement,
  cycles: ReadonlyMap<ElementPath, InCycle>,
  fault: ReportFault,
): void {
  const inCycle = cycles.get(copy.path);
  if (inCycle !== undefined) {
    const { cycle, index } = inCycle;
    const shown = Math.min(cycle.length, mostOnTheWay);
    const way = Array.from({ length: shown }, (_, step) => cycle[(index + step) % cycle.length]);
    const through = shown < cycle.length ? `${way.join(" → ")} → …` : way.join(" → ");
    fault("cell/copy-cycle", `\`${copy.path}\` is a copy of itself, through ${through}`, copy.path, {
      attribute: "x.image",
      hint: "Let one of them be a `Volume`.",
    });
    return;
  }
  const origin = cell.elements.get(copy.image);
  const size = origin === undefined ? 0 : sizeOf(origin, cell);
  if (copy.sizeMiB !== undefined && copy.sizeMiB < size)
    fault(
      "cell/shrink",
      `A copy cannot be smaller than its origin: ${copy.sizeMiB} MiB is less than ${size} MiB`,
      copy.path,
      {
        attribute: "x.size",
        hint: "Leave out `x.size`, or make it at least as large.",
      },
    );
}
/** Of a circle of copies that are shown. */
const mostOnTheWay = 10;

function checkRule(rule: NetworkRuleElement, fault: ReportFault): void {
  for (const attribute of ["x.port1", "x.port2"] as const) {
    const port = attribute === "x.port1" ? rule.port1 : rule.port2;
    if (port && rule.protocol === "icmp")
      fault("cell/rule", "ICMP has no ports", rule.path, {
        attribute,
        hint: `Leave out \`${attribute}\`, or use "tcp" or "udp".`,
      });
  }
  const inside = [rule.address1, rule.address2].some((end) => end.kind === "element" || end.kind === "controller");
  if (!inside)
    fault("cell/rule", "Neither end of this rule is in the cell, so it permits nothing", rule.path, {
      attribute: "x.address1",
      hint: "Let one end refer to a subnet, a VM or an interface.",
    });
}

function checkMove(cell: Cell, element: Element, movedFrom: ElementPath, fault: ReportFault): void {
  const other = cell.elements.get(movedFrom);
  if (other)
    fault(
      "cell/moved",
      `\`${movedFrom}\` is still an element of the cell, so \`${element.path}\` cannot have been it`,
      element.path,
      {
        attribute: "x.movedFrom",
        hint: "Remove `x.movedFrom` once the move is done.",
      },
    );
}

/** UIDs of accounts and domains are made by the service `tenancy`. */
const holderPattern = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/;
function checkGrant(grant: VolumeGrantElement, fault: ReportFault): void {
  const { to, path, hold, holder } = grant;
  if (hold !== undefined && (to.kind !== "cell" || grant.grant !== "copy"))
    fault("cell/grant", `\`${path}\` holds the volume for a copy, and lets no cell make one`, path, {
      attribute: "x.hold",
      hint: 'Give it `x.grant "copy"`, and as `x.cell` the cell that the copy stands in; or remove `x.hold`.',
    });
  if (holder !== undefined && (to.kind === "vm" || !holderPattern.test(holder)))
    fault("cell/grant", `\`${path}\` says whom it means by ${JSON.stringify(holder.slice(0, 80))}`, path, {
      attribute: "x.holder",
      hint: "Write the UID of the account or the domain as it is shown, beside `x.account`, `x.domain` or `x.cell`; or remove `x.holder`.",
    });
  if (to.kind === "cell" && to.domain === "")
    fault("cell/grant", `\`${path}\` does not name the one who may use the volume`, path, {
      hint: 'Give it one of `x.vm`, `x.cell` such as "<ref://other.cells.example.com/>", `x.account` and `x.domain`.',
    });
  if (to.kind === "account" && (!tenantPath.test(to.path) || to.path === rootDomainPath))
    fault("cell/grant", `\`${path}\` gives to \`${to.path}\`, which is no account`, path, {
      hint: 'Name an account by its path, as `x.account "ROOT/acme/dev"`.',
    });
  if (to.kind === "tenants" && !tenantPath.test(to.path))
    fault("cell/grant", `\`${path}\` gives to \`${to.path}\`, which is no domain`, path, {
      hint: 'Name a domain by its path, as `x.domain "ROOT/acme"`; "ROOT" is every cell.',
    });
}
