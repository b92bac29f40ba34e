import type { HostName } from "../../../model/cell/identifiers.ts";
import { hostName } from "../../../model/cell/identifiers.ts";
import type { Json } from "../../../model/json/json.ts";
import { fail, ok, type Result } from "../../../model/result.ts";
import type { GossipPacket } from "../../distribution/gossip.ts";
import { digestBuckets } from "../../distribution/node/digest.ts";
import {
  broadcastKind,
  headBytes,
  magic,
  type PacketFault,
  packetBytes,
  packetVersion,
  type Seal,
  tagBytes,
} from "../swim/codec.ts";

/**
 * Broadcasts as bytes: a packet of their own kind in the frame of `swim/codec.ts`, over the same socket and under the same key.
 *
 *     magic 2 | version 1 | kind 1 | 0 18 | length 1 | from | JSON in ASCII | tag 16
 *
 * JSON, because broadcasts are few and their form may grow; a digest stands in it as hexadecimal digits, without which it
 * would not fit, and the digest of nothing as none.
 */
export interface Broadcast {
  readonly from: HostName;
  /** Of `GossipPacket`'s form, or whatever the sender holds for it. */
  readonly packet: Json;
}

export const isBroadcast = (bytes: Uint8Array): boolean => bytes[3] === broadcastKind;

const wordDigits = 8;
const hexOf = (words: readonly number[]): string =>
  words.every((word) => word === 0) ? "" : words.map((word) => word.toString(16).padStart(wordDigits, "0")).join("");
const wordsOf = (hex: string): Json => {
  if (hex === "") return new Array<number>(2 * digestBuckets).fill(0);
  if (hex.length !== 2 * digestBuckets * wordDigits || !/^[0-9a-f]+$/.test(hex)) return null;
  return Array.from({ length: 2 * digestBuckets }, (_, at) =>
    Number.parseInt(hex.slice(at * wordDigits, (at + 1) * wordDigits), 16),
  );
};

const textOf = (packet: GossipPacket): string => {
  const text = JSON.stringify(packet.kind === "digest" ? { ...packet, digest: hexOf(packet.digest) } : packet);
  return text.replace(/[^ -~]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
};

/** Null: it does not fit into a datagram. */
export const encodeBroadcast = (from: HostName, packet: GossipPacket, seal: Seal): Uint8Array | null => {
  const text = textOf(packet);
  const length = headBytes + 1 + from.length + text.length + tagBytes;
  if (length > packetBytes) return null;
  const bytes = new Uint8Array(length);
  bytes.set([magic >> 8, magic & 255, packetVersion, broadcastKind]);
  let at = headBytes;
  const put = (code: number): void => {
    bytes[at] = code;
    at += 1;
  };
  put(from.length);
  for (let index = 0; index < from.length; index += 1) put(from.charCodeAt(index));
  for (let index = 0; index < text.length; index += 1) put(text.charCodeAt(index));
  seal.sign(bytes, at);
  return bytes;
};

/** A broadcast or why it is none. Never throws, whatever the bytes are; what it says is for `stepGossip` to judge. */
export const decodeBroadcast = (bytes: Uint8Array, seal: Seal): Result<Broadcast, PacketFault> => {
  if (bytes.length > packetBytes) return fail("too long");
  if (bytes.length < headBytes + 2 + tagBytes) return fail("too short");
  const end = bytes.length - tagBytes;
  if ((bytes[0] ?? 0) * 256 + (bytes[1] ?? 0) !== magic) return fail("not a packet");
  if (Math.abs((bytes[2] ?? 0) - packetVersion) > 1) return fail("version");
  if (!seal.verify(bytes, end)) return fail("tag");
  const nameEnd = headBytes + 1 + (bytes[headBytes] ?? 0);
  const from = asciiOf(bytes, headBytes + 1, Math.min(nameEnd, end));
  if (nameEnd > end || !/^[a-z0-9._-]{1,63}$/.test(from)) return fail("malformed");
  const packet = parse(asciiOf(bytes, nameEnd, end));
  return packet === undefined ? fail("malformed") : ok({ from: hostName(from), packet });
};

const asciiOf = (bytes: Uint8Array, from: number, to: number): string => {
  let text = "";
  for (let at = from; at < to; at += 1) text += String.fromCharCode(bytes[at] ?? 0);
  return text;
};

const parse = (text: string): Json | undefined => {
  try {
    const json = JSON.parse(text) as Json;
    if (typeof json !== "object" || json === null || Array.isArray(json)) return undefined;
    const { digest } = json as { readonly [key: string]: Json };
    return typeof digest === "string" ? { ...json, digest: wordsOf(digest) } : json;
  } catch {
    return undefined;
  }
};
