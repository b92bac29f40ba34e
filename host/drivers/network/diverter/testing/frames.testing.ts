import { octets } from "../program/layout.ts";
import { checksum } from "../taps/probe.ts";

/** Frames made by hand, as hexadecimal text: what no well-behaved stack would send. */
export const hex = (bytes: readonly number[] | Buffer): string => Buffer.from(bytes).toString("hex");
export const macHex = (mac: string): string => mac.replaceAll(":", "");
export const u16 = (value: number): string => value.toString(16).padStart(4, "0");
export const ethernet = (to: string, from: string, type: number, payload: string): string =>
  `${macHex(to)}${macHex(from)}${u16(type)}${payload}`;
export const everyone = "ff:ff:ff:ff:ff:ff";

/** `fragment`: the flags and the offset, as they stand in the header. */
export function ip(
  source: string,
  destination: string,
  protocol: number,
  payload: Buffer,
  fragment = 0,
  id = 0x1234,
): string {
  const head = Buffer.from([0x45, 0, 0, 0, 0, 0, 0, 0, 64, protocol, 0, 0, ...octets(source), ...octets(destination)]);
  head.writeUInt16BE(20 + payload.length, 2);
  head.writeUInt16BE(id, 4);
  head.writeUInt16BE(fragment, 6);
  head.writeUInt16BE(checksum(head), 10);
  return hex(Buffer.concat([head, payload]));
}
export function udp(from: number, to: number, payload: Buffer, length = 8 + payload.length): Buffer {
  const head = Buffer.alloc(8);
  head.writeUInt16BE(from, 0);
  head.writeUInt16BE(to, 2);
  head.writeUInt16BE(length, 4);
  return Buffer.concat([head, payload]);
}
export const tcpFlags = { fin: 1, syn: 2, rst: 4, push: 8, ack: 16 } as const;
export function tcp(from: number, to: number, flags: number, payload = Buffer.alloc(0)): Buffer {
  const head = Buffer.alloc(20);
  head.writeUInt16BE(from, 0);
  head.writeUInt16BE(to, 2);
  head[12] = 0x50;
  head[13] = flags;
  return Buffer.concat([head, payload]);
}
export const icmpTypes = { reply: 0, unreachable: 3, request: 8 } as const;
export function icmp(type: number, id: number, sequence: number, payload = Buffer.alloc(0)): Buffer {
  const message = Buffer.concat([Buffer.from([type, 0, 0, 0, 0, 0, 0, 0]), payload]);
  message.writeUInt16BE(id, 4);
  message.writeUInt16BE(sequence, 6);
  message.writeUInt16BE(checksum(message), 2);
  return message;
}
export const arp = (operation: number, mac: string, sender: string, target: string): string =>
  `0001080006${"04"}${u16(operation)}${macHex(mac)}${hex(octets(sender))}000000000000${hex(octets(target))}`;
export function dhcp(type: number, mac: string, more: readonly number[] = []): Buffer {
  const message = Buffer.alloc(300);
  message.set([1, 1, 6, 0, 0xde, 0xad, 0xbe, 0xef], 0);
  message.set(Buffer.from(macHex(mac), "hex"), 28);
  message.set([99, 130, 83, 99, ...more, 53, 1, type, 255], 236);
  return udp(68, 67, message);
}

/** What a frame of IPv4 says, for those that come out of the dataplane. */
export function readFrame(text: string) {
  const bytes = Buffer.from(text, "hex");
  const macAt = (at: number): string => hex(bytes.subarray(at, at + 6)).replace(/..(?=.)/g, "$&:");
  const header = (bytes[14]! & 15) * 4;
  const end = 14 + bytes.readUInt16BE(16);
  return {
    to: macAt(0),
    from: macAt(6),
    type: bytes.readUInt16BE(12),
    head: bytes.subarray(14, 14 + header),
    source: [...bytes.subarray(26, 30)].join("."),
    destination: [...bytes.subarray(30, 34)].join("."),
    protocol: bytes[23]!,
    payload: bytes.subarray(14 + header, end),
  };
}
