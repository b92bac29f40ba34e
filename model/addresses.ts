/** IPv4 as the checks need it: addresses are unsigned 32-bit numbers. */

/** Dotted decimal (RFC 6943, 3.1.1: no leading zeros) to a number; null if it is not an address. */
export function parseIpv4(text: string): number | null {
  const parts = text.split(".");
  if (parts.length !== 4) return null;
  let value = 0;
  for (const part of parts) {
    if (!/^(?:0|[1-9][0-9]{0,2})$/.test(part) || Number(part) > 255) return null;
    value = value * 256 + Number(part);
  }
  return value;
}

export const formatIpv4 = (value: number): string =>
  [value >>> 24, (value >>> 16) & 255, (value >>> 8) & 255, value & 255].join(".");

export interface Network {
  /** The lowest address of the block that the text's address is in. */
  readonly first: number;
  readonly last: number;
  readonly prefixLength: number;
  /** The address as written has bits beyond the prefix. */
  readonly hostBits: boolean;
}

/** CIDR notation (RFC 4632, 3.1), or an address alone as a block of one; null if it is neither. */
export function parseNetwork(text: string): Network | null {
  const match = /^([0-9.]+)(?:\/([0-9]|[12][0-9]|3[0-2]))?$/.exec(text);
  const address = parseIpv4(match?.[1] ?? "");
  if (!match || address === null) return null;
  const prefixLength = match[2] === undefined ? 32 : Number(match[2]);
  const size = 2 ** (32 - prefixLength);
  const first = Math.floor(address / size) * size;
  return { first, last: first + size - 1, prefixLength, hostBits: first !== address };
}
export const formatNetwork = ({ first, prefixLength }: Network): string => `${formatIpv4(first)}/${prefixLength}`;
