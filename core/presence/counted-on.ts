import type { PeerName } from "../../model/cell/identifiers.ts";

/**
 * Between whom silence says something, so that both speak every two seconds. A member of Presence votes for the death of hosts
 * that it does not hear, and counts the members that it hears; HA waits for what a host says of a machine, and whoever
 * speaks with a host is to find it soon after it was without power; no Presence says of a storage server that it is gone.
 *
 * All others conclude nothing from silence. They are told of dead hosts by Presence, and find out that a peer is gone when
 * it leaves something unanswered.
 */
export const countsOnSilence = (one: PeerName, other: PeerName): boolean => {
  const kinds = [kindOf(one), kindOf(other)];
  const [first, second] = kinds;
  if (kinds.includes("host") || (first === "presence" && second === "presence")) return true;
  return kinds.includes("agent") && kinds.some((kind) => kind === "storage-manager" || kind === "ha-manager");
};

const kindOf = (peer: PeerName): string => peer.split(".", 1)[0] ?? "";
