import { parseNetwork } from "../../addresses/addresses.ts";
import type { Cell, Element, SubnetElement } from "../../cell/cell.ts";
import { allAsk } from "../check-hosts.ts";
import type { ReportFault } from "../fault.ts";

/** What subnets of one `x.addressRange` can be. Networks in CIDR notation. */
export interface PoolOffer {
  /** Where a subnet without `x.cidr` gets its range. */
  readonly pool: string;
  /** Addresses of the largest subnet that the pool could give if nobody else had one. */
  readonly largest: number;
  /** Networks that a fixed `x.cidr` may be in; the pool is one of them. */
  readonly fixed: readonly string[];
}
/** What the IP Address Manager could ever give; it follows from its configuration, so that it is always known as a whole. */
export interface AddressOffer {
  readonly internal: PoolOffer;
  readonly external: PoolOffer;
  /** Networks that the installation needs itself: nobody gets a part of them. */
  readonly reserved: readonly string[];
  /** What external subnets have in no pool any more: it is the installation's as long as they have it. Absent: nothing. */
  readonly kept?: readonly string[];
  /** Prefix lengths of the largest and of the smallest subnet. */
  readonly shortestPrefix: number;
  readonly longestPrefix: number;
}

/** A subnet that the IP Address Manager could never give a range is refused; one whose range is taken waits, or is said to. */
export function checkAddresses(elements: readonly Element[], offer: AddressOffer, fault: ReportFault): void {
  for (const element of elements) {
    // What is the underlay is nobody's to give.
    if (element.type !== "Subnet" || element.addressRange === "management") continue;
    const pool = offer[element.addressRange];
    if (element.cidr !== undefined) checkFixed(element, element.cidr, pool, offer, fault);
    else if (element.size > pool.largest) {
      const message = `\`${element.path}\` asks for ${element.size} addresses, more than the ${element.addressRange} pool ${pool.pool} can ever give`;
      const hint = `One subnet can have at most ${pool.largest}: write \`x.size ${pool.largest}\` or less.`;
      fault("cell/no-addresses", message, element.path, { attribute: "x.size", hint });
    }
  }
}

/** The subnets without a fixed range that an all-or-none cell adds must fit into their pool together. */
export function checkAddressesOfAll(
  cell: Cell,
  elements: readonly Element[],
  offer: AddressOffer,
  fault: ReportFault,
): void {
  for (const range of ["internal", "external"] as const) {
    const { pool, largest, fixed } = offer[range];
    const pools = range === "external" ? fixed : [pool];
    const sizes = elements.flatMap((element) =>
      element.type === "Subnet" && element.cidr === undefined && element.addressRange === range ? [element.size] : [],
    );
    // A range is a power of two, and no smaller than the smallest subnet.
    const taken = (size: number): number => 2 ** Math.max(32 - offer.longestPrefix, Math.ceil(Math.log2(size)));
    const asked = sizes.reduce((sum, size) => sum + taken(size), 0);
    const most = pools.reduce((sum, each) => sum + 2 ** (32 - (parseNetwork(each)?.prefixLength ?? 32)), 0);
    // One that is too large for itself was named already.
    if (asked <= most || sizes.some((size) => size > largest)) continue;
    const message = `${allAsk(cell, "subnets")} ${asked} ${range} addresses, more than ${pools.length === 1 ? `the pool ${pool} has` : `the pools ${pools.join(", ")} have`}`;
    fault("cell/no-addresses", message, cell.path, {
      attribute: "x.policy.deploy",
      hint: `At most ${most} can be had: ask for less, or write \`x.policy.deploy "as-possible"\`.`,
    });
  }
}

function checkFixed(
  subnet: SubnetElement,
  cidr: string,
  pool: PoolOffer,
  { reserved, shortestPrefix, longestPrefix }: AddressOffer,
  fault: ReportFault,
): void {
  const network = parseNetwork(cidr);
  // Said already where the attribute was read.
  if (network === null || network.hostBits) return;
  const refuse = (message: string, hint: string): void =>
    fault("cell/no-addresses", message, subnet.path, { attribute: "x.cidr", hint });
  const otherwise = "or leave out `x.cidr` and give an `x.size`";
  if (network.prefixLength < shortestPrefix || network.prefixLength > longestPrefix) {
    const bounds = `between /${shortestPrefix} and /${longestPrefix}`;
    refuse(`${cidr} is a /${network.prefixLength}, and a subnet is ${bounds}`, `Choose one ${bounds}, ${otherwise}.`);
    return;
  }
  const allowed = pool.fixed.some((text) => {
    const outer = parseNetwork(text);
    return outer !== null && network.first >= outer.first && network.last <= outer.last;
  });
  if (!allowed) {
    const places = pool.fixed.join(", ");
    refuse(
      `${cidr} is no range of the installation's ${subnet.addressRange} subnets`,
      `Choose one in ${places}, ${otherwise}.`,
    );
    return;
  }
  const clash = reserved.find((text) => {
    const other = parseNetwork(text);
    return other !== null && network.first <= other.last && other.first <= network.last;
  });
  if (clash !== undefined)
    refuse(
      `${cidr} overlaps ${clash}, which the installation itself needs`,
      `Choose one outside ${reserved.join(", ")}, ${otherwise}.`,
    );
}
