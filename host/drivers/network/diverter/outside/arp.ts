import type { Ipv4 } from "../../../../../model/cell/identifiers.ts";
import { octets } from "../program/layout.ts";

/** Frames of ARP (RFC 826) that this host sends on the network outside. */
const requestHead = Buffer.from([0, 1, 8, 0, 6, 4, 0, 1]);
const everyone = Buffer.alloc(6, 0xff);
const nobody = Buffer.alloc(6);
const ethertype = Buffer.from([0x08, 0x06]);

const macBytes = (mac: string): Buffer => Buffer.from(mac.replaceAll(":", ""), "hex");
/** Of the number that a MAC has in the maps. */
const bytesOf = (number: bigint): Buffer => Buffer.from(number.toString(16).padStart(12, "0"), "hex");
export const macText = (number: bigint): string =>
  bytesOf(number)
    .toString("hex")
    .replace(/..(?=.)/g, "$&:");

export interface Speaker {
  readonly address: Ipv4;
  readonly mac: string;
}
const request = (to: Buffer, { address, mac }: Speaker, target: Ipv4): Buffer => {
  const own = macBytes(mac);
  const body = Buffer.concat([requestHead, own, Buffer.from(octets(address)), nobody, Buffer.from(octets(target))]);
  return Buffer.concat([to, own, ethertype, body, Buffer.alloc(18)]);
};
/** Who has that address? Put to one machine, or to everybody (null). */
export const question = (to: bigint | null, speaker: Speaker, target: Ipv4): Buffer =>
  request(to === null ? everyone : bytesOf(to), speaker, target);
/** RFC 5227, 3: the address is at this MAC from now on. */
export const announcement = (mac: string, address: Ipv4): Buffer => request(everyone, { address, mac }, address);
