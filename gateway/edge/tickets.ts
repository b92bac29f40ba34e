import { rootCell } from "../../core/documents/cells.ts";
import { keepNewest } from "../../model/limits.ts";
import { hashCredential, isAuthorized } from "../../runtime/http/bearer.ts";
import { type PeerResponse, peerRequest } from "../../runtime/http/https.ts";
import { type IssuedTickets, newTicket, shownAgainMs, ticketPath } from "../../runtime/identity/tickets.ts";
import type { ProcessConfiguration } from "../../runtime/installation.ts";
import { controllerOf } from "../requests/cell-names.ts";
import { type Present, withTicket } from "../requests/forward.ts";
import { refused } from "../requests/refused.ts";
import { isOfSession, type Tenants } from "../tenancy/tenants.ts";

const answerTimeoutMs = 10_000;
const mostKept = 1024;

interface Kept {
  readonly authorization: Promise<string>;
  /** Milliseconds, monotonic. */
  readonly until: number;
}

/** @param own tickets are issued in this process, since there is no root cell; null: by the root controller */
export const createPresent = (
  configuration: ProcessConfiguration,
  operatorHashes: readonly string[],
  own: IssuedTickets | null,
  tenants: Tenants,
): Present => {
  /** By cell and credential, oldest first. */
  const kept = new Map<string, Kept>();

  const issue = async (cell: string, authorization: string): Promise<string> => {
    const ticket = newTicket();
    const hash = hashCredential(ticket);
    if (own === null) await issueAtRoot(configuration, { cell, authorization, hash });
    else if (!own.issue(hash, cell)) throw refused(503, "busy", "too many tickets are issued; try again in a minute");
    return `Bearer ${ticket}`;
  };
  const ticketFor = (cell: string, authorization: string): Kept => {
    const key = `${cell} ${hashCredential(authorization)}`;
    const known = kept.get(key);
    if (known !== undefined && known.until > performance.now()) return known;
    const made: Kept = { authorization: issue(cell, authorization), until: performance.now() + shownAgainMs };
    kept.delete(key);
    kept.set(key, made);
    made.authorization.catch(() => {
      if (kept.get(key) === made) kept.delete(key);
    });
    keepNewest(kept, mostKept);
    return made;
  };
  const forget = (ticket: Kept | null): void => {
    for (const [key, each] of kept) if (each === ticket) kept.delete(key);
  };

  return async (cell, authorization, send) => {
    if (isOfSession(authorization)) return presentSession(tenants, cell, authorization, send);
    if (!isAuthorized(authorization, operatorHashes) || (own === null && cell === rootCell)) return send(authorization);
    let shown: Kept | null = null;
    const ticket = {
      get: () => {
        shown = ticketFor(cell, authorization);
        return shown.authorization;
      },
      forget: () => forget(shown),
    };
    const answer = await withTicket(ticket, send);
    if (answer !== null) return answer;
    const message = `the controller of the cell "${cell}" takes no ticket in place of the operator's credential, which is shown to the root cell's alone: it is of the previous version, and is open to the operator again when it is upgraded. A credential of the cell opens it meanwhile`;
    throw refused(502, "controller-unreachable", message);
  };
};

/** In place of a user's session: a ticket of the service `tenancy`. */
const presentSession = async (
  tenants: Tenants,
  cell: string,
  authorization: string,
  send: (authorization: string) => Promise<PeerResponse>,
): Promise<PeerResponse> => {
  const ticket = {
    get: () => tenants.ticketFor(cell, authorization),
    forget: () => tenants.forget(cell, authorization),
  };
  const answer = await withTicket(ticket, send);
  if (answer !== null) return answer;
  throw refused(
    502,
    "controller-unreachable",
    `the controller of the cell "${cell}" takes no ticket of a user: it is of the previous version, and is open to users when it is upgraded`,
  );
};

const issueAtRoot = async (
  configuration: ProcessConfiguration,
  { cell, authorization, hash }: { readonly cell: string; readonly authorization: string; readonly hash: string },
): Promise<void> => {
  let status = 0;
  try {
    const answer = await peerRequest(configuration, controllerOf(rootCell), {
      method: "PUT",
      path: ticketPath(hash),
      headers: { authorization, "content-type": "application/json" },
      body: JSON.stringify({ cell }),
      signal: AbortSignal.timeout(answerTimeoutMs),
    });
    answer.body.resume();
    status = answer.status;
  } catch (error) {
    const message = `the controller of the root cell, which says who the operator is, does not answer: ${(error as Error).message}. A credential of the cell opens it meanwhile`;
    throw refused(502, "controller-unreachable", message);
  }
  if (status === 200) return;
  const message =
    status === 404
      ? "the controller of the root cell is of the previous version, which issues no tickets: until it is upgraded the operator's credential opens the root cell alone, and each cell's own credentials that cell"
      : `the controller of the root cell issued no ticket for the cell "${cell}": it answered ${status}`;
  throw refused(status === 503 ? 503 : 502, "controller-unreachable", message);
};
