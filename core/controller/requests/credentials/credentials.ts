import { fail, ok, type Result } from "../../../../model/result.ts";
import { log, write } from "../../../outbox.ts";
import type { CredentialRecord } from "../../records.ts";
import type { ControllerState } from "../../state.ts";

/**
 * Credentials that open one cell, beside the operator's. A controller knows their hashes only and keeps them itself, so
 * that what opens a cell is a matter of that cell alone: no other controller, and no gateway, could let somebody in. Which
 * requests a credential of a cell may make is said by each route in `model/contract/routes.ts`.
 */

const mostCredentials = 64;

type Unanswered = { readonly status: number; readonly message: string };

export function addCredential(
  state: ControllerState,
  { id, hash, note }: Omit<CredentialRecord, "since">,
): Result<object, Unanswered> {
  if (state.credentials.size >= mostCredentials) {
    const message = `a cell has at most ${mostCredentials} credentials; revoke one that nobody uses any more`;
    return fail({ status: 409, message });
  }
  const record: CredentialRecord = { id, hash, note, since: state.now.wallMs };
  state.credentials.set(id, record);
  write(state.outbox, `credential/${id}`, record);
  log(state.outbox, "credential/added", { id, note });
  return ok({ id });
}

export function revokeCredential(state: ControllerState, id: string): Result<object, Unanswered> {
  if (!state.credentials.delete(id)) {
    const known = [...state.credentials.keys()].join(", ") || "none";
    return fail({ status: 404, message: `the cell has no credential ${id}; it has: ${known}` });
  }
  write(state.outbox, `credential/${id}`, null);
  log(state.outbox, "credential/revoked", { id });
  return ok({ id });
}

/** The hash is of 256 random bits: nobody can search for it by how long the comparison takes. */
export const isCredential = (state: ControllerState, hash: string): boolean =>
  [...state.credentials.values()].some((known) => known.hash === hash);
