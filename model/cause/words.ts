import type { PeerName } from "../cell/identifiers.ts";

/** Words that sentences about causes and what lifts them have in common. */
/** Names of some, and how many there are beside them. */
export const andMore = (names: readonly string[], more = 0): string =>
  more === 0 ? names.join(", ") : `${names.join(", ")} and ${more} more`;
/** The same of a number that is rounded down from ten on. */
export const andRoughly = (names: readonly string[], more = 0): string =>
  more < 10 ? andMore(names, more) : `${names.join(", ")} and ${more} or more others`;

/** What to do about an upgrade that went back. */
export const upgradeRemedy =
  "apply the root specification with the old image's name again, or with that of a better image; nothing is touched until then";

const services: Readonly<Record<string, string>> = {
  "storage-manager": "Storage Manager",
  "address-manager": "IP Address Manager",
  "dns-manager": "DNS Manager",
  "ha-manager": "HA Manager",
  "network-view-manager": "Network View Manager",
  placer: "Placer",
  "cell-manager": "Cell Manager",
  directory: "directory",
  authority: "authority",
};
/** `host h1`, `the Placer`, `Storage Manager 2`, and anything else by its name. */
export function serviceNamed(peer: PeerName): string {
  const [role = "", which] = peer.split(/\.(.*)/);
  if (role === "host") return `host ${which}`;
  const name = services[role];
  if (name === undefined) return peer;
  return which === undefined ? `the ${name}` : `${name} ${which}`;
}
