import { type HostName, hostName, type PeerName, peerName } from "../../../model/cell/identifiers.ts";
import { isoTime } from "../../../model/cell/iso-time.ts";
import type { Json } from "../../../model/json/json.ts";
import { agreedOn, majorityOf } from "../../documents/declaration.ts";
import { isBoot } from "../../documents/life-numbers.ts";
import { type ActualPresenceDeath, presenceKey } from "../../documents/presence.ts";
import { presenceDeath } from "../../documents/readers/presence.ts";
import type { Effect } from "../../env.ts";
import { isObject } from "../../outbox.ts";

/**
 * What a service knows of declared deaths, for what it says to people: that what a dead host said is withdrawn is the work
 * of state distribution, and happens without this. A death is evidence of nothing but silence. The host may have been cut
 * off, and what ran there may run on: nobody may take it for stopped, unless the power of the host was known to be off.
 */
export interface Deaths {
  members: ReadonlySet<PeerName>;
  /** By host, what each member of the group says of it. */
  readonly said: Map<HostName, Map<PeerName, ActualPresenceDeath>>;
  /** Members that this service knows it does not hear. */
  readonly silent: Set<PeerName>;
}

export const createDeaths = (members: readonly PeerName[] = []): Deaths => ({
  members: new Set(members),
  said: new Map(),
  silent: new Set(),
});

/** At the start of the service. */
export const followDeaths = ({ members }: Deaths): readonly Effect[] =>
  [...members].map((to): Effect => ({ kind: "subscribe", to, prefix: presenceKey.death("") }));

/** The group has other members now. What those said who are none any more is forgotten. */
export function followOthers(deaths: Deaths, members: readonly PeerName[]): readonly Effect[] {
  const before = deaths.members;
  deaths.members = new Set(members);
  const prefix = presenceKey.death("");
  const gone = [...before].filter((member) => !deaths.members.has(member));
  for (const byMember of deaths.said.values()) for (const member of gone) byMember.delete(member);
  for (const member of gone) deaths.silent.delete(member);
  return [
    ...gone.map((to): Effect => ({ kind: "unsubscribe", to, prefix })),
    ...members.filter((member) => !before.has(member)).map((to): Effect => ({ kind: "subscribe", to, prefix })),
  ];
}

/** From the edge of a service that runs: the group has these members now, of whom none is gone. */
export interface MembersReport {
  readonly kind: "members";
  readonly members: readonly PeerName[];
}
/** Null: it is another request. */
export const membersIn = (request: Json): readonly PeerName[] | null =>
  isObject(request) && request.kind === "members" && Array.isArray(request.members)
    ? request.members.map((member) => peerName(String(member)))
    : null;

/** @returns the host that a member of the group said something new of; null: it was nothing of that kind */
export function takeDeath({ members, said }: Deaths, from: PeerName, key: string, value: Json): HostName | null {
  if (!members.has(from) || !key.startsWith(presenceKey.death(""))) return null;
  const host = hostName(key.slice(presenceKey.death("").length));
  const byMember = said.get(host) ?? new Map<PeerName, ActualPresenceDeath>();
  said.set(host, byMember);
  const death = presenceDeath.of(value, host);
  if (value === null) byMember.delete(from);
  else if (death !== null) byMember.set(from, death);
  return host;
}

export function hearMember({ members, silent }: Deaths, peer: PeerName, reachable: boolean): void {
  if (!reachable && members.has(peer)) silent.add(peer);
  else silent.delete(peer);
}

/**
 * Is it certain that this boot of a host is over, since its power was known to be off? More than half of the members have to
 * say so, of whom the operator tells every one; where most of them are known to be away, as they may have been on the hosts
 * that are lost, one of the rest is enough. It is durable there before it is said, and never taken back. That the host is
 * there again in another boot changes nothing.
 */
export const hasEnded = (deaths: Deaths, host: HostName, boot: number): boolean =>
  isSaid(deaths, host, ({ ended }) => isBoot(ended) && boot <= ended);

function isSaid(
  { members, said, silent }: Deaths,
  host: HostName,
  by: (death: ActualPresenceDeath) => boolean,
): boolean {
  const count = [...(said.get(host)?.values() ?? [])].filter(by).length;
  const majority = majorityOf(members.size);
  return count >= (members.size - silent.size < majority ? 1 : majority);
}

/** The latest death of a host that most members tell of, unless any knows that it has come back since; null: none. */
export function deathOf({ members, said }: Deaths, host: HostName): ActualPresenceDeath | null {
  const words = said.get(host);
  if (words === undefined) return null;
  const life = agreedOn(members, new Map([...words].map(([member, { generation }]) => [member, generation])));
  let returned = 0;
  for (const death of words.values()) returned = Math.max(returned, death.returned ?? 0);
  if (life === null || returned > life) return null;
  return [...words.values()].find(({ generation }) => generation === life) ?? null;
}

/** `2026-11-21T20:40:07Z`: the members' clocks are no better than whole seconds. */
export const diedAt = ({ declaredAt }: ActualPresenceDeath): string => `${isoTime(declaredAt).slice(0, 19)}Z`;

/**
 * Is it certain that nothing runs at a host now, of whose boots this service knows none? Its latest life is over, and in that
 * one its power was known to be off. Such a word about an earlier life says nothing of what began after it.
 */
export function isOff(deaths: Deaths, host: HostName): boolean {
  const death = deathOf(deaths, host);
  return death !== null && isSaid(deaths, host, ({ endedIn }) => endedIn !== undefined && endedIn >= death.generation);
}
