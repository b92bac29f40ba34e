import { type Login, userPattern, userRule } from "../../../model/contract/tenancy/tenancy.ts";
import type { Json, JsonObject } from "../../../model/json/json.ts";
import { fail, ok, type Result } from "../../../model/result.ts";
import { log } from "../../outbox.ts";
import { actorAs, refuseLastRootAdmin } from "../actor.ts";
import { record, recordOwn } from "../audit/audited.ts";
import { refuseUser } from "../people.ts";
import type { MappingRecord, ProviderRecord, UserRecord } from "../records.ts";
import { type Refused, refused } from "../refused.ts";
import {
  accountPath,
  domainsAbove,
  labelOf,
  rightsOf,
  roleOf,
  rootUid,
  save,
  subjectKey,
  type TenancyState,
} from "../state.ts";
import { endSession, heldMessage, letIn } from "./logins.ts";

/*
 * Logins by a provider of OpenID Connect. Whoever carries out the steps has seen that its answer counts; here it is decided who that is. Somebody is
 * known by the provider's word for him that never changes, not by a name, which there may be given again: so nobody becomes a user whom
 * somebody else has made. With each login he has the role that the first mapping gives which fits him; whom none fits is not let in.
 */
/** What has to be known of a provider to ask it. */
export interface ProviderLook {
  readonly kind: "provider-look";
  /** Null: the only one. */
  readonly name: string | null;
}
export interface OidcLogin {
  readonly kind: "oidc-login";
  /** UID of the provider. */
  readonly provider: string;
  readonly issuer: string;
  readonly subject: string;
  readonly claims: JsonObject;
  /** What the provider calls the session there; absent: it has not said. */
  readonly sid?: string;
  /** Of a user who is to be. */
  readonly uid: string;
  /** Hash of the session that is to be. */
  readonly session: string;
  /** Address of the client. */
  readonly source: string;
}

export function lookProvider(state: TenancyState, { name }: ProviderLook): Result<ProviderRecord, Refused> {
  // Whom it gave a role that was taken back, and who is unknown to it now, is not known of an older store.
  if (state.held !== null) return fail(refused(503, "held", `${heldMessage(state.held.why)}, by password`));
  const all = [...state.tables.provider.values()];
  const [found, second] = name === null ? all : all.filter((each) => each.name === name);
  if (found === undefined)
    return fail(refused(404, "not-found", `there is no provider${name === null ? "" : ` "${name}"`} to log in by`));
  if (second !== undefined) {
    const names = all.map((each) => each.name).join(", ");
    return fail(refused(400, "bad-request", `there are several providers, say which: ${names}`));
  }
  return ok(found);
}

/** Which provider has signed a token, by what the token says itself. */
export interface LogoutLook {
  readonly kind: "logout-look";
  readonly issuer: string;
  readonly audience: readonly string[];
}
/** Somebody has logged out at a provider, whose word it is. */
export interface ProviderLogout {
  readonly kind: "oidc-logout";
  /** UID. */
  readonly provider: string;
  readonly issuer: string;
  /** Null: whosever it is. */
  readonly subject: string | null;
  /** Of the session there; null: all. */
  readonly sid: string | null;
  /** Address of the client. */
  readonly source: string;
}
export function lookLogout(
  { tables }: TenancyState,
  { issuer, audience }: LogoutLook,
): Result<ProviderRecord, Refused> {
  const found = [...tables.provider.values()].find(
    (each) => each.issuer === issuer && audience.includes(each.clientId),
  );
  const message = "no provider with the issuer and the client of this token is declared here";
  return found === undefined ? fail(refused(400, "oidc", message)) : ok(found);
}

/** A token that says to be of this provider, and does not count. */
export interface LogoutRefused {
  readonly kind: "logout-refused";
  readonly provider: string;
  readonly why: string;
  readonly source: string;
}
/** Whoever has sent it is a stranger, whose name it may be. */
export function refuseLogout(
  state: TenancyState,
  { provider: uid, why, source }: LogoutRefused,
): Result<never, Refused> {
  const name = state.tables.provider.get(uid)?.name ?? "";
  const no = refused(400, "oidc", `this logout of the provider ${name} does not count: ${why}`);
  const about = { target: `the provider ${name}`, within: [rootUid] };
  const actor = { who: "an unknown user", door: "gateway", source };
  log(state.outbox, "login/refused", { source });
  record(state, { verb: "logOutByProvider", actor, own: undefined, about, body: {} }, no);
  return fail(no);
}

/** What was begun by this provider ends, and what its users opened by keys goes on. That nobody was in is no fault: the provider does not know. */
export function logOutByProvider(state: TenancyState, asked: ProviderLogout): Result<object, Refused> {
  const { issuer, subject, sid, source } = asked;
  const provider = state.tables.provider.get(asked.provider);
  if (provider === undefined || provider.issuer !== issuer)
    return fail(refused(400, "oidc", "this provider was deleted meanwhile"));
  const ended = new Set<UserRecord>();
  for (const [hash, session] of [...state.tables.session]) {
    const user = state.tables.user.get(session.user);
    if (user?.oidc === undefined || user.oidc.issuer !== issuer || session.key !== undefined) continue;
    // One of a version before says nothing of where it was begun; who has no password came by the provider.
    const isTheirs = session.provider === undefined ? user.password === null : session.provider === provider.uid;
    const isSubject = subject === null || user.oidc.subject === subject;
    const isSession = sid === null || session.sid === sid || (session.sid === undefined && subject !== null);
    if (!isTheirs || !isSubject || !isSession) continue;
    endSession(state, hash);
    ended.add(user);
  }
  for (const user of ended) tell(state, "logOutByProvider", user, provider, source);
  return ok({});
}

const has = (claim: Json | undefined, value: string): boolean =>
  Array.isArray(claim) ? claim.some((each) => String(each) === value) : claim !== undefined && String(claim) === value;

export function loginByProvider(state: TenancyState, asked: OidcLogin): Result<Omit<Login, "session">, Refused> {
  const { issuer, subject, claims, session, source } = asked;
  if (state.held !== null) return fail(refused(503, "held", `${heldMessage(state.held.why)}, by password`));
  const provider = state.tables.provider.get(asked.provider);
  const known = state.tables.user.get(state.subjects.get(subjectKey({ issuer, subject })) ?? "");
  const refuse = (no: Refused): { readonly ok: false; readonly error: Refused } => {
    log(state.outbox, "login/refused", { source });
    recordOwn(state, "endOidcLogin", { user: known?.uid ?? null, session: null, source }, no);
    return fail(no);
  };
  // It may have been deleted, and another made, while somebody said yes.
  if (provider === undefined || provider.issuer !== issuer)
    return refuse(refused(409, "conflict", "this provider was deleted meanwhile: begin again"));
  const mapping = provider.mappings.find(({ claim, value }) => has(claims[claim], value));
  if (mapping === undefined) return refuse(unmapped(provider));
  const made = known === undefined ? newUser(state, asked, provider, mapping) : sameUser(state, known, mapping);
  if (!made.ok) return refuse(made.error);
  const user = made.value;
  if (user !== known && rightsOf(state, user) !== null) {
    save(state, "user", user.uid, user);
    tell(state, known === undefined ? "addUser" : "changeUser", user, provider, source);
  }
  const by = { provider: provider.uid, ...(asked.sid === undefined ? {} : { sid: asked.sid }) };
  return letIn(state, user, { session, source, verb: "endOidcLogin", by });
}

function unmapped({ name, mappings }: ProviderRecord): Refused {
  const claims = [...new Set(mappings.map(({ claim }) => claim))].join(", ");
  return refused(
    403,
    "oidc-unmapped",
    `what the provider ${name} says of you (${claims || "nothing is mapped"}) makes nobody a user here: ask the operator`,
  );
}

function newUser(
  state: TenancyState,
  { issuer, subject, claims, uid }: OidcLogin,
  { name: of, nameClaim }: ProviderRecord,
  mapping: MappingRecord,
): Result<UserRecord, Refused> {
  const name = claims[nameClaim];
  if (typeof name !== "string" || !userPattern.test(name))
    return fail(
      refused(403, "oidc-unmapped", `the provider ${of} has in ${nameClaim} no name that a user may have: ${userRule}`),
    );
  const account = state.tables.account.get(mapping.account);
  if (account === undefined || account.deleting === true || roleOf(state, mapping.role) === undefined)
    return fail(refused(403, "oidc-unmapped", `the account or the role that the provider ${of} maps to is gone`));
  const no = refuseUser(state, account.domain, name, false);
  if (no !== null) return fail(no);
  const { role } = mapping;
  return ok({ uid, name, account: account.uid, role, state: "enabled", password: null, oidc: { issuer, subject } });
}

/** As the mapping says now. */
function sameUser(
  state: TenancyState,
  user: UserRecord,
  { account, role }: MappingRecord,
): Result<UserRecord, Refused> {
  if (account !== user.account)
    return fail(
      refused(
        409,
        "conflict",
        `${labelOf(state, user)} is of the account ${accountPath(state, user.account)}, and the provider maps him to ${accountPath(state, account)}: once an administrator has deleted this user he comes in there`,
      ),
    );
  if (role === user.role) return ok(user);
  const now = roleOf(state, user.role);
  const actor = now === undefined ? null : actorAs(state, user, now);
  const last = actor === null ? null : refuseLastRootAdmin(state, actor, ({ uid }) => uid === user.uid);
  return last === null ? ok({ ...user, role }) : fail(last);
}

function tell(
  state: TenancyState,
  verb: "addUser" | "changeUser" | "logOutByProvider",
  user: UserRecord,
  { name }: ProviderRecord,
  source: string,
): void {
  const target = labelOf(state, user);
  const by = `the provider ${name}`;
  const domain = state.tables.account.get(user.account)?.domain ?? "";
  const within = [user.uid, user.account, ...domainsAbove(state, domain).map(({ uid }) => uid)];
  log(state.outbox, "tenancy/changed", { verb, by, target });
  const role = roleOf(state, user.role)?.name ?? "";
  const actor = { who: by, door: "gateway", source };
  record(state, { verb, actor, own: undefined, about: { target, within }, body: { role } }, null);
}
