import type { CredentialSummary } from "../../../../model/api.ts";
import { isoTime } from "../../../../model/cell/iso-time.ts";
import { fail, ok, type Result } from "../../../../model/result.ts";
import { log, write } from "../../../outbox.ts";
import { volumesOf } from "../../model/root-model.ts";
import type { CredentialRecord } from "../../records.ts";
import { isOfPersonality } from "../../services/service-data.ts";
import type { ControllerState } from "../../state.ts";
import type { Within } from "./within.ts";

/**
 * Credentials that open one cell, beside the operator's. A controller knows their hashes only and keeps them itself, so
 * that what opens a cell is a matter of that cell alone: no other controller, and no gateway, could let somebody in. Which
 * requests a credential of a cell may make is said by each route in `model/contract/routes.ts`.
 */

const mostCredentials = 64;

type Unanswered = { readonly status: number; readonly message: string };

export function addCredential(
  state: ControllerState,
  { id, hash, note, within }: Omit<CredentialRecord, "since">,
): Result<object, Unanswered> {
  if (state.credentials.size >= mostCredentials) {
    const message = `a cell has at most ${mostCredentials} credentials; revoke one that nobody uses any more`;
    return fail({ status: 409, message });
  }
  if (within !== undefined && !isPath(state, within.path)) {
    const message = `${within.path} is no path of a part of the cell, as ${state.cell?.path ?? state.options.cell}/volumes is`;
    return fail({ status: 400, message });
  }
  const limit = within === undefined ? {} : { within };
  const record: CredentialRecord = { id, hash, note, since: state.now.wallMs, ...limit };
  state.credentials.set(id, record);
  write(state.outbox, keyOf(record), record);
  log(state.outbox, "credential/added", { id, note });
  return ok({ id });
}

export function revokeCredential(state: ControllerState, id: string): Result<object, Unanswered> {
  const record = state.credentials.get(id);
  if (record === undefined) {
    const known = [...state.credentials.keys()].join(", ") || "none";
    return fail({ status: 404, message: `the cell has no credential ${id}; it has: ${known}` });
  }
  state.credentials.delete(id);
  write(state.outbox, keyOf(record), null);
  log(state.outbox, "credential/revoked", { id });
  return ok({ id });
}

/** One that is limited is under a name of its own: a controller of the version before, which knows no limit, finds none there. */
const keyOf = ({ id, within }: CredentialRecord): string =>
  within === undefined ? `credential/${id}` : `limited-credential/${id}`;
export const isCredentialRecord = (key: string): boolean => /^(?:limited-)?credential\//.test(key);

/** The cell as a whole is no part of it. */
function isPath({ cell, options }: ControllerState, path: string): boolean {
  const [component, ...rest] = path.split("/");
  return (
    component === (cell?.path ?? options.cell) &&
    rest.length > 0 &&
    rest.every((part) => /^[A-Za-z0-9_][A-Za-z0-9_.-]*$/.test(part))
  );
}

/**
 * What a credential with this hash opens; null: it is none of this cell. The hash is of 256 random bits: nobody can search for
 * it by how long the comparison takes.
 */
export function openedBy(state: ControllerState, hash: string): { readonly within?: Within } | null {
  const found = [...state.credentials.values()].find((known) => known.hash === hash);
  if (found === undefined)
    return isOfPersonality(state, hash) ? { within: { path: volumesOf(state), access: "write" } } : null;
  return found.within === undefined ? {} : { within: found.within };
}

/** As they are shown: without what would prove them. */
export const credentialsOf = (state: ControllerState): readonly CredentialSummary[] =>
  [...state.credentials.values()].map(({ id, note, since, within }) => ({
    id,
    note,
    created: isoTime(since),
    ...within,
  }));
