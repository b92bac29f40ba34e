import { formatIpv4, parseIpv4, parseNetwork } from "../../../model/addresses/addresses.ts";
import { type Inside, isAskable, isWithin } from "./askable.ts";
import { classIn, flags, type NameRecord, nameBytes, type Question, Reader, rcodes, types } from "./message.ts";

/**
 * What somebody outside answered, and what of it is believed. An answer counts only under the number and with the question
 * that was asked; of its records only those that follow from the name asked for, along its aliases (CNAME). What would lead a guest
 * that trusts a name outside to a machine inside is refused as a whole: an address that is inside or nobody's, or an alias
 * that is inside (DNS rebinding).
 */
export interface Found {
  readonly rcode: number;
  readonly records: readonly NameRecord[];
  /** Seconds for which it holds; 0: for this once. */
  readonly ttl: number;
}
export type Heard =
  | { readonly kind: "answer"; readonly found: Found }
  /** It did not fit: to be asked again by TCP. */
  | { readonly kind: "truncated" }
  /** The resolver could not: another one may. */
  | { readonly kind: "failed" }
  /** It leads inside. */
  | { readonly kind: "inside"; readonly what: string }
  /** Not an answer to this question: the right one may still come. */
  | { readonly kind: "other" };

/** Beside the names, the addresses that no answer may lead to: the installation's own which are not external. */
export interface Guarded extends Inside {
  readonly closed: readonly string[];
}

export const largestTcp = 16_384;
const longestChain = 16;
const mostRecords = 64;
/** Seconds, of what is there and of what is not (RFC 2308, 5). */
const longest = { found: 3_600, missing: 300 } as const;

/** What is asked for others. Of all further ones nothing is known of what is in them, which may be an address. */
const understood: readonly number[] = [
  types.A,
  types.NS,
  types.CNAME,
  types.SOA,
  types.PTR,
  types.MX,
  types.TXT,
  types.AAAA,
  types.SRV,
  types.CAA,
];
export const isUnderstood = (type: number): boolean => understood.includes(type);

const other: Heard = { kind: "other" };
const failed: Heard = { kind: "failed" };

export function readAnswer(packet: Uint8Array, asked: Question & { readonly id: number }, guarded: Guarded): Heard {
  if (packet.length > largestTcp) return other;
  const reader = new Reader(packet);
  const [id, word] = [reader.u16(), reader.u16()];
  const counts = Array.from({ length: 4 }, () => reader.u16());
  if (id !== asked.id || word === null || (word & flags.response) === 0 || (word & flags.opcode) !== 0) return other;
  const [questions, answers, authorities, additional] = counts;
  if (questions !== 1 || answers == null || authorities == null || additional == null) return other;
  const [name, type, among] = [reader.name(), reader.u16(), reader.u16()];
  if (name !== asked.name || type !== asked.type || among !== classIn) return other;
  if ((word & flags.truncated) !== 0) return { kind: "truncated" };
  const rcode = word & 15;
  if (rcode !== rcodes.NOERROR && rcode !== rcodes.NXDOMAIN) return failed;
  const records = readRecords(reader, answers);
  const zone = records === null ? null : readRecords(reader, authorities);
  if (records === null || zone === null) return failed;
  return judge(asked, rcode, records, zone, guarded);
}

/** null: malformed, or too many. */
function readRecords(reader: Reader, count: number): NameRecord[] | null {
  if (count > mostRecords) return null;
  const records: NameRecord[] = [];
  for (let index = 0; index < count; index += 1) {
    const [name, type, among] = [reader.name(), reader.u16(), reader.u16()];
    const [ttl, length] = [reader.u32(), reader.u16()];
    if (name === null || type === null || among === null || ttl === null || length === null) return null;
    const from = reader.at;
    if (reader.take(length) === null) return null;
    if (among !== classIn || !isUnderstood(type)) continue;
    const data = wholeData(reader.bytes, type, from, from + length);
    if (data === null) return null;
    // With the first bit set it counts as 0 (RFC 2181, 8).
    records.push({ name, type, ttl: ttl >= 2 ** 31 ? 0 : Math.min(ttl, longest.found), data });
  }
  return records;
}

/** How many bytes are before the names in a record's data, how many names there are, and how many bytes behind; by type. */
const named: Readonly<Record<number, readonly [number, number, number]>> = {
  [types.NS]: [0, 1, 0],
  [types.CNAME]: [0, 1, 0],
  [types.PTR]: [0, 1, 0],
  [types.MX]: [2, 1, 0],
  [types.SRV]: [6, 1, 0],
  [types.SOA]: [0, 2, 20],
};
/** The data of a record with its names written out, since they may point elsewhere in the message; null: malformed. */
function wholeData(bytes: Uint8Array, type: number, from: number, to: number): Uint8Array | null {
  const size = to - from;
  if (type === types.A && size !== 4) return null;
  if (type === types.AAAA && size !== 16) return null;
  const parts = named[type];
  if (parts === undefined) return bytes.slice(from, to);
  const [before, names, behind] = parts;
  const reader = new Reader(bytes.subarray(0, to), from);
  const data: number[] = [];
  const first = reader.take(before);
  if (first === null) return null;
  data.push(...first);
  for (let index = 0; index < names; index += 1) {
    const name = reader.name();
    if (name === null) return null;
    data.push(...nameBytes(name));
  }
  const rest = reader.take(behind);
  if (rest === null || reader.at !== to) return null;
  return Uint8Array.from([...data, ...rest]);
}

function judge(
  asked: Question,
  rcode: number,
  records: readonly NameRecord[],
  zone: readonly NameRecord[],
  guarded: Guarded,
): Heard {
  const kept: NameRecord[] = [];
  let name = asked.name;
  for (let step = 0; ; step += 1) {
    const here = records.filter((record) => record.name === name && record.type === asked.type);
    kept.push(...here);
    const alias = here.length > 0 ? undefined : records.find((each) => each.name === name && each.type === types.CNAME);
    if (alias === undefined) break;
    if (step === longestChain || kept.some((each) => each.name === alias.name)) return failed;
    kept.push(alias);
    name = nameIn(alias.data);
    if (!isAskable(name, guarded)) return { kind: "inside", what: name };
  }
  const inside = kept.map((record) => leadsInside(record, guarded)).find((what) => what !== null);
  if (inside != null) return { kind: "inside", what: inside };
  const isMissing = rcode === rcodes.NXDOMAIN || !kept.some(({ type }) => type === asked.type);
  const ttls = kept.map(({ ttl }) => ttl);
  const ttl = isMissing ? Math.min(missingFor(name, zone), longest.missing, ...ttls) : Math.min(...ttls);
  return { kind: "answer", found: { rcode, records: kept, ttl } };
}

/** For how long there is nothing (RFC 2308, 5): a zone that holds the name says so. */
function missingFor(name: string, zone: readonly NameRecord[]): number {
  const soa = zone.find((each) => each.type === types.SOA && (each.name === "" || isWithin(name, each.name)));
  if (soa === undefined) return 0;
  const minimum = new Reader(soa.data, soa.data.length - 4).u32() ?? 0;
  return Math.min(soa.ttl, minimum);
}

const nameIn = (data: Uint8Array): string => new Reader(data).name() ?? "";

/** As the hosts have it: nobody outside sends from there (decision 88). */
const nobodys = ["0.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16", "224.0.0.0/4", "240.0.0.0/4"];
/** The address that a record leads to, if that is none outside; null: it is. */
function leadsInside({ type, data }: NameRecord, { closed }: Guarded): string | null {
  if (type === types.A) return isClosed(addressIn(data, 0), closed) ? addressIn(data, 0) : null;
  if (type !== types.AAAA) return null;
  const text = Array.from({ length: 8 }, (_, at) => (data[2 * at]! * 256 + data[2 * at + 1]!).toString(16)).join(":");
  const [first, second] = [data[0]!, data[1]!];
  // Unspecified, loopback, IPv4 written as IPv6; unique local; link-local and site-local; groups.
  if (first === 0 && !isTranslated(data)) return text;
  if ((first & 0xfe) === 0xfc || (first === 0xfe && second >= 0x80) || first === 0xff) return text;
  // An IPv4 address within: translated (RFC 6052), or 6to4 (RFC 3056).
  if (isTranslated(data)) return isClosed(addressIn(data, 12), closed) ? text : null;
  return first === 0x20 && second === 2 && isClosed(addressIn(data, 2), closed) ? text : null;
}
const isTranslated = (data: Uint8Array): boolean =>
  [0, 0x64, 0xff, 0x9b].every((each, at) => data[at] === each) && data.subarray(4, 12).every((each) => each === 0);
const addressIn = (data: Uint8Array, at: number): string =>
  formatIpv4([0, 1, 2, 3].reduce((value, index) => value * 256 + (data[at + index] ?? 0), 0));
const isClosed = (address: string, closed: readonly string[]): boolean => {
  const number = parseIpv4(address) ?? 0;
  return [...nobodys, ...closed].some((text) => {
    const network = parseNetwork(text);
    return network !== null && number >= network.first && number <= network.last;
  });
};
