import type { Cell } from "./cell.ts";
import { type AddressOffer, checkAddresses } from "./check-addresses.ts";
import type { ReportFault } from "./check-cell.ts";
import { checkHosts, type HostOffer } from "./check-hosts.ts";
import { checkStorage, type StorageOffer } from "./check-storage.ts";

/**
 * What the installation could ever give. A part that is null is not known (its service was not heard, or does not know all
 * of it itself): nothing is impossible then. What does not fit *now* is no fault: it waits.
 */
export interface Supply {
  readonly hosts: readonly HostOffer[] | null;
  readonly storage: StorageOffer | null;
  readonly addresses: AddressOffer | null;
  /** The model was accepted before. A limit that is asked for only since, or a server that left, does not undo that. */
  readonly accepted?: true;
}
export const unknownSupply: Supply = { hosts: null, storage: null, addresses: null };
/** For a model that is stored: it is read as it was accepted. */
export const acceptedBefore: Supply = { ...unknownSupply, accepted: true };

/** Refuses what could only ever wait. */
export function checkSupply(cell: Cell, { hosts, storage, addresses }: Supply, fault: ReportFault): void {
  if (hosts !== null) checkHosts(cell, hosts, fault);
  if (storage !== null) checkStorage(cell, storage, fault);
  if (addresses !== null) checkAddresses(cell, addresses, fault);
}
