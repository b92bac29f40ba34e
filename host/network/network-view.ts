import { View } from "../../core/distribution/views/view.ts";
import {
  type ActualNetwork,
  type DesiredNetworkView,
  type NetworkSlice,
  networkSlice,
  networkViewKey,
  networkViewKind,
  type PlacedAddress,
  type PlacedInstance,
  type ViewItem,
} from "../../core/documents/network/eucalyptus.ts";
import type { OfMode } from "../../core/documents/network/modes.ts";
import { desiredNetworkView, networkSlice as readSlice } from "../../core/documents/readers/eucalyptus.ts";
import type { Effect } from "../../core/env.ts";
import { formatIpv4 } from "../../model/addresses/addresses.ts";
import { cellName, type Ipv4, ipv4 } from "../../model/cell/identifiers.ts";
import type { Mode } from "../../model/cell/network/modes.ts";
import type { AllocatedAddress, Allocation } from "../../model/eucalyptus/allocation/allocation.ts";
import type { NetworkView } from "../../model/eucalyptus/view/network-view.ts";
import type { Json } from "../../model/json/json.ts";

/** What a host offers beside Diverter, and who puts its views in place. */
export interface OfferedNetwork {
  readonly cluster: string;
  readonly peer: ActualNetwork["peer"];
  /** A whole view has come; it must do no more than hand it on. */
  readonly onView: (view: NetworkView) => void;
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
}
/** Record `view-replaced/<slice>`: `{ was }`, of a view that is between two versions. */
export const viewReplaced = "view-replaced";

export function restoreNetwork(records: ReadonlyMap<string, Json>, offered: OfferedNetwork | undefined): NetworkAtHost {
  const replaced = new Map<string, DesiredNetworkView | NetworkSlice | null>();
  for (const [key, value] of records) {
    if (!key.startsWith(`${viewReplaced}/`)) continue;
    const name = key.slice(viewReplaced.length + 1);
    const was = (value as { readonly was?: Json } | null)?.was ?? null;
    replaced.set(name, name === "" ? desiredNetworkView.of(was) : readSlice.of(was));
  }
  const view = new View<DesiredNetworkView, NetworkSlice>(networkViewKind, replaced);
  return { offered: offered ?? null, view, mode: null, owners: new Map(), placed: { version: 0, instances: null } };
}

type Taken = ReturnType<View<DesiredNetworkView, NetworkSlice>["begin"]>;

/** Whatever was durable of the view is here again. */
export const beginNetwork = (network: NetworkAtHost, effects: Effect[]): void =>
  handOn(network, network.view.begin(), effects);

/** @returns whether it is a document of a view: nothing that others hear follows from it before it is in place */
export function takeNetworkDesire(
  network: NetworkAtHost,
  { kind, name, value }: { readonly kind: string; readonly name: string; readonly value: Json },
  effects: Effect[],
): boolean {
  if (kind === networkViewKey) handOn(network, network.view.takeManifest(desiredNetworkView.of(value)), effects);
  else if (kind === networkSlice) handOn(network, network.view.takeSlice(name, readSlice.of(value)), effects);
  else return false;
  return true;
}

function handOn(network: NetworkAtHost, { now, writes }: Taken, effects: Effect[]): void {
  for (const { name, record } of writes)
    effects.push({ kind: "write", key: `${viewReplaced}/${name}`, value: record as unknown as Json });
  // A host that is told of no view any more keeps what it has: nobody has said that it is to go.
  if (now === null || now === "gone") return;
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
    network.offered?.onView(view);
  }
}

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
export function whyNoTap({ placed, owners }: NetworkAtHost, instance: string, cell: string): string | null {
  const owner = owners.get(instance);
  // What the agent still has in place may be nobody's here: after a start, and where a later view leaves it out.
  if (owner === undefined) return `no view of the network that has come here has ${instance} yet`;
  if (owner !== cell) return `${instance} is another cell's`;
  const address = placed.instances?.find(({ id }) => id === instance)?.private;
  if (address === undefined) return `no view of the network that is in place here has ${instance} yet`;
  return address.state === "assigned" ? null : (address.reason ?? "its address has yet to be put in place");
}

/** What this host says of it; null: it offers nothing. */
export function networkSaid({ offered, placed, owners }: NetworkAtHost, address: Ipv4): ActualNetwork | null {
  if (offered === null) return null;
  const { version, instances } = placed;
  const owned = instances?.map(({ id, ...placed }): PlacedInstance => {
    const owner = owners.get(id) ?? "";
    return { id, ...(owner === "" ? {} : { cell: cellName(owner) }), ...placed };
  });
  return { address, cluster: offered.cluster, peer: offered.peer, version, instances: owned ?? null };
}
