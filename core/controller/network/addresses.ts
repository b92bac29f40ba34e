import { parseIpv4, parseNetwork } from "../../../model/addresses/addresses.ts";
import type { Cause } from "../../../model/cause/cause.ts";
import type { VirtualInterfaceElement } from "../../../model/cell/cell.ts";
import type { Cidr, ElementPath, Ipv4, Uid } from "../../../model/cell/identifiers.ts";
import type { DesiredSubnet } from "../../documents/network/network.ts";
import { actualSubnet } from "../../documents/readers/network.ts";
import { log } from "../../outbox.ts";
import type { Desires } from "../changes/desires.ts";
import { isInUse } from "../changes/in-use.ts";
import type { ElementRecord } from "../records.ts";
import {
  actualOf,
  addDesire,
  addressManager,
  type ControllerState,
  elementOf,
  isHeldBack,
  keepDesire,
  recordAt,
  runs,
  saveElement,
} from "../state.ts";
import { isOnMode, takeInstanceAddress, whyNoInstanceAddress } from "./instances.ts";
import { addressOf, isUsable, lowestFree, macOf } from "./ipv4-range.ts";
import { isManagement, managementRange } from "./management.ts";

/**
 * The IP Address Manager gives a subnet its range, the controller the addresses inside it (paper, III.A). Both are
 * durable: an interface keeps its address for as long as it exists and its model does not ask for another.
 */
export function allocateAddresses(state: ControllerState): void {
  state.pass.each("ranges", state.elements, (record) => takeRange(state, record), {
    of: ({ type }) => type === "Subnet",
  });
  const of = ({ type }: ElementRecord): boolean => type === "VirtualInterface";
  // Those that ask for a certain address come first, lest another is given it.
  for (const [step, asks] of [
    ["asked addresses", true],
    ["addresses", false],
  ] as const)
    state.pass.each(
      step,
      state.elements,
      (record) => {
        const element = elementOf(state, record);
        if (element?.type !== "VirtualInterface" || (element.address !== undefined) !== asks) return;
        if (isOnMode(state)) {
          const allocation = takeInstanceAddress(state, record, element);
          if (allocation !== record.allocation) saveElement(state, { ...record, allocation });
          return;
        }
        if (!isInUse(state, record.uid)) allocate(state, record, element);
      },
      { of },
    );
}

function takeRange(state: ControllerState, record: ElementRecord): void {
  if (takenRange(state, record) !== null) {
    giveUpRange(state, record);
    return;
  }
  const given = isManagement(state, record)
    ? managementRange(state)
    : actualOf(actualSubnet, state, addressManager, `subnet/${record.uid}`);
  const { cidr = null, gateway = null } = given ?? {};
  if (cidr === null || gateway === null || isHeldBack(state, record)) return;
  if (record.range?.cidr === cidr && record.range.gateway === gateway) return;
  saveElement(state, { ...record, range: { cidr, gateway } });
}

/** The range of a subnet that another one has: one of the two services had an older store when they agreed on it. */
export function takenRange(state: ControllerState, { uid, type, range }: ElementRecord): Cidr | null {
  if (type !== "Subnet" || range === null) return null;
  const taken = actualOf(actualSubnet, state, addressManager, `subnet/${uid}`)?.taken;
  return taken === range.cidr ? taken : null;
}

/** Machines that have an address in a subnet. */
export function machinesIn(state: ControllerState, subnet: Uid): readonly ElementPath[] {
  const machines: ElementPath[] = [];
  for (const { vm, run } of runs(state)) {
    const isThere = run.interfaces.some((card) => state.indexes.allocations.get(card)?.subnet === subnet);
    const path = isThere ? state.elements.get(vm)?.path : undefined;
    if (path !== undefined) machines.push(path);
  }
  return machines;
}

/** A range that nobody's machine uses is no loss: the subnet asks for another one, and its interfaces get theirs from that. */
function giveUpRange(state: ControllerState, record: ElementRecord): void {
  const cards = [...state.indexes.allocations].flatMap(([uid, { subnet }]) => (subnet === record.uid ? [uid] : []));
  if (isHeldBack(state, record) || cards.some((uid) => isInUse(state, uid))) return;
  log(state.outbox, "subnet/range-given-up", { uid: record.uid, path: record.path, cidr: record.range?.cidr ?? null });
  saveElement(state, { ...record, range: null });
  for (const uid of cards) {
    const card = state.elements.get(uid);
    if (card !== undefined) saveElement(state, { ...card, allocation: null });
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
  if (isOnMode(state)) return whyNoInstanceAddress(state, element);
  const subnet = recordAt(state, element.subnet);
  const range = subnet?.range ? parseNetwork(subnet.range.cidr) : null;
  if (subnet?.range == null || range === null) return { kind: "waits-for", element: element.subnet };
  const gateway = parseIpv4(subnet.range.gateway);
  if (element.address === undefined) {
    const { holders } = state.indexes;
    // It rests on all of them: to note each one by itself would cost as much again for every interface.
    const isHeld = (number: number): boolean => holders.peek(number)?.some((uid) => uid !== own) === true;
    holders.noteAll();
    const free = lowestFree(range, (number) => number === gateway || isHeld(number));
    if (free === null) return { kind: "subnet-full", element: element.subnet, cidr: subnet.range.cidr };
    return addressOf(free);
  }
  const fixed = parseIpv4(element.address);
  if (fixed === null || !isUsable(range, fixed)) {
    const [first, last] = [addressOf(range.first + 2), addressOf(range.last - 1)];
    const { address, subnet: path } = element;
    return { kind: "address-outside", element: path, address, cidr: subnet.range.cidr, first, last };
  }
  const holder = fixed === gateway ? subnet.path : holderOf(state, own, fixed);
  if (holder === undefined) return element.address;
  return { kind: "address-taken", element: holder, address: element.address };
}
/** Who else has an address. */
function holderOf(state: ControllerState, own: Uid, number: number): ElementPath | undefined {
  const other = state.indexes.holders.get(number)?.findLast((uid) => uid !== own);
  return other === undefined ? undefined : state.elements.get(other)?.path;
}

/** A subnet stays desired until the last interface with an address in it is gone. The underlay is nobody's to give. */
export function desireSubnets(state: ControllerState): void {
  state.pass.each("subnets", state.elements, (record, _uid, desires) => desireSubnet(state, record, desires), {
    of: ({ type }) => type === "Subnet",
  });
}

function desireSubnet(state: ControllerState, record: ElementRecord, desires: Desires): void {
  if (isHeldBack(state, record) || isOnMode(state)) return;
  const element = elementOf(state, record);
  const key = `subnet/${record.uid}`;
  if (element?.type !== "Subnet") {
    if (state.indexes.occupied.has(record.uid)) keepDesire(state, desires, addressManager, key);
    return;
  }
  if (element.addressRange === "management") return;
  addDesire(desires, addressManager, key, {
    uid: record.uid,
    cell: state.options.cell,
    path: record.path,
    size: element.size,
    addressRange: element.addressRange,
    cidr: element.cidr ?? null,
    // What an all-or-none cell gave back it does not have.
    ...(record.range === null || record.reserving === true ? {} : { has: record.range.cidr }),
  } satisfies DesiredSubnet);
}
