import { agentSuccession } from "../../core/documents/readers/storage.ts";
import type { AgentLease, DesiredVm } from "../../core/documents/vocabulary.ts";
import type { Effect } from "../../core/env.ts";
import { toJson } from "../../core/outbox.ts";
import { type HostName, type PeerName, type Uid, uid } from "../../model/cell/identifiers.ts";
import type { Json } from "../../model/json/json.ts";
import type { Asked, SuccessionState } from "./succession-state.ts";

export const askPrefix = "succession/";

/** What this host asked of an agent before it started again. */
export const askedAt = (agent: PeerName, documents: ReadonlyMap<string, Json>): readonly (readonly [Uid, Asked])[] =>
  [...documents].flatMap(([key, value]) => {
    const lease = key.startsWith(askPrefix) ? agentSuccession.of(value) : null;
    return lease === null ? [] : [[uid(key.slice(askPrefix.length)), { agent, lease }] as const];
  });

/**
 * A storage agent takes the root controller's volumes from a living host for nobody's word alone (decision 49). So every
 * host that counts their holder as lost says so to the agent, whether or not it is its turn to succeed it: under the key of a
 * desire, and without a holder. The vote is for the end of one epoch, and is taken back when the holder is heard again.
 * A holder that was succeeded at one volume of the VM votes so itself about those that it has yet: without all of them its
 * successor starts nothing, and everybody hears that this host is there.
 */
export const votesOf = (
  state: SuccessionState,
  isLost: (host: HostName) => boolean,
): readonly (readonly [Uid, Asked])[] => {
  const { self, standby, leases, asked } = state;
  return (standby?.volumes ?? []).flatMap(({ volume, agent }) => {
    const lease = leases.get(volume);
    if (standby === null || lease === undefined || asked.has(volume)) return [];
    const { holder } = lease;
    const isGivenUp = holder?.host === self && isSucceeded(state, { uid: holder.vm, incarnation: holder.incarnation });
    if (!isGivenUp && !isLost(holder?.host ?? standby.host)) return [];
    return [[volume, { agent, lease: { volume, epoch: lease.epoch + 1, holder: null } satisfies AgentLease }] as const];
  });
};

/** From the votes that are out to those that hold now. Where the host asks itself by now, that has taken the vote's key. */
export const castVotes = (
  out: Map<Uid, Asked>,
  votes: readonly (readonly [Uid, Asked])[],
  asked: ReadonlyMap<Uid, Asked>,
): readonly Effect[] => {
  const effects: Effect[] = [];
  const now = new Map(votes);
  for (const [volume, { agent }] of [...out]) {
    if (now.has(volume)) continue;
    out.delete(volume);
    if (!asked.has(volume)) effects.push({ kind: "desire", to: agent, key: `${askPrefix}${volume}`, value: null });
  }
  for (const [volume, vote] of now) {
    if (out.get(volume)?.lease.epoch === vote.lease.epoch) continue;
    out.set(volume, vote);
    effects.push({ kind: "desire", to: vote.agent, key: `${askPrefix}${volume}`, value: toJson(vote.lease) });
  }
  return effects;
};

/** An agent has said that a later incarnation, or the same one elsewhere, has a volume of this VM. */
export const isSucceeded = (
  { standby, leases, self }: SuccessionState,
  { uid: vm, incarnation }: Pick<DesiredVm, "uid" | "incarnation">,
): boolean =>
  standby?.vm.uid === vm &&
  standby.volumes.some(({ volume }) => {
    const holder = leases.get(volume)?.holder;
    if (holder == null || holder.vm !== vm) return false;
    return holder.incarnation > incarnation || (holder.incarnation === incarnation && holder.host !== self);
  });
