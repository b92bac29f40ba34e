import { parseIpv4, parseNetwork } from "../../model/addresses.ts";
import type { DesiredZone } from "../documents/network.ts";

/**
 * Names for the outside: the zone that the root cell declares, with the public names of external addresses in it. Nobody
 * outside asks the DNS Manager: it hands the whole zone to the operator's own name servers, the secondaries (AXFR, RFC 5936),
 * which look every minute whether its number has grown. Whoever else asks is refused.
 *
 * A name `www.web.cells.internal` is `www.web.cloud.example.org` there.
 */
export type ZoneRecord = { readonly name: string; readonly ttl: number } & (
  | { readonly type: "A" | "NS"; readonly data: string }
  | { readonly type: "SOA"; readonly data: Soa }
);
export interface Soa {
  readonly mname: string;
  readonly rname: string;
  readonly serial: number;
  readonly refresh: number;
  readonly retry: number;
  readonly expire: number;
  readonly minimum: number;
}
/** Seconds. A secondary goes on for a week without the DNS Manager. */
const times = { refresh: 60, retry: 30, expire: 604_800, minimum: 60 } as const;
const ttl = 60;

export interface NamedAddress {
  readonly name: string;
  readonly address: string;
  readonly public?: boolean;
}

/** What the zone holds beside its SOA, in a fixed order. @param domain of the cells, below which the names are */
export function zoneContents(
  { zone, servers }: DesiredZone,
  names: Iterable<NamedAddress>,
  domain: string,
  pools: readonly string[],
): readonly ZoneRecord[] {
  const networks = pools.flatMap((pool) => parseNetwork(pool) ?? []);
  const isExternal = (address: string): boolean => {
    const number = parseIpv4(address) ?? -1;
    return networks.some(({ first, last }) => number >= first && number <= last);
  };
  const addresses = [...names]
    .filter((each) => each.public === true && isExternal(each.address))
    .map(({ name, address }): ZoneRecord => {
      const own = name.toLowerCase().slice(0, -domain.length);
      return { name: own + zone, type: "A", ttl, data: address };
    })
    .sort((one, other) => (one.name < other.name ? -1 : 1));
  return [...servers.map((server): ZoneRecord => ({ name: zone, type: "NS", ttl, data: server })), ...addresses];
}

export const soaOf = ({ zone, servers }: DesiredZone, serial: number): ZoneRecord => ({
  ...{ name: zone, type: "SOA", ttl },
  data: { mname: servers[0] ?? zone, rname: `hostmaster.${zone}`, serial, ...times },
});

/** Numbers of a zone have 32 bits, of which half are ahead of any one (RFC 1982): by the clock, and never the same again. */
export const nextSerial = (before: number | null, wallMs: number): number =>
  Math.max((before ?? 0) + 1, Math.floor(wallMs / 1_000)) >>> 0;

/** Tells contents apart; who has the zone compares numbers, and this says when there is to be another one. */
export function markOf(contents: readonly ZoneRecord[]): string {
  let [one, other] = [0x811c9dc5, 0x9dc5811c];
  const text = JSON.stringify(contents);
  for (let at = 0; at < text.length; at += 1) {
    one = Math.imul(one ^ text.charCodeAt(at), 0x01000193) >>> 0;
    other = Math.imul(other ^ text.charCodeAt(at), 0x85ebca6b) >>> 0;
    other ^= other >>> 13;
  }
  return `${one.toString(16)}-${(other >>> 0).toString(16)}`;
}
