import type { DesiredInterface, DesiredVm } from "../../core/documents/vocabulary.ts";
import type { ElementPath, PeerName, Uid } from "../../model/cell/identifiers.ts";

/**
 * Addresses that a cell's controller must not give to an interface here, whatever made it do so: one of the underlay, behind
 * which a host or a service is, and one that another cell has. Whoever has an address keeps it: of two cells this host
 * cannot know which one the IP Address Manager gave it to.
 */
export interface Claims {
  /** Of hosts and services, this host's own included. */
  readonly underlay: ReadonlySet<string>;
  /** The cell by whose controller an address was placed at another host. */
  readonly placed: ReadonlyMap<string, string>;
}
export const noClaims: Claims = { underlay: new Set(), placed: new Map() };

/** A VM that is here already, or shall be. */
export interface Holder {
  readonly client: PeerName;
  readonly vm: DesiredVm;
}

/** Who has an address here: the first one that has it. */
export interface Held {
  readonly client: PeerName;
  readonly uid: Uid;
  readonly vm: ElementPath;
}

/** By address, who has it here: machines that run, and none beside another one's. */
export function heldAddresses(running: Iterable<Holder>): Map<string, Held> {
  const held = new Map<string, Held>();
  for (const holder of running) holdAddresses(held, holder);
  return held;
}
/** One more machine that runs. */
export function holdAddresses(held: Map<string, Held>, { client, vm }: Holder): void {
  for (const { address, management, instance, uid } of vm.interfaces)
    if (management !== true && instance === undefined && !held.has(address))
      held.set(address, { client, uid, vm: vm.path });
}

/**
 * Why an interface has to wait for its address, as a sentence; null: it need not. Another one of the same cell has it here: a
 * machine that is about to end, or one of which an older store of the cell's controller does not know.
 */
export function addressInUse(
  { address, management, instance, path, uid }: DesiredInterface,
  held: ReadonlyMap<string, Held>,
): string | null {
  const holder = management === true || instance !== undefined ? undefined : held.get(address);
  if (holder === undefined || holder.uid === uid) return null;
  return `its interface ${path} has the address ${address}, which a machine of ${holder.vm} has here until it ends`;
}

/** Why an interface of that controller cannot have its address here, as a sentence; null: it can. */
export function addressTaken(
  { client, vm }: Holder,
  { address, management, instance, path }: DesiredInterface,
  { underlay, placed }: Claims,
  held: ReadonlyMap<string, Held>,
): string | null {
  // Who has an address of a mode of Eucalyptus, the Network View Manager knows.
  if (management === true || instance !== undefined) return null;
  const its = `its interface ${path} cannot have the address ${address}`;
  if (underlay.has(address)) return `${its}, which is that of a host or a service of the installation`;
  const holder = held.get(address);
  if (holder !== undefined)
    return holder.client === client ? null : `${its}, which an interface of another cell has here`;
  const cell = placed.get(address);
  return cell === undefined || cell === vm.cell ? null : `${its}, which an interface of another cell has elsewhere`;
}
