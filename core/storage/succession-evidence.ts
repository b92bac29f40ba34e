import { type HostName, hostName, hostPeer, type PeerName, type Uid } from "../../model/cell/identifiers.ts";
import type { Json } from "../../model/json/json.ts";
import { presenceKey } from "../documents/presence.ts";
import type { AgentLease } from "../documents/vocabulary.ts";
import type { Effect } from "../env.ts";
import { isObject } from "../outbox.ts";
import { sameHolder } from "./agent/lease.ts";
import type { LeaseRecord } from "./agent/work.ts";

/**
 * What an agent knows of a host that holds a lease and is said to be lost (decision 49). A host that asks for the lease of a
 * volume in its own name fences whoever has it; so its own word that the holder is gone is worth nothing. The agent goes by
 * one of two things that no single host can make:
 *
 *  - the declaration of the holder's host by a majority of the Presence group, each heard by the agent itself at this
 *    moment; or
 *  - votes of more than half of all hosts, each a document of that host: where everything lost its power there is no group,
 *    whose members are VMs. A vote is about one epoch, so that it says nothing about whoever comes next.
 *
 * The holder's own host may also give its lease up, by a vote: it has heard that its VM runs elsewhere. What began upon
 * evidence is carried through when the lost host is heard again before it is done, or else neither of the two would have
 * all of the VM's volumes: the fence is followed by the grant, and whoever got one volume gets the VM's others here.
 */
export interface Evidence {
  /** All of the installation; empty: not told yet. */
  hosts: ReadonlySet<PeerName>;
  members: ReadonlySet<PeerName>;
  /** By member: hosts that it says are dead, and have not come back. */
  readonly dead: Map<PeerName, Set<HostName>>;
  /** Members that are known not to be heard: what they said may have changed. */
  readonly silent: Set<PeerName>;
  /** Of all volumes here: what was found before. */
  readonly leases: ReadonlyMap<Uid, LeaseRecord>;
}
export const createEvidence = (leases: ReadonlyMap<Uid, LeaseRecord>): Evidence => ({
  hosts: new Set(),
  members: new Set(),
  dead: new Map(),
  silent: new Set(),
  leases,
});

/** The installation has these hosts and members now. @returns subscriptions that begin and end with it */
export function takeInstallation(
  evidence: Evidence,
  hosts: readonly PeerName[],
  members: readonly PeerName[],
): readonly Effect[] {
  const prefix = presenceKey.death("");
  const come = members.filter((member) => !evidence.members.has(member));
  const gone = [...evidence.members].filter((member) => !members.includes(member));
  evidence.hosts = new Set(hosts);
  evidence.members = new Set(members);
  for (const member of gone) {
    evidence.dead.delete(member);
    evidence.silent.delete(member);
  }
  return [
    ...come.map((to): Effect => ({ kind: "subscribe", to, prefix })),
    ...gone.map((to): Effect => ({ kind: "unsubscribe", to, prefix })),
  ];
}

/** @returns whether a member of the group said something new of a host */
export function takeDeclaration({ members, dead }: Evidence, from: PeerName, key: string, value: Json): boolean {
  const prefix = presenceKey.death("");
  if (!members.has(from) || !key.startsWith(prefix)) return false;
  const host = hostName(key.slice(prefix.length));
  const said = dead.get(from) ?? new Set<HostName>();
  dead.set(from, said);
  const isDead = isObject(value) && value.host === host && value.returned === undefined;
  if (said.has(host) === isDead) return false;
  if (isDead) said.add(host);
  else said.delete(host);
  return true;
}

/** @returns whether what a member says counts now, and did not, or the other way round */
export function hearMember({ members, silent }: Evidence, peer: PeerName, reachable: boolean): boolean {
  if (!members.has(peer)) return false;
  if (reachable) return silent.delete(peer);
  const isNew = !silent.has(peer);
  silent.add(peer);
  return isNew;
}

const majority = (of: number): number => Math.floor(of / 2) + 1;

/** This very holder was fenced upon evidence, here or at another volume, which `from` got in its place. */
function wasFound({ leases }: Evidence, from: PeerName, lease: LeaseRecord): boolean {
  const holder = lease.holder ?? lease.last;
  if (sameHolder(holder, lease.lost)) return true;
  for (const { holder: successor, lost } of leases.values())
    if (successor !== null && successor.vm === holder?.vm && sameHolder(holder, lost))
      if (hostPeer(successor.host) === from) return true;
  return false;
}

/** Why the present lease is not taken from its holder for the host `from`, as a sentence; null: it may be. */
export function evidenceLacks(
  evidence: Evidence,
  from: PeerName,
  lease: LeaseRecord,
  asked: ReadonlyMap<PeerName, AgentLease>,
): string | null {
  const { hosts, members, dead, silent } = evidence;
  const host = (lease.holder ?? lease.last)?.host;
  const own = host === undefined ? undefined : asked.get(hostPeer(host));
  if (wasFound(evidence, from, lease) || (own?.holder === null && own.epoch === lease.epoch + 1)) return null;
  let declared = 0;
  for (const member of members)
    if (host !== undefined && !silent.has(member) && dead.get(member)?.has(host) === true) declared += 1;
  if (members.size > 0 && declared >= majority(members.size)) return null;
  let votes = 0;
  for (const [from, { epoch }] of asked) if (hosts.has(from) && epoch === lease.epoch + 1) votes += 1;
  if (hosts.size > 0 && votes >= majority(hosts.size)) return null;
  return (
    `${host ?? "whoever held it last"} counts as lost only when ${majority(members.size)} of the ${members.size} members of the ` +
    `Presence group declare it dead, or ${majority(hosts.size)} of the ${hosts.size} hosts miss it: ${declared} and ${votes} do`
  );
}
