import { formatIpv4, parseIpv4, parseNetwork } from "../../../../../model/addresses/addresses.ts";
import { type Ipv4, ipv4 } from "../../../../../model/cell/identifiers.ts";
import type { Outside } from "../../driver.ts";
import type { networkKinds } from "../program/layout.ts";

/** Networks as the program is told of them; the longest that holds an address says what it is. */
export type Networks = readonly {
  readonly address: Ipv4;
  readonly prefixLength: number;
  readonly kind: keyof typeof networkKinds;
}[];

/** Addresses that nobody outside can have as a sender: RFC 6890, and groups. */
const nobodys = ["0.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16", "224.0.0.0/4", "240.0.0.0/4"];

/**
 * What is not outside: the installation's own networks, of which the external pools may speak with the outside, and the
 * segment that leads there, whose machines are hosts like this one; its routers alone are outside. A host without a way there
 * has to know it too: a machine of a cell may lead outside.
 */
export function networksOf({ external, inside, ...way }: Pick<Outside, "external" | "inside"> & Partial<Outside>): {
  readonly networks: Networks;
  readonly isExternal: (address: Ipv4) => boolean;
} {
  const parse = (text: string) => parseNetwork(text) ?? { first: 0, last: -1, prefixLength: 32 };
  const pools = external.map(parse);
  const has = (network: { first: number; last: number }, number: number): boolean =>
    number >= network.first && number <= network.last;
  const network = (text: string, kind: Networks[number]["kind"]): Networks[number] => {
    const { first, prefixLength: length } = parse(text);
    return { address: ipv4(formatIpv4(first)), prefixLength: length, kind };
  };
  const all = [
    ...[...nobodys, ...inside].map((text) => network(text, "notOutside")),
    ...(way.address === undefined ? [] : [network(`${way.address}/${way.prefixLength}`, "notOutside")]),
    ...external.map((text) => network(text, "external")),
    ...(way.routers ?? []).map((router) => network(`${router}/32`, "elsewhere")),
  ];
  /* Of the same network the later word counts. */
  const networks = [...new Map(all.map((each) => [`${each.address}/${each.prefixLength}`, each])).values()];
  return { networks, isExternal: (text) => pools.some((pool) => has(pool, parseIpv4(text) ?? -1)) };
}
