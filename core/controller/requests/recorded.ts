import { elementPath } from "../../../model/cell/identifiers.ts";
import { ok, type Result } from "../../../model/result.ts";
import { type Asked, type Asker, auditDone, auditRefused } from "../model/audited.ts";
import { type ControllerState, recordAt } from "../state.ts";

/**
 * What people do here that changes nothing of the model: they open a console, have a command carried out, or ask for what they may not do.
 * The edge asks for the record and waits until it is durable, before anything is opened.
 */
export interface RecordRequest {
  readonly method: "RECORD";
  /** As the table of routes names it. */
  readonly verb: string;
  /** Path as it was asked for. */
  readonly target: string;
  readonly what?: string;
  /** Why it was refused; absent: it is done. */
  readonly refused?: string;
  readonly by: Asker;
}
export function recorded(
  state: ControllerState,
  { verb, target, what, refused, by }: RecordRequest,
): Result<object, never> {
  const path = recordAt(state, elementPath(target))?.path ?? target;
  const asked: Asked = { by, verb, target: path, ...(what === undefined ? {} : { what }) };
  if (refused === undefined) auditDone(state, asked);
  else auditRefused(state, asked, refused);
  return ok({});
}
