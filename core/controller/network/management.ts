import { parseIpv4, parseNetwork } from "../../../model/addresses/addresses.ts";
import type { Cell } from "../../../model/cell/cell.ts";
import { type Cidr, type Ipv4, ipv4 } from "../../../model/cell/identifiers.ts";
import type { Diagnostic } from "../../../model/diagnostics/diagnostic.ts";
import type { ElementRecord } from "../records.ts";
import { type ControllerState, elementOf } from "../state.ts";
import { entranceRefusals, meansOf } from "./entrance.ts";
import { addressOf, isUsable } from "./ipv4-range.ts";

/**
 * The management network: a subnet of the root cell that is the underlay itself (decision 31). Nobody gives it its range,
 * which the controller knows, nobody routes for it, and no rule and no location is ever asked of an interface in it.
 */
export const noGateway: Ipv4 = ipv4("0.0.0.0");

/** Also of a subnet that has left the model and still has interfaces. */
export function isManagement(state: ControllerState, record: ElementRecord): boolean {
  if (record.type !== "Subnet") return false;
  const element = elementOf(state, record);
  return element?.type === "Subnet"
    ? element.addressRange === "management"
    : record.range !== null && record.range.gateway === noGateway;
}

/** Is that interface's address one of the management network? */
export function isOnManagement(state: ControllerState, { allocation }: ElementRecord): boolean {
  const subnet = allocation === null ? undefined : state.elements.get(allocation.subnet);
  return subnet !== undefined && isManagement(state, subnet);
}

/** Where everybody on it is reached directly. Null: this cell has none, and an element in it waits for ever. */
export const managementRange = (state: ControllerState): { readonly cidr: Cidr; readonly gateway: Ipv4 } | null => {
  const means = meansOf(state);
  return means === null ? null : { cidr: means.management, gateway: noGateway };
};

/** Nothing of such a subnet is anywhere but here: it is gone with the last address in it. */
export const isManagementGone = (state: ControllerState, { uid }: ElementRecord): boolean =>
  !state.indexes.occupied.has(uid);

/** Why a model must not have the management subnets and interfaces that it has; empty if it may. */
export function managementRefusals(state: ControllerState, cell: Cell): readonly Diagnostic[] {
  const code = "cell/management";
  const means = meansOf(state);
  const refusals: Diagnostic[] = [...entranceRefusals(state, cell), ...resolverRefusals(state, cell)];
  for (const element of cell.elements.values()) {
    if (element.type === "Subnet" && element.addressRange === "management") {
      const { path, cidr } = element;
      if (means === null) {
        const message = `\`${path}\` is on the management network, which only the operator's root cell may have, and the child that it gives \`x.gateway\``;
        const hint = 'Write `x.addressRange "internal"` with an `x.size`.';
        refusals.push({ code, message, hint, path });
      } else if (cidr !== undefined && !sameNetwork(cidr, means.management)) {
        const message = `\`${path}\` asks for ${cidr}, and the management network is ${means.management}`;
        refusals.push({ code, message, hint: `Leave \`x.cidr\` out, or write "${means.management}".`, path });
      }
    }
    if (element.type !== "VirtualInterface" || element.address === undefined || means === null) continue;
    const subnet = cell.elements.get(element.subnet);
    if (subnet?.type !== "Subnet" || subnet.addressRange !== "management") continue;
    const { path, address } = element;
    const [range, number] = [parseNetwork(means.management), parseIpv4(address)];
    if (range === null || number === null || isUsable(range, number)) continue;
    const message = `${address} of \`${path}\` is no usable address of the management network ${means.management}`;
    const hint = `Choose one from ${addressOf(range.first + 2)} to ${addressOf(range.last - 1)} that nobody has.`;
    refusals.push({ code, message, hint, path });
  }
  return refusals;
}

/** Controllers are on the management network alone, and reach nobody beyond it. */
function resolverRefusals({ options }: ControllerState, { path, defaults, zone }: Cell): readonly Diagnostic[] {
  const range = options.root === undefined ? null : parseNetwork(options.root.management);
  const isElsewhere = (address: Ipv4): boolean => {
    const number = parseIpv4(address);
    return range !== null && number !== null && !isUsable(range, number);
  };
  const secondaries = (zone?.secondaries ?? []).filter(isElsewhere).map((address): Diagnostic => {
    const message = `the name server ${address} of \`x.zone.secondaries\` is not on the management network ${options.root?.management}, where the DNS Manager is`;
    return { code: "cell/management", message, hint: "Give it an address there, and name that.", path };
  });
  const resolvers = (defaults?.resolvers ?? []).flatMap((resolver) => {
    if (range === null || !isElsewhere(resolver)) return [];
    const message = `the resolver ${resolver} is not on the management network ${options.root?.management}, from where controllers ask it`;
    const hint = `Name one from ${addressOf(range.first + 2)} to ${addressOf(range.last - 1)}, such as a resolver there that asks ${resolver} itself.`;
    return [{ code: "cell/management", message, hint, path }];
  });
  return [...resolvers, ...secondaries];
}

function sameNetwork(one: string, other: string): boolean {
  const [a, b] = [parseNetwork(one), parseNetwork(other)];
  return a !== null && b !== null && a.first === b.first && a.last === b.last;
}
