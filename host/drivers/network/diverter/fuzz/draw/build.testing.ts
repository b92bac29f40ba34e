/** Frames as bytes. Checksums are left out: the dataplane believes none and writes none. */
export interface Head {
  readonly source: number;
  readonly destination: number;
  readonly protocol: number;
  readonly id: number;
  /** Of octets: the fragment's offset; and whether more come. */
  readonly offset: number;
  readonly more: boolean;
  /** Behind the header's 20 octets; a multiple of 4. */
  readonly options: Buffer;
}
export const plain = { id: 0, offset: 0, more: false, options: Buffer.alloc(0) };
const none = Buffer.alloc(0);

export function ethernet(to: number, from: number, type: number, payload: Buffer): Buffer {
  const frame = Buffer.allocUnsafe(14 + payload.length);
  frame.writeUIntBE(to, 0, 6);
  frame.writeUIntBE(from, 6, 6);
  frame.writeUInt16BE(type, 12);
  payload.copy(frame, 14);
  return frame;
}
export function ip({ source, destination, protocol, id, offset, more, options }: Head, payload: Buffer): Buffer {
  const head = 20 + options.length;
  const packet = Buffer.allocUnsafe(head + payload.length);
  packet[0] = 0x40 | (head / 4);
  packet[1] = 0;
  packet.writeUInt16BE(packet.length, 2);
  packet.writeUInt16BE(id, 4);
  packet.writeUInt16BE((more ? 0x2000 : 0) | (offset / 8), 6);
  packet[8] = 64;
  packet[9] = protocol;
  packet.writeUInt16BE(0, 10);
  packet.writeUInt32BE(source, 12);
  packet.writeUInt32BE(destination, 16);
  options.copy(packet, 20);
  payload.copy(packet, head);
  return packet;
}
export function tcp(sourcePort: number, port: number, flags: number, data: Buffer = none): Buffer {
  const segment = Buffer.alloc(20 + data.length);
  segment.writeUInt16BE(sourcePort, 0);
  segment.writeUInt16BE(port, 2);
  segment[12] = 0x50;
  segment[13] = flags;
  data.copy(segment, 20);
  return segment;
}
export function udp(sourcePort: number, port: number, data: Buffer = none): Buffer {
  const datagram = Buffer.alloc(8 + data.length);
  datagram.writeUInt16BE(sourcePort, 0);
  datagram.writeUInt16BE(port, 2);
  datagram.writeUInt16BE(datagram.length, 4);
  data.copy(datagram, 8);
  return datagram;
}
export function icmp(type: number, id: number, data: Buffer = none): Buffer {
  const message = Buffer.alloc(8 + data.length);
  message[0] = type;
  message.writeUInt16BE(id, 4);
  data.copy(message, 8);
  return message;
}
export interface ArpFields {
  readonly operation: number;
  readonly senderMac: number;
  readonly sender: number;
  readonly target: number;
}
export function arp({ operation, senderMac, sender, target }: ArpFields): Buffer {
  const message = Buffer.alloc(28);
  message.writeUInt32BE(0x00010800, 0);
  message.writeUInt16BE(0x0604, 4);
  message.writeUInt16BE(operation, 6);
  message.writeUIntBE(senderMac, 8, 6);
  message.writeUInt32BE(sender, 14);
  message.writeUInt32BE(target, 24);
  return message;
}
/** @param type of the message, option 53; null: it has none */
export function dhcp(operation: number, mac: number, type: number | null): Buffer {
  const message = Buffer.alloc(236 + 4 + 12);
  message[0] = operation;
  message[1] = 1;
  message[2] = 6;
  message.writeUInt32BE(0x11223344, 4);
  message.writeUIntBE(mac, 28, 6);
  message.writeUInt32BE(0x63825363, 236);
  const options = type === null ? [12, 1, 120, 255] : [0, 12, 1, 120, 53, 1, type, 255];
  Buffer.from(options).copy(message, 240);
  return message;
}
