import { formatIpv4, parseIpv4, parseNetwork } from "../../model/addresses/addresses.ts";
import { cidr, ipv4, mac } from "../../model/cell/identifiers.ts";
import { fail, ok, type Result } from "../../model/result.ts";
import type { ProcessConfiguration } from "../../runtime/installation.ts";
import type { Outside } from "../drivers/network/driver.ts";

/**
 * The way out of the installation as the host's configuration has it (`host.outside`), held against the device that the
 * machine has: what cannot work is told before anything is touched.
 */
type Part = NonNullable<ProcessConfiguration["host"]>;
type Configured = NonNullable<Part["outside"]>;

/** A device of this machine; its addresses as `<address>/<prefix length>`. */
export interface FoundDevice {
  readonly mac: string;
  readonly addresses: readonly string[];
}
const mostRouters = 4;

/** What keeps a router from being one on the network of `own`, an address with its prefix; null: nothing. */
function whyNoRouter(router: string, device: string, own: string, pools: readonly string[]): string | null {
  const number = parseIpv4(router);
  if (number === null) return `\`${router}\` in \`host.outside.routers\` is no IPv4 address, as 192.0.2.1 is`;
  const segment = parseNetwork(own);
  const { first, last } = segment ?? { first: 0, last: -1 };
  const usable = `${formatIpv4(first + 1)} to ${formatIpv4(last - 1)}`;
  if (number <= first || number >= last)
    return `the upstream router ${router} is not on the network of ${device}, where this host is ${own}: name one from ${usable}, or give ${device} an address on the router's network`;
  if (`${router}/` === own.slice(0, router.length + 1))
    return `${router} is this host's own address on ${device}: name the router's`;
  const pool = pools.find((text) => {
    const { first: from, last: to } = parseNetwork(text) ?? { first: 0, last: -1 };
    return number >= from && number <= to;
  });
  return pool === undefined
    ? null
    : `the upstream router ${router} is in the pool ${pool}, whose addresses VMs are given: take it out of the pool`;
}

/** `default`, `main` and `local`: by these the machine itself sends. */
const ownTables = [253, 254, 255];
const whyNoTable = (table: number): string | null => {
  const choose = "choose a number from 1 to 4294967295 that no other program writes to, such as 100";
  if (!Number.isInteger(table) || table < 1 || table > 0xffffffff)
    return `\`host.outside.table\` is ${table}, which is no number of a routing table: ${choose}`;
  return ownTables.includes(table)
    ? `\`host.outside.table\` is ${table}, by which this machine itself sends packets (253 to 255): ${choose}`
    : null;
};

type Pools = Readonly<Record<"underlay" | "internalPool" | "externalPool", string>>;
/** What of the network is the installation's own. */
export const installationNetworks = ({ underlay, internalPool, externalPool }: Pools) => ({
  external: [cidr(externalPool)],
  inside: [cidr(underlay), cidr(internalPool)],
});

/**
 * @param found the device that leads outside, or for the uplink of a bridge that bridge, which has the addresses; null: there
 * is none
 * @returns what the network driver is to do, or a sentence
 */
export function wayOutside(
  { device, routers, table }: Configured,
  uplink: string,
  found: FoundDevice | null,
  pools: Pools,
): Result<Outside, string> {
  const name = device ?? uplink;
  if (found === null)
    return fail(
      `\`host.outside.device\` is ${name}, and this machine has no such device: \`ip link\` lists those it has`,
    );
  if (routers.length === 0 || routers.length > mostRouters)
    return fail(
      `\`host.outside.routers\` has ${routers.length} addresses: name from 1 to ${mostRouters} upstream routers`,
    );
  const reserved = table === undefined ? null : whyNoTable(table);
  if (reserved !== null) return fail(reserved);
  const twice = routers.find((router, at) => routers.indexOf(router) !== at);
  if (twice !== undefined) return fail(`\`host.outside.routers\` names ${twice} twice`);
  const own = found.addresses.find((text) => whyNoRouter(routers[0]!, name, text, []) === null) ?? found.addresses[0];
  if (own === undefined)
    return fail(
      `${name} leads outside and has no IPv4 address: give this host one on the network of ${routers[0]}, in whose name it asks for the router`,
    );
  const { externalPool, internalPool } = pools;
  for (const router of routers) {
    const why = whyNoRouter(router, name, own, [externalPool, internalPool]);
    if (why !== null) return fail(why);
  }
  const [address = "", prefixLength] = own.split("/");
  return ok({
    device: name,
    address: ipv4(address),
    prefixLength: Number(prefixLength),
    mac: mac(found.mac),
    routers: routers.map((router) => ipv4(router)),
    ...(table === undefined ? {} : { table }),
    ...installationNetworks(pools),
  });
}
