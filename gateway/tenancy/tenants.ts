import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { peerName } from "../../model/cell/identifiers.ts";
import { match } from "../../model/contract/match.ts";
import { readQuery } from "../../model/contract/request.ts";
import { routeNames, routeOf, type ServedAt } from "../../model/contract/routes.ts";
import { nextHeader } from "../../model/contract/tenancy/pages.ts";
import { poolRoutes } from "../../model/contract/tenancy/pool-routes.ts";
import { type CellOwner, rootDomain, type WhoAmI } from "../../model/contract/tenancy/tenancy.ts";
import { uploadRoutes } from "../../model/contract/tenancy/volumes/uploads.ts";
import type { Json } from "../../model/json/json.ts";
import { keepNewest } from "../../model/limits.ts";
import { bearerOf, hashCredential } from "../../runtime/http/bearer.ts";
import { parseJson, retryAfterOf } from "../../runtime/http/http.ts";
import { peerRequest } from "../../runtime/http/https.ts";
import { isSession, newTenantTicket, shownAgainMs, ticketPath } from "../../runtime/identity/tickets.ts";
import type { ProcessConfiguration } from "../../runtime/installation.ts";
import { tunnelHeader } from "../../runtime/tenancy/source.ts";
import { findPeer } from "../../runtime/transport/peers.ts";
import { ofClient } from "../requests/ask-peer.ts";
import { Questions } from "../requests/places.ts";
import { type RefusedError, refusalIn, refused } from "../requests/refused.ts";
import { serveRoute } from "../requests/serve.ts";
import { withWayOutside } from "./way-outside.ts";

/**
 * Users at the gateway. It has no rights of its own and keeps nothing that opens anything: who a session is, what it may of domains and accounts, and
 * whether there is a ticket for a cell, it asks the service `tenancy` with the session that it was shown; what a ticket allows, the cell's
 * controller decides. A controller never sees a session, and `tenancy` no ticket but its hash.
 */
export interface Tenants {
  /** Whose session this is: the account's path. Rejects with a refusal unless it is one. */
  introduce(authorization: string, address: string): Promise<string>;
  /** The account of a session that was introduced not long ago; null: it was not. */
  accountOf(authorization: string): string | null;
  /** The user of a session that was introduced not long ago, by his UID; null: it was not, or is of nobody by name. */
  userOf(authorization: string): string | null;
  /**
   * What the controller of the cell is shown in place of the session; of the root cell for one child cell of that alone. Rejects with a refusal
   * where the cell is not there for it.
   */
  ticketFor(cell: string, authorization: string, child?: string): Promise<string>;
  /** The ticket was not taken: the next one is another. */
  forget(cell: string, authorization: string, child?: string): void;
  /** Names of the cells that a session may see. */
  cells(authorization: string): Promise<readonly string[]>;
  /** The same, of the operator too, with whose each is. Rejects where the service is of a version that does not tell. */
  owners(authorization: string): Promise<readonly CellOwner[]>;
  /** A user makes a cell of this name. Rejects with a refusal where it is taken. */
  claim(
    cell: string,
    authorization: string,
    options: { readonly isThere: boolean; readonly dryRun: boolean },
  ): Promise<void>;
  /** A cell has ended, or its name is the operator's from now on. Rejects when that cannot be said. */
  free(cell: string, authorization: string): Promise<void>;
}

export const isOfSession = (authorization: string | undefined): boolean => {
  const credential = bearerOf(authorization);
  return credential !== null && isSession(credential);
};

/** By its hash. One session may be shown in many spellings of the header, and is the same in each. */
const sessionOf = (authorization: string): string => hashCredential(bearerOf(authorization) ?? "");

const tenancy = peerName("tenancy");
const patienceMs = 10_000;
/** As the service takes. Who logs in has shown nothing yet, and many may do it at once. */
const bodyLimitBytes = 256 * 1024;
/** For a login, behind as many others as may wait. */
const loginPatienceMs = 30_000;
const rememberedMs = 60_000;
const mostRemembered = 16_384;
const strangers = { inAll: 256, perAddress: 32, perCell: 256, perBoth: 32 };

interface Answer {
  readonly status: number;
  readonly text: string;
  /** Of an answer to who asked, as `tenancy` gave them. */
  readonly headers: Readonly<Record<string, string>>;
}
const passedBack = ["retry-after", "etag", nextHeader] as const;
interface Known {
  readonly account: string;
  readonly user: string | null;
  readonly until: number;
}
interface Kept {
  readonly ticket: Promise<string>;
  readonly until: number;
}

/** `now`: milliseconds, monotonic. */
export function createTenants(
  configuration: ProcessConfiguration,
  now: () => number = () => performance.now(),
): Tenants {
  const questions = new Questions(strangers);
  const known = new Map<string, Known>();
  const tickets = new Map<string, Kept>();

  const ask = (method: string, path: string, authorization: string, body?: object): Promise<Answer> =>
    askTenancy(configuration, {
      method,
      path,
      headers: { authorization, ...json },
      body: body === undefined ? null : JSON.stringify(body),
    });
  const demand = async (method: string, path: string, authorization: string, body?: object): Promise<Json> => {
    const answer = await ask(method, path, authorization, body);
    if (answer.status >= 300) throw refusalOfTenancy(answer);
    const read = parseJson(answer.text);
    return read.ok ? read.value : null;
  };
  const issue = async (cell: string, authorization: string, child?: string): Promise<string> => {
    const ticket = newTenantTicket();
    const body = { cell, ...(child === undefined ? {} : { child }) };
    await demand("PUT", ticketPath(hashCredential(ticket)), authorization, body);
    return `Bearer ${ticket}`;
  };
  const keyOf = (cell: string, authorization: string, child = ""): string =>
    `${cell} ${child} ${sessionOf(authorization)}`;
  const knownOf = (authorization: string): Known | null => {
    const found = known.get(sessionOf(authorization));
    return found !== undefined && found.until > now() ? found : null;
  };

  return {
    accountOf: (authorization) => knownOf(authorization)?.account ?? null,
    userOf: (authorization) => knownOf(authorization)?.user ?? null,
    introduce: async (authorization, address) => {
      const found = knownOf(authorization);
      if (found !== null) return found.account;
      const end = questions.begin("", address);
      if (end === null) throw refused(503, "busy", "too many requests are under way; try again in a second");
      try {
        const { user } = (await demand("GET", "/whoami", authorization)) as unknown as WhoAmI;
        const account = user?.account ?? rootDomain;
        known.delete(sessionOf(authorization));
        known.set(sessionOf(authorization), { account, user: user?.uid ?? null, until: now() + rememberedMs });
        keepNewest(known, mostRemembered);
        return account;
      } finally {
        end();
      }
    },
    ticketFor: (cell, authorization, child) => {
      const key = keyOf(cell, authorization, child);
      const kept = tickets.get(key);
      if (kept !== undefined && kept.until > now()) return kept.ticket;
      const made: Kept = { ticket: issue(cell, authorization, child), until: now() + shownAgainMs };
      tickets.delete(key);
      tickets.set(key, made);
      made.ticket.catch(() => {
        if (tickets.get(key) === made) tickets.delete(key);
      });
      keepNewest(tickets, mostRemembered);
      return made.ticket;
    },
    forget: (cell, authorization, child) => void tickets.delete(keyOf(cell, authorization, child)),
    cells: async (authorization) => (await demand("GET", "/cells", authorization)) as readonly string[],
    owners: async (authorization) => {
      const told = (await demand("GET", "/cells?accounts=true", authorization)) as unknown as readonly CellOwner[];
      if (told.some((each) => typeof each === "string"))
        throw refused(
          503,
          "tenancy-unreachable",
          "the service tenancy is of a version that does not say whose cells are",
        );
      return told;
    },
    claim: async (cell, authorization, { isThere, dryRun }) => {
      await demand("POST", `/owners/${encodeURIComponent(cell)}?isThere=${isThere}&dryRun=${dryRun}`, authorization);
    },
    free: async (cell, authorization) => {
      // An installation of the previous version has no such service, and no cells of accounts.
      if (!(await findPeer(configuration, tenancy)).ok) return;
      const answer = await ask("DELETE", `/owners/${encodeURIComponent(cell)}`, authorization);
      if (answer.status >= 300 && answer.status !== 404) throw refusalOfTenancy(answer);
    },
  };
}
const json = { "content-type": "application/json" } as const;

export interface Asked {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Buffer | null;
  readonly waitMs?: number;
}
export async function askTenancy(
  configuration: ProcessConfiguration,
  { method, path, headers, body, waitMs = patienceMs }: Asked,
): Promise<Answer> {
  try {
    const answer = await peerRequest(configuration, tenancy, {
      method,
      path,
      headers,
      signal: AbortSignal.timeout(waitMs),
      ...(body === null ? {} : { body }),
    });
    const passed = passedBack.flatMap((name) => {
      const value = answer.headers[name];
      return value === undefined ? [] : [[name, value]];
    });
    return { status: answer.status, text: await answer.text(), headers: Object.fromEntries(passed) };
  } catch (error) {
    const message = `the service tenancy, which says who users are and what they may, does not answer: ${(error as Error).message}. Who is in goes on for five minutes, and cells' own credentials open their cells`;
    throw refused(503, "tenancy-unreachable", message);
  }
}
/** An answer of `tenancy` that is none of success. */
export const refusalOfTenancy = ({ status, text }: Pick<Answer, "status" | "text">): RefusedError =>
  refusalIn(status, text, "tenancy-unreachable", `the service tenancy answered ${status}`);

/** The routes that `tenancy` answers; they pass as they are. `give`: where the root cell's model says whose a cell is. */
export function registerTenants(
  app: FastifyInstance,
  configuration: ProcessConfiguration,
  give: ((cell: string, account: string, authorization: string) => Promise<void>) | undefined,
): void {
  const relay = async (
    request: FastifyRequest,
    reply: FastifyReply,
    waitMs?: number,
    more: Readonly<Record<string, string>> = {},
  ): Promise<void> => {
    const { method, url, headers, body } = request;
    const answer = await askTenancy(configuration, {
      method,
      path: url,
      body: body instanceof Buffer ? body : null,
      headers: {
        ...json,
        ...more,
        ...ofClient(request.raw),
        ...(headers.authorization === undefined ? {} : { authorization: headers.authorization }),
        ...(headers["if-match"] === undefined ? {} : { "if-match": headers["if-match"] }),
      },
      ...(waitMs === undefined ? {} : { waitMs }),
    });
    if (give !== undefined && answer.status === 200 && match(method, url)?.name === "giveCell") {
      const { cell, account } = JSON.parse(answer.text) as CellOwner;
      const query = readQuery("giveCell", url);
      if (query.ok && query.value.dryRun !== true) await give(cell, account, headers.authorization ?? "");
    }
    if (answer.status === 503) reply.header("retry-after", retryAfterOf());
    reply.headers(answer.headers);
    // A login's answer is a secret.
    reply.code(answer.status).type("application/json").header("cache-control", "no-store").send(answer.text);
  };
  const isOfTenants = (name: string): name is ServedAt<"gateway"> => {
    const { who, at } = routeOf(name as ServedAt<"gateway">);
    const isTheirs = who === "tenant" || who === "anyone" || name === "recoverAdmin";
    return at === "gateway" && isTheirs && !elsewhere.includes(name);
  };
  for (const name of byProvider)
    serveRoute(
      app,
      name,
      ({ request }, reply) =>
        withWayOutside(configuration, (id) => relay(request, reply, loginPatienceMs, { [tunnelHeader]: id })),
      bodyLimitBytes,
    );
  for (const name of routeNames)
    if (isOfTenants(name))
      serveRoute(
        app,
        name,
        ({ request }, reply) => relay(request, reply, waitForWork.includes(name) ? loginPatienceMs : undefined),
        bodyLimitBytes,
      );
}

/** By a password. */
const waitForWork: readonly string[] = [
  "logIn",
  "changeOwnPassword",
  "setFirstPassword",
  "register",
  "apply",
  "beginTotp",
  "endTotp",
];
/** The audit is merged from what several services say (`audit.ts`), and of a signed login its signature alone is passed on (`credentials.ts`). */
const byProvider = ["beginDeviceLogin", "beginPageLogin", "endOidcLogin", "logOutByProvider"] as const;
/** Of whole hosts cells and the root controller are asked; uploads go to storage servers. */
const elsewhere: readonly string[] = [
  "readAudit",
  "logInSigned",
  "signIn",
  "readSignInCode",
  ...byProvider,
  ...Object.keys(poolRoutes),
  ...Object.keys(uploadRoutes),
];

/** Logins from one address at a time: whoever waits for one takes a place of nobody else. */
export const loginPlaces = (): Questions => new Questions({ inAll: 128, perAddress: 32, perCell: 128, perBoth: 32 });
