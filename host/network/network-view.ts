import { View } from "../../core/distribution/views/view.ts";
import {
  type ActualNetwork,
  type DesiredNetworkView,
  type NetworkSlice,
  networkBeatKey,
  networkLease,
  networkLeaseKey,
  networkSlice,
  networkViewKey,
  networkViewKind,
  type PlacedAddress,
  type PlacedInstance,
  type ViewItem,
} from "../../core/documents/network/eucalyptus.ts";
import type { OfMode } from "../../core/documents/network/modes.ts";
import {
  actualNetworkLease,
  desiredNetworkView,
  networkSlice as readSlice,
} from "../../core/documents/readers/eucalyptus.ts";
import type { ActualHost } from "../../core/documents/vocabulary.ts";
import type { Effect, Input, Instant } from "../../core/env.ts";
import {
  askAgain,
  beginHeld,
  type HeldLease,
  isCarrierIn,
  mayCarry,
  noHeldLease,
  takeAnswer,
  withoutCarrier,
} from "../../core/eucalyptus/network-hosts/held.ts";
import { toJson } from "../../core/outbox.ts";
import { formatIpv4, parseIpv4 } from "../../model/addresses/addresses.ts";
import { cellName, hostPeer, type Ipv4, ipv4, type PeerName, peerName } from "../../model/cell/identifiers.ts";
import { isLearnt, type Mode } from "../../model/cell/network/modes.ts";
import type { AllocatedAddress, Allocation } from "../../model/eucalyptus/allocation/allocation.ts";
import type { NetworkView } from "../../model/eucalyptus/view/network-view.ts";
import type { Json } from "../../model/json/json.ts";

/** What a host offers beside Diverter, and who puts its views in place. */
export interface OfferedNetwork {
  readonly cluster: string;
  readonly peer: ActualNetwork["peer"];
  /** A whole view has come; it must do no more than hand it on. */
  readonly onView: (view: NetworkView) => void;
  /**
   * A network host may carry its cluster for so long from now on, and lets it go by itself then, whatever becomes of this process; null: for as long as the
   * view says so. Said before the view that names it, and anew with each answer. Absent: nobody is told.
   */
  readonly onLease?: (leftMs: number | null) => void;
}
/** The view of the Network View Manager at a host, and what the host says became of it. */
export interface NetworkAtHost {
  readonly offered: OfferedNetwork | null;
  readonly view: View<DesiredNetworkView, NetworkSlice>;
  /** Of the view that has come; null: none has. */
  mode: Mode | null;
  /** By the id of an instance in it, whose it is. */
  owners: ReadonlyMap<string, string>;
  placed: Pick<ActualNetwork, "version" | "instances">;
  /** The view that has come, as it was said. */
  whole: NetworkView | null;
  /** As it was handed on last. */
  isCarrying: boolean;
  readonly held: HeldLease;
  readonly self: { readonly peer: PeerName; readonly address: number };
  /** Of this machine; null: boots are not told apart. */
  boot: number | null;
}
/** Record `view-replaced/<slice>`: `{ was }`, of a view that is between two versions. */
export const viewReplaced = "view-replaced";

export function restoreNetwork(
  records: ReadonlyMap<string, Json>,
  offered: OfferedNetwork | undefined,
  { host, address }: Pick<ActualHost, "host" | "address">,
): NetworkAtHost {
  const replaced = new Map<string, DesiredNetworkView | NetworkSlice | null>();
  for (const [key, value] of records) {
    if (!key.startsWith(`${viewReplaced}/`)) continue;
    const name = key.slice(viewReplaced.length + 1);
    const was = (value as { readonly was?: Json } | null)?.was ?? null;
    replaced.set(name, name === "" ? desiredNetworkView.of(was) : readSlice.of(was));
  }
  const view = new View<DesiredNetworkView, NetworkSlice>(networkViewKind, replaced);
  return {
    offered: offered ?? null,
    view,
    mode: null,
    owners: new Map(),
    placed: { version: 0, instances: null },
    whole: null,
    isCarrying: false,
    held: noHeldLease(),
    self: { peer: hostPeer(host), address: parseIpv4(address) ?? 0 },
    boot: null,
  };
}

type Taken = ReturnType<View<DesiredNetworkView, NetworkSlice>["begin"]>;

/** Whatever was durable of the view is here again. */
export function beginNetwork(network: NetworkAtHost, now: Instant, effects: Effect[]): void {
  if (network.offered?.peer === "network") {
    beginHeld(network.held, now.wallMs);
    effects.push({ kind: "subscribe", to: networkViewManager, prefix: `${network.self.peer}/${networkLeaseKey}` });
    // Also where it needs no lease: that it knows leases is to be known.
    beat(network, now.ms, effects);
  }
  handOn(network, network.view.begin(), now.ms, effects);
}

/** @returns whether it is a document of a view: nothing that others hear follows from it before it is in place */
export function takeNetworkDesire(
  network: NetworkAtHost,
  { kind, name, value }: { readonly kind: string; readonly name: string; readonly value: Json },
  nowMs: number,
  effects: Effect[],
): boolean {
  if (kind === networkViewKey) handOn(network, network.view.takeManifest(desiredNetworkView.of(value)), nowMs, effects);
  else if (kind === networkSlice) handOn(network, network.view.takeSlice(name, readSlice.of(value)), nowMs, effects);
  else return false;
  return true;
}

function handOn(network: NetworkAtHost, { now, writes }: Taken, nowMs: number, effects: Effect[]): void {
  for (const { name, record } of writes)
    effects.push({ kind: "write", key: `${viewReplaced}/${name}`, value: record as unknown as Json });
  // A host that is told of no view any more keeps what it has: nobody has said that it is to go.
  if (now === null || now === "gone" || isOfAnotherBoot(network, now.manifest)) return;
  const view = viewIn(now);
  if (view === null)
    effects.push({
      kind: "log",
      event: "document/refused",
      fields: { from: "network-view-manager", key: networkViewKey, why: "what its slices say is no view" },
    });
  else {
    network.mode = view.mode;
    network.owners = new Map(view.instances.map(({ id, owner = "" }) => [id, owner]));
    network.whole = view;
    takeLeased(network, now.manifest, nowMs, effects);
    tellAgent(network, nowMs);
  }
}

/** Told before this machine started anew: what it says may be others' by now, and nothing of it is in place. A view of this boot comes once this host has spoken. */
const isOfAnotherBoot = ({ boot }: NetworkAtHost, manifest: DesiredNetworkView): boolean =>
  boot !== null && manifest.boot !== undefined && manifest.boot !== boot;
/** This boot is said to be over though it runs: what it had in place may be others' by now, and goes. */
export function endNetworkOfBoot(network: NetworkAtHost, boot: number | null): true {
  network.boot = boot;
  const { whole, self, offered } = network;
  if (whole === null) return true;
  const own = formatIpv4(self.address);
  const clusters = whole.clusters.map((each) => ({ ...each, nodes: each.nodes.filter(({ name }) => name !== own) }));
  Object.assign(network, { whole: null, mode: null, owners: new Map(), isCarrying: false });
  offered?.onView(withoutCarrier({ ...whole, clusters }, self.address));
  return true;
}

/** Whether it carries under a lease is said in the view. One that has just come asks at once. */
function takeLeased(network: NetworkAtHost, manifest: DesiredNetworkView, nowMs: number, effects: Effect[]): void {
  const { offered, held } = network;
  if (offered?.peer !== "network") return;
  const isLeased = manifest.leased?.includes(offered.cluster) === true;
  const wasLeased = held.leased !== null;
  held.leased = isLeased ? manifest.version : null;
  if (!isLeased) offered.onLease?.(null);
  // It has carried without one until now: it may go on until its first answer is due, since its lease begins with its word that it needs one.
  else if (!wasLeased && network.isCarrying) hold(network, nowMs + networkLease.holdsMs, nowMs, effects);
  else if (held.untilMs === null) offered.onLease?.(0);
  if (isLeased || wasLeased) beat(network, nowMs, effects);
}
function hold({ held, offered }: NetworkAtHost, untilMs: number, nowMs: number, effects: Effect[]): void {
  held.untilMs = untilMs;
  offered?.onLease?.(untilMs - nowMs);
  effects.push({ kind: "timer", name: networkLeaseKey, afterMs: untilMs - nowMs });
}
/** Asks for the lease, and again in a while for as long as one is needed. */
function beat({ held }: NetworkAtHost, nowMs: number, effects: Effect[]): void {
  effects.push({ kind: "publish", key: networkBeatKey, value: toJson(askAgain(held, nowMs)) });
  effects.push({ kind: "timer", name: networkBeatKey, afterMs: held.leased === null ? null : networkLease.beatMs });
}
function tellAgent(network: NetworkAtHost, nowMs: number): void {
  const { whole, held, offered, self } = network;
  if (whole === null) return;
  network.isCarrying = mayCarry(held, nowMs);
  offered?.onView(network.isCarrying ? whole : withoutCarrier(whole, self.address));
}
type OfNetwork = { readonly network: NetworkAtHost; readonly now: number };
/** The answer to a beat, or a timer of the lease. @returns whether it is one of them */
export function takeLease({ network, now: nowMs }: OfNetwork, input: Input, effects: Effect[]): boolean {
  if (input.kind === "timer") return takeTimer(network, input.name, nowMs, effects);
  if (input.kind !== "actual" || input.from !== networkViewManager) return false;
  const { key, value } = input;
  if (key !== `${network.self.peer}/${networkLeaseKey}`) return false;
  const lease = value === null ? null : actualNetworkLease.of(value);
  const { held } = network;
  if (lease === null || !takeAnswer(held, lease.beat)) return true;
  const { untilMs } = held;
  if (held.leased === null || untilMs === null || untilMs <= nowMs) return true;
  hold(network, untilMs, nowMs, effects);
  if (!network.isCarrying) tellAgent(network, nowMs);
  return true;
}
function takeTimer(network: NetworkAtHost, name: string, nowMs: number, effects: Effect[]): boolean {
  if (name === networkBeatKey) beat(network, nowMs, effects);
  else if (name !== networkLeaseKey) return false;
  const { whole, held, self, offered } = network;
  // Also where this process stood still for longer than its lease: whichever of its timers comes first.
  if (!network.isCarrying || mayCarry(held, nowMs)) return true;
  if (whole !== null && isCarrierIn(whole, self.address)) {
    const cluster = offered?.cluster ?? "";
    effects.push({ kind: "log", event: "host/network-lease-over", fields: { cluster } });
  }
  tellAgent(network, nowMs);
  return true;
}
const networkViewManager = peerName("network-view-manager");

/** Null: its texts are none; whether they say a view that can be put in place, its reader says. */
export function viewIn({
  manifest,
  slices,
}: {
  readonly manifest: DesiredNetworkView;
  readonly slices: ReadonlyMap<string, NetworkSlice>;
}): NetworkView | null {
  try {
    const head = JSON.parse(manifest.head) as NetworkView;
    const items = [...slices.values()].flatMap((slice) => slice.items.map((item) => JSON.parse(item) as ViewItem));
    const instances = items.flatMap((item) => ("instance" in item ? [item] : []));
    const at = Map.groupBy(instances, ({ node }) => node);
    const byId = <Named extends { readonly id: string }>(all: readonly Named[]): readonly Named[] =>
      all.toSorted((one, other) => (one.id < other.id ? -1 : 1));
    return {
      ...head,
      version: String(manifest.version),
      clusters: head.clusters.map((cluster) => ({
        ...cluster,
        nodes: cluster.nodes.map(({ name }) => ({
          name,
          instances: byId((at.get(name) ?? []).map(({ instance }) => instance)).map(({ id }) => id),
        })),
      })),
      instances: byId(instances.map(({ instance }) => instance)),
      securityGroups: byId(items.flatMap((item) => ("group" in item ? [item.group] : []))),
    };
  } catch {
    return null;
  }
}

/** What became of a view on this machine, of the agent that puts it in place. */
export interface PlacedRequest {
  readonly kind: "network-placed";
  readonly placed: NetworkAtHost["placed"];
}
export const placedOf = ({ instances, appliedVersion }: Allocation): NetworkAtHost["placed"] => ({
  version: Number(appliedVersion ?? 0),
  instances: instances.map(
    ({ id, privateIp, publicIp }): PlacedInstance => ({
      id,
      ...(privateIp === undefined ? {} : { private: addressOf(privateIp) }),
      ...(publicIp === undefined ? {} : { public: addressOf(publicIp) }),
    }),
  ),
});
const addressOf = ({ address, state, reason }: AllocatedAddress): PlacedAddress => ({
  address: ipv4(formatIpv4(address)),
  state,
  ...(reason === undefined ? {} : { reason }),
});

/** The mode in which instances may be placed here: a node that has a view in place. */
export const modeAt = ({ offered, mode, placed }: NetworkAtHost): OfMode =>
  offered?.peer === "node" && mode !== null && placed.version > 0 ? { networkMode: mode } : {};

/** Why a cell cannot have an instance's tap yet, a sentence; null: it can. Another cell's it never can, whatever its controller says. */
export function whyNoTap({ placed, owners, mode }: NetworkAtHost, instance: string, cell: string): string | null {
  const owner = owners.get(instance);
  // What the agent still has in place may be nobody's here: after a start, and where a later view leaves it out.
  if (owner === undefined) return `no view of the network that has come here has ${instance} yet`;
  if (owner !== cell) return `${instance} is another cell's`;
  const known = placed.instances?.find(({ id }) => id === instance);
  const address = known?.private;
  // What it has to have before it starts is its place in the view: nothing is kept from anybody, and it gets its address from the site.
  if (known !== undefined && address === undefined && mode !== null && isLearnt(mode)) return null;
  if (address === undefined) return `no view of the network that is in place here has ${instance} yet`;
  return address.state === "assigned" ? null : (address.reason ?? "its address has yet to be put in place");
}

/** What this host says of it; null: it offers nothing. */
export function networkSaid({ offered, placed, owners, boot }: NetworkAtHost, address: Ipv4): ActualNetwork | null {
  if (offered === null) return null;
  const { version, instances } = placed;
  const owned = instances?.map(({ id, ...placed }): PlacedInstance => {
    const owner = owners.get(id) ?? "";
    return { id, ...(owner === "" ? {} : { cell: cellName(owner) }), ...placed };
  });
  const { cluster, peer } = offered;
  return { address, cluster, peer, version, instances: owned ?? null, ...(boot === null ? {} : { boot }) };
}
