import type { InstallationStatus } from "../../model/api.ts";
import type { Announced } from "../drivers/network/driver.ts";

type Announces = NonNullable<InstallationStatus["hosts"][number]["announces"]>;

/** What a host says of the addresses that it is to announce by BGP, as people read it. */
export const announces = ({ peers, addresses }: Announced): Announces => ({
  to: peers,
  addresses: addresses.map(({ address, sinceMs }) => ({
    address,
    since: sinceMs === null ? null : new Date(sinceMs).toISOString(),
  })),
});

/** Why routers are not told of what is here, a sentence; null: they are, as far as this machine can see it. */
export function announcingTrouble({ table, peers, addresses }: Announced): string | null {
  const lost = addresses.filter(({ isRouted }) => !isRouted).map(({ address }) => address);
  if (lost.length > 0)
    return `table ${table} has no route for ${short(lost)}, so nobody outside is told of it: somebody takes it out as often as this host puts it back`;
  return addresses.length === 0 || peers.length > 0
    ? null
    : `no router is told of ${short(addresses.map(({ address }) => address))}: this machine has no BGP connection; look at the daemon that announces table ${table}`;
}
const short = ([first = "", ...others]: readonly string[]): string =>
  others.length === 0 ? first : `${first} and ${others.length} more`;
