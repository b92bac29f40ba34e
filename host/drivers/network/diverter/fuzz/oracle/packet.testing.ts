/**
 * What a frame of IPv4 says, read by the standards (RFC 791, 768, 792, 9293) and by nothing else. `null`: it is malformed, or of
 * a form that the dataplane lets nobody use.
 */
export interface Packet {
  readonly source: number;
  readonly destination: number;
  readonly protocol: number;
  readonly id: number;
  readonly part: "whole" | "first" | "later";
  /** Of TCP and UDP; of ICMP the identifier in both. 0 where there is none. */
  readonly sourcePort: number;
  readonly port: number;
  readonly icmpType: number | null;
  readonly flags: { readonly syn: boolean; readonly ack: boolean; readonly fin: boolean; readonly reset: boolean };
  /** Of an ICMP error: the packet that it is about. */
  readonly about: Omit<Packet, "about" | "part" | "id" | "flags" | "headerLength" | "tcpLength"> | null;
  readonly headerLength: number;
  /** 0 for anything but TCP. */
  readonly tcpLength: number;
}
export const icmp = 1;
export const tcp = 6;
export const udp = 17;
const start = 14;
const noFlags = { syn: false, ack: false, fin: false, reset: false };
/** Destination unreachable, time exceeded, parameter problem. */
const errors = [3, 11, 12];

/** A packet that names its own way would pass by the check of where it goes. An option without a length is no option. */
function hasGoodOptions(frame: Buffer, headerLength: number): boolean {
  let at = start + 20;
  const end = start + headerLength;
  while (at < end) {
    const type = frame[at]!;
    if (type === 0) return true;
    if (type === 1) {
      at += 1;
      continue;
    }
    const length = frame[at + 1];
    if (type === 0x83 || type === 0x89 || length === undefined || length < 2) return false;
    at += length;
  }
  return true;
}

function readQuoted(frame: Buffer, at: number): Packet["about"] {
  if (frame.length < at + 20) return null;
  const headerLength = (frame[at]! & 15) * 4;
  if (frame[at]! >> 4 !== 4 || headerLength < 20 || frame.length < at + headerLength + 8) return null;
  const protocol = frame[at + 9]!;
  const payload = at + headerLength;
  const ports = { sourcePort: 0, port: 0 };
  if (protocol === tcp || protocol === udp) {
    ports.sourcePort = frame.readUInt16BE(payload);
    ports.port = frame.readUInt16BE(payload + 2);
  } else if (protocol === icmp) ports.sourcePort = ports.port = frame.readUInt16BE(payload + 4);
  return {
    source: frame.readUInt32BE(at + 12),
    destination: frame.readUInt32BE(at + 16),
    protocol,
    ...ports,
    icmpType: protocol === icmp ? frame[payload]! : null,
  };
}

function readTransport(frame: Buffer, head: Packet, total: number): Packet | null {
  const { headerLength, protocol, part } = head;
  const at = start + headerLength;
  const room = total - headerLength;
  if (protocol === tcp) {
    if (room < 20) return null;
    const tcpLength = (frame[at + 12]! >> 4) * 4;
    const bits = frame[at + 13]!;
    const flags = { fin: (bits & 1) > 0, syn: (bits & 2) > 0, reset: (bits & 4) > 0, ack: (bits & 16) > 0 };
    if (tcpLength < 20 || (part === "whole" && tcpLength > room)) return null;
    if (flags.syn && (flags.fin || flags.reset)) return null;
    return { ...head, sourcePort: frame.readUInt16BE(at), port: frame.readUInt16BE(at + 2), flags, tcpLength };
  }
  if (protocol === udp) {
    const length = room < 8 ? 0 : frame.readUInt16BE(at + 4);
    if (room < 8 || (part === "whole" && (length < 8 || length > room))) return null;
    return { ...head, sourcePort: frame.readUInt16BE(at), port: frame.readUInt16BE(at + 2) };
  }
  if (protocol !== icmp) return head;
  if (room < 8) return null;
  const icmpType = frame[at]!;
  const id = frame.readUInt16BE(at + 4);
  const named = { ...head, icmpType, sourcePort: id, port: id };
  if (!errors.includes(icmpType)) return named;
  const about = part === "whole" ? readQuoted(frame, at + 8) : null;
  return about === null ? null : { ...named, about };
}

export function readPacket(frame: Buffer): Packet | null {
  if (frame.length < start + 20) return null;
  const headerLength = (frame[start]! & 15) * 4;
  const total = frame.readUInt16BE(start + 2);
  if (frame[start]! >> 4 !== 4 || headerLength < 20 || total < headerLength || start + total > frame.length)
    return null;
  if (!hasGoodOptions(frame, headerLength)) return null;
  const fragment = frame.readUInt16BE(start + 6);
  const offset = fragment & 0x1fff;
  const protocol = frame[start + 9]!;
  const head: Packet = {
    source: frame.readUInt32BE(start + 12),
    destination: frame.readUInt32BE(start + 16),
    protocol,
    id: frame.readUInt16BE(start + 4),
    part: offset > 0 ? "later" : (fragment & 0x2000) > 0 ? "first" : "whole",
    sourcePort: 0,
    port: 0,
    icmpType: null,
    flags: noFlags,
    about: null,
    headerLength,
    tcpLength: 0,
  };
  // It would write over flags that were judged already (RFC 1858).
  if (head.part === "later") return offset === 1 && protocol === tcp ? null : head;
  return readTransport(frame, head, total);
}
