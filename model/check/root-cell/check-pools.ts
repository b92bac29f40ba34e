import { parseIpv4, parseNetwork } from "../../addresses/addresses.ts";
import { isWithin, poolFault, whatOverlaps } from "../../addresses/pools.ts";
import type { Cell } from "../../cell/cell.ts";
import type { Cidr, HostName, Ipv4 } from "../../cell/identifiers.ts";
import { sameJson } from "../../json/same.ts";
import type { ReportFault } from "../fault.ts";
import type { AddressOffer } from "../network/check-addresses.ts";

/** What stands in the way of other external pools. Networks in CIDR notation. */
export interface KnownPools {
  /** The pool of an installation that declares none. */
  readonly otherwise: Cidr;
  /** Of each pool in force the smallest network with all that subnets have of it; empty where they have nothing. */
  readonly used: readonly Cidr[];
  /** Ranges of internal subnets outside the internal pool. */
  readonly inside: readonly Cidr[];
  /** Upstream routers of hosts, and what hosts have themselves on the networks of these. */
  readonly routers: readonly { readonly host: HostName; readonly address: Ipv4; readonly isOwn?: true }[];
}

/** Only one cell speaks for the addresses of the installation. */
const rootName = "root";
const attribute = "x.pools.external";
const clash = (text: string, others: readonly string[]): string | undefined => {
  const network = parseNetwork(text);
  return network === null ? undefined : whatOverlaps(network, others);
};

/** What a document says by itself. */
export function checkPools({ externalPools, name, path }: Cell, fault: ReportFault): void {
  if (externalPools === undefined) return;
  const found =
    name === rootName
      ? poolFault(externalPools, [])
      : {
          why: `declares pools of addresses for \`${name}\`, which is the root cell's alone`,
          right: "Leave it out here, and put it into the root cell's specification.",
        };
  if (found !== null) fault("cell/pools", `\`${attribute}\` ${found.why}`, path, { attribute, hint: found.right });
}

/**
 * Pools that are others than before, against what there is in the installation: what machines have is taken from nobody.
 * @param offer null: it is not known
 * @param known undefined: it is not known, and the IP Address Manager has the last word
 */
export function checkPoolsInUse(
  { externalPools, name, path }: Cell,
  present: Cell | undefined,
  offer: Pick<AddressOffer, "internal" | "reserved"> | null,
  known: KnownPools | undefined,
  fault: ReportFault,
): void {
  if (name !== rootName || sameJson(externalPools ?? null, present?.externalPools ?? null)) return;
  const refuse = (why: string, right: string): void =>
    fault("cell/pools", `\`${attribute}\` ${why}`, path, { attribute, hint: right });
  const found =
    externalPools === undefined || offer === null
      ? null
      : poolFault(externalPools, [offer.internal.pool, ...offer.reserved]);
  if (found !== null) {
    refuse(found.why, found.right);
    return;
  }
  if (known === undefined) return;
  const wanted: readonly string[] = externalPools ?? [known.otherwise];
  const left = known.used.find((used) => !isWithin(used, wanted));
  if (left !== undefined) {
    const why = `leaves out ${left}, where subnets have addresses`;
    refuse(why, `Keep a network that holds ${left}, behind the others, until no subnet has a part of it.`);
  }
  const fresh = wanted.filter((pool) => !isWithin(pool, present?.externalPools ?? [known.otherwise]));
  for (const pool of fresh) {
    const taken = clash(pool, known.inside);
    if (taken !== undefined) {
      const why = `has ${pool}, and ${taken} is an internal subnet's: its machines would be outside`;
      refuse(why, `Have that subnet deleted first, or leave ${taken} out of the pools.`);
    }
    const router = known.routers.find(
      ({ address }) => parseIpv4(address) !== null && isWithin(`${address}/32`, [pool]),
    );
    if (router !== undefined) {
      const { address, host, isOwn } = router;
      const is = isOwn === true ? `${host}'s own on the way outside` : `the upstream router of ${host}`;
      refuse(
        `has ${pool}, and ${address} is ${is}: a VM could be given its address`,
        `Leave the ${isOwn === true ? "host" : "router"} out, as by naming only the parts of ${pool} without it.`,
      );
    }
  }
}
