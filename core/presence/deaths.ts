import { type HostName, hostName, type PeerName } from "../../model/identifiers.ts";
import type { Json } from "../../model/json.ts";
import type { Effect } from "../env.ts";
import { isoTime } from "../iso-time.ts";
import { isObject } from "../outbox.ts";
import { type ActualPresenceDeath, presenceKey } from "./documents.ts";

/**
 * What a service knows of declared deaths, for what it says to people: that what a dead host said is withdrawn is the work
 * of state distribution, and happens without this. A death is evidence of nothing but silence. The host may have been cut
 * off, and what ran there may run on: nobody may take it for stopped, unless the power of the host was known to be off.
 */
export interface Deaths {
  members: ReadonlySet<PeerName>;
  /** By host, what each member of the group says of it. */
  readonly said: Map<HostName, Map<PeerName, ActualPresenceDeath>>;
}

export const createDeaths = (members: readonly PeerName[] = []): Deaths => ({
  members: new Set(members),
  said: new Map(),
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
  return [
    ...gone.map((to): Effect => ({ kind: "unsubscribe", to, prefix })),
    ...members.filter((member) => !before.has(member)).map((to): Effect => ({ kind: "subscribe", to, prefix })),
  ];
}

/** @returns the host that a member of the group said something new of; null: it was nothing of that kind */
export function takeDeath({ members, said }: Deaths, from: PeerName, key: string, value: Json): HostName | null {
  if (!members.has(from) || !key.startsWith(presenceKey.death(""))) return null;
  const host = hostName(key.slice(presenceKey.death("").length));
  const byMember = said.get(host) ?? new Map<PeerName, ActualPresenceDeath>();
  said.set(host, byMember);
  if (value === null) byMember.delete(from);
  else if (isObject(value) && Number.isSafeInteger(value.generation) && Number.isSafeInteger(value.declaredAt))
    byMember.set(from, value as unknown as ActualPresenceDeath);
  return host;
}

/**
 * Is it certain that this boot of a host is over, since its power was known to be off? One member's word is enough: it is
 * durable there before it is said, and never taken back. That the host is there again in another boot changes nothing.
 */
export function hasEnded({ said }: Deaths, host: HostName, boot: number): boolean {
  for (const { ended } of said.get(host)?.values() ?? [])
    if (ended !== undefined && Number.isSafeInteger(ended) && boot <= ended) return true;
  return false;
}

/** The latest death of a host, unless any member knows that it has come back since; null: none. */
export function deathOf({ said }: Deaths, host: HostName): ActualPresenceDeath | null {
  let last: ActualPresenceDeath | null = null;
  let returned = 0;
  for (const death of said.get(host)?.values() ?? []) {
    returned = Math.max(returned, death.returned ?? 0);
    if (last === null || death.generation > last.generation) last = death;
  }
  return last !== null && returned <= last.generation ? last : null;
}

/** `2026-11-21T20:40:07Z`: the members' clocks are no better than whole seconds. */
export const diedAt = ({ declaredAt }: ActualPresenceDeath): string => `${isoTime(declaredAt).slice(0, 19)}Z`;
