import type { ServerResponse } from "node:http";
import { mayAsk } from "../../core/documents/permissions.ts";
import { type PeerName, peerName } from "../../model/cell/identifiers.ts";
import { keepNewest } from "../../model/limits.ts";
import { bearerOf, hashCredential, isAuthorized } from "../http/bearer.ts";
import { parseJson, readBody, sendJson, sendRefusal } from "../http/http.ts";
import { peerRequest } from "../http/https.ts";
import type { PeerHandler, PeerRequest } from "../http/peer-handler.ts";
import {
  cellOfController,
  type IssuedTickets,
  isTicket,
  rememberedMs,
  ticketAt,
  ticketPath,
} from "../identity/tickets.ts";
import type { ProcessConfiguration } from "../installation.ts";

/** What a ticket is worth here. `fault`: who issued it cannot be asked, a sentence. */
export type TicketWorth = { readonly known: boolean } | { readonly fault: string };
/** @param authorization header of a request by the gateway, who alone shows tickets */
export type TicketCheck = (authorization: string | undefined) => Promise<TicketWorth>;

const mostRemembered = 256;
const answerTimeoutMs = 10_000;

/**
 * A ticket is spent at its issuer once, however many requests come with it at the same time, and then remembered for
 * `rememberedMs`, so that an operator at work does not depend on the root controller's being there at every step.
 */
export const createTicketCheck = (
  configuration: ProcessConfiguration,
  issuer: PeerName,
  now: () => number = () => performance.now(),
): TicketCheck => {
  /** Hash → until when, oldest first. */
  const remembered = new Map<string, number>();
  const underWay = new Map<string, Promise<TicketWorth>>();

  const spend = async (hash: string): Promise<TicketWorth> => {
    try {
      const signal = AbortSignal.timeout(answerTimeoutMs);
      const answer = await peerRequest(configuration, issuer, { method: "DELETE", path: ticketPath(hash), signal });
      answer.body.resume();
      if (answer.status === 404) return { known: false };
      if (answer.status !== 200) return { fault: `it answered ${answer.status}` };
    } catch (error) {
      return { fault: (error as Error).message };
    }
    remembered.set(hash, now() + rememberedMs);
    keepNewest(remembered, mostRemembered);
    return { known: true };
  };
  return async (authorization) => {
    const ticket = bearerOf(authorization);
    if (ticket === null || !isTicket(ticket)) return { known: false };
    const hash = hashCredential(ticket);
    const until = remembered.get(hash);
    if (until !== undefined && until > now()) return { known: true };
    remembered.delete(hash);
    const asked = underWay.get(hash) ?? spend(hash).finally(() => underWay.delete(hash));
    underWay.set(hash, asked);
    return asked;
  };
};

/** `DELETE /tickets/<hash>` by a controller, which its certificate names. */
export const answerSpending = (
  issued: IssuedTickets,
  { peer, url }: Pick<PeerRequest, "peer" | "url">,
  response: ServerResponse,
): void => {
  const [hash, cell] = [ticketAt(url), cellOfController(peer)];
  if (hash !== null && cell !== null && issued.spend(hash, cell)) sendJson(response, 200, { cell });
  else sendRefusal(response, 404, "not-found", "no such ticket was issued for your cell, or it was spent before");
};

/** The gateway's own part, where there is no root controller: controllers spend their tickets here. */
export const spendingHandler =
  (issued: IssuedTickets): PeerHandler =>
  (incoming, response) => {
    if (mayAsk("gateway", incoming.peer, incoming.method, incoming.url)) answerSpending(issued, incoming, response);
    else sendRefusal(response, 403, "forbidden", `a controller spends its tickets here; this is "${incoming.peer}"`);
  };

const longestBody = 1024;
const cellPattern = /^[a-z](?:[a-z0-9.-]{0,51}[a-z0-9])?$/;

/** `PUT /tickets/<hash>` with `{"cell": "shop"}`, at the root controller, by the gateway with the operator's credential. */
export const answerIssue = async (
  issued: IssuedTickets,
  credentialHashes: readonly string[],
  { peer, url, method, headers, body }: PeerRequest,
  response: ServerResponse,
): Promise<void> => {
  const hash = ticketAt(url);
  if (peer !== peerName("gateway") || method !== "PUT" || hash === null) {
    sendRefusal(response, 404, "not-found", "the gateway issues tickets here: PUT /tickets/<SHA-256 of the ticket>");
    return;
  }
  if (!isAuthorized(headers.authorization, credentialHashes)) {
    sendRefusal(response, 401, "unauthorized", "tickets are issued with the operator's credential alone");
    return;
  }
  const text = await readBody(body, longestBody);
  const json = text.ok ? parseJson(text.value) : text;
  const { cell } = ((json.ok ? json.value : null) ?? {}) as { readonly cell?: unknown };
  if (typeof cell !== "string" || !cellPattern.test(cell))
    sendRefusal(response, 400, "bad-request", 'the body is {"cell": "<name>"}');
  else if (issued.issue(hash, cell)) sendJson(response, 200, { cell });
  else sendRefusal(response, 503, "busy", "too many tickets are issued and not spent yet; try again in a minute");
};
