import type { PeerName } from "../../model/cell/identifiers.ts";
import type { Json } from "../../model/json/json.ts";
import { mayDesire, maySee } from "../documents/permissions.ts";
import { documentsOf } from "../documents/readers/table.ts";
import { desiredDeclared, desiredLook, desiredOwner } from "../documents/readers/tenancy.ts";
import { type DesiredOwner, declaredKey } from "../documents/tenancy.ts";
import { actualKey } from "../documents/vocabulary.ts";
import type { Input, Restored, Service } from "../env.ts";
import { audit, createOutbox, isObject, log, takeEffects, toJson, write } from "../outbox.ts";
import { gauge, sample } from "../telemetry/metrics.ts";
import { answer, type TenancyRequest } from "./asks.ts";
import { room } from "./audit/audited.ts";
import { advanceDeclared, takeDeclared } from "./declared/declared.ts";
import { advanceEnds, dropWhatIsNobodys } from "./deletion/deletion.ts";
import { dropOldApplications } from "./logins/applications.ts";
import { dropOldInvitations } from "./logins/invitations.ts";
import { dropKeysOfNobody } from "./logins/keys.ts";
import { endOldSessions } from "./logins/logins.ts";
import { askWithinMs, dropUnused, publishLooks, takeLook } from "./looks.ts";
import { rootRecord, takeOwner } from "./owners/owners.ts";
import { Payers } from "./quotas/payers.ts";
import { desireLimits, hearGranted, noteOwned } from "./quotas/quotas.ts";
import { beginCounting, countAll, countBefore } from "./quotas/usage.ts";
import type { HeldRecord } from "./records.ts";
import { beginTree, emptyTables, type Kind, noteLogin, noteSession, type TenancyState } from "./state.ts";
import { noticeTimer, restoreNotices, settleNotices, waitForNotice } from "./subscriptions/notices.ts";
import { dropSubscriptionsOfNobody } from "./subscriptions/subscriptions.ts";

/*
 * Who is who, and what they may: domains, accounts, users, roles, sessions, and whose a cell is. Each cell's controller decides what
 * may be done there, by what this says to it of the ticket that it was shown.
 *
 * No request waits for another service. What is in the store is the truth, so a store that is older than what others have seen of it would let
 * those in again whose rights were taken back: it lets in who administers the installation, and nobody else, until somebody lets it count.
 */
export interface TenancyOptions {
  readonly self: PeerName;
}

const sweepTimer = "sweep";
const sweepEveryMs = 30_000;
const kinds: readonly Kind[] = [
  "domain",
  "account",
  "user",
  "role",
  "session",
  "ticket",
  "owner",
  "key",
  "provider",
  "delegation",
  "invitation",
  "opening",
  "application",
  "usage",
  "subscription",
  "notice",
];
/** Nobody may more or less by these: what a subscription reads ends with its session. */
const ofNoRight: readonly Kind[] = ["subscription", "notice"];
const isKind = (text: string): text is Kind => (kinds as readonly string[]).includes(text);

/** Clients: `controller.<cell>`. Requests: `TenancyRequest` → `TenancyResponse`. */
export function createTenancy(_options: TenancyOptions): Service<TenancyState> {
  return {
    restore,
    step: (state, input, now) => {
      state.now = now;
      take(state, input);
      return { state, effects: takeEffects(state.outbox) };
    },
    audience: () => null,
    entitled: (_state, peer, key) => maySee("tenancy", peer, key),
    accepts: (peer, key) => mayDesire("tenancy", peer, key),
    read: documentsOf("tenancy"),
    record: (state, entry, now) => {
      audit(state.outbox, now, entry, room);
      return takeEffects(state.outbox);
    },
    isLost: ({ held }) => held !== null,
    measure: ({ tables, looks, held }) => [
      gauge(
        "cells_tenancy_records",
        "What is kept, by kind.",
        kinds.map((kind) => sample(tables[kind].size, { kind })),
      ),
      gauge("cells_tenancy_looks", "Tickets that controllers follow.", [sample(looks.size)]),
      gauge("cells_tenancy_held", "1: the store is older than it was, and lets nobody in but administrators.", [
        sample(held === null ? 0 : 1),
      ]),
    ],
  };
}

function restore(restored: Restored): TenancyState {
  const state: TenancyState = {
    outbox: createOutbox(restored),
    tables: emptyTables(),
    notices: { queues: new Map(), carried: new Map(), since: 0, changes: 0, waiting: null },
    logins: new Map(),
    subjects: new Map(),
    looks: new Map(),
    unused: new Map(),
    failures: new Map(),

    owners: new Map(),
    ownersOf: new Map(),
    payers: new Payers(),
    declared: { all: new Map(), of: new Map(), pending: new Set() },
    accountsAt: null,
    domainsAt: null,
    delegationsOf: null,
    sessionsBy: new Map(),
    granted: new Map(),
    left: new Map(),
    ending: new Set(),
    limitNews: "all" as const,
    hearsGranted: false,
    counted: new Map(),
    countedAllMs: 0,
    linked: new Set<string>(),
    held: (restored.records.get("held") as unknown as HeldRecord | undefined) ?? null,
    started: false,
    hasRoot: restored.records.has(rootRecord),
    wasPutBack: restored.wasRestored === true,
    now: { ms: 0, wallMs: 0 },
  };
  for (const [key, value] of restored.records) {
    const [kind = "", ...rest] = key.split("/");
    if (isKind(kind)) (state.tables[kind] as Map<string, unknown>).set(rest.join("/"), value);
  }
  for (const table of [state.tables.account, state.tables.domain])
    for (const [uid, { deleting }] of table) if (deleting === true) state.ending.add(uid);
  for (const [uid, user] of state.tables.user) noteLogin(state, user, uid);
  for (const [hash, session] of state.tables.session) noteSession(state, hash, session, true);
  return state;
}

function take(state: TenancyState, input: Input): void {
  switch (input.kind) {
    case "start":
      start(state);
      break;
    case "desired":
      takeDesired(state, input.from, input.key, input.value);
      return;
    case "behind":
      hold(state, `${input.peer} has seen more of it`);
      break;
    case "excused":
      release(state);
      break;
    case "timer":
      if (input.name === noticeTimer) {
        settleNotices(state);
        return;
      }
      sweep(state);
      break;
    case "request":
      takeRequest(state, input.id, input.request);
      break;
    case "actual":
      hearGranted(state, input.key, input.value);
      if (state.ending.size === 0) return;
      break;
    case "released":
      state.outbox.releasing.get(input.peer)?.delete(input.key);
      return;
  }
  advanceEnds(state);
  advanceDeclared(state);
  publishLooks(state, input.kind === "request" || input.kind === "actual" ? written(state) : "all");
  desireLimits(state);
  settleNotices(state);
}

/**
 * What a request has changed that a ticket may be worth less or more by: all that is said rests on records, and on time, which the
 * sweep sees to. Whoever tries passwords by the thousand writes nothing, and costs no look at what everybody else holds.
 */
function written({ outbox }: TenancyState): ReadonlySet<string> | "all" {
  const tickets = new Set<string>();
  for (const effect of outbox.effects) {
    if (effect.kind !== "write") continue;
    const [kind = "", ...rest] = effect.key.split("/");
    if (kind === "ticket") tickets.add(rest.join("/"));
    // A session that is new is nobody's yet.
    else if (isKind(kind) && !ofNoRight.includes(kind) && (kind !== "session" || effect.value === null)) return "all";
  }
  return tickets;
}

function start(state: TenancyState): void {
  state.started = true;
  beginTree(state);
  restoreNotices(state);
  dropKeysOfNobody(state);
  dropSubscriptionsOfNobody(state);
  dropWhatIsNobodys(state);
  if (state.wasPutBack) hold(state, "it was put back from a backup");
  const looked = new Set([...state.looks.values()].map(({ ticket }) => ticket));
  for (const hash of state.tables.ticket.keys())
    if (!looked.has(hash)) state.unused.set(hash, state.now.ms + askWithinMs);
  const { user, session } = state.tables;
  log(state.outbox, "service/restored", { users: user.size, sessions: session.size });
  beginCounting(state);
  sweep(state);
}

function takeDesired(state: TenancyState, from: PeerName, key: string, value: Json): void {
  if (key.startsWith("owner/")) {
    const [at, document] = [actualKey(from, key), value === null ? null : desiredOwner.of(value)];
    const before = state.owners.get(at) ?? null;
    countBefore(state, before, document);
    takeOwner(state, at, document);
    if (isSameOwner(before, document)) return;
    noteOwned(state, [before?.account, document?.account]);
    advanceEnds(state);
    if (state.started) publishLooks(state, "all");
    desireLimits(state);
    return;
  }
  if (key.startsWith(declaredKey(""))) {
    takeDeclared(state, actualKey(from, key), value === null ? null : desiredDeclared.of(value));
    if (!state.started) return;
    const before = state.outbox.effects.length;
    advanceDeclared(state);
    if (state.outbox.effects.slice(before).some(({ kind }) => kind === "write")) publishLooks(state, "all");
    desireLimits(state);
    return;
  }
  const document = value === null ? null : desiredLook.of(value);
  takeLook(state, actualKey(from, key), document === null ? null : { controller: from, ticket: document.ticket });
}

/** But for what it has, which nobody's rights rest on. */
const isSameOwner = (before: DesiredOwner | null, now: DesiredOwner | null): boolean =>
  before !== null &&
  now !== null &&
  before.cell === now.cell &&
  before.account === now.account &&
  before.ending === now.ending;

function hold(state: TenancyState, why: string): void {
  if (state.held !== null) return;
  state.held = { why };
  write(state.outbox, "held", state.held);
  log(state.outbox, "tenancy/held", { why });
}
function release(state: TenancyState): void {
  if (state.held === null) return;
  state.held = null;
  state.linked.clear();
  state.limitNews = "all";
  write(state.outbox, "held", null);
  log(state.outbox, "tenancy/released", {});
}

function sweep(state: TenancyState): void {
  endOldSessions(state);
  dropOldInvitations(state);
  dropOldApplications(state);
  dropUnused(state);
  countAll(state);
  state.outbox.effects.push({ kind: "timer", name: sweepTimer, afterMs: sweepEveryMs });
}

function takeRequest(state: TenancyState, id: number, request: Json): void {
  if (isObject(request) && request.kind === "notice-next") {
    waitForNotice(state, id, typeof request.watched === "string" ? request.watched : null);
    return;
  }
  // Its edge alone asks, and has read what came from outside.
  const response = isObject(request)
    ? answer(state, request as unknown as TenancyRequest)
    : { status: 400, body: { error: { code: "bad-request", message: "a request is an object" } } };
  state.outbox.effects.push({ kind: "reply", id, response: toJson(response) });
}
