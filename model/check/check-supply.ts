import type { Cell, Element } from "../cell/cell.ts";
import type { Mode } from "../cell/network/modes.ts";
import type { KnownOffering } from "../cell/tenants/pools/offerings.ts";
import { checkHosts, checkHostsOfAll, checkMarks, type HostOffer, type KnownMarks } from "./check-hosts.ts";
import { checkStorage, checkStorageOfAll, type StorageOffer } from "./check-storage.ts";
import type { ReportFault } from "./fault.ts";
import { type AddressOffer, checkAddresses, checkAddressesOfAll } from "./network/check-addresses.ts";
import { checkMode } from "./network/check-mode.ts";
import { checkForwardedNetworks } from "./network/check-network.ts";
import { checkOfferings } from "./root-cell/check-offerings.ts";
import { checkPoolsInUse, type KnownPools } from "./root-cell/check-pools.ts";

/**
 * What the installation could ever give. A part that is null is not known (its service was not heard, or does not know all
 * of it itself): nothing is impossible then. What does not fit *now* is no fault: it waits.
 */
export interface Supply {
  readonly hosts: readonly HostOffer[] | null;
  readonly storage: StorageOffer | null;
  readonly addresses: AddressOffer | null;
  /** What the operator says of hosts. Absent: it is not known. */
  readonly marks?: KnownMarks;
  /** What he offers by names. Absent: it is not known. */
  readonly offerings?: readonly KnownOffering[];
  /**
   * The model in force. What it asks for already is not refused: it may have it, or waits for it, and that a server left must
   * not keep anybody from changing the rest.
   */
  readonly present?: Cell;
  /** Storage that is in no model: deleted volumes that stay since copies of this cell lie over them. Absent: none. */
  readonly keptMiB?: number;
  /** The model was accepted before. A limit that is asked for only since, or a server that left, does not undo that. */
  readonly accepted?: true;
  /** Of the cell's networks, for good. Absent: Diverter. */
  readonly networkMode?: Mode;
  /** What is given of the pools that the root cell declares. Absent: it is not known, or another cell's model. */
  readonly pools?: KnownPools;
}
export const unknownSupply: Supply = { hosts: null, storage: null, addresses: null };
/** For a model that is stored: it is read as it was accepted. */
export const acceptedBefore: Supply = { ...unknownSupply, accepted: true };

/** What cannot be checked because it is not known. */
export const uncheckedIn = (supply: Supply): readonly ("hosts" | "storage" | "addresses")[] =>
  (["hosts", "storage", "addresses"] as const).filter((part) => supply[part] === null);

/** Refuses what could only ever wait. An all-or-none cell must also be possible as a whole, since it is had as a whole. */
export function checkSupply(
  cell: Cell,
  { hosts, storage, addresses, marks, offerings, present, networkMode, pools }: Supply,
  fault: ReportFault,
): void {
  if (networkMode !== undefined) checkMode(cell, networkMode, fault);
  const asked = [...cell.elements.values()].filter((element) => !isPresent(present, element));
  if (hosts !== null) checkHosts(asked, hosts, fault);
  if (marks !== undefined) checkMarks(asked, marks, fault);
  if (offerings !== undefined) checkOfferings(asked, offerings, fault);
  if (storage !== null) checkStorage(asked, storage, fault);
  // Of a mode's, the network configuration has others.
  if (addresses !== null && networkMode === undefined) checkAddresses(asked, addresses, fault);
  if (addresses !== null) checkForwardedNetworks(asked, addresses, fault);
  checkPoolsInUse(cell, present, addresses, pools, fault);
  if (cell.deploy !== "all-or-none" || asked.length === 0) return;
  if (hosts !== null) checkHostsOfAll(cell, asked, hosts, fault);
  if (storage !== null) checkStorageOfAll(cell, asked, storage, fault);
  if (addresses !== null && networkMode === undefined) checkAddressesOfAll(cell, asked, addresses, fault);
}

/** Does the model in force ask for the same already, here or where the element was before? */
function isPresent(present: Cell | undefined, element: Element): boolean {
  const before = present?.elements.get(element.path) ?? present?.elements.get(element.movedFrom ?? element.path);
  return before !== undefined && demand(before) === demand(element);
}
function demand(element: Element): string {
  switch (element.type) {
    case "VM":
      return JSON.stringify([element.memoryMiB, element.cpus, element.cpuSpeedMHz, element.placement]);
    case "Volume":
    case "VolumeCopy":
      return `${element.type} ${element.sizeMiB}`;
    case "Subnet":
      return JSON.stringify([element.size, element.addressRange, element.cidr ?? null]);
    case "VirtualInterface":
      return JSON.stringify([element.type, element.forwards ?? []]);
    default:
      return element.type;
  }
}
