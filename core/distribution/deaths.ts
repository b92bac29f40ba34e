import { type HostName, hostName, hostPeer, type PeerName } from "../../model/cell/identifiers.ts";
import type { Json } from "../../model/json/json.ts";
import { agreedOn, takeDeclared } from "../documents/declaration.ts";
import { presenceKey } from "../documents/presence.ts";
import type { Distribution, Target } from "./node/types.ts";

/**
 * From a declared death to what is withdrawn. Whoever follows a host registers an interest in that host's death at every
 * member of the Presence group, beside whatever the service itself may follow there; a life is over when more than half of
 * the members say so. This is the only thing that state distribution reads of what goes through it.
 */
const hostOf = (peer: PeerName): HostName | null =>
  peer.startsWith("host.") ? hostName(peer.slice("host.".length)) : null;

/** Prefixes to follow at each Presence member because of a peer; none for what is not on a host of its own. */
export const interestIn = (peer: PeerName): string | null => {
  const host = hostOf(peer);
  return host === null ? null : presenceKey.death(host);
};

/** Which peer's life is over, by something that a peer says; null: it is no declaration, or the peer is no Presence member. */
export function deathIn(
  node: Distribution,
  from: PeerName,
  key: string,
  value: Json,
): { readonly peer: PeerName; readonly life: number } | null {
  const death = takeDeclared(node.declared, node.presence, from, key, value);
  return death && { peer: hostPeer(death.host), life: death.generation };
}

/** The latest life of a peer that is known to be over, 0: none. Whoever begins to follow it later is not told again. */
export function lastDeath(node: Distribution, peer: PeerName): number {
  const host = hostOf(peer);
  const said = host === null ? undefined : node.declared.get(host);
  return said === undefined ? 0 : (agreedOn(node.presence, said) ?? 0);
}

/** Whether the service asked for it itself, and so hears of it. */
export function isForService(target: Target, key: string): boolean {
  for (const prefix of target.subscriptions.keys())
    if (key.startsWith(prefix) && !target.interests.has(prefix)) return true;
  return false;
}
/** Whether the service has anything to do with the peer, or had: not so for one that only this layer follows. */
export const isOfService = ({ documents, subscriptions, interests }: Target): boolean =>
  interests.size === 0 || documents.size > 0 || interests.size < subscriptions.size;
