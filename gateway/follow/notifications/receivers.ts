import { isIP } from "node:net";
import { networkInterfaces } from "node:os";
import type { ProcessConfiguration } from "../../../runtime/installation.ts";
import { installationSupply } from "../../cells/supply.ts";
import { blockListOf, isOutside } from "../../ha/notices.ts";

/*
 * Where anybody who has an account may have something posted to, or fetched from: what everybody on the Internet reaches, and nothing else. Whatever
 * this machine reaches beyond that (the installation, networks of the house, what the cloud's own VMs have outside) it reaches for the operator,
 * and would for a stranger if it went wherever he says.
 */
const special = {
  /** Special-purpose addresses (RFC 6890 and its registries), beside those that `isOutside` knows. */
  ipv4: blockListOf(
    [
      "10.0.0.0/8",
      "100.64.0.0/10",
      "172.16.0.0/12",
      "192.0.0.0/24",
      "192.0.2.0/24",
      "192.88.99.0/24",
      "192.168.0.0/16",
      "198.18.0.0/15",
      "198.51.100.0/24",
      "203.0.113.0/24",
    ],
    "ipv4",
  ),
  ipv6: blockListOf(["2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20"], "ipv6"),
} as const;
const global6 = blockListOf(["2000::/3"], "ipv6");
/** Of IPv6 only what is given out for all of the Internet, so that nothing has to be known of what is not. */
const isGlobal6 = (address: string): boolean => global6.check(address, "ipv6") && !special.ipv6.check(address, "ipv6");

const machinesOwn = (): readonly string[] =>
  Object.values(networkInterfaces()).flatMap((all) => (all ?? []).map((each) => each.address));

/** @param networks what else is no receiver, as `a.b.c.d/n` @param machine addresses of the one that this runs on */
export function isReceiver(address: string, networks: readonly string[], machine = machinesOwn()): boolean {
  if (!isOutside(address) || machine.includes(address)) return false;
  if (isIP(address) === 6) return isGlobal6(address);
  const isOfFour = (network: string): boolean => isIP(network.split("/")[0] ?? "") === 4;
  const own = blockListOf(networks.filter(isOfFour), "ipv4");
  return !special.ipv4.check(address) && !own.check(address);
}

/**
 * The same for what a stranger is told of it: which address a name has that this machine's name servers know is the house's own affair. Throws
 * a sentence where it is no receiver.
 */
export const receiverAlone =
  (allows: (address: string) => boolean) =>
  (address: string): true => {
    if (allows(address)) return true;
    throw new Error(
      "it leads to an address that not everybody on the Internet reaches: nothing of the installation, and no private network, is told",
    );
  };

const knownForMs = 60_000;
/**
 * What looks whether an address is a receiver, as the installation's external pools are now. Rejects where nobody says which they are: an
 * address of somebody's VM is not taken for the Internet's then.
 */
export function createReceivers(configuration: ProcessConfiguration): () => Promise<(address: string) => boolean> {
  let known: { readonly pools: readonly string[]; readonly untilMs: number } | null = null;
  return async () => {
    if (known === null || known.untilMs <= performance.now()) {
      const { addresses } = await installationSupply(configuration);
      if (addresses === null) throw new Error("the IP Address Manager does not say which external pools there are");
      const { internal, external, reserved } = addresses;
      const pools = [internal.pool, external.pool, ...internal.fixed, ...external.fixed, ...reserved];
      known = { pools, untilMs: performance.now() + knownForMs };
    }
    const { pools } = known;
    return (address) => isReceiver(address, pools);
  };
}
