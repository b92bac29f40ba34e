import { type HostName, hostName } from "../../../model/cell/identifiers.ts";
import { fail, ok, type Result } from "../../../model/result.ts";
import { isEncodable } from "../../documents/life-numbers.ts";
import type { Packet, PacketKind, Status, Update } from "./types.ts";

/**
 * Packets as bytes, small enough for one Ethernet frame. All numbers are big-endian.
 *
 *     magic 2 | version 1 | kind 1 | seq 4 | digest 4 | generation 6 | incarnation 4 | from | target | n 1 | updates | tag 16
 *     name:   length 1 | that many of a-z 0-9 . - _          update: length 1 | status 1 | generation 6 | incarnation 4 | host | from
 *
 * A reader takes its own version, the one before and the one after. The next version may add kinds and statuses, which this
 * one passes over, and fields behind an update's last one, which its length tells how to skip.
 *
 * A kind that a reader does not know may have anything behind the head; `broadcast/codec.ts` is one.
 *
 * The tag authenticates everything before it with a key of the installation. Making and checking it is an effect of the edge
 * (`Seal`): a packet whose tag is wrong is not looked at.
 */
export const packetVersion = 1;
export const packetBytes = 1400;
export const magic = 0x4350;
export const headBytes = 22;
export const tagBytes = 16;

export interface Seal {
  /** Writes the tag of the first `length` bytes behind them. */
  sign(bytes: Uint8Array, length: number): void;
  /** Whether the tag of the first `length` bytes stands behind them; compares in constant time. */
  verify(bytes: Uint8Array, length: number): boolean;
}

const kinds: readonly PacketKind[] = ["ping", "ack", "ping-req", "nack", "gossip"];
const statuses: readonly Status[] = ["alive", "suspect", "dead", "left"];
/** Behind those of `kinds`; `broadcast/codec.ts` reads it. */
export const broadcastKind = 5;
const longestName = 63;

export const updateBytes = ({ host, from }: Update): number => 14 + host.length + (from === null ? 0 : from.length);
/** Bytes of updates that fit into a packet. */
export const updateRoom = (from: HostName, target: HostName | null): number =>
  packetBytes - tagBytes - headBytes - 3 - from.length - (target === null ? 0 : target.length);
/** Size on the wire, with the tag and without the headers of UDP and below. */
export const sizeOf = ({ from, target, updates }: Packet): number => {
  let bytes = packetBytes - updateRoom(from, target);
  for (const update of updates) bytes += updateBytes(update);
  return bytes;
};

interface Writer {
  readonly bytes: Uint8Array;
  at: number;
}
const put = (writer: Writer, value: number, bytes: number): void => {
  let rest = value;
  for (let index = bytes - 1; index >= 0; index -= 1) {
    writer.bytes[writer.at + index] = rest % 256;
    rest = Math.floor(rest / 256);
  }
  writer.at += bytes;
};
const putName = (writer: Writer, name: string | null): void => {
  const text = name ?? "";
  put(writer, text.length, 1);
  for (let index = 0; index < text.length; index += 1) put(writer, text.charCodeAt(index), 1);
};

/** Names are those of hosts, so ASCII and at most 63 long; the updates are those that `updateRoom` allowed. */
export const encodePacket = (packet: Packet, seal: Seal): Uint8Array => {
  const bytes = new Uint8Array(sizeOf(packet));
  const writer: Writer = { bytes, at: 0 };
  put(writer, magic, 2);
  put(writer, packetVersion, 1);
  put(writer, kinds.indexOf(packet.kind), 1);
  put(writer, packet.seq, 4);
  put(writer, packet.digest, 4);
  put(writer, packet.generation, 6);
  put(writer, packet.incarnation, 4);
  putName(writer, packet.from);
  putName(writer, packet.target);
  put(writer, packet.updates.length, 1);
  for (const update of packet.updates) {
    put(writer, updateBytes(update) - 1, 1);
    put(writer, statuses.indexOf(update.status), 1);
    put(writer, update.generation, 6);
    put(writer, update.incarnation, 4);
    putName(writer, update.host);
    putName(writer, update.from);
  }
  seal.sign(bytes, writer.at);
  return bytes;
};

export type PacketFault = "too long" | "too short" | "not a packet" | "version" | "tag" | "malformed" | "unknown kind";

interface Reader {
  readonly bytes: Uint8Array;
  at: number;
  readonly end: number;
  failed: boolean;
}
const take = (reader: Reader, bytes: number): number => {
  if (reader.at + bytes > reader.end) {
    reader.failed = true;
    return 0;
  }
  let value = 0;
  for (let index = 0; index < bytes; index += 1) value = value * 256 + (reader.bytes[reader.at + index] ?? 0);
  reader.at += bytes;
  return value;
};
const isNameCode = (code: number): boolean =>
  (code >= 0x61 && code <= 0x7a) || (code >= 0x30 && code <= 0x39) || code === 0x2d || code === 0x2e || code === 0x5f;
/** Names that were read before: the same few thousand come again and again, and a text that is the same object is found sooner. */
const namesRead = new Array<HostName | undefined>(4096);
const isAt = (name: string, { bytes }: Reader, at: number, length: number): boolean => {
  if (name.length !== length) return false;
  for (let index = 0; index < length; index += 1) if (name.charCodeAt(index) !== bytes[at + index]) return false;
  return true;
};
const takeName = (reader: Reader): HostName | null => {
  const length = take(reader, 1);
  if (length > longestName || reader.at + length > reader.end) reader.failed = true;
  if (length === 0 || reader.failed) return null;
  const { at, bytes } = reader;
  reader.at += length;
  let slot = length;
  for (let index = at; index < reader.at; index += 1) slot = (slot * 31 + (bytes[index] ?? 0)) & 4095;
  const known = namesRead[slot];
  if (known !== undefined && isAt(known, reader, at, length)) return known;
  let text = "";
  for (let index = at; index < reader.at; index += 1) {
    const code = bytes[index] ?? 0;
    if (!isNameCode(code)) reader.failed = true;
    text += String.fromCharCode(code);
  }
  const name = hostName(text);
  if (!reader.failed) namesRead[slot] = name;
  return name;
};

/** Null: of a status that this version does not know, or of a life that has no next one. */
const takeUpdate = (outer: Reader): Update | null => {
  const length = take(outer, 1);
  const reader: Reader = { bytes: outer.bytes, at: outer.at, end: outer.at + length, failed: false };
  outer.at += length;
  if (outer.failed || outer.at > outer.end) {
    outer.failed = true;
    return null;
  }
  const status = statuses[take(reader, 1)];
  const generation = take(reader, 6);
  const incarnation = take(reader, 4);
  const host = takeName(reader);
  const from = takeName(reader);
  if (reader.failed || host === null) {
    outer.failed = true;
    return null;
  }
  if (status === undefined) return null;
  if ((status === "suspect") !== (from !== null)) {
    outer.failed = true;
    return null;
  }
  return isEncodable(generation, incarnation) ? { status, host, generation, incarnation, from } : null;
};

/** A packet or why it is none. Never throws, whatever the bytes are; a packet is taken as a whole or not at all. */
export const decodePacket = (bytes: Uint8Array, seal: Seal): Result<Packet, PacketFault> => {
  if (bytes.length > packetBytes) return fail("too long");
  if (bytes.length < headBytes + 3 + tagBytes) return fail("too short");
  const end = bytes.length - tagBytes;
  const reader: Reader = { bytes, at: 0, end, failed: false };
  if (take(reader, 2) !== magic) return fail("not a packet");
  const version = take(reader, 1);
  if (Math.abs(version - packetVersion) > 1) return fail("version");
  if (!seal.verify(bytes, end)) return fail("tag");
  const kind = kinds[take(reader, 1)];
  const seq = take(reader, 4);
  const digest = take(reader, 4);
  const generation = take(reader, 6);
  const incarnation = take(reader, 4);
  if (kind === undefined) return fail("unknown kind");
  const from = takeName(reader);
  const target = takeName(reader);
  const updates: Update[] = [];
  for (let count = take(reader, 1); count > 0 && !reader.failed; count -= 1) {
    const update = takeUpdate(reader);
    if (update !== null) updates.push(update);
  }
  if (reader.failed || from === null || (reader.at !== end && version <= packetVersion)) return fail("malformed");
  if ((kind === "gossip") !== (target === null) || !isEncodable(generation, incarnation)) return fail("malformed");
  return ok({ kind, seq, from, generation, incarnation, target, digest, updates });
};
