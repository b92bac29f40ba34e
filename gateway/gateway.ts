import { type FastifyInstance, type FastifyReply, type FastifyRequest, fastify } from "fastify";
import { rootCell } from "../core/documents/cells.ts";
import type { Changed, Refusal } from "../model/api.ts";
import { match } from "../model/contract/match.ts";
import { openApi } from "../model/contract/openapi.ts";
import { readQuery } from "../model/contract/request.ts";
import { spendingHandler } from "../runtime/controller/tickets.ts";
import { isAuthorized } from "../runtime/http/bearer.ts";
import { parseJson, readBody, retryAfterOf } from "../runtime/http/http.ts";
import { type PeerResponse, type PeerServer, servePeers } from "../runtime/http/https.ts";
import { IssuedTickets } from "../runtime/identity/tickets.ts";
import type { ProcessConfiguration } from "../runtime/installation.ts";
import { createObserver, type Observer } from "../runtime/observation/observer.ts";
import { addressOf } from "../runtime/transport/admission.ts";
import { type Cells, createCells } from "./cells/cells.ts";
import { registerElements } from "./cells/elements.ts";
import { registerPools } from "./cells/pools.ts";
import { createSupervised } from "./cells/registry.ts";
import { createRootCells } from "./cells/root-cells.ts";
import { SupervisorError } from "./cells/supervisor.ts";
import { installationSupply } from "./cells/supply.ts";
import { firstPlan, readFirstModel } from "./cells/unknown-cell.ts";
import { createIntroduction, createPlaces, type Introduction } from "./edge/admission.ts";
import { GrantedSessions } from "./edge/granted.ts";
import { ownNames } from "./edge/own-names.ts";
import { registerSessions } from "./edge/sessions.ts";
import { createPresent } from "./edge/tickets.ts";
import { registerFollow } from "./follow/follow.ts";
import { followNotifications, type Notifications } from "./follow/notifications/notifications.ts";
import { createReceivers } from "./follow/notifications/receivers.ts";
import { modelOf, type Readers, requireVm, sourceOf } from "./follow/sources.ts";
import { registerHa } from "./ha/ha.ts";
import { followMail } from "./ha/mail.ts";
import { followNotices } from "./ha/notices.ts";
import { registerNumbers } from "./numbers/numbers.ts";
import { createConnections } from "./observation/connections.ts";
import { registerNetwork } from "./observation/network.ts";
import { registerObservation } from "./observation/observation.ts";
import { createStatus } from "./observation/status.ts";
import { registerZone } from "./observation/zone.ts";
import { certificateWarnings } from "./page/certificate/ends.ts";
import { isOfPage, registerPage } from "./page/page.ts";
import { registerCapacity } from "./placement/capacity.ts";
import { createQuestions } from "./placement/questions.ts";
import { registerRebalance } from "./placement/rebalance.ts";
import { registerTrial } from "./placement/trial.ts";
import { isChildName, requireCellName, requireFreeName } from "./requests/cell-names.ts";
import { boundOfNew, cellSourceOf } from "./requests/cell-source.ts";
import { beyondScope, isPlainPath, type Person, type Scope, scopeOf } from "./requests/credentials.ts";
import { type Forwarded, forward, forwardToNew, passBack, type Way } from "./requests/forward.ts";
import { asNoDocument } from "./requests/no-document.ts";
import { pageFor } from "./requests/paging.ts";
import type { Questions } from "./requests/places.ts";
import { RefusedError, refused } from "./requests/refused.ts";
import { leaves, serveRoute } from "./requests/serve.ts";
import { registerWholeHosts } from "./requests/whole-hosts.ts";
import type { GatewayMeans } from "./shared/means.ts";
import { tellWhose } from "./shared/whose.ts";
import { Passes } from "./sign-in/passes.ts";
import { createSignIn, type SignIn } from "./sign-in/sign-in.ts";
import { registerBackup } from "./storage/backup.ts";
import { registerAdoption, registerBin } from "./storage/bin.ts";
import { registerImages } from "./storage/images.ts";
import { registerOrphans } from "./storage/orphans.ts";
import { registerPersistent, volumesSeen } from "./storage/persistent.ts";
import { registerUploads } from "./storage/uploads.ts";
import { registerAudit } from "./tenancy/audit.ts";
import { registerSigned } from "./tenancy/credentials.ts";
import { ownerThere } from "./tenancy/owner-there.ts";
import { givesHosts, requireOwners } from "./tenancy/owners-in-text.ts";
import { createTenants, isOfSession, loginPlaces, registerTenants, type Tenants } from "./tenancy/tenants.ts";

/*
 * The basic personality: the published contract (`model/contract/routes.ts`) on HTTP. The gateway decides nothing about a cell: it
 * checks the credential, finds the controller and passes everything on. Only the birth and the end of a controller are its
 * own, since a cell that does not exist has nobody to ask.
 */

const bodyLimitBytes = 16 * 1024 * 1024;
/** What a controller gives is some 300 bytes. */
const longestGrantBytes = 16 * 1024;
const newControllerTimeoutMs = 20_000;

interface Context extends Way {
  readonly credentialHashes: readonly string[];
  readonly cells: Cells;
  readonly introduction: Introduction;
  readonly granted: GrantedSessions;
  readonly tenants: Tenants;
}

/** What somebody could ask a cell's controller, asked for the stream that he follows. */
const forwardRead = (
  way: Way,
  { cell, path, authorization }: { readonly cell: string; readonly path: string; readonly authorization: string },
  { signal, follows }: { readonly signal: AbortSignal; readonly follows: boolean },
): Promise<PeerResponse> =>
  forward(way, cell, {
    method: "GET",
    url: `/cells/${encodeURIComponent(cell)}/${path}`,
    headers: { authorization },
    body: null,
    signal,
    follows,
    source: "",
  });

/** Ready to listen; `close` also ends what it does in the background. */
export function createGateway(
  configuration: ProcessConfiguration,
  observer: Observer = createObserver(configuration.name),
  { serve, receivers, certificate }: GatewayMeans = {},
): FastifyInstance {
  const options = configuration.gateway;
  if (options === undefined) throw new Error('the configuration has no "gateway" part, which this process needs');
  const { supervisorSocket = null, credentialHashes } = options;
  const tenants = createTenants(configuration);
  const registry =
    supervisorSocket === null
      ? createRootCells(configuration, credentialHashes, tenants)
      : createSupervised(supervisorSocket);
  const tickets = supervisorSocket === null ? null : new IssuedTickets(() => performance.now());
  const way: Way = { configuration, present: createPresent(configuration, credentialHashes, tickets, tenants) };
  const cells = createCells(way, registry, observer.log, tenants.free);
  const introduction = createIntroduction(configuration, cells);
  const granted = new GrantedSessions();
  const context: Context = { ...way, credentialHashes, cells, introduction, granted, tenants };
  const app = fastify({
    bodyLimit: bodyLimitBytes,
    routerOptions: { maxParamLength: 512 },
    forceCloseConnections: true,
    ...(serve === undefined ? {} : { serverFactory: serve }),
  });
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("*", { parseAs: "buffer" }, (_request, body, done) => done(null, body));
  const passes = new Passes(() => performance.now());
  const takePlace = createPlaces();
  const logins = loginPlaces();
  const isOwnName = ownNames(configuration, certificate);
  app.addHook("onRequest", async (_request, reply) => asNoDocument(reply.raw));
  registerPage(app, options.page, isOwnName, certificate);
  const whoIs = (authorization: string): Person => {
    const scope = knownScope(context, authorization);
    return { scope, person: tenants.userOf(authorization) ?? JSON.stringify(scope) };
  };
  const signIn = createSignIn(app, {
    configuration,
    isOwnName,
    whoIs,
    scopeOf: async (authorization, address) => {
      const scope = await introducedUser(context, authorization, address);
      if (scope.kind === "cell") await introduction.introduce(scope.cell, authorization, address);
      return scope;
    },
  });
  app.addHook("onRequest", async (request, reply) => {
    if (!isPlainPath(request.url))
      throw refused(400, "bad-request", "a request names a path, from its `/` on and without a `#`: GET /cells");
    if ((request.method === "GET" || request.method === "HEAD") && isOfPage(request.url)) return;
    if (match(request.method, request.url)?.route.who === "anyone") {
      takeLoginPlace(logins, request, reply);
      return;
    }
    const isPassed = passes.admit(request);
    const scope = await scopeOfRequest(context, signIn, request, reply);
    const beyond = beyondScope(scope, request.method, request.url);
    if (beyond !== null) throw refused(403, "forbidden", beyond);
    if (scope.kind === "cell" && !(await isIntroduced(introduction, scope.cell, request))) {
      // The list of cells is empty for whoever their controllers do not know.
      reply.send([]);
      return reply;
    }
    // Whoever only says to be of a cell has left by now, and none of its measure.
    tellWhose(request.headers, reply.raw, scope);
    takePlace(scope, followsIn(request) ? "followers" : isPassed ? "passed" : "requests", reply);
  });
  app.setErrorHandler((error, _request, reply) => answerError(error, reply, observer.log));
  app.setNotFoundHandler(async (request) => {
    throw refused(404, "not-found", `there is no ${request.method} of ${request.url}; see the API reference`);
  });
  app.addHook("onClose", () => context.cells.stop());
  if (tickets !== null) serveTickets(app, configuration, tickets);
  registerTenants(app, configuration, registry.give);
  registerSigned(app, configuration);
  registerAudit(app, way, (authorization) =>
    isOfSession(authorization) ? tenants.cells(authorization) : cells.names(authorization),
  );
  const cellOf = (authorization: string): string | null => {
    const scope = scopeOf(authorization, credentialHashes);
    return scope?.kind === "cell" ? scope.cell : null;
  };
  const summaries = async (authorization: string) => {
    const own = cellOf(authorization);
    const only = isOfSession(authorization) ? await tenants.cells(authorization) : own === null ? null : [own];
    return cells.summaries(authorization, only, isOfSession(authorization));
  };
  serveRoute(app, "listCells", async ({ request, query }, reply) =>
    pageFor("listCells", await summaries(request.headers.authorization ?? ""), query, reply),
  );
  registerElements(app, way, { owners: tenants.owners, names: cells.names, isOfSession, cellOf });
  const cellSource = (request: FastifyRequest) =>
    cellSourceOf({ way, sessions: tenants, isOfSession, names: cells.names }, request);
  registerPools(app, cellSource);
  registerWholeHosts(app, cellSource, ownerThere(configuration));
  serveRoute(app, "readOpenApi", () => openApi());
  const connections = createConnections(configuration);
  app.addHook("onClose", async () => connections.close());
  const warnings = () => (certificate === undefined ? [] : certificateWarnings(certificate.state(), Date.now()));
  const status = createStatus(configuration, supervisorSocket, connections, warnings);
  serveRoute(app, "readStatus", status);
  registerImages(app, configuration);
  const isOperator: Readers["isOperator"] = (authorization) => isAuthorized(authorization, credentialHashes);
  registerUploads(app, { configuration, isOperator, receivers: receivers ?? createReceivers(configuration) });
  registerBin(app, configuration);
  registerBackup(app, configuration, supervisorSocket);
  registerOrphans(app, configuration);
  registerPersistent(app, configuration, passes);
  const ha = registerHa(app, configuration);
  registerZone(app, configuration);
  const asking = { configuration, questions: createQuestions(), whoIs };
  registerCapacity(app, asking);
  registerRebalance(app, asking);
  registerTrial(app, asking);
  registerNetwork(app, configuration);
  const told: (() => void)[] = [];
  app.addHook("onReady", async () => {
    told.push(followNotices(configuration), followMail(configuration));
  });
  app.addHook("onClose", async () => {
    for (const end of told) end();
  });
  registerAdoption(app, configuration);
  const timeline = registerObservation(app, configuration, supervisorSocket, observer, connections);
  const asked: Pick<Readers, "requireCell" | "ask"> = {
    requireCell: (cell, authorization) => requireCell(context, cell, authorization),
    ask: (cell, path, authorization, options) => forwardRead(way, { cell, path, authorization }, options),
  };
  const counters = registerNumbers(app, {
    configuration,
    connections,
    isSupervised: supervisorSocket !== null,
    status,
    isOperator,
    model: (cell, authorization, signal) => modelOf(asked, cell, authorization, { signal }),
    requireVm: (cell, path, authorization, signal) => requireVm(asked, { cell, path, authorization }, signal),
  });
  const readers: Readers = {
    ...asked,
    isOperator,
    counters,
    cellOf,
    status,
    cells: summaries,
    timeline,
    ha,
  };
  const means: Notifications = {
    sourceOf: (topic, authorization) => sourceOf(readers, topic, authorization),
    volumes: volumesSeen(configuration, passes),
    ...(receivers === undefined ? {} : { receivers }),
  };
  app.addHook("onReady", async () => {
    told.push(followNotifications(configuration, means));
  });
  registerFollow(app, { sourceOf: means.sourceOf, whoIs });
  registerSessions(app, configuration, granted);
  // Also what the table does not name: a controller of the next version may serve it.
  for (const url of ["/cells/:cell", "/cells/:cell/*"]) {
    app.all<{ Params: { cell: string } }>(url, (request, reply) => onCell(context, request, reply));
  }
  return app;
}

/** Who shows this. Rejects with a refusal where nobody is known by it; of a cell's credential its controller is not asked yet. */
async function introducedUser(context: Context, authorization: string, address: string): Promise<Scope> {
  if (isOfSession(authorization)) await context.tenants.introduce(authorization, address);
  return knownScope(context, authorization);
}
function knownScope(context: Context, authorization: string): Scope {
  const scope = scopeHere(context, authorization);
  if (scope === null)
    throw refused(401, "unauthorized", "a valid credential is needed: Authorization: Bearer <credential>");
  return scope;
}
/** The same of a request, which may show a sign-in's cookie in place of a credential. */
async function scopeOfRequest(
  context: Context,
  signIn: SignIn,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<Scope> {
  signIn.admit(request, reply, followsIn(request));
  try {
    return await introducedUser(context, request.headers.authorization ?? "", addressOf(request.raw.socket));
  } catch (error) {
    if (error instanceof RefusedError && error.statusCode === 401) signIn.lost(request, reply);
    throw error;
  }
}
/** Of a session, once it was introduced. */
function scopeHere({ credentialHashes, tenants }: Context, authorization: string): Scope | null {
  const account = isOfSession(authorization) ? tenants.accountOf(authorization) : null;
  return account === null ? scopeOf(authorization, credentialHashes) : { kind: "account", account };
}
function takeLoginPlace(logins: Questions, request: FastifyRequest, reply: FastifyReply): void {
  const end = logins.begin("", addressOf(request.raw.socket));
  if (end !== null) reply.raw.once("close", end);
  else {
    reply.header("retry-after", "1");
    throw refused(503, "busy", "too many logins are under way; try again in a second");
  }
}

/** Where there is no root controller, the cells' controllers ask this process what a ticket is worth. */
function serveTickets(app: FastifyInstance, configuration: ProcessConfiguration, tickets: IssuedTickets): void {
  let server: PeerServer | null = null;
  app.addHook("onReady", async () => {
    server = await servePeers(configuration, spendingHandler(tickets));
  });
  app.addHook("onClose", async () => server?.stop());
}

/** False: nobody vouches for its credential, and it asks for the list of cells. Rejects where it asks for something else. */
async function isIntroduced(introduction: Introduction, cell: string, request: FastifyRequest): Promise<boolean> {
  const { authorization = "" } = request.headers;
  try {
    await introduction.introduce(cell, authorization, addressOf(request.raw.socket));
    return true;
  } catch (error) {
    if (
      match(request.method, request.url)?.name !== "listCells" ||
      !(error instanceof RefusedError) ||
      error.statusCode === 503
    )
      throw error;
    return false;
  }
}

function followsIn({ method, url }: FastifyRequest): boolean {
  const name = match(method, url)?.name;
  if (name === "follow") return true;
  if (name !== "followCell" && name !== "followServices") return false;
  const query = readQuery(name, url);
  return query.ok && query.value.follow === true;
}

function answerError(error: unknown, reply: FastifyReply, log: Observer["log"]): void {
  const known = error as { readonly statusCode?: number; readonly code?: string; readonly message?: string };
  let status = known.statusCode ?? 500;
  let refusal: Refusal["error"];
  if (error instanceof RefusedError) refusal = error.refusal;
  else if (error instanceof SupervisorError) {
    status = error.status;
    refusal = { code: "supervisor", message: error.message };
  } else if (known.code === "FST_ERR_CTP_BODY_TOO_LARGE") {
    const most = `${bodyLimitBytes / 1024 / 1024} MiB, or than the 256 KiB that one about users and accounts may have`;
    refusal = { code: "too-large", message: `the body is larger than ${most}` };
  } else if (status < 500) {
    refusal = { code: "bad-request", message: known.message ?? "the request is not valid HTTP" };
  } else {
    // The cause may hold what is none of the client's business; it goes to this process's own log.
    log("gateway/failed", { why: known.message ?? String(error) });
    refusal = { code: "internal", message: "the gateway failed to answer this request; its log says why" };
  }
  if (status === 503 && !reply.hasHeader("retry-after")) reply.header("retry-after", retryAfterOf(refusal.code));
  reply
    .code(status)
    .type("application/json")
    .send({ error: refusal } satisfies Refusal);
}

async function onCell(
  context: Context,
  request: FastifyRequest<{ Params: { cell: string } }>,
  reply: FastifyReply,
): Promise<void> {
  const { cell } = request.params;
  const { cells, configuration } = context;
  requireCellName(cell);
  const what: Forwarded = {
    method: request.method,
    url: request.url,
    headers: request.headers,
    body: request.body instanceof Buffer ? request.body : null,
    signal: leaves(reply),
    source: addressOf(request.raw.socket),
    follows: followsIn(request),
  };
  const name = match(request.method, request.url)?.name;
  const changesAll = name === "putModel" || name === "deleteModel";
  const query = changesAll ? readQuery(name, request.url) : null;
  if (query?.ok === false) throw refused(400, query.error.code, query.error.message);
  const dryRun = query?.value.dryRun === true;
  const authorization = request.headers.authorization ?? "";
  if (cells.empties && cell === rootCell && name === "deleteModel")
    throw refused(
      409,
      "conflict",
      "the cloud itself runs in the root cell: take out of it what is not to run any more",
    );
  const ask = (each: Forwarded): Promise<PeerResponse> => reachable(cell, forward(context, cell, each));
  if (cell === rootCell && givesHosts(name, what) && (await cells.has(cell)))
    await requireOwners(what, ask, ownerThere(configuration)(request));
  if (name === "putModel") {
    const answer = await cells.exclusively(cell, () => putModel(context, cell, what, dryRun));
    if ("plan" in answer) reply.send(answer);
    else await give(answer, reply);
    return;
  }
  await requireCell(context, cell, authorization);
  const answer = await ask(what);
  // A child cell ends with its element in its parent's specification.
  if (name === "deleteModel" && answer.status === 200 && !dryRun && !isChildName(cell)) {
    await cells.endWhenEmpty(cell, authorization);
  }
  if (answer.status === 401) context.introduction.forget(authorization);
  if (answer.status === 201 && name === "grantSession")
    await giveSession(context, { cell, authorization }, answer, reply);
  else await give(answer, reply);
}

/** Keeps in mind what it passes on, so that the client is known by it when it opens the session. */
async function giveSession(
  context: Context,
  { cell, authorization }: { readonly cell: string; readonly authorization: string },
  answer: PeerResponse,
  reply: FastifyReply,
): Promise<void> {
  const text = await readBody(answer.body, longestGrantBytes);
  const grant = text.ok ? parseJson(text.value) : text;
  const { session } = ((grant.ok ? grant.value : null) ?? {}) as { readonly session?: unknown };
  const scope = scopeHere(context, authorization);
  if (!text.ok || typeof session !== "string" || scope === null) {
    answer.body.destroy();
    throw refused(502, "controller-unreachable", `the controller of the cell "${cell}" gave no sound session`);
  }
  context.granted.add(cell, session, scope);
  reply.code(201).type("application/json").header("cache-control", "no-store").send(text.value);
}

async function give(answer: PeerResponse, reply: FastifyReply): Promise<void> {
  reply.hijack();
  await passBack(answer, reply.raw);
}

/** Which other cells there are is for the operator. */
async function requireCell(context: Context, cell: string, authorization: string): Promise<void> {
  const { cells, credentialHashes, tenants } = context;
  // A user is told in the same words, by the same service, what is not there and what is not his.
  if (isOfSession(authorization)) await tenants.ticketFor(cell, authorization);
  if (await cells.has(cell)) return;
  const tellOthers = isAuthorized(authorization, credentialHashes);
  const others = tellOthers ? `; there are: ${(await cells.names(authorization)).join(", ") || "none"}` : "";
  throw refused(404, "not-found", `there is no cell "${cell}"${others}`);
}

/** The whole model of a cell, which may be its first. */
async function putModel(
  context: Context,
  cell: string,
  what: Forwarded,
  dryRun: boolean,
): Promise<PeerResponse | Changed> {
  const { configuration, cells, credentialHashes } = context;
  const authorization = String(what.headers.authorization);
  const byOperator = isAuthorized(authorization, credentialHashes);
  const byUser = isOfSession(authorization);
  const { tenants } = context;
  const isThere = byUser && (await cells.has(cell));
  if (byUser) await tenants.claim(cell, authorization, { isThere, dryRun: dryRun || !isThere });
  if (await (byOperator ? cells.isMade(cell, authorization) : cells.has(cell)))
    return reachable(cell, forward(context, cell, what));
  if (!cells.mayMake(authorization) || !(byOperator || byUser))
    throw refused(404, "not-found", `there is no cell "${cell}", and only the operator makes one`);
  requireFreeName(cell);
  const supply = await installationSupply(configuration);
  const first = await readFirstModel(cell, String(what.headers["content-type"]), what.body ?? Buffer.alloc(0), supply);
  if (!first.ok) throw new RefusedError(400, first.error);
  if (dryRun) {
    const means = { way: context, sessions: tenants, isOfSession, names: cells.names };
    // Elsewhere nobody bounds it.
    const bound = cells.empties ? await boundOfNew(means, authorization) : {};
    return firstPlan(first.value, supply, bound);
  }
  // Its name is whose it is from before it is there: the operator's, or the account's of who makes it.
  if (byUser) await tenants.claim(cell, authorization, { isThere: false, dryRun: false });
  else await tenants.free(cell, authorization);
  await cells.make(cell, authorization, what.signal);
  try {
    const first = withFirstVersion(what, cells.firstVersion);
    const answer = await reachable(cell, forwardToNew(context, cell, first, newControllerTimeoutMs));
    if (answer.status !== 200) await discard(cells, cell, what);
    return answer;
  } catch (error) {
    await discard(cells, cell, what);
    throw error;
  }
}

/** Who planned the first model of a cell that was not there says that it has version 0. */
function withFirstVersion(what: Forwarded, version: number): Forwarded {
  const isFirst = /^"?0"?$/.test(String(what.headers["if-match"]).trim());
  return isFirst ? { ...what, headers: { ...what.headers, "if-match": `"${version}"` } } : what;
}

/** Best effort: a controller that stays is found by the next PUT, and says itself that it has no model. */
const discard = (cells: Cells, cell: string, what: Forwarded): Promise<void> =>
  cells.discardUnused(cell, String(what.headers.authorization)).catch(() => {});

async function reachable<T>(cell: string, answer: Promise<T>): Promise<T> {
  try {
    return await answer;
  } catch (error) {
    if (error instanceof RefusedError) throw error;
    const message = `the controller of the cell "${cell}" does not answer: ${(error as Error).message}`;
    throw refused(502, "controller-unreachable", message);
  }
}
