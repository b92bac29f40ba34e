import { type Cidr, cidr, type Ipv4, type Mac } from "../../../../../model/cell/identifiers.ts";
import type { Dataplane } from "../program/dataplane.ts";
import { mostRouters, networkKey, networkKinds, outside, router, word } from "../program/layout.ts";
import type { Generations } from "../rules/generations.ts";
import type { Networks } from "./networks.ts";

/** What of the way out packets meet: the maps `networks`, `routers` and `outside`. */
export interface Way {
  /** Index of the device that leads outside. */
  readonly device: number;
  /** Of this host there. */
  readonly mac: Mac;
  /** It is not the uplink. */
  readonly isOwn: boolean;
}
/** A router and the number of its MAC; 0n: it has not answered yet. */
export interface FoundRouter {
  readonly address: Ipv4;
  readonly mac: bigint;
}
/** In a router's number: it is behind a device of its own (OUTSIDE in layouts.h). */
const ownDevice = 1n << 40n;
const key = (value: number): Buffer => word.encode({ value });
const config = key(0);

/** Nothing leads out any more, nor in; what is the installation's own is said by `putNetworks`. */
export function closeOutside({ maps }: Dataplane): void {
  maps.outside.clear(config);
  for (let at = 0; at < mostRouters; at++) maps.routers.clear(key(at));
}

/** Pools of external addresses, as an earlier process left them in force. */
export const externalInForce = ({ maps }: Dataplane): readonly Cidr[] =>
  maps.networks.keys().flatMap((entry) => {
    const { prefix_length: prefixLength, address } = networkKey.decode(entry);
    const kind = maps.networks.get(entry);
    return kind?.equals(key(networkKinds.external)) === true ? cidr(`${address}/${prefixLength}`) : [];
  });

/** No address is of no kind meanwhile: what stays is not taken away first. */
export function putNetworks({ maps }: Dataplane, wanted: Networks): void {
  const keyOf = ({ address, prefixLength }: Networks[number]): Buffer =>
    networkKey.encode({ prefix_length: prefixLength, address });
  const keys = new Set(wanted.map((network) => keyOf(network).toString("hex")));
  for (const network of wanted) maps.networks.set(keyOf(network), key(networkKinds[network.kind]));
  for (const found of maps.networks.keys()) if (!keys.has(found.toString("hex"))) maps.networks.delete(found);
}

/** @param used number of the MAC of the router that gets what goes out; 0n: none does yet */
export function putRouters(
  { maps }: Dataplane,
  generations: Generations,
  way: Way,
  routers: readonly FoundRouter[],
  used: bigint,
): void {
  for (let at = 0; at < mostRouters; at++) {
    const known = routers[at];
    if (known === undefined) maps.routers.clear(key(at));
    else maps.routers.set(key(at), router.encode({ mac: known.mac, heard: 0n, address: known.address }));
  }
  const marked = used === 0n || !way.isOwn ? used : used | ownDevice;
  const now = outside.encode({ router: marked, device: way.device, mac: way.mac });
  if (maps.outside.get(config)?.equals(now) === true) return;
  maps.outside.set(config, now);
  /* Flows know the router by its MAC. */
  generations.renewAll();
}
