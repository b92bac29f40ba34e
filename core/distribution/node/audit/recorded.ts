import { type AuditEntry, outcomes } from "../../../../model/contract/audit/audit.ts";
import { type Chain, emptyChain, linked } from "../../../../model/contract/audit/chain.ts";
import type { Json } from "../../../../model/json/json.ts";
import type { Effect, Instant, Service } from "../../../env.ts";
import { auditRecordKey, isObject, toJson } from "../../../outbox.ts";

/*
 * Records of what an operator asks of a service by a verb that is no document: what has forked counts, what is left over ends, the HA Manager does this.
 * Each is written with the writes of the step that does it, so that neither is ever without the other. Services that take changes of people
 * have a chain of their own (`Service.record`), and it goes there. Where this layer's goes to is no record of the service, which may take
 * each of its records for one of its own.
 */
export interface Recorder<State> {
  /** Effects of a record in this step. */
  record(state: State, entry: AuditEntry, now: Instant): readonly Effect[];
  /** How far this layer's own chain goes; null: the service has one. */
  readonly chain: () => Chain | null;
}

export function createRecorder<State>(
  { record }: Pick<Service<State>, "record">,
  kept: Json | undefined,
): Recorder<State> {
  if (record !== undefined) return { record, chain: () => null };
  let chain = (kept as unknown as Chain | undefined) ?? emptyChain;
  return {
    chain: () => chain,
    record: (_state, entry, now) => {
      const next = linked(chain, entry, now.wallMs);
      chain = next.chain;
      return [
        { kind: "write", key: auditRecordKey(next.record.n), value: toJson(next.record) },
        ...next.dropped.map((n): Effect => ({ kind: "write", key: auditRecordKey(n), value: null })),
      ];
    },
  };
}

/** By what the service has answered in this step: a sentence, or an object with a refusal, is a no. */
export function asAnswered(entry: AuditEntry, reply: Json | undefined): AuditEntry {
  const why = isObject(reply) && isObject(reply.refusal) ? reply.refusal.message : reply;
  const [done, refused] = outcomes;
  return typeof why === "string" ? { ...entry, outcome: refused, why } : { ...entry, outcome: done };
}
