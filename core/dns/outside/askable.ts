import { type Network, parseNetwork } from "../../../model/addresses/addresses.ts";

/**
 * Which names may be asked outside. Never what is the installation's: its domain, and the addresses of its networks. Nor what
 * is nobody's outside, since such a question only tells somebody there what goes on inside: names without a dot, addresses, those that
 * are for use at home (RFC 6761, 6762, 7686, 8375, 9476), and private addresses (RFC 6303).
 */
export interface Inside {
  /** Below which the cells' names are. */
  readonly domain: string;
  /** The installation's networks, external pools included: whose names are there the DNS Manager says. */
  readonly networks: readonly string[];
}

const atHome = ["alt", "home.arpa", "internal", "invalid", "local", "localhost", "onion", "test"];
/** RFC 6890 and 6303: of no use to anybody outside. */
const privateNetworks = [
  "0.0.0.0/8",
  "10.0.0.0/8",
  "100.64.0.0/10",
  "127.0.0.0/8",
  "169.254.0.0/16",
  "172.16.0.0/12",
  "192.168.0.0/16",
  "224.0.0.0/4",
  "240.0.0.0/4",
];
/** The same of IPv6, as hexadecimal digits: unspecified, loopback, mapped; unique local; link-local; groups. */
const privateDigits = ["00", "fc", "fd", "fe8", "fe9", "fea", "feb", "fec", "fed", "fee", "fef", "ff"];

export const isWithin = (name: string, domain: string): boolean => name === domain || name.endsWith(`.${domain}`);

export function isAskable(name: string, { domain, networks }: Inside): boolean {
  if (!name.includes(".") || isWithin(name, domain)) return false;
  // An address that was taken for a name, as some programs do: it would be told to everybody on the way.
  if (/(^|\.)\d+$/.test(name)) return false;
  if (atHome.some((each) => isWithin(name, each))) return false;
  const reverse = reverseNetwork(name);
  if (reverse !== null) {
    if (reverse === "malformed") return false;
    return ![...privateNetworks, ...networks].some((text) => overlap(parseNetwork(text), reverse));
  }
  if (!isWithin(name, "ip6.arpa")) return true;
  const digits = name.split(".").slice(0, -2).reverse().join("");
  return !privateDigits.some((each) => each.startsWith(digits) || digits.startsWith(each));
}

const overlap = (one: Network | null, other: Network): boolean =>
  one !== null && one.first <= other.last && other.first <= one.last;

/** The addresses that a name below in-addr.arpa is about, of which it may have only the first numbers; null: it is not there. */
function reverseNetwork(name: string): Network | "malformed" | null {
  if (!isWithin(name, "in-addr.arpa")) return null;
  const labels = name.split(".").slice(0, -2).reverse();
  const other = labels.findIndex((label) => !/^\d+$/.test(label));
  const numbers = labels.slice(0, Math.min(4, other < 0 ? 4 : other));
  const address = [...numbers, "0", "0", "0", "0"].slice(0, 4).join(".");
  return parseNetwork(`${address}/${8 * numbers.length}`) ?? "malformed";
}
