import { type HostName, hostName, hostPeer, type PeerName, type Uid } from "../../model/cell/identifiers.ts";
import type { Json } from "../../model/json/json.ts";
import { agreedOn } from "../documents/declaration.ts";
import { presenceKey } from "../documents/presence.ts";
import { presence } from "../documents/readers/presence.ts";
import { log } from "../outbox.ts";
import { deathOf } from "../presence/group/deaths.ts";
import type { HaState } from "./state.ts";

/*
 * Hosts that most members of the Presence group suspect, or this manager does not hear any more, some seconds before they are declared. That may be refuted, so nothing
 * is done about any VM: its neighbours are asked (`probes.ts`), and whether it has power (`power/orders.ts`), so that the answers are there
 * when it is declared. A power that is off needs no declaration.
 */

/** @returns whether it was a word of that kind */
export function takeSuspicion(state: HaState, from: PeerName, key: string, value: Json): boolean {
  const { suspicions, deaths } = state;
  const prefix = presenceKey.suspected("");
  if (!deaths.members.has(from) || !key.startsWith(prefix)) return false;
  const host = hostName(key.slice(prefix.length));
  const before = isSuspected(state, host);
  const said = value === null ? null : presence.of(value, host);
  const byMember = suspicions.get(host) ?? new Map<PeerName, number>();
  if (said === null) byMember.delete(from);
  else byMember.set(from, said.generation);
  if (byMember.size === 0) suspicions.delete(host);
  else suspicions.set(host, byMember);
  const now = isSuspected(state, host);
  state.looksDue.add(host);
  if (now !== before && state.at.has(host)) log(state.outbox, now ? "ha/suspected" : "ha/not-suspected", { host });
  return true;
}

/** One member alone may make up anything. */
export function isSuspected({ suspicions, deaths }: HaState, host: HostName): boolean {
  const said = suspicions.get(host);
  return said !== undefined && agreedOn(deaths.members, said) !== null;
}

/** Of these there is something to ask about. */
export const suspectedHosts = (state: HaState): readonly HostName[] =>
  [...state.suspicions.keys()].filter((host) => state.at.has(host) && isSuspected(state, host));

/** VMs of that host of which nobody has found out yet whether they run. */
export const lookedIntoAt = ({ active, activeAt }: HaState, host: HostName): readonly Uid[] =>
  [...(activeAt.get(host) ?? [])].filter((vm) => {
    const step = active.get(vm)?.step;
    return step === "Scheduled" || step === "Investigating";
  });
/** Who is heard, who can be asked or whom the group has lost is another than before: all that is looked into is gone through. */
export function lookAnew(state: HaState): void {
  const { asking, looking, activeAt, suspicions, unheard, looksDue } = state;
  forgetUnheard(state);
  for (const hosts of [asking, looking, activeAt, suspicions, ...(areMany(state) ? [] : [unheard])])
    for (const host of hosts.keys()) looksDue.add(host);
}
/** Others are asked about that host. */
export const isLookedInto = (state: HaState, host: HostName): boolean =>
  (state.at.has(host) && (isSuspected(state, host) || isUnheard(state, host))) || lookedIntoAt(state, host).length > 0;

/**
 * This manager itself has lost a host a moment ago. Its connection is silent for 8 to 10 s by then, and a large group takes longer until it
 * suspects anybody, so what others can say is known when it declares. One that has lost many of them has lost its own network.
 */
const isUnheard = (state: HaState, host: HostName): boolean =>
  state.unheard.has(host) && deathOf(state.deaths, host) === null && !areMany(state);
const areMany = ({ unheard, options }: HaState): boolean =>
  unheard.size >= many.hosts && unheard.size > many.share * options.hosts.length;
const many = { hosts: 3, share: 0.1 } as const;
/** By then it is declared, or it is this manager alone that does not hear it. */
export const unheardMs = 30_000;
/** Those that are off for days say nothing of this manager's network. The first one was lost first. */
function forgetUnheard({ unheard, nowMs }: HaState): void {
  for (const [host, sinceMs] of unheard) {
    if (nowMs - sinceMs < unheardMs) break;
    unheard.delete(host);
  }
}

/** A host is heard or not any more, by this manager. */
export function noteHeard({ unheard, reachable, nowMs }: HaState, host: HostName, isHeard: boolean): void {
  if (isHeard) unheard.delete(host);
  else if (reachable.get(hostPeer(host)) !== false) unheard.set(host, nowMs);
}
