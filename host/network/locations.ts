import { isDeepStrictEqual } from "node:util";
import { rootCell } from "../../core/documents/cells.ts";
import type { DesiredPlaces } from "../../core/documents/network/network.ts";
import type { ActualLocation, CellPolicy } from "../../core/documents/vocabulary.ts";
import type { Effect } from "../../core/env.ts";
import { type HostName, hostName, ipv4, type PeerName, peerName } from "../../model/cell/identifiers.ts";
import { inOneOf } from "../drivers/network/in-one-of.ts";
import type { Believed, HostState, Places, Reaching } from "../known.ts";

/**
 * What this host believes of where addresses are, and by which numbers it knows cells. Other hosts and controllers may be in
 * somebody's hands, so each is believed what it alone can know, and what somebody else can confirm:
 * - A cell has the number that this host gave it, by the name in its controller's certificate. That is the number which the
 *   controller says unless another cell has it here.
 * - A host says which MAC it has. That an address is there, and whose it is, says the controller of the cell that placed it there.
 * - Two cells that claim one address: whoever has it keeps it.
 */
/** As many as one host has interfaces. */
export const mostLocations = 4096;
/** Of addresses in cells that have no rules here: no cell's own. */
export const foreignNumber = 2 ** 32 - 1;
/** Numbers for cells that say one which is another's here. */
const firstOwnNumber = 2 ** 31;
export const numberRecord = "cell-number";

/** The number of a cell at this host, durable as what stands in the dataplane under it. */
function numberOf({ numbers }: HostState, cell: string, said: number, effects: Effect[]): number {
  const known = numbers.get(cell);
  if (known !== undefined) return known;
  const used = new Set(numbers.values());
  let number = used.has(said) || said >= firstOwnNumber ? firstOwnNumber : said;
  while (used.has(number)) number += 1;
  numbers.set(cell, number);
  effects.push({ kind: "write", key: `${numberRecord}/${cell}`, value: number });
  return number;
}
export const numbered = (state: HostState, policy: CellPolicy, effects: Effect[]): CellPolicy => ({
  ...policy,
  cellNumber: numberOf(state, policy.cell, policy.cellNumber, effects),
});
/** Cells that are not here any more leave their numbers to others. */
export function freeNumbers({ numbers, policies, succession }: HostState, effects: Effect[]): void {
  for (const cell of numbers.keys()) {
    if (policies.has(cell) || succession.standby?.policy.cell === cell) continue;
    numbers.delete(cell);
    effects.push({ kind: "write", key: `${numberRecord}/${cell}`, value: null });
  }
}

/**
 * A policy with its cell's controller where it is, whatever it says of itself: at an address that it names without being there
 * a host or another service would be open to the cell's guests. One of which nothing is known may be anywhere but there.
 */
export function withController({ peerAddresses }: HostState, policy: CellPolicy): CellPolicy {
  const { address: said } = policy.controller;
  if (peerAddresses === null || policy.cell === rootCell) return policy;
  const isOthers = (): boolean => [...peerAddresses.values()].includes(said);
  const known = peerAddresses.get(`controller.${policy.cell}`) ?? (isOthers() ? "0.0.0.0" : said);
  return known === said ? policy : { ...policy, controller: { ...policy.controller, address: ipv4(known) } };
}

/** @returns whether a policy is another one by that */
export function takeAddresses(
  state: HostState,
  addresses: Readonly<Record<string, string>>,
  effects: Effect[],
): boolean {
  state.peerAddresses = new Map(Object.entries(addresses));
  state.claims = null;
  for (const [cell, said] of state.saidPolicies) {
    const policy = withController(state, numbered(state, said, effects));
    if (policy.controller.address !== state.policies.get(cell)?.controller.address) state.policies.set(cell, policy);
  }
  return true;
}

/** A location is told by its object to have changed, so the same belief in the same claim is the same object. */
const made = new WeakMap<ActualLocation, { readonly text: string; readonly location: ActualLocation }>();

function as(claim: ActualLocation, changes: Partial<ActualLocation>): ActualLocation {
  const text = JSON.stringify(changes);
  const known = made.get(claim);
  if (known?.text === text) return known.location;
  const location = { ...claim, ...changes };
  made.set(claim, { text, location });
  return location;
}

/** What a cell's controller confirms of a claim; null: nothing. */
function confirmed(
  claim: ActualLocation,
  { cellNumber }: Reaching,
  said: number | undefined,
  known: Places | undefined,
): ActualLocation | null {
  if (known === undefined) {
    // A controller of the previous version: the cell's hosts are believed, each of what it says is of this cell or of none here.
    return as(claim, { cellNumber: claim.cellNumber === said ? cellNumber : foreignNumber });
  }
  const own = known.own.get(claim.address);
  if (own !== undefined) {
    const { identity, vmIdentity, subnetIdentity } = own;
    return own.host === claim.host ? as(claim, { cellNumber, identity, vmIdentity, subnetIdentity }) : null;
  }
  const isForeign =
    known.foreign === null || (known.foreign.size > 0 && known.foreign.has(`${claim.address} ${claim.host}`));
  return isForeign ? as(claim, { cellNumber: foreignNumber }) : null;
}

export const placesOf = ({ own, foreign }: DesiredPlaces): Places => ({
  own: new Map(own.map((place) => [place.address, place])),
  foreign: foreign === null ? null : new Set(foreign.map(({ address, host }) => `${address} ${host}`)),
});

/** A host has said something else of an address: that one alone is looked at anew. */
export const locationChanged = ({ believed }: HostState, address: string): void => {
  believed?.changed.add(address);
};

/** A cell's controller has said something else of where its addresses are: those alone are looked at anew. */
export function placesChanged(state: HostState, before: Places | undefined, after: Places | undefined): void {
  if (state.believed === null) return;
  // Whom such a cell believes is another question, of all that its hosts say.
  if (before === undefined || after === undefined || (before.foreign === null) !== (after.foreign === null)) {
    state.believed = null;
    return;
  }
  for (const address of new Set([...before.own.keys(), ...after.own.keys()]))
    if (!isDeepStrictEqual(before.own.get(address), after.own.get(address))) locationChanged(state, address);
  for (const claim of inOneOf(before.foreign ?? [], after.foreign ?? []))
    locationChanged(state, claim.split(" ")[0] ?? "");
}

/** Whom a cell's policy believes: its hosts, by its number here and the one that its controller says. */
export interface Reach {
  readonly hosts: ReadonlySet<HostName>;
  readonly numbers: string;
}
export function reachOf({ policies, saidPolicies }: HostState, cell: string): Reach {
  const policy = policies.get(cell);
  return { hosts: new Set(policy?.hosts), numbers: `${policy?.cellNumber} ${saidPolicies.get(cell)?.cellNumber}` };
}
/** A cell's policy is another one, or gone: what hosts say is looked at anew whom it did not name before, or does not now. */
export function reachChanged(state: HostState, before: Reach, after: Reach): void {
  const { believed } = state;
  if (believed === null) return;
  const isSame = before.numbers === after.numbers;
  const concerned = isSame ? inOneOf(before.hosts, after.hosts) : new Set([...before.hosts, ...after.hosts]);
  for (const host of concerned) {
    believed.byHost.set(
      host,
      [...state.policies.values()].filter(({ hosts }) => hosts.includes(host)),
    );
    for (const address of state.locations.get(peerName(`host.${host}`))?.keys() ?? []) believed.changed.add(address);
  }
}

/** Every location that is believed; one for an address. Worked out anew so far as what it rests on has changed. */
export function believedLocations(state: HostState): readonly ActualLocation[] {
  const { believed } = state;
  if (believed === null) return believeAll(state);
  for (const address of believed.changed) {
    const location = believedAt(state, believed.byHost, address);
    if (location === (believed.byAddress.get(address) ?? null)) continue;
    believed.all = null;
    if (location === null) {
      believed.byAddress.delete(address);
      state.held.delete(address);
    } else {
      believed.byAddress.set(address, location);
      state.held.set(address, location.cellNumber);
    }
  }
  believed.changed.clear();
  believed.all ??= [...believed.byAddress.values()];
  return believed.all;
}

function believeAll(state: HostState): readonly ActualLocation[] {
  const byHost = new Map<HostName, Reaching[]>();
  for (const policy of state.policies.values())
    for (const host of policy.hosts) {
      const known = byHost.get(host) ?? [];
      known.push(policy);
      byHost.set(host, known);
    }
  const byAddress = new Map<string, ActualLocation>();
  for (const [peer, claims] of state.locations)
    for (const claim of claims.values()) {
      const location = better(state, byHost, peer, claim, byAddress.get(claim.address) ?? null);
      if (location !== null) byAddress.set(claim.address, location);
    }
  state.held = new Map([...byAddress].map(([address, { cellNumber }]) => [address, cellNumber]));
  const all = [...byAddress.values()];
  state.believed = { byHost, byAddress, changed: new Set(), all };
  return all;
}

function believedAt(state: HostState, byHost: Believed["byHost"], address: string): ActualLocation | null {
  let found: ActualLocation | null = null;
  for (const [peer, claims] of state.locations) {
    const claim = claims.get(address);
    if (claim !== undefined) found = better(state, byHost, peer, claim, found);
  }
  return found;
}

/** What this claim is believed to say where it comes before `other`, which is believed of the address so far. */
function better(
  state: HostState,
  byHost: Believed["byHost"],
  peer: PeerName,
  claim: ActualLocation,
  other: ActualLocation | null,
): ActualLocation | null {
  let found = other;
  for (const policy of byHost.get(hostOf(peer)) ?? []) {
    const said = state.saidPolicies.get(policy.cell)?.cellNumber;
    const location = confirmed(claim, policy, said, state.places.get(policy.cell));
    if (location === null) continue;
    if (found === null || isBefore(location, found, state.held.get(claim.address))) found = location;
  }
  return found;
}
const hostOf = (peer: PeerName): HostName => hostName(peer.slice("host.".length));

/** A cell's own address before what is another's for it; then the cell that has it already. */
function isBefore(one: ActualLocation, other: ActualLocation, holder: number | undefined): boolean {
  const [a, b] = [one.cellNumber, other.cellNumber];
  if ((a === foreignNumber) !== (b === foreignNumber)) return b === foreignNumber;
  return a !== b && a === holder;
}
