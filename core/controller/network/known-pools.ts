import { type HostName, hostName, type PeerName } from "../../../model/cell/identifiers.ts";
import type { KnownPools } from "../../../model/check/root-cell/check-pools.ts";
import { isObject, type Json } from "../../../model/json/json.ts";
import { rootCell } from "../../documents/cells.ts";
import { poolsKey } from "../../documents/network/network.ts";
import { actualPools } from "../../documents/readers/network.ts";
import { actualHost } from "../../documents/readers/placement.ts";
import { actualKey } from "../../documents/vocabulary.ts";

/** What stands in the way of other external pools, of what the root controller has heard; nothing: the IP Address Manager has not spoken. */
export function knownPools(
  actual: ReadonlyMap<PeerName, ReadonlyMap<string, Json>>,
  { cell, self }: { readonly cell: string; readonly self: PeerName },
  addressManager: PeerName,
): { readonly pools?: KnownPools } {
  if (cell !== rootCell) return {};
  const said = actualPools.of(actual.get(addressManager)?.get(actualKey(self, poolsKey)));
  if (said === null) return {};
  const { otherwise, used, inside } = said;
  const hosts = [...actual].flatMap(([peer, documents]): readonly HostName[] =>
    peer.startsWith("host.") && documents.has("host") ? [hostName(peer.slice("host.".length))] : [],
  );
  const routers = hosts.flatMap((host) => {
    const value = actual.get(`host.${host}` as PeerName)?.get("host");
    const found = isObject(value) ? actualHost.of(value) : null;
    return (found?.routers ?? []).flatMap(({ address, from }) => [
      { host, address },
      ...(from === undefined ? [] : [{ host, address: from, isOwn: true as const }]),
    ]);
  });
  return { pools: { otherwise, used, inside, routers } };
}
