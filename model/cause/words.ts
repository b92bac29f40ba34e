import type { PeerName } from "../cell/identifiers.ts";
import type { Refusing } from "./cause.ts";

/** Words that sentences about causes and what lifts them have in common. */
/** Names of some, and how many there are beside them. */
export const andMore = (names: readonly string[], more = 0): string =>
  more === 0 ? names.join(", ") : `${names.join(", ")} and ${more} more`;
/** The same of a number that is rounded down from ten on. */
export const andRoughly = (names: readonly string[], more = 0): string =>
  more < 10 ? andMore(names, more) : `${names.join(", ")} and ${more} or more others`;

const byRule: Readonly<Record<string, string>> = {
  unreachable: "not heard",
  closed: "taking none now",
  pinned: "not where it asks to be",
  apart: "kept apart from by it or by others",
  dedicated: "another's, or not what it asks for",
  speed: "too slow",
  memory: "without the memory",
  cpus: "without the processors",
};
/** `of 5 hosts 3 are without the memory, 2 too slow`. */
export function rulesText(rules: readonly { readonly kind: string; readonly hosts: number }[]): string {
  const all = rules.reduce((sum, { hosts }) => sum + hosts, 0);
  return `of ${all} hosts that it may know of ${rules.map(({ kind, hosts }) => `${hosts} ${hosts === 1 ? "is" : "are"} ${byRule[kind] ?? kind}`).join(", ")}`;
}
/** Each host that is named, and of the rest how many each rule keeps away. */
export function refusedText({ refusals, counts }: Refusing): string {
  const named = refusals.map(({ host, why }) => `${host}: ${why}`);
  return [...named, ...(counts === undefined ? [] : [rulesText(counts)])].join("; ");
}
/** What to do where nothing that a VM asks for is the reason that it has no host. */
export const noChange = "nothing that it asks for is the reason: let one more host join, or make room";
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
