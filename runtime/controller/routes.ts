import type { ServerResponse } from "node:http";
import type { Asker } from "../../core/controller/model/audited.ts";
import type { WhyEnds } from "../../core/controller/requests/connection-ends.ts";
import type { RecordRequest } from "../../core/controller/requests/recorded.ts";
import type { ExecTarget } from "../../core/controller/requests/session-requests.ts";
import { rootCell } from "../../core/documents/cells.ts";
import { mayAsk } from "../../core/documents/permissions.ts";
import type { CellEvent, NewCredential } from "../../model/api.ts";
import { peerName } from "../../model/cell/identifiers.ts";
import { matchParts, partsOf } from "../../model/contract/match.ts";
import { keyHeader, keyRefusal, readQuery } from "../../model/contract/request.ts";
import type { RouteName } from "../../model/contract/routes.ts";
import type { ElementPage } from "../../model/contract/tenancy/listed-element.ts";
import { nextHeader, pageOf } from "../../model/contract/tenancy/pages.ts";
import { sessionVerb } from "../../model/contract/tenancy/verbs.ts";
import type { ModelVersions } from "../../model/contract/versions.ts";
import type { JsonObject } from "../../model/json/json.ts";
import { fail, ok, type Result } from "../../model/result.ts";
import { hashCredential, newCredential } from "../http/bearer.ts";
import { sendJson, sendRefusal } from "../http/http.ts";
import type { PeerUpgradeHandler } from "../http/https.ts";
import type { PeerHandler } from "../http/peer-handler.ts";
import { refuseUpgrade } from "../http/websocket-hop.ts";
import { cellOfController, IssuedTickets, issuerOf, ticketAt } from "../identity/tickets.ts";
import { streamEvents } from "../observation/events.ts";
import { machineAddresses, machineNames } from "../transport/peers.ts";
import { askHost } from "./ask-host.ts";
import { orderBackup } from "./backups/order.ts";
import { returnStore } from "./backups/return-store.ts";
import { change } from "./change.ts";
import { examine, withNetworkHosts } from "./connections/network-hosts.ts";
import { connectionAnswer, type Question, toldTo } from "./connections/why.ts";
import { ask, bodyOf, bodyOnce, type EdgeContext, type Exchange, onceOf, relay, type Served } from "./exchange.ts";
import { hostHandler } from "./hosts/hosts.ts";
import { longPoll } from "./long-poll.ts";
import type { ControllerSessions } from "./sessions.ts";
import { answerAudit, askerOf, recordedFirst } from "./tenants/audit.ts";
import { callerOf, partMayNotAsk, withinOf } from "./tenants/callers.ts";
import { isRead } from "./tenants/child-cells.ts";
import { sessionHolder, TenantAnswers, TicketHolds, tenantMayNotAsk } from "./tenants/tenants.ts";
import { Veils } from "./tenants/veiled.ts";
import { answerIssue, answerSpending, createTicketCheck } from "./tickets.ts";

/**
 * The part of the published contract (`model/contract/routes.ts`) that a cell answers itself, below `/cells/<cell>`. Only the gateway may call, and only with a credential of the cell; and at
 * the root cell the Cell Manager, which has a part of the model to itself (`core/documents/permissions.ts`), and every
 * controller to spend a ticket.
 */
const cellManager = peerName("cell-manager");
const longestExecMs = 600_000;
const shortExecMs = 30_000;

type Handlers = { readonly [N in Served]: (exchange: Exchange<N>) => Promise<void> };
const handlers: Handlers = {
  listElements: (exchange) => listElements(exchange),
  readCell: (exchange) => relay(exchange, { method: "SUMMARY" }),
  readModel: (exchange) => read(exchange),
  readElement: (exchange) => read(exchange),
  putModel: (exchange) => change(exchange),
  putElement: (exchange) => change(exchange),
  patchModel: (exchange) => change(exchange),
  deleteModel: (exchange) => change(exchange),
  deleteElement: (exchange) => change(exchange),
  readSource: (exchange) => relay(exchange, { method: "SOURCE", ...given(exchange.query) }),
  listVersions,
  followCell: (exchange) => events(exchange),
  readCellAudit: (exchange) => {
    const { context, response } = exchange;
    return answerAudit((request) => ask(context, request), context.audit ?? (() => []), exchange, response);
  },
  explain: (exchange) => why(exchange),
  exec: (exchange) => exec(exchange),
  moveVm,
  forceStop,
  listCredentials: (exchange) => listCredentials(exchange),
  addCredential: (exchange) => addCredential(exchange),
  revokeCredential: (exchange) => revokeCredential(exchange),
  grantSession: (exchange) => grantSession(exchange),
  orderBackupAtRoot: ({ context, incoming, response }) => orderBackup(context.configuration, incoming, response),
  returnStore: (exchange) => takeStore(exchange),
  admitHost: (exchange) => hosts(exchange),
  removeHost: (exchange) => hosts(exchange),
  readHostEnd: (exchange) => hosts(exchange, "end"),
  endHost: (exchange) => hosts(exchange, "end"),
  readHoldings: (exchange) => {
    const { caller } = exchange;
    const account = caller !== null && "tenant" in caller ? caller.tenant.account : null;
    return relay(exchange, { method: "HOLDINGS", account });
  },
};
const isServed = (name: RouteName): name is Served => Object.hasOwn(handlers, name);

/** Without `sessions` none is granted. */
export const createRoutes = (
  context: EdgeContext,
  sessions: ControllerSessions | null = null,
  answers = new TenantAnswers(new TicketHolds(context.request)),
): PeerHandler => {
  const issued = new IssuedTickets(() => performance.now());
  const veils = new Veils(context.request, () => machineNames(context.configuration));
  const tickets = createTicketCheck(context.configuration, issuerOf(context.controller));
  return async (incoming, response) => {
    if (!mayAsk("controller", incoming.peer, incoming.method, incoming.url)) {
      sendRefusal(
        response,
        403,
        "forbidden",
        `the gateway may ask a controller, and the cell's own VMs for what is below /cells/${context.controller.cell}; this is "${incoming.peer}"`,
      );
      return;
    }
    if (ticketAt(incoming.url) !== null) {
      if (context.controller.cell !== rootCell || cellOfController(incoming.peer) !== null)
        answerSpending(issued, incoming, response);
      else await answerIssue(issued, context.controller.credentialHashes, incoming, response);
      return;
    }
    // Beside the gateway, the table lets in who needs no credential: the Cell Manager, at the root cell.
    const byName = context.controller.cell === rootCell && incoming.peer === cellManager;
    const caller = byName ? null : await callerOf(context.request, context.controller, tickets, incoming);
    if (caller !== null && "refused" in caller) {
      const { status, code, message } = caller.refused;
      sendRefusal(response, status, code, message);
      return;
    }
    const parts = partsOf(incoming.url);
    const [root, cell] = parts ?? [];
    if (parts === null || root !== "cells" || cell !== context.controller.cell) {
      sendRefusal(response, 404, "not-found", `this is the controller of the cell ${context.controller.cell}`);
      return;
    }
    const found = matchParts(incoming.method, parts);
    if (found === null || !isServed(found.name)) {
      const message = `there is no ${incoming.method} of /${parts.join("/")}; see the API reference`;
      sendRefusal(response, 404, "not-found", message);
      return;
    }
    const tenant = caller !== null && "tenant" in caller ? caller.tenant : null;
    const veil = Veils.isFor(caller, cell) ? veils : null;
    await veil?.over(response, found.name);
    const part = partMayNotAsk(caller, found.name);
    const no = part ?? (tenant === null || cell === rootCell ? null : tenantMayNotAsk(tenant, found.name));
    if (no !== null) {
      const what = { verb: found.name, target: parts.slice(3).join("/"), refused: no.message };
      if (incoming.method !== "GET") await record({ context, caller, incoming }, what);
      sendRefusal(response, no.status, no.code, no.message);
      return;
    }
    if (
      tenant !== null &&
      cell === rootCell &&
      !(await isRead((request) => ask(context, request), tenant, found, { by: askerOf(caller, incoming), response }))
    )
      return;
    if (tenant !== null) answers.follow(tenant, found.name, response);
    const { parameters } = found;
    await serve(found.name, { context, caller, sessions, veil, incoming, response, parameters });
  };
};

async function serve<N extends Served>(name: N, exchange: Omit<Exchange<N>, "name" | "query">): Promise<void> {
  const query = readQuery(name, exchange.incoming.url);
  if (!query.ok) return sendRefusal(exchange.response, 400, query.error.code, query.error.message);
  const key = keyRefusal(name, exchange.incoming.headers[keyHeader]);
  if (key !== null) return sendRefusal(exchange.response, 400, key.code, key.message);
  if (recordedFirst.has(name) && exchange.caller?.operator === true)
    await record(exchange, { verb: name, target: exchange.parameters.name ?? "" });
  await handlers[name]({ ...exchange, name, query: query.value });
}

/** Handshakes of sessions. The capability is the credential: a web page's WebSocket can carry no other. */
export const createUpgrades =
  (cell: string, sessions: ControllerSessions): PeerUpgradeHandler =>
  async (upgrade) => {
    const parts = partsOf(upgrade.url) ?? [];
    if (!mayAsk("controller", upgrade.peer, "GET", upgrade.url))
      refuseUpgrade(upgrade.socket, 403, "forbidden", `only the gateway may ask a controller, not "${upgrade.peer}"`);
    else if (parts.join("/") !== `cells/${cell}/sessions`)
      refuseUpgrade(upgrade.socket, 404, "not-found", `the sessions of this cell are at /cells/${cell}/sessions`);
    else await sessions.open(upgrade);
  };

async function grantSession(exchange: Exchange<"grantSession">): Promise<void> {
  const body = await bodyOf(exchange);
  if (body === null || exchange.sessions === null) return;
  const holder = sessionHolder(exchange.caller, sessionVerb(body.verb));
  if ("refused" in holder) {
    await record(exchange, { verb: "grantSession", target: body.vm, what: body.verb, refused: holder.refused.message });
    sendRefusal(exchange.response, holder.refused.status, holder.refused.code, holder.refused.message);
    return;
  }
  const { caller, incoming } = exchange;
  const answer = await exchange.sessions.grant(body, holder.holder, askerOf(caller, incoming));
  // The body of a grant is a secret for a minute.
  sendJson(exchange.response, answer.status, answer.body, { "cache-control": "no-store" });
}

/** Durably, before anything is done or answered. */
const record = async (
  { context, caller, incoming }: Pick<Exchange, "context" | "caller" | "incoming">,
  what: Omit<RecordRequest, "method" | "by">,
): Promise<unknown> => ask(context, { method: "RECORD", ...what, by: askerOf(caller, incoming) });

async function listElements({ context, caller, response, query }: Exchange<"listElements">): Promise<void> {
  const { status, body } = await ask(context, { method: "ELEMENTS", ...given(query), ...withinOf(caller) });
  if (status === 200) sendPage(response, body as unknown as ElementPage);
  else sendJson(response, status, body);
}
async function listVersions(exchange: Exchange<"listVersions">): Promise<void> {
  const { context, response, query } = exchange;
  if (!isPaged(query)) return relay(exchange, { method: "VERSIONS" });
  const { status, body } = await ask(context, { method: "VERSIONS" });
  if (status !== 200) return sendJson(response, status, body);
  const { versions, ...more } = body as unknown as ModelVersions;
  const page = pageOf("listVersions", versions as unknown as readonly JsonObject[], given(query));
  if (page.ok) sendPage(response, page.value, (items) => ({ ...more, versions: items }));
  else sendRefusal(response, 400, "bad-request", page.error);
}
async function listCredentials({ context, response, query }: Exchange<"listCredentials">): Promise<void> {
  const { body } = await ask(context, { method: "CREDENTIALS" });
  const page = isPaged(query) ? pageOf("listCredentials", body as readonly JsonObject[], given(query)) : null;
  if (page === null) sendJson(response, 200, body);
  else if (page.ok) sendPage(response, page.value);
  else sendRefusal(response, 400, "bad-request", page.error);
}
const isPaged = ({ limit, after }: { readonly limit?: number | undefined; readonly after?: string | undefined }) =>
  limit !== undefined || after !== undefined;
const sendPage = <T extends object>(
  response: ServerResponse,
  { items, next }: { readonly items: T; readonly next: string | null },
  shown: (items: T) => object = (all) => all,
) => sendJson(response, 200, shown(items), next === null ? {} : { [nextHeader]: next });
/** Without what is absent. */
const given = <T extends object>(query: T): { readonly [K in keyof T]: Exclude<T[K], undefined> } =>
  Object.fromEntries(Object.entries(query).filter(([, value]) => value !== undefined)) as never;

const hosts = ({ context, caller, incoming, response, parameters }: Exchange, ...part: string[]): Promise<void> =>
  hostHandler(context, incoming, response, {
    rest: [parameters.name ?? "", ...part],
    byOperator: caller?.operator === true,
    by: askerOf(caller, incoming),
  });

async function takeStore({ context, caller, incoming, response }: Exchange<"returnStore">): Promise<void> {
  const { configuration, returning } = context;
  if (caller?.operator !== true || returning === undefined)
    sendRefusal(response, 403, "forbidden", "a controller's store is the operator's to give back");
  else await returnStore(configuration, returning, { body: incoming.body, by: askerOf(caller, incoming) }, response);
}

/** What was opened with it ends with it, and before that is answered. */
async function revokeCredential({
  context,
  caller,
  sessions,
  incoming,
  response,
  parameters,
}: Exchange): Promise<void> {
  const by = askerOf(caller, incoming);
  const revoking = { method: "CREDENTIAL-REVOKE", id: parameters.id ?? "", by, ...onceOf({ incoming }) } as const;
  await relay({ context, response }, revoking, async () => void (await sessions?.revoked()));
}

async function addCredential(exchange: Exchange<"addCredential">): Promise<void> {
  const { context, response } = exchange;
  const body = await bodyOf(exchange);
  if (body === null) return;
  const { id, credential } = newCredential(context.controller.cell);
  const hash = hashCredential(credential);
  const by = askerOf(exchange.caller, exchange.incoming);
  const { note = "", path, access = "write" } = body;
  if (path === undefined && body.access !== undefined)
    return sendRefusal(response, 400, "bad-request", "access is of a part of the cell: name it by `path`");
  const within = path === undefined ? {} : { within: { path, access } };
  const added = await ask(context, { method: "CREDENTIAL-ADD", id, hash, note, ...within, by });
  const answer = added.status === 200 ? ({ id, credential } satisfies NewCredential) : added.body;
  sendJson(response, added.status, answer, { "cache-control": "no-store" });
}

async function read(exchange: Exchange<"readModel" | "readElement">): Promise<void> {
  const { context, response, parameters, query } = exchange;
  const { state = false, until } = query;
  const request = { method: "GET", path: parameters.path ?? "", state, ...withinOf(exchange.caller) } as const;
  if (until === undefined) {
    await relay(exchange, request);
    return;
  }
  if (!state) {
    sendRefusal(response, 400, "bad-request", "until is ready or gone, and needs state=true: ?state=true&until=ready");
    return;
  }
  const gone = new AbortController();
  response.once("close", () => gone.abort());
  const answer = await longPoll(until, () => ask(context, request), context.events.subscribe, gone.signal);
  if (answer === null)
    sendRefusal(response, 503, "busy", "too many requests wait here for something to change; try again in a moment");
  else sendJson(response, answer.status, answer.body, { etag: `"${answer.version}"` });
}

/**
 * The past, oldest first; with `follow=true` the stream stays open. `Last-Event-ID` leaves out what was seen, `since` what happened
 * before that time, `past=false` everything that has happened.
 */
async function events({ context, veil, incoming, response, query }: Exchange<"followCell">): Promise<void> {
  const last = Number(incoming.headers["last-event-id"] ?? 0);
  const { since, subscribe } = context.events;
  const sinceMs = query.since === undefined ? 0 : Date.parse(query.since);
  const isAsked = ({ time }: CellEvent): boolean => Date.parse(time) >= sinceMs;
  streamEvents<CellEvent>(response, {
    past: query.past === false ? [] : since(Number.isSafeInteger(last) ? last : 0).filter(isAsked),
    heading: ({ id, event }) => ({ id, event }),
    ...(query.follow === true ? { follow: veil === null ? subscribe : veil.lookedAtFirst(response, subscribe) } : {}),
  });
}

function questionOf(query: Exchange<"explain">["query"]): Result<Question, string> {
  const port = query.port ?? null;
  const protocol = query.protocol ?? (port === null ? "icmp" : "tcp");
  if (protocol === "icmp") return port === null ? ok({ protocol, port }) : fail("icmp has no ports");
  return port === null ? fail(`for ${protocol} a port is needed: port=80`) : ok({ protocol, port });
}

async function why(exchange: Exchange<"explain">): Promise<void> {
  const { context, response, query } = exchange;
  const { element, from, to } = query;
  const part = withinOf(exchange.caller);
  if (element !== undefined) {
    await relay(exchange, { method: "WHY-ELEMENT", path: element, ...part });
    return;
  }
  if (part.within !== undefined)
    return sendRefusal(
      response,
      403,
      "forbidden",
      "which connections pass is not for a credential of a part of the cell",
    );
  const question = questionOf(query);
  if (from === undefined || to === undefined || !question.ok) {
    const message = question.ok ? "both ends are needed: from=<path>&to=<path>" : question.error;
    sendRefusal(response, 400, "bad-request", message);
    return;
  }
  const resolved = await ask(context, { method: "WHY-ENDS", from, to });
  if (resolved.status !== 200) {
    sendJson(response, resolved.status, resolved.body);
    return;
  }
  const ends = resolved.body as unknown as WhyEnds;
  const sides = [
    { side: "sender", end: ends.from },
    { side: "receiver", end: ends.to },
  ] as const;
  const examined = await Promise.all(
    sides.flatMap(({ side, end: { host } }) =>
      host === null ? [] : [examine(context.configuration, { side, host }, ends, question.value)],
    ),
  );
  const failure = examined.find((part) => !part.ok);
  const parts = examined.flatMap((part) => (part.ok ? [part.value] : []));
  const all =
    failure?.ok === false ? failure : await withNetworkHosts(context.configuration, parts, ends, question.value);
  if (!all.ok) {
    const [status, code] = all.error.kind === "busy" ? ([429, "busy"] as const) : ([502, "unreachable"] as const);
    return sendRefusal(response, status, code, all.error.why);
  }
  const told =
    exchange.veil === null
      ? ({ to: "operator" } as const)
      : ({ to: "tenant", machines: await machineAddresses(context.configuration) } as const);
  sendJson(response, 200, connectionAnswer(ends, question.value, toldTo(told, all.value, ends)));
}

/** Who runs a cell does not say where, nor what nobody has to have looked at: that is who runs the machines. Null: it is refused. */
function operatorOf({ caller, incoming, response }: Exchange<"moveVm" | "forceStop">, what: string): Asker | null {
  if (caller?.operator === true) return askerOf(caller, incoming);
  sendRefusal(response, 403, "forbidden", `${what} is the operator's to say`);
  return null;
}

async function moveVm(exchange: Exchange<"moveVm">): Promise<void> {
  const by = operatorOf(exchange, "where a VM runs");
  const read = by === null ? null : await bodyOnce(exchange);
  if (by === null || read === null) return;
  const { body, ...once } = read;
  await relay(exchange, { method: "MOVE", ...body, tentative: exchange.query.dryRun === true, by, ...once });
}

async function forceStop(exchange: Exchange<"forceStop">): Promise<void> {
  const by = operatorOf(exchange, "that a host's word is not waited for");
  const read = by === null ? null : await bodyOnce(exchange);
  if (by === null || read === null) return;
  const { body, ...once } = read;
  await relay(exchange, { method: "FORCE-STOP", ...body, tentative: exchange.query.dryRun === true, by, ...once });
}

/** Hands a command on to the host where the VM's incarnation runs. It never touches the model. */
async function exec(exchange: Exchange<"exec">): Promise<void> {
  const { context, response } = exchange;
  const body = await bodyOf(exchange);
  if (body === null) return;
  const { vm, command, timeoutMs: asked = shortExecMs } = body;
  const timeoutMs = asked > 0 ? Math.min(asked, longestExecMs) : shortExecMs;
  const target = await ask(context, { method: "EXEC-TARGET", vm });
  if (target.status !== 200) {
    sendJson(response, target.status, target.body);
    return;
  }
  const { host, uid, incarnation } = target.body as unknown as ExecTarget;
  await record(exchange, { verb: "exec", target: vm });
  const answered = await askHost(
    context.configuration,
    `host.${host}`,
    "/exec",
    { vm: uid, incarnation, command, timeoutMs },
    timeoutMs + 10_000,
  );
  if (!answered.ok) sendRefusal(response, 502, "unreachable", answered.error);
  else sendJson(response, answered.value.status, answered.value.json);
}
