import { parseIpv4, parseNetwork } from "../../../model/addresses/addresses.ts";
import type { Cause } from "../../../model/cause/cause.ts";
import type { Cell, CellControllerElement, VmElement } from "../../../model/cell/cell.ts";
import { childOfElement } from "../../../model/cell/child-document.ts";
import type { CellName, Ipv4 } from "../../../model/cell/identifiers.ts";
import { isManagementSubnet } from "../../../model/check/check-management.ts";
import type { Diagnostic } from "../../../model/diagnostics/diagnostic.ts";
import type { Plan } from "../../../model/plan/plan-types.ts";
import { rolesOf } from "../../bootstrap/bootstrap-model.ts";
import { childName, rootCell } from "../../documents/cells.ts";
import { isEntranceVm } from "../../documents/service-roles.ts";
import { isObject } from "../../outbox.ts";
import type { ElementRecord } from "../records.ts";
import type { ControllerState, RootOptions } from "../state.ts";
import { addressOf, isUsable } from "./ipv4-range.ts";

/**
 * The way into the cloud (decision 38): the root cell has no gateway, one child of it does, at an address on the
 * management network that the root cell's model gives it (`x.gateway`). That comes down with the child's life, and the
 * authority and every host hear it from the root controller; this controller's word counts nowhere.
 *
 * What would shut the operator out is refused: nobody else could open the door again.
 */
const code = "cell/management";

/** Where this cell's gateway is, if it is a child that may have one. */
export const entranceOf = ({ options, life }: ControllerState): Ipv4 | null =>
  options.root === undefined && options.services !== undefined ? (life?.gateway ?? null) : null;

/** What makes VMs of this cell services; null: none are, and `service` in their data is data like any other. */
export const meansOf = (state: ControllerState): RootOptions | null =>
  state.options.root ?? (entranceOf(state) === null ? null : (state.options.services ?? null));

/** Why an interface can be had by no VM now: its cell is not the way in any more; null: nothing is in its way. */
export function whyShut(state: ControllerState, { path, allocation }: ElementRecord): Cause | null {
  const { cell } = state;
  const element = cell?.elements.get(path);
  if (cell === null || allocation === null || element?.type !== "VirtualInterface") return null;
  if (!isManagementSubnet(cell, element.subnet) || meansOf(state) !== null) return null;
  return { kind: "waits-for", element: path, because: [{ kind: "not-on-management" }] };
}

const gateways = (cell: Cell): readonly CellControllerElement[] =>
  [...cell.elements.values()].filter(
    (element) => element.type === "CellController" && element.gateway !== undefined,
  ) as readonly CellControllerElement[];

/** Which child of the root cell is the way in, and where, by the root cell's model; null: none is. */
export function entranceIn(root: Cell): { readonly cell: CellName; readonly address: Ipv4 } | null {
  const [first] = gateways(root);
  const child = first === undefined ? null : childOfElement(first);
  if (first?.gateway === undefined || child === null) return null;
  return { cell: childName(rootCell, child.label), address: first.gateway };
}

/** Of the cell that is the way in: the gateway and the personalities that clients find there, those in VMs of their own as well. */
export function doorsOf(cell: Cell, entrance: Ipv4): readonly string[] {
  for (const element of cell.elements.values()) {
    if (element.type !== "VirtualInterface" || element.address !== entrance) continue;
    const vm = cell.elements.get(element.vm);
    if (vm?.type !== "VM" || !isManagementSubnet(cell, element.subnet)) continue;
    const roles = rolesOf(vm);
    const apart = isObject(roles.gateway) && isObject(roles.gateway.doors) ? Object.keys(roles.gateway.doors) : [];
    return [...Object.keys(roles), ...apart].sort();
  }
  return [];
}

/** Why a model must not have the ways in that it has; empty if it may. */
export function entranceRefusals(state: ControllerState, cell: Cell): readonly Diagnostic[] {
  const { root } = state.options;
  const entrance = entranceOf(state);
  const [first, second] = gateways(cell);
  if (root !== undefined) return first === undefined ? [] : rootRefusals(root, first, second);
  const foreign: readonly Diagnostic[] =
    first === undefined
      ? []
      : [
          {
            code,
            message: `\`${first.path}\` has \`x.gateway\`, which only the operator's root cell gives to a child`,
            hint: "Leave it out: this cell's own VMs are reached through rules.",
            path: first.path,
          },
        ];
  return entrance === null ? foreign : [...foreign, ...childRefusals(cell, entrance)];
}

function rootRefusals(
  { management }: RootOptions,
  { path, gateway = "" as Ipv4 }: CellControllerElement,
  second: CellControllerElement | undefined,
): readonly Diagnostic[] {
  const refusals: Diagnostic[] = [];
  const [range, number] = [parseNetwork(management), parseIpv4(gateway)];
  if (range !== null && (number === null || !isUsable(range, number))) {
    const message = `${gateway} of \`${path}\` is no usable address of the management network ${management}`;
    const hint = `Choose one from ${addressOf(range.first + 2)} to ${addressOf(range.last - 1)} that nobody has.`;
    refusals.push({ code, message, hint, path });
  }
  if (second !== undefined) {
    const message = `\`${second.path}\` and \`${path}\` both have \`x.gateway\`, and there is one gateway by that name`;
    refusals.push({ code, message, hint: "Leave it out of one of the two.", path: second.path });
  }
  return refusals;
}

/** Of the cell that is the way in: nothing else of it is on the management network, and its gateway is there. */
function childRefusals(cell: Cell, entrance: Ipv4): readonly Diagnostic[] {
  const refusals: Diagnostic[] = [];
  let isThere = false;
  for (const element of cell.elements.values()) {
    if (element.type !== "VirtualInterface" || !isManagementSubnet(cell, element.subnet)) continue;
    const vm = cell.elements.get(element.vm);
    const isGateway = vm?.type === "VM" && isEntranceVm(Object.keys(rolesOf(vm)));
    if (element.address === entrance && isGateway) {
      isThere = true;
      refusals.push(...insideRefusals(cell, vm));
      continue;
    }
    const { path } = element;
    const message = isGateway
      ? `\`${path}\` has the address ${element.address ?? "(none)"}, and the root cell lets this cell have ${entrance} on the management network`
      : `\`${path}\` puts ${element.vm} on the management network, where this cell may have its gateway alone`;
    const hint = isGateway
      ? `Write \`x.address "${entrance}"\`.`
      : "Only a VM with `x.data { service { roles { gateway {} } } }`, and beside it no role but personalities, may be there.";
    refusals.push({ code, message, hint, path });
  }
  if (isThere || refusals.length > 0) return refusals;
  const message = `\`${cell.path}\` has no gateway at ${entrance}, and without it nobody could reach this cloud any more`;
  const hint = `Let a VM with \`x.data { service { roles { gateway {} } } }\` have an interface there: on a subnet with \`x.addressRange "management"\`, with \`x.address "${entrance}"\`.`;
  return [{ code, message, hint, path: cell.path }];
}

/** A gateway that serves doors apart (decision 212) does so at an address that it has: else it would not come up. */
function insideRefusals(cell: Cell, vm: VmElement): readonly Diagnostic[] {
  const { gateway } = rolesOf(vm);
  const inside = isObject(gateway) ? gateway.inside : undefined;
  if (inside === undefined) return [];
  const isOwn = [...cell.elements.values()].some(
    (each) =>
      each.type === "VirtualInterface" &&
      each.vm === vm.path &&
      each.address === inside &&
      !isManagementSubnet(cell, each.subnet),
  );
  if (isOwn) return [];
  const message = `\`${vm.path}\` would serve its doors at ${JSON.stringify(inside)}, and has no interface of this cell's own with that address`;
  const hint = "Give it one: on a subnet that is not the management network, with that `x.address`.";
  return [{ code, message, hint, path: vm.path }];
}

/**
 * Why a change would take the way in away, as a sentence; null: it would not. It moves to a child that the same change makes,
 * with its gateway in its first model; a child that is there could get one only through the door that is being shut.
 */
export function whyStaysOpen(state: ControllerState, cell: Cell | null, plan: Plan): string | null {
  const entrance = entranceOf(state);
  if (entrance !== null && cell === null)
    return (
      `the cell ${state.options.cell} is the way into this cloud, whose gateway is at ${entrance}: ` +
      "let the root cell make another child with x.gateway first"
    );
  if (state.options.root === undefined || state.cell === null) return null;
  const before = gateways(state.cell)[0];
  const after = cell === null ? undefined : gateways(cell)[0];
  const there = after === undefined ? undefined : (after.movedFrom ?? after.path);
  if (there !== undefined && there !== before?.path && state.cell.elements.has(there))
    return `${there} is there already: only a child that the same change makes gets x.gateway, with the gateway in its x.cell`;
  if (before === undefined) return null;
  const is = `${before.path} is the way into this cloud, whose gateway is at ${before.gateway}`;
  const moves = "x.gateway can go over to a child that the same change makes, with the gateway in its x.cell";
  if (after === undefined) return `${is}; without it nobody could reach the cloud any more. ${moves}`;
  if (there !== before.path) return null;
  if (after.gateway !== before.gateway)
    return `${is}; it cannot answer at ${after.gateway} from one moment to the next. ${moves}`;
  const isMadeAnew = plan.steps.some((step) => step.path === after.path && step.action === "replace");
  return isMadeAnew ? `${is}, and would be deleted and made anew. ${moves}` : null;
}
