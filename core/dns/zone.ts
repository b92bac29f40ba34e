import { formatIpv4, parseIpv4, parseNetwork } from "../../model/addresses/addresses.ts";
import type { DesiredDoors, DesiredZone } from "../documents/network/network.ts";
import { doorName, isEntranceVm } from "../documents/service-roles.ts";

/**
 * Names for the outside: the zone that the root cell declares, with the public names of external addresses in it. Nobody
 * outside asks the DNS Manager: it hands the whole zone to the operator's own name servers, the secondaries (AXFR, RFC 5936),
 * which look every minute whether its number has grown. Whoever else asks is refused.
 *
 * A name `www.web.cells.internal` is `www.web.cloud.example.org` there. Beside it there are the reverse zones of the pools of
 * external addresses, where 198.18.0.5 is `5.0.18.198.in-addr.arpa`.
 */
export type ZoneRecord = { readonly name: string; readonly ttl: number } & (
  | { readonly type: "A" | "NS" | "PTR"; readonly data: string }
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
  /** Nobody gave it to whoever has the name. */
  readonly heard?: boolean;
}

/** Of the declared zone and the reverse ones beside it together. */
export interface ZoneNumber {
  readonly zones: readonly string[];
  readonly serial: number;
  readonly secondaries: readonly string[];
}

/** One that is handed over whole: what it holds beside its SOA, in a fixed order. */
export interface HandedZone {
  readonly name: string;
  readonly contents: readonly ZoneRecord[];
}
/**
 * Names of what stands at the way in, where clients reach it: `caas.cloud.example.org` beside `gateway.cloud.example.org`. They have one
 * label below the zone, and names of cells two. The root cell says whose word counts and where that is, and which roles are doors is a
 * closed list, so nothing else gets a name there.
 */
function doorRecords({ zone, entrance }: DesiredZone, doors: DesiredDoors | null): readonly ZoneRecord[] {
  if (entrance === undefined || doors?.address !== entrance.address) return [];
  const found = doors.roles.filter((role) => isEntranceVm(["gateway", role])).map((role) => doorName(role, zone));
  return [...new Set(found)].sort().map((name) => ({ name, type: "A", ttl, data: entrance.address }));
}

/**
 * The declared zone first, then reverse ones.
 * @param domain of the cells, below which the names are
 * @param doors by the cell that is the way in
 */
export function handedZones(
  declared: DesiredZone,
  names: Iterable<NamedAddress>,
  domain: string,
  pools: readonly string[],
  doors: DesiredDoors | null,
): readonly HandedZone[] {
  const { zone, servers } = declared;
  const networks = pools.flatMap((pool) => parseNetwork(pool) ?? []);
  const isExternal = (address: string): boolean => {
    const number = parseIpv4(address) ?? -1;
    return networks.some(({ first, last }) => number >= first && number <= last);
  };
  const addresses = [...names]
    .filter((each) => each.public === true && each.heard !== true && isExternal(each.address))
    .map(({ name, address }): ZoneRecord => {
      const own = name.toLowerCase().slice(0, -domain.length);
      return { name: own + zone, type: "A", ttl, data: address };
    })
    .sort((one, other) => (one.name < other.name ? -1 : 1));
  const whole = (name: string, records: readonly ZoneRecord[]): HandedZone => ({
    name,
    contents: [...servers.map((server): ZoneRecord => ({ name, type: "NS", ttl, data: server })), ...records],
  });
  const reverse = pools.flatMap(reverseZones).map(({ name, first, last }) => {
    const records = addresses.flatMap(({ name: data, data: address }): readonly ZoneRecord[] => {
      const number = parseIpv4(String(address)) ?? -1;
      return number < first || number > last ? [] : [{ name: reverseName(number, name), type: "PTR", ttl, data }];
    });
    return whole(name, records);
  });
  return [whole(zone, [...doorRecords(declared, doors), ...addresses]), ...reverse];
}

const arpa = "in-addr.arpa";
const backwards = (number: number, octets: number): string =>
  formatIpv4(number).split(".").slice(0, octets).reverse().join(".");
/**
 * Zones that are delegated for a network: one for each of its parts that ends between two octets, and for a smaller one than
 * a /24 the name that RFC 2317 gives it, such as `64-26.113.0.203.in-addr.arpa`.
 */
export function reverseZones(
  pool: string,
): readonly { readonly name: string; readonly first: number; readonly last: number }[] {
  const network = parseNetwork(pool);
  if (network === null) return [];
  const { first, last } = network;
  const prefixLength = Number(pool.split("/")[1]);
  if (prefixLength > 24)
    return [{ name: `${first & 255}-${prefixLength}.${backwards(first, 3)}.${arpa}`, first, last }];
  const octets = Math.max(1, Math.ceil(prefixLength / 8));
  const size = 2 ** (32 - 8 * octets);
  return Array.from({ length: (last - first + 1) / size }, (_, at) => {
    const own = first + at * size;
    return { name: `${backwards(own, octets)}.${arpa}`, first: own, last: own + size - 1 };
  });
}
const reverseName = (number: number, zone: string): string => {
  const whole = `${backwards(number, 4)}.${arpa}`;
  return whole.endsWith(`.${zone}`) ? whole : `${number & 255}.${zone}`;
};

/** @param name of the zone itself, or of a reverse one beside it */
export const soaOf = ({ zone, servers }: DesiredZone, name: string, serial: number): ZoneRecord => ({
  name,
  type: "SOA",
  ttl,
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
