import { hostPeer, type PeerName, peerName, type Uid } from "../../../model/cell/identifiers.ts";
import type { ActualSuccessor, AgentLease, AgentLeaseActual, LeaseHolder } from "../../documents/vocabulary.ts";
import { type Evidence, evidenceLacks } from "../succession-evidence.ts";
import type { NextLease } from "./lease.ts";
import type { LeaseRecord } from "./work.ts";

/**
 * Hosts that take a lease themselves (decision 35). The Storage Manager runs in the very VM whose loss is to be made up for,
 * so for that VM's volumes, which it marked, the next epoch may also be asked for by a host, in its own name, once there is
 * evidence that the holder's host is lost. Nothing else is different: the present epoch is fenced first, and of several that
 * ask for the same epoch one gets it. A document without a holder asks for nothing: it is that host's vote that whoever holds
 * the epoch before is lost, as a desire is too.
 */
export type Successions = ReadonlyMap<PeerName, AgentLease>;

/** Incarnations that one takeover may pass over: those of another volume of the same VM, which went further. */
const mostAhead = 1000;

/** Why a host does not get what it asks for, whatever the epoch; null: it may. `marked`: what the Storage Manager wants. */
export function successionRefusal(
  from: PeerName,
  asked: AgentLease,
  marked: AgentLease | undefined,
  lease: LeaseRecord,
): string | null {
  if (marked?.succession !== true) return "the Storage Manager has not opened this volume to hosts";
  if (asked.holder === null || hostPeer(asked.holder.host) !== from) return "a host asks for itself, and for no other";
  const holder = holderOf(lease);
  if (holder === null) return null;
  if (asked.holder.vm !== holder.vm) return `it is a volume of ${holder.vm}, not of ${asked.holder.vm}`;
  if (asked.epoch > lease.epoch && asked.holder.incarnation <= holder.incarnation)
    return `incarnation ${holder.incarnation} holds it, and only a later one can succeed it`;
  if (asked.holder.incarnation > holder.incarnation + mostAhead)
    return `incarnation ${holder.incarnation} holds it, and ${asked.holder.incarnation} is no next one`;
  return null;
}

const holderOf = ({ holder, last }: LeaseRecord): LeaseHolder | null => holder ?? last ?? null;

/** It had the epoch, or had it last and nobody else did since: it takes nothing from anybody. */
const isItsOwn = (from: PeerName, lease: LeaseRecord): boolean => {
  const holder = holderOf(lease);
  return holder !== null && hostPeer(holder.host) === from;
};

/** Why the holder is not fenced for a host that may ask, as a sentence; null: there is evidence, or it is that host. */
const stillHeld = (from: PeerName, lease: LeaseRecord, asked: Successions, evidence: Evidence): string | null =>
  isItsOwn(from, lease) ? null : evidenceLacks(evidence, from, lease, asked);

/**
 * The lease that is to come: what the Storage Manager wants, or, where that changes nothing, what a host asks for that may.
 * Of several hosts the first by name; once one of them has the epoch, the others' desires are for one that is past.
 */
export function nextLease(
  marked: AgentLease | undefined,
  asked: Successions | undefined,
  lease: LeaseRecord,
  evidence: Evidence,
): NextLease | null {
  if (marked === undefined) return null;
  if (asked === undefined || marked.epoch === lease.epoch + 1) return marked;
  for (const [from, desire] of [...asked].sort(([one], [other]) => (one < other ? -1 : 1))) {
    if (desire.epoch !== lease.epoch + 1 || successionRefusal(from, desire, marked, lease) !== null) continue;
    if (stillHeld(from, lease, asked, evidence) !== null) continue;
    const upon = holderOf(lease);
    return upon === null || isItsOwn(from, lease) ? desire : { ...desire, upon };
  }
  return marked;
}

/**
 * What a host is told of its own desire: the layer only if the lease is its own; null: it only votes. `told`: what holds, as the
 * Storage Manager hears it.
 */
export function successionActual(
  from: PeerName,
  all: Successions,
  marked: AgentLease | undefined,
  lease: LeaseRecord,
  told: AgentLeaseActual,
  evidence: Evidence,
): AgentLeaseActual | null {
  const { epoch, holder } = told;
  const asked = all.get(from);
  if (asked === undefined || asked.holder === null) return null;
  const refused = successionRefusal(from, asked, marked, lease);
  if (refused !== null) return { phase: "failed", reason: refused, epoch, holder: null, layer: null };
  if (asked.epoch === epoch && peerName(`host.${holder?.host}`) === from) return told;
  if (asked.epoch > epoch) {
    const ahead = asked.epoch > epoch + 1 ? `only epoch ${epoch + 1} can follow the current one` : null;
    const lacks = ahead === null && !lease.fencing ? stillHeld(from, lease, all, evidence) : null;
    const waits = lacks ?? told.reason ?? ahead ?? `epoch ${epoch} has to end first`;
    return { phase: "waiting", reason: waits, epoch, holder, layer: null };
  }
  return { phase: "failed", reason: `epoch ${epoch} is another's`, epoch, holder, layer: null };
}

/** Null: the volume is not open to hosts. */
export const successorOf = (marked: AgentLease | undefined, lease: LeaseRecord): ActualSuccessor | null =>
  marked?.succession === true ? { epoch: lease.epoch, holder: lease.holder } : null;

/** Key under which a host hears of its own desire. */
export const successionKey = (from: PeerName, volume: Uid): string => `${from}/succession/${volume}`;

/** Keeps what a host asks for of one volume, or takes it back. @returns whether something was taken back */
export function keepAsked(
  all: Map<Uid, Map<PeerName, AgentLease>>,
  from: PeerName,
  uid: Uid,
  value: AgentLease | null,
): boolean {
  const asked = all.get(uid) ?? new Map<PeerName, AgentLease>();
  all.set(uid, asked);
  if (value !== null) asked.set(from, value);
  const withdrawn = value === null && asked.delete(from);
  if (asked.size === 0) all.delete(uid);
  return withdrawn;
}
