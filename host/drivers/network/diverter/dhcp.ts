import type { DesiredInterface } from "../../../../core/documents/vocabulary.ts";
import { dhcpAnswer, fromNumber, octets } from "./program/layout.ts";

/** Seconds. Long, for an address never changes while its interface lives; short enough that a renewal tests the path. */
const leaseSeconds = 86_400;
/** Room for options in an answer that every client must accept (RFC 2131, section 2). */
const optionBytes = 308;
/** IPv4 netmask of a prefix length. */
export const maskOf = (prefixLength: number) =>
  fromNumber(prefixLength === 0 ? 0 : (0xffffffff << (32 - prefixLength)) >>> 0);

const option = (code: number, bytes: readonly number[] | Buffer): Buffer => Buffer.from([code, bytes.length, ...bytes]);
const seconds = (value: number): Buffer => {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
};

/**
 * The part of a DHCP answer that does not depend on the question (RFC 2131, options of RFC 2132): the dataplane fills in
 * the message type, which is therefore the first option. `mtu` in bytes; 1500 goes without saying.
 */
export function encodeDhcpAnswer(desired: DesiredInterface, mtu: number): Buffer {
  const options = [
    option(53, [0]),
    option(54, octets(desired.gateway)),
    option(51, seconds(leaseSeconds)),
    option(58, seconds(leaseSeconds / 2)),
    option(59, seconds((leaseSeconds / 8) * 7)),
    option(1, octets(maskOf(desired.prefixLength))),
    option(3, octets(desired.gateway)),
    option(6, octets(desired.nameServer)),
  ];
  if (mtu !== 1500) options.push(option(26, [mtu >> 8, mtu & 255]));
  const end = Buffer.from([255]);
  for (const [code, text] of [
    [12, desired.hostName],
    [15, desired.domain],
  ] as const) {
    const named = option(code, Buffer.from(text, "ascii"));
    /* A name too long for the answer costs the guest that name, not its address. */
    if (text !== "" && Buffer.concat([...options, named, end]).length <= optionBytes) options.push(named);
  }
  return dhcpAnswer.encode({ cookie: Buffer.from([99, 130, 83, 99]), options: Buffer.concat([...options, end]) });
}
