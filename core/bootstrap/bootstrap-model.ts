import type { Cell, Element, VmElement } from "../../model/cell/cell.ts";
import { removeAt } from "../../model/cell/document.ts";
import type { ElementPath, Ipv4 } from "../../model/cell/identifiers.ts";
import type { JsonObject } from "../../model/json/json.ts";
import { fail, ok, type Result } from "../../model/result.ts";
import { placeOf, type ServiceRole, servicePeer } from "../documents/service-roles.ts";
import { isObject } from "../outbox.ts";

/** The part of the root cell that is made first (decision 31): the VM of its own controller, and what that VM needs. */
export interface BootstrapModel {
  readonly document: JsonObject;
  readonly vm: ElementPath;
  /** Where the VM's roles are found, and before it runs the process that makes it. */
  readonly address: Ipv4;
}

/** What must be there before there is any VM: it runs as a process first, and goes on in that VM. */
export const bootstrapRoles = ["authority", "controller", "storage-manager", "placer"] as const satisfies ServiceRole[];

/** Of the whole root cell. The error is a sentence that says what the specification lacks. */
export function bootstrapModel(cell: Cell): Result<BootstrapModel, string> {
  const vm = [...cell.elements.values()].find((element) => element.type === "VM" && isControlled(element, cell));
  if (vm?.type !== "VM")
    return fail(
      `no VM of ${cell.path} carries the controller of the cell itself: one needs x.data { service { roles { controller { cell "${cell.name}"; } } } }`,
    );
  const missing = bootstrapRoles.filter((role) => rolesOf(vm)[role] === undefined);
  if (missing.length > 0)
    return fail(`${vm.path} must carry ${missing.join(" and ")} as well: without, no other VM can be made`);
  const kept = neededBy(cell, vm);
  const address = [...kept].map((path) => cell.elements.get(path)).find(isAddressed)?.address;
  if (address === undefined)
    return fail(`${vm.path} has no VirtualInterface with a fixed x.address, where the others would find it`);
  let document = cell.document;
  for (const path of [...cell.elements.keys()].sort((one, other) => other.length - one.length)) {
    if (kept.has(path)) continue;
    const rest = removeAt(document, path);
    if (rest.ok) document = rest.value;
  }
  return ok({ document, vm: vm.path, address });
}

/** Where the VM that carries a role is, from its fixed address; undefined: none does, or has one. */
export function addressOfRole(cell: Cell, role: ServiceRole): Ipv4 | undefined {
  for (const element of cell.elements.values()) {
    const vm = element.type === "VirtualInterface" ? cell.elements.get(element.vm) : undefined;
    if (vm?.type === "VM" && rolesOf(vm)[role] !== undefined && isAddressed(element)) return element.address;
  }
  return undefined;
}

/** Where the operator's gateway is: in a child of the root cell that is the way in, or where the root cell itself has one. */
export const gatewayAddress = (cell: Cell): Ipv4 | undefined =>
  [...cell.elements.values()].flatMap((each) => (each.type === "CellController" ? (each.gateway ?? []) : []))[0] ??
  addressOfRole(cell, "gateway");

/** What everybody must know at first of where the others are: by the authority they learn the rest. `core`: the first VM's address. */
export const firstPlaces = (core: Ipv4): Readonly<Record<string, string>> => ({
  [servicePeer("authority")]: placeOf("authority", core),
  [servicePeer("controller", "root")]: placeOf("controller", core),
});

/** Roles that a VM carries by its `x.data`, as they are written there. */
export const rolesOf = (vm: VmElement): JsonObject => {
  const service = isObject(vm.data) ? vm.data.service : undefined;
  const roles = isObject(service) ? service.roles : undefined;
  return isObject(roles) ? roles : {};
};

const isControlled = (vm: VmElement, cell: Cell): boolean => {
  const { controller } = rolesOf(vm);
  return isObject(controller) && controller.cell === cell.name;
};

const isAddressed = (element: Element | undefined): element is Element & { readonly address: Ipv4 } =>
  element?.type === "VirtualInterface" && element.address !== undefined;

/** The VM, its disks and interfaces, and what these are made from. */
function neededBy(cell: Cell, vm: VmElement): ReadonlySet<ElementPath> {
  const kept = new Set<ElementPath>([vm.path]);
  const keep = (path: ElementPath): void => {
    if (kept.has(path)) return;
    kept.add(path);
    const element = cell.elements.get(path);
    if (element?.type === "VolumeCopy") keep(element.image);
    if (element?.type === "VolumeConnection") keep(element.volume);
    if (element?.type === "VirtualInterface") keep(element.subnet);
  };
  for (const element of cell.elements.values())
    if ((element.type === "VolumeConnection" || element.type === "VirtualInterface") && element.vm === vm.path)
      keep(element.path);
  return kept;
}
