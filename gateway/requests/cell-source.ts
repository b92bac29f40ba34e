import { setTimeout as sleep } from "node:timers/promises";
import type { FastifyRequest } from "fastify";
import { rootCell } from "../../core/documents/cells.ts";
import { viaHeader } from "../../model/contract/audit/via.ts";
import { type Holdings, holdings } from "../../model/contract/tenancy/pools.ts";
import type { CellOwner } from "../../model/contract/tenancy/tenancy.ts";
import type { Json, JsonObject } from "../../model/json/json.ts";
import { peerRequest } from "../../runtime/http/https.ts";
import { addressOf } from "../../runtime/transport/admission.ts";
import { controllerOf } from "./cell-names.ts";
import { forward, type Way, withTicket } from "./forward.ts";
import { answerAs } from "./peer-answer.ts";
import { RefusedError, refusalIn, refused } from "./refused.ts";

/** What a request that is about documents of several cells has of them: nothing but what whoever asks may see and do there. */
export interface CellSource {
  /** Cells of whoever asks, with whose they are where that is known. */
  cells(): Promise<ReadonlyMap<string, string | undefined>>;
  /** Rejects with the refusal of the cell's controller. */
  ask(cell: string, request: CellRequest): Promise<{ readonly json: Json; readonly version: string }>;
  /** Of the root controller: whole hosts, as his account may know of them. */
  holdings(): Promise<Holdings>;
}
export interface CellRequest {
  readonly method: "GET" | "PUT" | "DELETE";
  /** Behind the cell: `model/shop/racks?state=true`. */
  readonly path: string;
  readonly body?: JsonObject;
  /** That the model must have, as an answer before gave it. */
  readonly version?: string;
}
/** Who asks, by his session; of the operator the rest is not needed. */
interface Sessions {
  owners(authorization: string): Promise<readonly CellOwner[]>;
  accountOf(authorization: string): string | null;
  ticketFor(cell: string, authorization: string, child?: string): Promise<string>;
  forget(cell: string, authorization: string, child?: string): void;
}
export interface Means {
  readonly way: Way;
  readonly sessions: Sessions;
  readonly isOfSession: (authorization: string) => boolean;
  readonly names: (authorization: string) => Promise<readonly string[]>;
}
const patienceMs = 15_000;

/** A change that rests on what was looked at; others' changes in between are waited for. */
export async function changing<T>(work: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt += 1)
    try {
      return await work();
    } catch (error) {
      if ((error as { statusCode?: number }).statusCode !== 412 || attempt === attempts) throw error;
      await sleep(againMs);
    }
}
const attempts = 20;
const againMs = 50;
/** Where an element stands below its cell: a name may have anything in it that a path of HTTP reads otherwise. */
export const modelAt = (path: string): string => `model/${path.split("/").map(encodeURIComponent).join("/")}`;

export function cellSourceOf(means: Means, { headers, raw }: FastifyRequest): CellSource {
  const { way, sessions, isOfSession, names } = means;
  const { authorization = "" } = headers;
  return {
    cells: async () =>
      isOfSession(authorization)
        ? new Map((await sessions.owners(authorization)).map(({ cell, account }) => [cell, account]))
        : new Map((await names(authorization)).map((cell) => [cell, undefined])),
    ask: async (cell, { method, path, body, version }) => {
      try {
        const answer = await forward(way, cell, {
          method,
          url: `/cells/${encodeURIComponent(cell)}/${path}`,
          headers: {
            authorization,
            [viaHeader]: headers[viaHeader],
            "content-type": "application/json",
            ...(version === undefined ? {} : { "if-match": version }),
          },
          body: body === undefined ? null : Buffer.from(JSON.stringify(body)),
          signal: AbortSignal.timeout(patienceMs),
          source: addressOf(raw.socket),
          follows: false,
        });
        const text = await answer.text();
        if (answer.status !== 200) throw refusalIn(answer.status, text, "controller", `the cell ${cell} refuses it`);
        return { json: JSON.parse(text) as Json, version: String(answer.headers.etag ?? "") };
      } catch (error) {
        if (error instanceof RefusedError) throw error;
        throw refused(502, "controller-unreachable", `the controller of the cell ${cell} does not answer`);
      }
    },
    holdings: () => holdingsFor(means, authorization),
  };
}

/** What a cell that is made here may have open without a rule, and has where it says nothing; null: it is not known. */
export const boundOfNew = (means: Means, authorization: string): Promise<NonNullable<Holdings["bound"]> | null> =>
  holdingsFor(means, authorization).then(
    ({ bound = {} }) => bound,
    () => null,
  );

/** A user shows a ticket for one cell of his own account, by which the root controller knows the account. */
async function holdingsFor({ way, sessions, isOfSession }: Means, authorization: string): Promise<Holdings> {
  const account = isOfSession(authorization) ? sessions.accountOf(authorization) : null;
  let child: string | undefined;
  if (isOfSession(authorization)) {
    const own = (await sessions.owners(authorization)).filter((each) => each.account === account);
    child = own.map(({ cell }) => cell).sort()[0];
    if (child === undefined)
      throw refused(409, "conflict", "whole hosts are for the cells of an account, and this one has none yet");
  }
  const ask = (shown: string) =>
    peerRequest(way.configuration, controllerOf(rootCell), {
      method: "GET",
      path: `/cells/${rootCell}/holdings`,
      headers: { authorization: shown },
      signal: AbortSignal.timeout(patienceMs),
    });
  const ticket = {
    get: () => sessions.ticketFor(rootCell, authorization, child),
    forget: () => sessions.forget(rootCell, authorization, child),
  };
  try {
    const answer = child === undefined ? await ask(authorization) : await withTicket(ticket, ask);
    if (answer === null) throw refused(401, "unauthorized", "the root controller takes no ticket of this session");
    const text = await answer.text();
    if (answer.status !== 200) throw refusalIn(answer.status, text, "controller", "the root controller refuses it");
    return answerAs(holdings, text, controllerOf(rootCell));
  } catch (error) {
    if (error instanceof RefusedError) throw error;
    throw refused(
      502,
      "controller-unreachable",
      "the controller of the root cell, which has whole hosts, does not answer",
    );
  }
}
