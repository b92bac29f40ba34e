import { randomInt, randomUUID } from "node:crypto";
import type { ServerResponse } from "node:http";
import { mayAsk } from "../../core/documents/permissions.ts";
import type { By } from "../../core/tenancy/actor.ts";
import type { Ask, AskName, TenancyRequest, TenancyResponse } from "../../core/tenancy/asks.ts";
import type { LoginBegun } from "../../core/tenancy/logins/logins.ts";
import { createTenancy } from "../../core/tenancy/tenancy.ts";
import { isLabel } from "../../model/cell/child-document.ts";
import { cellName } from "../../model/cell/identifiers.ts";
import { viaHeader, viaIn } from "../../model/contract/audit/via.ts";
import { type Match, match } from "../../model/contract/match.ts";
import { readJsonBody, readQuery } from "../../model/contract/request.ts";
import { type RouteName, routeOf } from "../../model/contract/routes.ts";
import type { NewDeviceLogin, NewPageLogin, OidcEnd } from "../../model/contract/tenancy/oidc.ts";
import { tagIn } from "../../model/contract/tenancy/pages.ts";
import {
  type FirstPassword,
  type LoginRequest,
  type NewApplication,
  type NewRegistration,
  type OwnPassword,
  rootDomain,
} from "../../model/contract/tenancy/tenancy.ts";
import type { Json, JsonObject } from "../../model/json/json.ts";
import { ok } from "../../model/result.ts";
import { bearerOf, hashCredential, isAuthorized } from "../http/bearer.ts";
import { parseJson, readBody, sendRefusal } from "../http/http.ts";
import { type PeerUpgrade, servePeers } from "../http/https.ts";
import type { PeerHandler, PeerRequest } from "../http/peer-handler.ts";
import { refuseUpgrade } from "../http/websocket-hop.ts";
import { readSealKey } from "../identity/own/seal.ts";
import { isSession, newSession, ticketAt } from "../identity/tickets.ts";
import type { ProcessConfiguration } from "../installation.ts";
import { stopAtSignals } from "../life/signals.ts";
import { sourceHeader } from "../observation/asked-by.ts";
import { type Observer, observed } from "../observation/observer.ts";
import { type RunningService, runService } from "../process/process.ts";
import { type AskService, answerAudit, busy, isTooShort, send } from "./answers.ts";
import { Keys } from "./keys.ts";
import { apply, newInvitation, newLink, recover, register, useLink } from "./links.ts";
import { Notices } from "./notices.ts";
import { Oidc } from "./oidc.ts";
import { hashPassword, verifyPassword } from "./passwords.ts";
import { SecondFactor } from "./second-factor.ts";
import { signaturesPath, tunnelHeader } from "./source.ts";
import { Tunnels } from "./tunnels.ts";
import { WaitingRoom } from "./waiting-room.ts";

/**
 * The service `tenancy`: its state, and what the gateway asks over HTTPS. The gateway passes on what clients send, with the operator's credential or
 * a user's session as it came; who that is, is looked up here.
 */
export async function runTenancy(configuration: ProcessConfiguration, observer: Observer): Promise<void> {
  const service = createTenancy({ self: configuration.name });
  const running = await runService({ configuration, observer, service });
  const ask = async (request: TenancyRequest): Promise<TenancyResponse> =>
    (await running.request(request as unknown as Json)) as unknown as TenancyResponse;
  const sealKey = await readSealKey(configuration.directory);
  const tunnels = new Tunnels();
  const secrets = {
    keys: new Keys(sealKey),
    factor: new SecondFactor(sealKey),
    oidc: new Oidc(sealKey, tunnels),
    notices: new Notices(sealKey),
  };
  const handler = tenancyHandler(ask, secrets, configuration.tenancy?.credentialHashes ?? [], running.audit);
  const upgrade = (incoming: PeerUpgrade): void => {
    if (mayAsk("tenancy", incoming.peer, "GET", incoming.url)) tunnels.accept(incoming);
    else refuseUpgrade(incoming.socket, 403, "forbidden", `the gateway makes tunnels; this is "${incoming.peer}"`);
  };
  const server = await servePeers(configuration, observed(observer, handler), upgrade, { observer });
  stopAtSignals(server.stop);
}

/** Who opens what is sealed in the store. */
interface Secrets {
  readonly keys: Keys;
  readonly factor: SecondFactor;
  readonly oidc: Oidc;
  readonly notices: Notices;
}

const bodyLimitBytes = 256 * 1024;
const own = /^\/(?:(cells)|owners\/([^/?]+))(?:\?(.*))?$/;

export const tenancyHandler = (
  ask: AskService,
  { keys, factor, oidc, notices }: Secrets,
  credentialHashes: readonly string[],
  audit: RunningService["audit"] = () => [],
): PeerHandler => {
  const room = new WaitingRoom();
  return async (incoming, response) => {
    const { peer, method, url } = incoming;
    if (!mayAsk("tenancy", peer, method, url)) {
      sendRefusal(response, 403, "forbidden", `the gateway may ask the service tenancy; this is "${peer}"`);
      return;
    }
    if (notices.isAsked(method, url)) {
      await notices.answer(ask, incoming, response);
      return;
    }
    const found = match(method, url);
    if (found?.name === "logIn") {
      await logIn({ ask, room, factor }, incoming, response);
      return;
    }
    if (method === "POST" && url === signaturesPath) {
      await keys.enter(ask, incoming, response, send);
      return;
    }
    if (found?.name === "setFirstPassword") {
      await setFirst(ask, room, incoming, response);
      return;
    }
    if (found?.name === "register") {
      await registerOne(ask, room, incoming, response);
      return;
    }
    if (found?.name === "apply") {
      await applyOne(ask, room, incoming, response);
      return;
    }
    if (found !== null && isOfOidc(found.name)) {
      await logInByProvider({ ask, room, oidc }, found.name, incoming, response);
      return;
    }
    const by = askedBy(incoming, credentialHashes);
    if (by === null) {
      sendRefusal(response, 401, "unauthorized", "a session is needed: `cells login` begins one");
      return;
    }
    const ticket = ticketAt(url);
    if (found?.name === "readAudit") await answerAudit(ask, audit, by, incoming.url, response);
    else if (found?.name === "changeOwnPassword") await changeOwn(ask, room, by, incoming, response);
    else if (found !== null && isOfFactor(found.name))
      await changeFactor({ ask, room, factor }, by, found.name, incoming, response);
    else if (ticket !== null) await issue(ask, by, ticket, incoming, response);
    else if (found !== null && isAsk(found.name))
      await answerRoute({ ask, room, keys, oidc, notices }, by, { ...found, name: found.name }, incoming, response);
    else await answerGateway(ask, by, incoming, response);
  };
};

function askedBy({ headers }: PeerRequest, credentialHashes: readonly string[]): By | null {
  if (isAuthorized(headers.authorization, credentialHashes)) return { operator: true };
  const credential = bearerOf(headers.authorization);
  return credential !== null && isSession(credential) ? { session: hashCredential(credential) } : null;
}

/** The body as the table of routes has it; null: it was refused. */
async function bodyOf(name: RouteName, { body }: PeerRequest, response: ServerResponse): Promise<JsonObject | null> {
  if (routeOf(name).body === null) return {};
  const text = await readBody(body, bodyLimitBytes);
  const json = text.ok ? parseJson(text.value) : text;
  const read = json.ok ? readJsonBody(name, json.value) : json;
  if (read.ok) return read.value as JsonObject;
  sendRefusal(response, 400, "bad-request", read.error);
  return null;
}

async function logIn(
  { ask, room, factor }: { readonly ask: AskService; readonly room: WaitingRoom; readonly factor: SecondFactor },
  incoming: PeerRequest,
  response: ServerResponse,
): Promise<void> {
  const body = await bodyOf("logIn", incoming, response);
  if (body === null) return;
  const { user, domain = rootDomain, password, code } = body as unknown as LoginRequest;
  const source = String(incoming.headers[sourceHeader] ?? "");
  const work = async (): Promise<void> => {
    const begun = await ask({ kind: "login-begin", domain, user, source });
    if (begun.status !== 200) {
      send(response, begun);
      return;
    }
    const known = begun.body as unknown as LoginBegun;
    const { matched, grown } = await verifyPassword(password, known.password);
    const session = newSession();
    const ended = await ask({
      kind: "login-end",
      domain,
      user,
      source,
      begun: known,
      matched,
      session: hashCredential(session),
      ...(code === undefined ? {} : { code: factor.read(known, code) }),
      ...(grown === null ? {} : { grown }),
    });
    send(response, ended, { session });
  };
  const isDone = await room.run(source, async () => {
    await work();
    return true;
  });
  if (isDone === null) busy(response);
}

async function registerOne(
  ask: AskService,
  room: WaitingRoom,
  incoming: PeerRequest,
  response: ServerResponse,
): Promise<void> {
  const body = await bodyOf("register", incoming, response);
  if (body === null) return;
  const asked = body as unknown as NewRegistration;
  if (isTooShort(asked.password, response)) return;
  const source = String(incoming.headers[sourceHeader] ?? "");
  const { uid: account, number } = fresh();
  const more = { source, fresh: { account, user: fresh().uid, number } };
  const done = await room.run(source, async () => {
    send(response, await register(ask, asked, more));
    return true;
  });
  if (done === null) busy(response);
}

async function applyOne(
  ask: AskService,
  room: WaitingRoom,
  incoming: PeerRequest,
  response: ServerResponse,
): Promise<void> {
  const body = await bodyOf("apply", incoming, response);
  if (body === null) return;
  const asked = body as unknown as NewApplication;
  if (isTooShort(asked.password, response)) return;
  const source = String(incoming.headers[sourceHeader] ?? "");
  const done = await room.run(source, async () => {
    send(response, await apply(ask, asked, { uid: fresh().uid, source }));
    return true;
  });
  if (done === null) busy(response);
}

const ofOidc = [
  "beginDeviceLogin",
  "beginPageLogin",
  "endOidcLogin",
  "logOutByProvider",
] as const satisfies readonly RouteName[];
type OidcRoute = (typeof ofOidc)[number];
const isOfOidc = (name: RouteName): name is OidcRoute => (ofOidc as readonly string[]).includes(name);
async function logInByProvider(
  { ask, room, oidc }: { readonly ask: AskService; readonly room: WaitingRoom; readonly oidc: Oidc },
  name: OidcRoute,
  incoming: PeerRequest,
  response: ServerResponse,
): Promise<void> {
  const isLogout = name === "logOutByProvider";
  const form = isLogout ? await readBody(incoming.body, bodyLimitBytes) : ok("");
  const body = isLogout ? {} : await bodyOf(name, incoming, response);
  if (body === null) return;
  const token = form.ok ? (new URLSearchParams(form.value).get("logout_token") ?? "") : "";
  const { headers } = incoming;
  const source = String(headers[sourceHeader] ?? "");
  const asker = { ask, source, tunnel: String(headers[tunnelHeader] ?? "") };
  const isDone = await room.run(source, async () => {
    if (isLogout) send(response, await oidc.logOut(asker, token));
    else if (name === "endOidcLogin") await oidc.end(asker, body as unknown as OidcEnd, response, send);
    else if (name === "beginPageLogin") send(response, await oidc.beginPage(asker, body as unknown as NewPageLogin));
    else send(response, await oidc.beginDevice(asker, body as unknown as NewDeviceLogin));
    return true;
  });
  if (isDone === null) busy(response);
}

async function setFirst(
  ask: AskService,
  room: WaitingRoom,
  incoming: PeerRequest,
  response: ServerResponse,
): Promise<void> {
  const body = await bodyOf("setFirstPassword", incoming, response);
  if (body === null) return;
  const { link, password } = body as unknown as FirstPassword;
  if (isTooShort(password, response)) return;
  const source = String(incoming.headers[sourceHeader] ?? "");
  const done = await room.run(source, async () => {
    await useLink(ask, { link, password, source }, response, send);
    return true;
  });
  if (done === null) busy(response);
}

/** By the present one, which is looked at as at a login. */
async function changeOwn(
  ask: AskService,
  room: WaitingRoom,
  by: By,
  incoming: PeerRequest,
  response: ServerResponse,
): Promise<void> {
  const body = await bodyOf("changeOwnPassword", incoming, response);
  if (body === null) return;
  const { password, newPassword } = body as unknown as OwnPassword;
  if ("operator" in by) {
    sendRefusal(response, 409, "conflict", "the operator's credential is no user's session, and has no password");
    return;
  }
  if (isTooShort(newPassword, response)) return;
  const source = String(incoming.headers[sourceHeader] ?? "");
  const { session } = by;
  const work = async (): Promise<void> => {
    const begun = await ask({ kind: "password-begin", session, source });
    if (begun.status !== 200) {
      send(response, begun);
      return;
    }
    const known = begun.body as unknown as LoginBegun;
    const { matched } = await verifyPassword(password, known.password);
    const next = matched ? await hashPassword(newPassword) : "";
    send(response, await ask({ kind: "password-end", session, source, begun: known, matched, password: next }));
  };
  const done = await room.run(source, async () => {
    await work();
    return true;
  });
  if (done === null) busy(response);
}

const isOfFactor = (name: RouteName): boolean => ["beginTotp", "confirmTotp", "endTotp"].includes(name);
async function changeFactor(
  { ask, room, factor }: { readonly ask: AskService; readonly room: WaitingRoom; readonly factor: SecondFactor },
  by: By,
  name: RouteName,
  incoming: PeerRequest,
  response: ServerResponse,
): Promise<void> {
  const body = await bodyOf(name, incoming, response);
  if (body === null) return;
  if ("operator" in by) {
    sendRefusal(response, 409, "conflict", "the operator's credential is no user's session, and has no second factor");
    return;
  }
  const source = String(incoming.headers[sourceHeader] ?? "");
  const done = await room.run(source, async () => {
    await factor.answer({ ask, session: by.session, source }, { name, body }, response, send);
    return true;
  });
  if (done === null) busy(response);
}

async function issue(
  ask: AskService,
  by: By,
  hash: string,
  { body }: PeerRequest,
  response: ServerResponse,
): Promise<void> {
  const text = await readBody(body, 1024);
  const json = text.ok ? parseJson(text.value) : text;
  const { cell, child } = ((json.ok ? json.value : null) ?? {}) as {
    readonly cell?: unknown;
    readonly child?: unknown;
  };
  const isChild = typeof child === "string" && isLabel(child);
  if ("operator" in by || typeof cell !== "string" || (child !== undefined && !isChild))
    sendRefusal(
      response,
      400,
      "bad-request",
      'a ticket is issued for a session, with the body {"cell": "<name>"}, and at the root cell "child": "<name>"',
    );
  else {
    const ofChild = isChild ? { child: cellName(child) } : {};
    send(response, await ask({ kind: "ticket", session: by.session, hash, cell, ...ofChild }));
  }
}

const asks: readonly AskName[] = [
  ...(["whoAmI", "logOut", "can", "giveCell"] as const),
  ...(["listDomains", "addDomain", "changeDomain", "deleteDomain"] as const),
  ...(["listAccounts", "addAccount", "changeAccount", "deleteAccount"] as const),
  ...(["listUsers", "addUser", "changeUser", "deleteUser", "linkUser", "recoverAdmin"] as const),
  ...(["listKeys", "addKey", "changeKey", "deleteKey", "listQuotas", "setQuota", "listUsage"] as const),
  ...(["listProviders", "addProvider", "deleteProvider"] as const),
  ...(["listInvitations", "addInvitation", "deleteInvitation"] as const),
  ...(["listOpenings", "addOpening", "deleteOpening"] as const),
  ...(["listApplications", "approveApplication", "rejectApplication"] as const),
  ...(["listSubscriptions", "addSubscription", "changeSubscription", "deleteSubscription"] as const),
  ...(["listDelegations", "addDelegation", "deleteDelegation"] as const),
  ...(["listRoles", "addRole", "changeRole", "deleteRole"] as const),
];
type RouteAsk = AskName & RouteName;
const isAsk = (name: RouteName): name is RouteAsk => (asks as readonly string[]).includes(name);

const sourceOf = ({ headers }: PeerRequest): Pick<Ask, "source" | "via"> => {
  const [source, via] = [headers[sourceHeader], viaIn(headers[viaHeader])];
  return { ...(typeof source === "string" ? { source } : {}), ...(via === undefined ? {} : { via }) };
};
const fresh = (): Ask["fresh"] => ({
  uid: randomUUID(),
  number: String(randomInt(1, 10 ** 12 - 1)).padStart(12, "0"),
});

async function answerRoute(
  {
    ask,
    room,
    keys,
    oidc,
    notices,
  }: { readonly ask: AskService; readonly room: WaitingRoom } & Omit<Secrets, "factor">,
  by: By,
  { name, parameters }: Match & { readonly name: RouteAsk },
  incoming: PeerRequest,
  response: ServerResponse,
): Promise<void> {
  const query = readQuery(name, incoming.url);
  if (!query.ok) {
    sendRefusal(response, 400, query.error.code, query.error.message);
    return;
  }
  const body = await bodyOf(name, incoming, response);
  if (body === null) return;
  const condition = incoming.headers["if-match"];
  const tag = condition === undefined ? undefined : tagIn(condition);
  // What guards against a lost update is not to be overlooked for how it is written.
  if (tag !== undefined && !tag.ok) {
    sendRefusal(response, 400, "bad-request", tag.error);
    return;
  }
  const asked: Ask = {
    kind: "ask",
    by,
    name,
    parameters,
    query: query.value as JsonObject,
    body,
    password: null,
    fresh: fresh(),
    ...sourceOf(incoming),
    ...(tag === undefined ? {} : { ifMatch: tag.value }),
  };
  if (name === "linkUser") {
    const link = newLink(parameters.uid ?? "");
    const made = await ask({ ...asked, link: hashCredential(link) });
    send(response, { ...made, status: made.status === 200 ? 201 : made.status }, { link });
    return;
  }
  if (name === "recoverAdmin") {
    send(response, await recover(ask, asked));
    return;
  }
  if (name === "addInvitation") {
    const link = newInvitation(asked.fresh.uid);
    const { status, body: said } = await ask({ ...asked, link: hashCredential(link) });
    send(response, status === 200 ? { status: 201, body: { invitation: said, link } } : { status, body: said });
    return;
  }
  if (name === "addKey") {
    const { fresh: key, secret } = keys.draw();
    const made = await ask({ ...asked, key });
    send(response, { ...made, status: made.status === 200 ? 201 : made.status }, { secret });
    return;
  }
  if (name === "addProvider" && typeof body.clientSecret === "string") {
    const { clientSecret, ...told } = body;
    send(response, await ask({ ...asked, body: told, sealed: oidc.seal(asked.fresh.uid, clientSecret) }));
    return;
  }
  if (name === "addSubscription" || name === "changeSubscription") {
    const { secret, ...told } = body;
    const uid = parameters.uid ?? asked.fresh.uid;
    const sealed = typeof secret === "string" ? { sealed: notices.seal(uid, secret) } : {};
    send(response, await ask({ ...asked, body: told, ...sealed }));
    return;
  }
  const { password } = body;
  if (typeof password === "string") await withPassword(ask, room, asked, password, response);
  else send(response, await ask(asked));
}

/** Its hash costs much: it is made only where all else is right. The password itself goes no further. */
async function withPassword(
  ask: AskService,
  room: WaitingRoom,
  asked: Ask,
  password: string,
  response: ServerResponse,
): Promise<void> {
  if (isTooShort(password, response)) return;
  const body = { ...asked.body, password: "set" };
  const tried = await ask({ ...asked, body, query: { ...asked.query, dryRun: true } });
  if (tried.status !== 200 || asked.query.dryRun === true) {
    send(response, tried);
    return;
  }
  const source = "operator" in asked.by ? "operator" : asked.by.session;
  const hash = await room.run(source, () => hashPassword(password));
  if (hash === null) busy(response);
  else send(response, await ask({ ...asked, body, password: hash }));
}

/** What the gateway asks on its own account. */
async function answerGateway(ask: AskService, by: By, incoming: PeerRequest, response: ServerResponse): Promise<void> {
  const { method, url } = incoming;
  const [, all, cell, query = ""] = own.exec(url) ?? [];
  const parameters = new URLSearchParams(query);
  const name: AskName | null =
    all !== undefined && method === "GET"
      ? "cells"
      : cell !== undefined && method === "POST"
        ? "claimCell"
        : cell !== undefined && method === "DELETE"
          ? "freeCell"
          : null;
  if (name === null) {
    sendRefusal(response, 404, "not-found", `there is no ${method} of ${url}`);
    return;
  }
  const flag = (name: string): boolean => parameters.get(name) === "true";
  const flags = { isThere: flag("isThere"), dryRun: flag("dryRun"), accounts: flag("accounts") };
  const common = { kind: "ask", by, name, body: {}, password: null, fresh: fresh(), ...sourceOf(incoming) } as const;
  send(response, await ask({ ...common, parameters: cell === undefined ? {} : { cell }, query: flags }));
}
