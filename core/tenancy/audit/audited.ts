import type { AuditActor, AuditEntry, AuditHead } from "../../../model/contract/audit/audit.ts";
import { headOf, type Room } from "../../../model/contract/audit/rings.ts";
import { rootDomain } from "../../../model/contract/tenancy/tenancy.ts";
import type { JsonObject } from "../../../model/json/json.ts";
import { ok, type Result } from "../../../model/result.ts";
import { audit, auditRefusal } from "../../outbox.ts";
import { type Actor, actorOf, type By, denied } from "../actor.ts";
import { shownOfHash } from "../looks.ts";
import type { UserRecord } from "../records.ts";
import type { Refused } from "../refused.ts";
import {
  accountAt,
  accountPath,
  domainAt,
  domainPath,
  domainsAbove,
  labelOf,
  loginKey,
  roleOf,
  rootUid,
  type TenancyState,
} from "../state.ts";

/*
 * Records of what was changed here, each written in the step that makes the change: of domains, accounts, users, roles, quotas, whose a
 * cell is, and of logins. Of what was refused so many as `auditRefusal` lets through.
 */

/** There are more of them than a cell has, and nobody gives this store back by hand. */
export const room: Room = { changes: 65_536, refusals: 16_384 };

/** Where a request came from, as the gateway saw it. */
export interface Origin {
  readonly source?: string;
  readonly via?: string;
}
export const shownAs = (session: string): string => `session ${session.slice(0, shownOfHash)}`;

export const auditActorOf = (
  state: TenancyState,
  { user, label }: Actor,
  by: By,
  { source, via }: Origin,
): AuditActor => ({
  who: label,
  ...(user === null ? {} : { account: accountPath(state, user.account) }),
  ...("session" in by ? { by: shownAs(by.session) } : {}),
  door: "gateway",
  ...(source === undefined || source === "" ? {} : { source }),
  ...(via === undefined ? {} : { via }),
});

/** What a request is about, as it is before it is carried out: what is deleted has a name no more. */
export interface About {
  readonly target: string;
  /** UIDs of the account and the domains around it. */
  readonly within: readonly string[];
}
/** What of the audit somebody may see: all of it, or what has one of these UIDs in `within`. */
export interface Sight extends AuditHead {
  readonly sees: "all" | readonly string[];
}
export function auditFor(state: TenancyState, by: By): Result<Sight, Refused> {
  const found = actorOf(state, by);
  if (!found.ok) return found;
  const { user, reach } = found.value;
  const head = headOf(state.outbox.audit);
  const mayAll = denied(state, found.value, "audit.read") === null;
  if (user === null || (mayAll && reach === "installation")) return ok({ ...head, sees: "all" });
  const place = reach === "domain" ? state.tables.account.get(user.account)?.domain : user.account;
  return ok({ ...head, sees: [user.uid, ...(mayAll && place !== undefined ? [place] : [])] });
}

const around = (state: TenancyState, account: string): readonly string[] => [
  account,
  ...domainsAbove(state, state.tables.account.get(account)?.domain ?? "").map(({ uid }) => uid),
];
const aroundDomain = (state: TenancyState, domain: string): readonly string[] =>
  domainsAbove(state, domain).map(({ uid }) => uid);

/** A UID's own name, or that of the path that a body names. */
export function aboutOf(state: TenancyState, parameters: { readonly [name: string]: string }, body: JsonObject): About {
  const { tables } = state;
  const uid = parameters.uid ?? (typeof body.user === "string" ? body.user : "");
  const user = tables.user.get(uid);
  if (user !== undefined) return { target: labelOf(state, user), within: around(state, user.account) };
  if (tables.account.has(uid)) return { target: accountPath(state, uid), within: around(state, uid) };
  if (tables.domain.has(uid)) return { target: domainPath(state, uid), within: aroundDomain(state, uid) };
  const role = roleOf(state, uid);
  if (role !== undefined)
    return { target: `${role.name} of ${domainPath(state, role.domain)}`, within: aroundDomain(state, role.domain) };
  const invitation = tables.invitation.get(uid);
  if (invitation !== undefined)
    return {
      target: `an invitation to ${domainPath(state, invitation.domain)}`,
      within: aroundDomain(state, invitation.domain),
    };
  const application = tables.application.get(uid);
  const opening = tables.opening.get(application?.opening ?? uid);
  if (opening !== undefined) {
    const what = application === undefined ? "what opens" : `the application of ${application.name} to`;
    return { target: `${what} ${domainPath(state, opening.domain)}`, within: aroundDomain(state, opening.domain) };
  }
  const delegation = tables.delegation.get(uid);
  if (delegation !== undefined)
    return {
      target: `a delegation of ${accountPath(state, delegation.account)}`,
      within: [...around(state, delegation.account), delegation.to],
    };
  const subscriber = tables.user.get(tables.subscription.get(uid)?.user ?? "");
  if (subscriber !== undefined)
    return { target: `a subscription of ${labelOf(state, subscriber)}`, within: around(state, subscriber.account) };
  const provider = tables.provider.get(uid)?.name ?? (typeof body.issuer === "string" ? body.name : undefined);
  if (provider !== undefined) return { target: `the provider ${provider}`, within: [rootUid] };
  const key = tables.key.get(parameters.key ?? "");
  const keysUser = tables.user.get(key?.user ?? "");
  if (keysUser !== undefined)
    return { target: `key ${parameters.key} of ${labelOf(state, keysUser)}`, within: around(state, keysUser.account) };
  const named = String(body.account ?? body.domain ?? body.path ?? "");
  const place = body.path === undefined ? named : named.slice(0, Math.max(0, named.lastIndexOf("/")));
  const account = accountAt(state, named)?.uid;
  const domain = domainAt(state, place)?.uid;
  const within =
    account !== undefined ? around(state, account) : domain === undefined ? [] : aroundDomain(state, domain);
  const target = parameters.cell ?? (uid !== "" ? uid : [named, body.name].filter(Boolean).join(" "));
  return { target, within };
}

/** A root administrator who is made, or has been there. */
export function aboutAdmin(state: TenancyState, name: string): About {
  const user = state.tables.user.get(state.logins.get(loginKey(rootUid, name)) ?? "");
  return { target: `${name}@${rootDomain}`, within: user === undefined ? [rootUid] : around(state, user.account) };
}

const toldFields: ReadonlySet<string> = new Set([
  "state",
  "role",
  "reach",
  "rules",
  "limits",
  "account",
  "key",
  "totp",
  "secondFactor",
  "issuer",
  "mappings",
  "cells",
  "events",
  "to",
  "email",
]);
/** Fields of bodies that hold no secret, and what is said of one that does. */
function whatOf(body: JsonObject): string {
  const told = Object.entries(body).flatMap(([name, value]) => {
    if (name === "password") return ["password set"];
    if (!toldFields.has(name)) return [];
    return [`${name} ${typeof value === "string" ? value : JSON.stringify(value)}`];
  });
  return told.join(", ");
}

interface Told {
  readonly verb: string;
  readonly actor: AuditActor;
  /** Absent: the operator. */
  readonly own: UserRecord | undefined;
  readonly about: About;
  readonly body: JsonObject;
  /** Whoever asked has shown that he is this one; absent: he has not. */
  readonly isKnown?: boolean;
}
/** Null: it was done. */
export function record(
  state: TenancyState,
  { verb, actor, own, about, body, isKnown = false }: Told,
  no: Refused | null,
): void {
  const what = whatOf(body);
  const ofActor = own === undefined ? [] : [own.uid, ...around(state, own.account)];
  const within = [...new Set([...ofActor, ...about.within])];
  const entry: AuditEntry = {
    ...actor,
    verb,
    target: about.target,
    within,
    ...(what === "" ? {} : { what }),
    ...(no === null ? { outcome: "done" } : { outcome: "refused", why: no.message }),
  };
  if (no === null) audit(state.outbox, state.now, entry, room);
  else auditRefusal(state.outbox, state.now, entry, { room, isKnown });
}

/** Of a login, or of a user's change of his own password. Of an unknown user nothing is written but that there was one: he may have mistaken the field. */
export function recordOwn(
  state: TenancyState,
  verb:
    | "logIn"
    | "logInSigned"
    | "endOidcLogin"
    | "changeOwnPassword"
    | "setFirstPassword"
    | "beginTotp"
    | "confirmTotp"
    | "endTotp",
  own: {
    readonly user: string | null;
    readonly session: string | null;
    readonly source: string;
    readonly key?: string;
  },
  no: Refused | null,
): void {
  const { user, session, source, key } = own;
  const known = user === null ? undefined : state.tables.user.get(user);
  const who = known === undefined ? "an unknown user" : labelOf(state, known);
  const actor: AuditActor = {
    who,
    door: "gateway",
    source,
    ...(known === undefined ? {} : { account: accountPath(state, known.account) }),
    ...(session === null ? {} : { by: shownAs(session) }),
  };
  const about: About = { target: who, within: [] };
  const isKnown = session !== null;
  record(state, { verb, actor, own: known, about, body: key === undefined ? {} : { key }, isKnown }, no);
}
