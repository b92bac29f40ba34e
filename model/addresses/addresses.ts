/** IPv4 as the checks need it: addresses are unsigned 32-bit numbers. */

/** Dotted decimal (RFC 6943, 3.1.1: no leading zeros) to a number; null if it is not an address. */
export const parseIpv4 = (text: string): number | null => ipv4In(text, text.length);

/** Of the first `end` characters. By its characters: a large text has hundreds of thousands of these. */
function ipv4In(text: string, end: number): number | null {
  let [value, dots, part] = [0, 0, -1];
  for (let at = 0; at < end; at += 1) {
    const digit = text.charCodeAt(at) - zero;
    if (digit >= 0 && digit <= 9) {
      if (part === 0) return null;
      part = part < 0 ? digit : part * 10 + digit;
      if (part > 255) return null;
    } else {
      if (text.charCodeAt(at) !== dot || part < 0 || dots === 3) return null;
      value = value * 256 + part;
      dots += 1;
      part = -1;
    }
  }
  return dots === 3 && part >= 0 ? value * 256 + part : null;
}
const [zero, dot] = ["0".charCodeAt(0), ".".charCodeAt(0)] as const;

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

/** 0 to 32, behind the slash; null: it is none. */
function prefixIn(text: string, from: number): number | null {
  const [first, second] = [text.charCodeAt(from) - zero, text.charCodeAt(from + 1) - zero];
  if (text.length === from + 1) return first >= 0 && first <= 9 ? first : null;
  const isTwo = text.length === from + 2 && first >= 1 && first <= 3 && second >= 0 && second <= 9;
  return isTwo && first * 10 + second <= 32 ? first * 10 + second : null;
}

/** CIDR notation (RFC 4632, 3.1), or an address alone as a block of one; null if it is neither. */
export function parseNetwork(text: string): Network | null {
  const slash = text.indexOf("/");
  const address = ipv4In(text, slash < 0 ? text.length : slash);
  const prefixLength = slash < 0 ? 32 : prefixIn(text, slash + 1);
  if (address === null || prefixLength === null) return null;
  const size = 2 ** (32 - prefixLength);
  const first = Math.floor(address / size) * size;
  return { first, last: first + size - 1, prefixLength, hostBits: first !== address };
}
export const formatNetwork = ({ first, prefixLength }: Network): string => `${formatIpv4(first)}/${prefixLength}`;
