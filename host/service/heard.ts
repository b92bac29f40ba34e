import type { Taken } from "../../core/distribution/views/view.ts";
import { type PolicySlice, poolsKey } from "../../core/documents/network/network.ts";
import {
  actualLocation,
  cellPolicy,
  desiredPlaces,
  desiredPools,
  policySlice,
} from "../../core/documents/readers/network.ts";
import type { ActualLocation, CellPolicy } from "../../core/documents/vocabulary.ts";
import type { Effect, Input, Instant } from "../../core/env.ts";
import { type HostName, type PeerName, peerName } from "../../model/cell/identifiers.ts";
import type { Json } from "../../model/json/json.ts";
import type { HostState } from "../known.ts";
import {
  freeNumbers,
  locationChanged,
  mostLocations,
  numbered,
  placesChanged,
  placesOf,
  reachChanged,
  reachOf,
  withController,
} from "../network/locations.ts";
import { beginNetwork, endNetworkOfBoot, takeNetworkDesire } from "../network/network-view.ts";
import { type PolicyAtHost, policyOf, viewOf, writeReplaced } from "../network/policy-view.ts";
import { endsThisBoot } from "../presence/presence-state.ts";
import { inner } from "./host-state.ts";

/** What this host hears of the network: rules and places from controllers, locations from other hosts. */
/** The cell of a controller, by its name as a peer. */
export const cellOf = (controller: PeerName): string => controller.slice("controller.".length);

/** @returns whether something changed, or why the document is refused */
export const takeRules = (
  state: HostState,
  from: PeerName,
  { kind, cell, name, value }: Rules,
  effects: Effect[],
): boolean | string => {
  if (takeNetworkDesire(state.network, { kind, name: cell, value }, state.now, effects)) return false;
  if (kind === poolsKey) return takePools(state, value);
  if (cell !== cellOf(from)) return `its cell is ${cell}`;
  if (kind === "places") {
    const said = value === null ? null : desiredPlaces.of(value, cell);
    if (value !== null && said === null) return malformed;
    const before = state.places.get(cell);
    if (said === null) state.places.delete(cell);
    else state.places.set(cell, placesOf(said));
    state.claims = null;
    placesChanged(state, before, state.places.get(cell));
    return said !== null || before !== undefined;
  }
  const view = inner(state.views, cell, () => newView(state));
  if (kind === "slice") {
    const slice = policySlice.of(value);
    if (slice === null && value !== null) return malformed;
    return takeView(state, cell, view, view.takeSlice(name, slice), effects);
  }
  const policy = cellPolicy.of(value, cell);
  if (policy === null && value !== null) return malformed;
  return takeView(state, cell, view, view.takeManifest(policy), effects);
};
/** What is external here is so for every cell. One that cannot be read takes nothing away. */
function takePools(state: HostState, value: Json): boolean | string {
  const said = value === null ? null : desiredPools.of(value);
  if (value !== null && said === null) return malformed;
  state.external = said?.external ?? null;
  return true;
}
const malformed = "it is malformed, or about another cell than its key";
interface Rules {
  /** Of the document: `policy`, `slice`, `places`, `pools`, or of a view of Eucalyptus. */
  readonly kind: string;
  readonly cell: string;
  /** Of a slice. */
  readonly name: string;
  readonly value: Json;
}

/** One that comes while this process runs has nothing durable to wait for. */
function newView({ started }: HostState): PolicyAtHost {
  const view = viewOf();
  if (started) view.begin();
  return view;
}

/** Whatever was durable of policies is here again. */
export function beginViews(state: HostState, now: Instant, effects: Effect[]): void {
  for (const [cell, view] of state.views) takeView(state, cell, view, view.begin(), effects);
  state.network.boot = state.presence.boot;
  beginNetwork(state.network, now, effects);
  freeNumbers(state, effects);
}

/** Whether members of the group say that this boot of the machine is over though it runs: what it had in place of a mode goes with it. */
export function endsBoot(
  { presence, network }: HostState,
  own: string,
  input: Extract<Input, { readonly kind: "actual" }>,
  wallMs: number,
  effects: Effect[],
): boolean {
  return endsThisBoot(presence, own, input, wallMs, effects) && endNetworkOfBoot(network, presence.boot);
}

function takeView(
  state: HostState,
  cell: string,
  view: PolicyAtHost,
  { now, writes }: Taken<CellPolicy, PolicySlice>,
  effects: Effect[],
): boolean {
  writeReplaced(cell, writes, effects);
  if (view.isEmpty) state.views.delete(cell);
  if (now === null) return false;
  const before = reachOf(state, cell);
  let isAnother = true;
  if (now === "gone") {
    isAnother = state.policies.delete(cell);
    state.saidPolicies.delete(cell);
    freeNumbers(state, effects);
  } else {
    const policy = policyOf(now);
    state.saidPolicies.set(cell, policy);
    state.policies.set(cell, withController(state, numbered(state, policy, effects)));
  }
  reachChanged(state, before, reachOf(state, cell));
  return isAnother;
}

/** A host speaks for itself only. */
export const handleLocation = (
  state: HostState,
  from: PeerName,
  key: string,
  value: Json,
  effects: Effect[],
): boolean => {
  if (!key.startsWith("location/") || !from.startsWith("host.")) return false;
  const address = key.slice("location/".length);
  const locations = inner(state.locations, from, () => new Map<string, ActualLocation>());
  state.unconfirmed.get(from)?.delete(address);
  if (value !== null && locations.size >= mostLocations && !locations.has(address)) {
    const why = `a host has at most ${mostLocations} addresses, and all beyond that are left out`;
    if (!state.overfull.has(from)) effects.push({ kind: "log", event: "document/refused", fields: { from, key, why } });
    state.overfull.add(from);
    return false;
  }
  if (value === null) {
    if (!locations.delete(address)) return false;
    locationChanged(state, address);
  } else {
    const location = actualLocation.of(value, address);
    if (location === null || `host.${location.host}` !== from) return false;
    if (JSON.stringify(locations.get(address)) === JSON.stringify(location)) return false;
    locations.set(address, location);
    locationChanged(state, address);
  }
  effects.push({ kind: "write", key: `location/${from}/${address}`, value });
  return true;
};

/** In step with that host: what it did not repeat is no longer so. */
export const forgetUnconfirmed = (state: HostState, peer: PeerName, effects: Effect[]): boolean => {
  const gone = state.unconfirmed.get(peer);
  state.unconfirmed.delete(peer);
  for (const address of gone ?? []) {
    state.locations.get(peer)?.delete(address);
    locationChanged(state, address);
    effects.push({ kind: "write", key: `location/${peer}/${address}`, value: null });
  }
  return (gone?.size ?? 0) > 0;
};

/** Subscribes to the locations of all hosts that a policy here names; those of others are forgotten. */
export const followPeers = (state: HostState, self: HostName, effects: Effect[]): void => {
  const hosts = new Set<HostName>([...state.policies.values()].flatMap((policy) => policy.hosts));
  hosts.delete(self);
  const peers = new Set([...hosts].map((name) => peerName(`host.${name}`)));
  for (const to of peers) if (!state.subscribed.has(to)) effects.push({ kind: "subscribe", to, prefix: "location/" });
  for (const to of state.subscribed) if (!peers.has(to)) effects.push({ kind: "unsubscribe", to, prefix: "location/" });
  state.subscribed.clear();
  for (const peer of peers) state.subscribed.add(peer);
  for (const [peer, locations] of state.locations) {
    if (peers.has(peer)) continue;
    for (const address of locations.keys())
      effects.push({ kind: "write", key: `location/${peer}/${address}`, value: null });
    state.locations.delete(peer);
    state.believed = null;
    state.unconfirmed.delete(peer);
  }
};
