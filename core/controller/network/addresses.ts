import { parseIpv4, parseNetwork } from "../../../model/addresses.ts";
import type { Cause } from "../../../model/cause/cause.ts";
import type { VirtualInterfaceElement } from "../../../model/cell/cell.ts";
import type { ElementPath, Ipv4, Uid } from "../../../model/cell/identifiers.ts";
import type { DesiredSubnet } from "../../documents/network.ts";
import { actualSubnet } from "../../documents/readers/network.ts";
import {
  actualOf,
  addressManager,
  type ControllerState,
  type ElementRecord,
  elementOf,
  inUse,
  isHeldBack,
  keepWish,
  recordAt,
  saveElement,
  type Wishes,
  wish,
} from "../state.ts";
import { addressOf, isUsable, lowestFree, macOf } from "./ipv4-range.ts";
import { isManagement, managementRange } from "./management.ts";

/**
 * The IP Address Manager gives a subnet its range, the controller the addresses inside it (paper, III.A). Both are
 * durable: an interface keeps its address for as long as it exists and its model does not ask for another.
 */
export function allocateAddresses(state: ControllerState): void {
  for (const record of state.elements.values()) {
    if (record.type !== "Subnet") continue;
    const given = isManagement(state, record)
      ? managementRange(state)
      : actualOf(actualSubnet, state, addressManager, `subnet/${record.uid}`);
    const { cidr = null, gateway = null } = given ?? {};
    if (cidr === null || gateway === null || isHeldBack(state, record)) continue;
    if (record.range?.cidr === cidr && record.range.gateway === gateway) continue;
    saveElement(state, { ...record, range: { cidr, gateway } });
  }
  const used = inUse(state);
  const interfaces = [...state.elements.values()].flatMap((record) => {
    const element = elementOf(state, record);
    return element?.type === "VirtualInterface" ? [{ uid: record.uid, element }] : [];
  });
  // Those that ask for a certain address come first, lest another is given it.
  interfaces.sort((a, b) => Number(b.element.address !== undefined) - Number(a.element.address !== undefined));
  for (const { uid, element } of interfaces) {
    const record = state.elements.get(uid);
    if (record !== undefined && !used.has(uid)) allocate(state, record, element);
  }
}

function allocate(state: ControllerState, record: ElementRecord, element: VirtualInterfaceElement): void {
  const subnet = recordAt(state, element.subnet);
  if (subnet === undefined) return;
  const held = record.allocation?.subnet === subnet.uid ? record.allocation : null;
  const suits = held !== null && (element.address === undefined || element.address === held.address);
  const choice = suits ? held.address : chooseAddress(state, record.uid, element);
  if (typeof choice !== "string") {
    if (record.allocation !== null) saveElement(state, { ...record, allocation: null });
    return;
  }
  const mac = element.mac ?? macOf(choice);
  if (held?.address === choice && held.mac === mac) return;
  saveElement(state, { ...record, allocation: { subnet: subnet.uid, address: choice, mac } });
}

/** The address that an interface gets now, or why it gets none. */
export function chooseAddress(state: ControllerState, own: Uid, element: VirtualInterfaceElement): Ipv4 | Cause {
  const subnet = recordAt(state, element.subnet);
  const range = subnet?.range ? parseNetwork(subnet.range.cidr) : null;
  if (subnet?.range == null || range === null) return { kind: "waits-for", element: element.subnet };
  const holders = new Map<number, ElementPath>();
  for (const other of state.elements.values()) {
    const number = other.uid === own || other.allocation === null ? null : parseIpv4(other.allocation.address);
    if (number !== null) holders.set(number, other.path);
  }
  const gateway = parseIpv4(subnet.range.gateway);
  if (gateway !== null) holders.set(gateway, subnet.path);
  if (element.address === undefined) {
    const free = lowestFree(range, new Set(holders.keys()));
    if (free === null) return { kind: "subnet-full", element: element.subnet, cidr: subnet.range.cidr };
    return addressOf(free);
  }
  const fixed = parseIpv4(element.address);
  if (fixed === null || !isUsable(range, fixed)) {
    const [first, last] = [addressOf(range.first + 2), addressOf(range.last - 1)];
    const { address, subnet: path } = element;
    return { kind: "address-outside", element: path, address, cidr: subnet.range.cidr, first, last };
  }
  const holder = holders.get(fixed);
  if (holder === undefined) return element.address;
  return { kind: "address-taken", element: holder, address: element.address };
}

/** A subnet stays desired until the last interface with an address in it is gone. The underlay is nobody's to give. */
export function wishForSubnets(state: ControllerState, wishes: Wishes): void {
  const occupied = new Set([...state.elements.values()].map((record) => record.allocation?.subnet));
  for (const record of state.elements.values()) {
    if (record.type !== "Subnet") continue;
    if (isHeldBack(state, record)) continue;
    const element = elementOf(state, record);
    const key = `subnet/${record.uid}`;
    if (element?.type === "Subnet") {
      if (element.addressRange === "management") continue;
      wish(wishes, addressManager, key, {
        uid: record.uid,
        cell: state.options.cell,
        path: record.path,
        size: element.size,
        addressRange: element.addressRange,
        cidr: element.cidr ?? null,
        // What an all-or-none cell gave back it does not have.
        ...(record.range === null || record.reserving === true ? {} : { has: record.range.cidr }),
      } satisfies DesiredSubnet);
    } else if (occupied.has(record.uid)) keepWish(state, wishes, addressManager, key);
  }
}
