import { readFileSync } from "node:fs";
import { endianness } from "node:os";
import type { Ipv4 } from "../../../../../model/cell/identifiers.ts";
import type { Announced } from "../../driver.ts";
import { inKernel } from "./host-routes.ts";

/**
 * Whether routers are told of the external addresses that are here, read when somebody asks. The daemon that tells them is the
 * operator's, and any one: what the kernel has of it are its connections at the port of BGP (RFC 4271, 3).
 */
const bgpPort = 179;
const established = "01";

const textOf = (hex: string): string => {
  const bytes = Buffer.from(hex, "hex");
  if (endianness() === "LE") bytes.swap32();
  const isMapped = bytes.length === 16 && bytes.subarray(0, 12).toString("hex") === `${"0".repeat(20)}ffff`;
  const own = isMapped ? bytes.subarray(12) : bytes;
  if (own.length === 4) return own.join(".");
  const groups = own.toString("hex").replace(/.{4}(?=.)/g, "$&:");
  return new URL(`http://[${groups}]`).hostname.slice(1, -1);
};
/** Other machines with which a BGP connection stands. @param tables what `/proc/net/tcp` and `tcp6` say */
export function bgpPeers(...tables: readonly string[]): readonly string[] {
  const peers = new Set<string>();
  for (const line of tables.flatMap((table) => table.split("\n"))) {
    const [, local = "", remote = "", state] = line.trim().split(/\s+/);
    const [address = "", port = ""] = remote.split(":");
    const ports = [local.split(":")[1] ?? "", port].map((each) => Number.parseInt(each, 16));
    if (state !== established || !ports.includes(bgpPort)) continue;
    const peer = textOf(address);
    if (!peer.startsWith("127.") && peer !== "::1") peers.add(peer);
  }
  return [...peers].sort();
}
const read = (name: string): string => {
  try {
    return readFileSync(`/proc/thread-self/net/${name}`, "utf8");
  } catch {
    // A kernel without IPv6 has no such table.
    return "";
  }
};

/** @param here since when each is in the table, as far as this process knows */
export function announcedNow(table: number, here: ReadonlyMap<Ipv4, number | null>): Announced {
  const found = inKernel(table);
  return {
    table,
    peers: bgpPeers(read("tcp"), read("tcp6")),
    addresses: [...here].sort().map(([address, sinceMs]) => ({ address, sinceMs, isRouted: found.has(address) })),
  };
}

/** Why nobody outside is told of an address that is here, and what to do; null: somebody is, as far as this machine can see. */
export function whyUnannounced({ table, peers, addresses }: Announced, address: Ipv4): string | null {
  if (addresses.find((each) => each.address === address)?.isRouted !== true)
    return `table ${table} has no route for ${address}, so no daemon announces it: somebody takes it out as often as this host puts it back. Look for what else writes to that table (\`ip monitor route\`; systemd-networkd: \`ManageForeignRoutes=no\`)`;
  return peers.length > 0
    ? null
    : `no router is told of ${address}: this machine has no BGP connection (TCP port ${bgpPort}) with any. Look at the daemon that announces table ${table} (\`birdc show protocols\`, \`vtysh -c "show bgp summary"\`)`;
}
