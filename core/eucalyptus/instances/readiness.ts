import type { InstanceAllocation } from "../../../model/eucalyptus/allocation/allocation.ts";
import type { NetworkConfiguration } from "../../../model/eucalyptus/configuration/configuration.ts";
import { macPrefixOf } from "../../../model/eucalyptus/configuration/effective.ts";
import { addressKey, type Book, type BookedInstance } from "../book.ts";

/** By the paper: a prefix, and the instance's number. */
export const macOf = (configuration: NetworkConfiguration, id: string): string =>
  `${macPrefixOf(configuration)}:${(/[0-9a-f]{8}$/i.exec(id)?.[0] ?? "00000000").replace(/..(?=.)/g, "$&:")}`.toUpperCase();

/** A host's word about one instance, of the view that is in place there whole. */
interface Word {
  readonly host: string;
  readonly version: number;
  readonly named: InstanceAllocation;
}
/**
 * Whether an instance may start by what its host says of it; null: that says nothing. One with an address of the book has that in place, and one to which the
 * site gives its own is of the host's view: it says what that is when it runs.
 */
export function readyBy(
  book: Book,
  { node, privateIp, since }: BookedInstance,
  { host, version, named: { privateIp: said } }: Word,
): boolean | null {
  if (node !== host) return null;
  if (since !== undefined) return version >= since && (said === undefined || said.state === "assigned");
  if (said === undefined || privateIp !== said.address) return null;
  const told = book.addresses.get(addressKey("private", privateIp))?.hosts.get(host);
  return told === undefined || version < told.since ? null : said.state === "assigned";
}
