import type { BundleBody } from "../../../model/api.ts";
import type { AuditActor, AuditEntry } from "../../../model/contract/audit/audit.ts";
import { audit, auditRefusal } from "../../outbox.ts";
import type { ControllerState } from "../state.ts";

/*
 * Records of who changed the cell: each is written in the step that makes the change. A model has one record for each of its versions.
 */

/** Who asks, as the edge knows it. `credential`: hash of one of the cell's own, whose id is known here alone. */
export type Asker = AuditActor & { readonly credential?: string };
/** What is asked, and by whom. */
export interface Asked {
  /** Absent: the controller itself, or whoever made the cell. */
  readonly by?: Asker;
  /** As the table of routes names it. */
  readonly verb: string;
  readonly target: string;
  readonly what?: string;
  /** Of a whole model: what it was sent as (versions/). Not part of the record. */
  readonly text?: BundleBody;
}

export function actorIn({ options, credentials }: ControllerState, by: Asker | undefined): AuditActor {
  if (by === undefined) return { who: options.self, door: options.self };
  const { credential, ...actor } = by;
  if (credential === undefined) return actor;
  const known = [...credentials.values()].find(({ hash }) => hash === credential);
  return { ...actor, who: `credential ${known?.id ?? "revoked"} of ${options.cell}` };
}
const entryOf = (state: ControllerState, { by, verb, target, what }: Asked): Omit<AuditEntry, "outcome"> => ({
  ...actorIn(state, by),
  verb,
  target: target === "" ? state.options.cell : target,
  ...(what === undefined ? {} : { what }),
});

/** It is done in this step. @param before version of the model before; absent: it has nothing to do with the model */
export function auditDone(state: ControllerState, asked: Asked, before?: number): void {
  const versions = before === undefined ? {} : { before, after: state.model.version };
  audit(state.outbox, state.now, { ...entryOf(state, asked), ...versions, outcome: "done" });
}
/** The copy of a store that was given back has nothing of that, so it is recorded with the first start over it. */
export function auditPutBack(state: ControllerState): void {
  const { putBackBy } = state;
  if (putBackBy !== undefined)
    auditDone(state, { by: putBackBy.actor, verb: "returnStore", target: "", what: `from ${putBackBy.from}` });
}
export function auditRefused(state: ControllerState, asked: Asked, why: string): void {
  const { version } = state.model;
  const entry = entryOf(state, asked);
  // Whom its edge does not know it does not ask for.
  const isKnown = true;
  auditRefusal(
    state.outbox,
    state.now,
    { ...entry, before: version, after: version, outcome: "refused", why },
    { isKnown },
  );
}
