import { type HostName, hostName, type PeerName } from "../../model/identifiers.ts";
import type { Json } from "../../model/json.ts";
import { isObject } from "../outbox.ts";
import { presenceKey } from "./documents.ts";

/** A life of a host that is over. */
export interface Death {
  readonly host: HostName;
  readonly generation: number;
}

/** Which death a peer declares under a key of its own; null: it is no declaration, or the peer is no member that counts. */
export function declarationIn(members: ReadonlySet<PeerName>, from: PeerName, key: string, value: Json): Death | null {
  if (!members.has(from) || !isObject(value)) return null;
  const { host, generation } = value;
  if (typeof host !== "string" || !Number.isSafeInteger(generation) || key !== presenceKey.death(host)) return null;
  return { host: hostName(host), generation: Number(generation) };
}
