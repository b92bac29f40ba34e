import { formatIpv4 } from "../../../model/addresses/addresses.ts";
import { type HostName, ipv4 } from "../../../model/cell/identifiers.ts";
import type { DesiredInstance, ElasticAddress } from "../../documents/network/eucalyptus.ts";
import { addressKey, placeOf } from "../book.ts";
import { ask, type NetworkViewState } from "../state.ts";

/*
 * Elastic addresses of cells' machines. A machine of an external subnet has one from its first start until it leaves the model or that subnet: it is
 * leased to the cell for this instance, and is the machine's while that is off, too. The account of a lease is the cell.
 */

/** Of one pass, by instance. */
export interface Elastic {
  /** Leased for it. */
  readonly leases: Map<string, number>;
  /** Of the book, which may know that without a lease: after a loss hosts have said so. */
  readonly placed: ReadonlyMap<string, number>;
}

/** What is leased; what nobody wants any more is given back. */
export function elasticNow(state: NetworkViewState): Elastic {
  const { book } = state;
  const leases = new Map<string, number>();
  for (const { address, account, instance } of [...book.elastic.values()]) {
    if (instance === undefined) continue;
    if (isElasticWanted(state, instance)) leases.set(instance, address);
    else {
      ask(state, { kind: "disassociate", address, account });
      ask(state, { kind: "return", address, account });
    }
  }
  const placed = new Map<string, number>();
  for (const { kind, address, instance } of book.addresses.values())
    if (kind === "elastic" && instance !== null && !placed.has(instance)) placed.set(instance, address);
  return { leases, placed };
}
/** Unless a document cannot be read: what a machine has stays its own. */
function isElasticWanted({ wanted, unread, ids }: NetworkViewState, id: string): boolean {
  const uid = ids.uidOf(id);
  return unread.size > 0 || (uid !== undefined && wanted.get(uid)?.document.elastic === true);
}

/** Of an instance in the book that is to have one: it has it from then on. @returns why not; null: it has */
export function giveElastic(
  state: NetworkViewState,
  { leases, placed }: Elastic,
  id: string,
  { cell: account }: DesiredInstance,
): string | null {
  const known = leases.get(id);
  if (known !== undefined) return ask(state, { kind: "associate", address: known, account, id }).refused;
  const has = placed.get(id);
  const before = has === undefined ? {} : { has };
  const { address, refused } = ask(state, { kind: "allocate", account, instance: id, ...before });
  if (address === undefined) return refused;
  leases.set(id, address);
  return ask(state, { kind: "associate", address, account, id }).refused;
}

/** What is said of it. @param why it is given none, or has none at its host; null: only the host's word may be missing */
export function elasticSaid(
  { book, said }: NetworkViewState,
  { leases }: Elastic,
  id: string,
  why: string | null,
): ElasticAddress {
  const address = leases.get(id);
  if (address === undefined) return { address: null, reason: why ?? "no elastic address is given yet" };
  const instance = book.instances.get(id);
  const is = { address: ipv4(formatIpv4(address)) };
  if (why !== null || instance === undefined) return { ...is, reason: why };
  const place = placeOf(book, "elastic", instance);
  if (place === null) return { ...is, reason: `no host carries the cluster ${instance.cluster} to the outside` };
  const told = book.addresses.get(addressKey("elastic", address))?.hosts.get(place);
  const at = said.get(place as HostName);
  const placed = at?.instances?.find((each) => each.id === id)?.public;
  const isInPlace = told !== undefined && (at?.version ?? 0) >= told.since && placed?.address === is.address;
  if (isInPlace && placed.state === "assigned") return { ...is, reason: null };
  const failed = isInPlace ? placed.reason : undefined;
  return { ...is, reason: failed ?? `${place} has yet to say that ${is.address} is in place` };
}
