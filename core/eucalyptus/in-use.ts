import { formatIpv4 } from "../../model/addresses/addresses.ts";
import { type AddressRange, sizeOf } from "../../model/eucalyptus/addresses/ranges.ts";
import { segmentOf, usableTags } from "../../model/eucalyptus/addresses/segments.ts";
import type { NetworkConfiguration } from "../../model/eucalyptus/configuration/configuration.ts";
import { subnetOf } from "../../model/eucalyptus/configuration/effective.ts";
import { type Book, type BookedAddress, isInSegments, managedOf, privateRanges } from "./book.ts";

export const isIn = (ranges: readonly AddressRange[], address: number): boolean =>
  ranges.some((range) => sizeOf(range) > 0 && range.first <= address && address <= range.last);
const most = 5;

/**
 * Why a configuration cannot take the place of the one in force: an address or tag that is in use would be another one, or nobody's. One
 * sentence that names the instances; null: it can.
 */
export function whatWouldMove(book: Book, next: NetworkConfiguration): string | null {
  const { configuration: now } = book;
  if (now === null || (book.addresses.size === 0 && book.elastic.size === 0 && book.instances.size === 0)) return null;
  const held = [...book.addresses.values()];
  // Where the site gives addresses, instances have none here.
  const bare = [...book.instances.values()].flatMap(({ id, privateIp: address }) =>
    address === 0 ? [{ instance: id, address }] : [],
  );
  if (now.mode !== next.mode && held.length + bare.length > 0)
    return told(`the mode would be ${next.mode} instead of ${now.mode}`, [...held, ...bare]);
  const moved = held.filter((entry) => !stays(book, now, next, entry));
  if (moved.length > 0) return told("addresses or tags in use would be others", moved);
  const lost = [...book.elastic.values()].filter(({ address }) => !isIn(next.publicIps, address));
  const names = lost.slice(0, most).map(({ address, account }) => `${formatIpv4(address)} of ${account}`);
  return lost.length === 0 ? null : `PublicIps would lack elastic addresses that accounts have: ${names.join(", ")}`;
}

function stays(book: Book, now: NetworkConfiguration, next: NetworkConfiguration, entry: BookedAddress): boolean {
  const { kind, address, instance, segment } = entry;
  if (kind === "elastic") return isIn(next.publicIps, address);
  if (isInSegments(now)) return segment !== null && hasSegment(book, now, next, segment);
  const cluster = instance === null ? null : (book.instances.get(instance)?.cluster ?? null);
  // Nobody's any more, and only waits for its host's word.
  if (cluster === null) return true;
  const subnets = [now, next].map((configuration) => {
    const subnet = subnetOf(configuration, cluster);
    return subnet === null ? "" : [subnet.subnet, subnet.netmask, subnet.gateway].join("/");
  });
  return subnets[0] === subnets[1] && isIn(privateRanges(next, cluster, null), address);
}

/** The group's tag, with the same addresses. */
function hasSegment(book: Book, now: NetworkConfiguration, next: NetworkConfiguration, group: string): boolean {
  const tag = book.segments.get(group);
  const [before, after] = [managedOf(now), managedOf(next)];
  if (tag === undefined || before === null || after === null) return false;
  const { first, last } = usableTags(after);
  const [old, other] = [segmentOf(before, tag), segmentOf(after, tag)];
  return first <= tag && tag <= last && old.first === other.first && old.last === other.last;
}

function told(why: string, entries: readonly Pick<BookedAddress, "instance" | "address">[]): string {
  const names = [
    ...new Set(entries.map(({ instance, address }) => instance ?? `${formatIpv4(address)}, which is being released`)),
  ];
  const more = names.length > most ? ` and ${names.length - most} more` : "";
  return `${why}: ${names.slice(0, most).join(", ")}${more}`;
}
