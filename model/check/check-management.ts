import type { Cell, RuleEnd, VirtualInterfaceElement } from "../cell/cell.ts";
import type { ElementPath } from "../cell/identifiers.ts";
import type { ReportFault } from "./fault.ts";

/** Is that a subnet of the management network, which is the underlay itself? (decision 31) */
export function isManagementSubnet(cell: Cell, path: ElementPath): boolean {
  const subnet = cell.elements.get(path);
  return subnet?.type === "Subnet" && subnet.addressRange === "management";
}

/**
 * What is different on the management network: the addresses there are those that hosts and services have and nobody
 * allocates, and no rule of a cell is asked there. Whose cell it is, is its controller's to say.
 */
export function checkManagement(cell: Cell, fault: ReportFault): void {
  const elements = [...cell.elements.values()];
  if (!elements.some((element) => isManagementSubnet(cell, element.path))) return;
  const interfaces = elements.filter((element) => element.type === "VirtualInterface");
  for (const element of elements) {
    if (element.type === "VirtualInterface") checkInterface(cell, element, fault);
    if (element.type !== "NetworkRule") continue;
    for (const attribute of ["x.address1", "x.address2"] as const) {
      const end = attribute === "x.address1" ? element.address1 : element.address2;
      if (isBeyondRules(cell, end, interfaces))
        fault("cell/management", `\`${end.path}\` is on the management network, where no rule is asked`, element.path, {
          attribute,
          hint: "Leave the rule out: services know one another by their certificates.",
        });
    }
  }
}

function checkInterface(cell: Cell, link: VirtualInterfaceElement, fault: ReportFault): void {
  if (link.address !== undefined || !isManagementSubnet(cell, link.subnet)) return;
  fault("cell/management", `\`${link.path}\` is on the management network and has no fixed address`, link.path, {
    hint: "Give it an `x.address` that no host and no other service has: nobody allocates addresses of the underlay.",
  });
}

type ElementEnd = Extract<RuleEnd, { readonly kind: "element" }>;
/** Nothing of what the end stands for is where rules are asked. */
function isBeyondRules(cell: Cell, end: RuleEnd, interfaces: readonly VirtualInterfaceElement[]): end is ElementEnd {
  if (end.kind !== "element") return false;
  if (end.type === "Subnet") return isManagementSubnet(cell, end.path);
  const meant = interfaces.filter((link) => link.path === end.path || link.vm === end.path);
  return meant.length > 0 && meant.every((link) => isManagementSubnet(cell, link.subnet));
}
