import { type HostName, hostName, type PeerName } from "../../model/cell/identifiers.ts";
import type { Json } from "../../model/json/json.ts";
import { isObject } from "../outbox.ts";
import { isGeneration } from "./life-numbers.ts";
import { presenceKey } from "./presence.ts";

/** A life of a host that is over. */
export interface Death {
  readonly host: HostName;
  readonly generation: number;
}
/** By host, the latest life that each member of the group has said is over. What was said once stays so. */
export type Declared = Map<HostName, Map<PeerName, number>>;

/** So many of the group's members declare a death, and are to be heard by one that shall count. */
export const majorityOf = (count: number): number => Math.floor(count / 2) + 1;

/**
 * A declaration is the word of a majority of the group, and one member that says otherwise, or makes one up, is one of
 * several. So whoever follows the group counts for itself.
 *
 * @returns the latest life of the host of which more than half of all members say that it is over, after what a peer says
 * under a key of its own; null: it is no declaration, the peer is no member that counts, or too few say anything
 */
export function takeDeclared(
  declared: Declared,
  members: ReadonlySet<PeerName>,
  from: PeerName,
  key: string,
  value: Json,
): Death | null {
  if (!members.has(from) || !isObject(value)) return null;
  const { host, generation } = value;
  if (typeof host !== "string" || !isGeneration(generation) || key !== presenceKey.death(host)) return null;
  const name = hostName(host);
  const said = declared.get(name) ?? new Map<PeerName, number>();
  declared.set(name, said);
  said.set(from, Math.max(said.get(from) ?? 0, generation));
  const agreed = agreedOn(members, said);
  return agreed === null ? null : { host: name, generation: agreed };
}

/** The greatest number that more than half of the members have reached; null: too few have said any. */
export function agreedOn(members: ReadonlySet<PeerName>, said: ReadonlyMap<PeerName, number>): number | null {
  const numbers = [...said].flatMap(([member, number]) => (members.has(member) ? [number] : []));
  return numbers.sort((one, other) => other - one)[majorityOf(members.size) - 1] ?? null;
}
