import type { OutgoingHttpHeaders, ServerResponse } from "node:http";
import { pipeline } from "node:stream/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { viaHeader } from "../../model/contract/audit/via.ts";
import { nextHeader } from "../../model/contract/tenancy/pages.ts";
import { retryAfterOf } from "../../runtime/http/http.ts";
import { type PeerResponse, peerRequest } from "../../runtime/http/https.ts";
import type { ProcessConfiguration } from "../../runtime/installation.ts";
import { sourceHeader } from "../../runtime/observation/asked-by.ts";
import { controllerOf } from "./cell-names.ts";
import { RefusedError } from "./refused.ts";

/** What a client's request is to its controller: nothing is added, and only these headers pass (see `Present` for the first). */
export interface Forwarded {
  readonly method: string;
  /** Path and query, as the client sent it. */
  readonly url: string;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: Buffer | null;
  readonly signal: AbortSignal;
  /** Address of the client. */
  readonly source: string;
  /** A stream of events may be silent for as long as nothing happens. */
  readonly follows: boolean;
}
const passedOn = ["content-type", "accept", "if-match", "if-none-match", "last-event-id", "idempotency-key", viaHeader];
const passedBack = ["content-type", "etag", "cache-control", "retry-after", "idempotency-replayed", nextHeader];
/** `exec` answers at its end, which its own limit bounds. */
const idleTimeoutMs = 11 * 60_000;

/**
 * What a cell's controller is shown of its client's credential. A cell's own passes as it is: it opens that cell and no
 * other. The operator's would open them all, so every controller but the root cell's gets a ticket for its cell instead,
 * which the root controller issues for that credential (`runtime/identity/tickets.ts`).
 */
export type Present = (
  cell: string,
  /** Header of the client's request. */
  authorization: string,
  /** Asks the cell's controller with the header that it gets. May be called twice: a controller that began anew knows no ticket. */
  send: (authorization: string) => Promise<PeerResponse>,
) => Promise<PeerResponse>;

/** How a controller is asked, and what it is shown. */
export interface Way {
  readonly configuration: ProcessConfiguration;
  readonly present: Present;
}

/** Sends a request on to a cell's controller. Rejects when it does not answer. */
export function forward({ configuration, present }: Way, cell: string, what: Forwarded): Promise<PeerResponse> {
  const headers: OutgoingHttpHeaders = { [sourceHeader]: what.source };
  for (const name of passedOn) if (what.headers[name] !== undefined) headers[name] = what.headers[name];
  if (what.body !== null) headers["content-length"] = what.body.length;
  return present(cell, String(what.headers.authorization), (authorization) =>
    peerRequest(configuration, controllerOf(cell), {
      method: what.method,
      path: what.url,
      headers: { ...headers, authorization },
      signal: what.signal,
      idleTimeoutMs: what.follows ? 0 : idleTimeoutMs,
      ...(what.body === null ? {} : { body: what.body }),
    }),
  );
}

/** The same for a controller that was only just made: its process may not listen yet. A whole model may be sent twice. */
export async function forwardToNew(way: Way, cell: string, what: Forwarded, timeoutMs: number): Promise<PeerResponse> {
  const until = performance.now() + timeoutMs;
  for (;;) {
    try {
      return await forward(way, cell, what);
    } catch (error) {
      if (what.signal.aborted || error instanceof RefusedError || performance.now() > until) throw error;
      await sleep(100);
    }
  }
}

/** Gives a controller's answer to the client as it comes; events pass one by one. */
export async function passBack(answer: PeerResponse, to: ServerResponse): Promise<void> {
  const headers: OutgoingHttpHeaders = {};
  for (const name of passedBack) if (answer.headers[name] !== undefined) headers[name] = answer.headers[name];
  if (answer.status === 503) headers["retry-after"] ??= retryAfterOf();
  to.writeHead(answer.status, headers);
  to.flushHeaders();
  try {
    await pipeline(answer.body, to);
  } catch {
    // One of the two went away; the pipeline has closed the other.
  }
}

/**
 * Asks with a ticket, and once more with another one where the first is not taken: it is too old, its controller began anew, or its user is out, for whom there
 * is no other. Null: none is taken.
 */
export async function withTicket<A extends { readonly status: number; readonly body: { destroy(): unknown } }>(
  ticket: { get(): Promise<string>; forget(): void },
  send: (authorization: string) => Promise<A>,
): Promise<A | null> {
  for (const _attempt of [1, 2]) {
    const answer = await send(await ticket.get());
    if (answer.status !== 401) return answer;
    answer.body.destroy();
    ticket.forget();
  }
  return null;
}
