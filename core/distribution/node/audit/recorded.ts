import { type AuditEntry, outcomes, type Ring } from "../../../../model/contract/audit/audit.ts";
import type { Chain } from "../../../../model/contract/audit/chain.ts";
import { type Chains, chainsOf, takenInto } from "../../../../model/contract/audit/rings.ts";
import type { Json } from "../../../../model/json/json.ts";
import type { Effect, Instant, Service } from "../../../env.ts";
import { isObject, writesOfRecord } from "../../../outbox.ts";

/*
 * Records of what an operator asks of a service by a verb that is no document: what has forked counts, what is left over ends, the HA Manager does this.
 * Each is written with the writes of the step that does it, so that neither is ever without the other. Services that take changes of people
 * have chains of their own (`Service.record`), and it goes there. Where this layer's go to is no record of the service, which may take
 * each of its records for one of its own.
 */
export interface Recorder<State> {
  /** Effects of a record in this step. */
  record(state: State, entry: AuditEntry, now: Instant): readonly Effect[];
  /** How far this layer's own chains go; null: the service has its own. */
  readonly chains: () => Chains | null;
}

export function createRecorder<State>(
  { record }: Pick<Service<State>, "record">,
  kept: { readonly [R in Ring]: Json | undefined },
): Recorder<State> {
  if (record !== undefined) return { record, chains: () => null };
  let chains = chainsOf(kept as unknown as { readonly [R in Ring]: Chain | undefined });
  return {
    chains: () => chains,
    record: (_state, entry, now) => {
      const taken = takenInto(chains, entry, now.wallMs);
      chains = taken.chains;
      return writesOfRecord(taken);
    },
  };
}

/** By what the service has answered in this step: a sentence, or an object with a refusal, is a no. */
export function asAnswered(entry: AuditEntry, reply: Json | undefined): AuditEntry {
  const why = isObject(reply) && isObject(reply.refusal) ? reply.refusal.message : reply;
  const [done, refused] = outcomes;
  return typeof why === "string" ? { ...entry, outcome: refused, why } : { ...entry, outcome: done };
}
