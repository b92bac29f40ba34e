import type { CellName } from "../../model/cell/identifiers.ts";
import type { NewProvider } from "../../model/contract/tenancy/oidc.ts";
import { isConditional, isPaged, listShowing, pageOf, tagOf } from "../../model/contract/tenancy/pages.ts";
import type { QuotaChange } from "../../model/contract/tenancy/quotas.ts";
import type { CellNews } from "../../model/contract/tenancy/subscriptions.ts";
import type {
  Approval,
  KeyChange,
  NewAccount,
  NewDelegation,
  NewDomain,
  NewInvitation,
  NewKey,
  NewOpening,
  NewRecovery,
  NewRole,
  NewUser,
  OwnerChange,
  RoleChange,
  StateChange,
  UserChange,
  WhoAmI,
} from "../../model/contract/tenancy/tenancy.ts";
import type { Json, JsonObject } from "../../model/json/json.ts";
import { fail, ok, type Result } from "../../model/result.ts";
import { log, toJson } from "../outbox.ts";
import { type Actor, actorOf, type By, userTold } from "./actor.ts";
import { aboutAdmin, aboutOf, auditActorOf, auditFor, record } from "./audit/audited.ts";
import { can, cellsTold, claimCell, freeCell, giveCell, issueTicket } from "./cells.ts";
import { whyDeclared } from "./declared/keeper.ts";
import { addDelegation, deleteDelegation, listDelegations } from "./delegations/delegations.ts";
import {
  type Application,
  addOpening,
  apply,
  approveApplication,
  deleteOpening,
  listApplications,
  listOpenings,
  rejectApplication,
} from "./logins/applications.ts";
import { type LinkUse, linkUser, recoverAdmin, useLink } from "./logins/first-password.ts";
import { addInvitation, deleteInvitation, listInvitations, type Registration, register } from "./logins/invitations.ts";
import { addKey, changeKey, deleteKey, type FreshKey, listKeys } from "./logins/keys.ts";
import { beginLogin, endLogin, endSession, type LoginBegin, type LoginEnd, sessionSummary } from "./logins/logins.ts";
import {
  type LogoutLook,
  type LogoutRefused,
  loginByProvider,
  logOutByProvider,
  lookLogout,
  lookProvider,
  type OidcLogin,
  type ProviderLogout,
  type ProviderLook,
  refuseLogout,
} from "./logins/oidc.ts";
import { beginPassword, endPassword, type PasswordBegin, type PasswordEnd } from "./logins/own-password.ts";
import { addProvider, deleteProvider, listProviders } from "./logins/providers.ts";
import {
  beginTotp,
  confirmTotp,
  endTotp,
  lookTotp,
  type TotpBegin,
  type TotpConfirm,
  type TotpEnd,
  type TotpLook,
} from "./logins/second-factor.ts";
import { beginSigned, endSigned, type SignedBegin, type SignedEnd } from "./logins/signed.ts";
import { addRole, addUser, changeRole, changeUser, deleteRole, deleteUser, listRoles, listUsers } from "./people.ts";
import {
  addAccount,
  addDomain,
  changeAccount,
  changeDomain,
  type Deleting,
  deleteAccount,
  deleteDomain,
  listAccounts,
  listDomains,
} from "./places.ts";
import { listQuotas, setQuota } from "./quotas/quotas.ts";
import { listUsage } from "./quotas/usage.ts";
import { type Refused, refused } from "./refused.ts";
import type { TenancyState } from "./state.ts";
import { addNotice, takeNoticeWord } from "./subscriptions/notices.ts";
import {
  addSubscription,
  beginWatch,
  changeSubscription,
  deleteSubscription,
  listSubscriptions,
  watchingActor,
} from "./subscriptions/subscriptions.ts";

/** What the edge asks. Who asks is looked up in the step that makes the change: nobody's rights are older than what he does. */
export type TenancyRequest =
  | LoginBegin
  | LoginEnd
  | PasswordBegin
  | PasswordEnd
  | SignedBegin
  | SignedEnd
  | LinkUse
  | Registration
  | Application
  | ProviderLook
  | OidcLogin
  | LogoutLook
  | LogoutRefused
  | ProviderLogout
  | TotpBegin
  | TotpLook
  | TotpConfirm
  | TotpEnd
  | {
      readonly kind: "ticket";
      readonly session: string;
      readonly hash: string;
      readonly cell: string;
      readonly child?: CellName;
    }
  /** What the gateway, which looks what becomes of cells and carries notices, asks and says (`subscriptions/`). */
  | { readonly kind: "notice-next"; readonly watched: string | null }
  | { readonly kind: "notice-add"; readonly subscription: string; readonly news: CellNews }
  | {
      readonly kind: "notice-said";
      readonly subscription: string;
      readonly number: number;
      readonly taken: boolean;
      readonly reason: string | null;
    }
  | { readonly kind: "watch"; readonly uid: string; readonly session: string }
  /** How far the audit goes, and what of it who asks may see. */
  | { readonly kind: "audit"; readonly by: By }
  | Ask;
export interface Ask {
  readonly kind: "ask";
  readonly by: By;
  /** Of a route of the published contract, or what the gateway asks for itself. */
  readonly name: AskName;
  readonly parameters: { readonly [name: string]: string };
  readonly query: JsonObject;
  /** As the contract's schema has it, without a password. */
  readonly body: JsonObject;
  /** PHC string of the password in the body; null: there is none. */
  readonly password: string | null;
  /** Drawn for what is made. */
  readonly fresh: { readonly uid: string; readonly number: string };
  /** Of a key that is to be; absent: there is none. */
  readonly key?: FreshKey;
  /** Of the secret in the body of a provider or a subscription that is to be; absent: there is none. */
  readonly sealed?: string;
  /** Hash of a link that is to be; absent: there is none. */
  readonly link?: string;
  /** Address of the client; absent: it is not known. */
  readonly source?: string;
  /** What a personality says that asked for him. */
  readonly via?: string;
  /** What is changed must have this tag; null: any, as long as it is there; absent: nothing is demanded. */
  readonly ifMatch?: string | null;
}
export interface TenancyResponse {
  readonly status: number;
  readonly body: Json;
  /** Seconds. */
  readonly retryAfter?: number;
  /** Cursor of the next page. */
  readonly next?: string;
}

interface Asked extends Omit<Ask, "by" | "name" | "kind"> {
  readonly by: By;
  readonly dryRun: boolean;
}
type Answerer = (state: TenancyState, actor: Actor, asked: Asked) => Result<object, Refused>;

const uidOf = ({ parameters }: Asked): string => parameters.uid ?? "";
const bodyOf = <T>({ body }: Asked): T => body as unknown as T;
const deletingOf = (asked: Asked): Deleting => {
  const names = Array.isArray(asked.query.allowDestroy) ? asked.query.allowDestroy : [];
  const allowDestroy = names.flatMap((each) => String(each).split(","));
  return { uid: uidOf(asked), allowDestroy, dryRun: asked.dryRun };
};
const textIn = (query: JsonObject, name: string): string => String(query[name] ?? "");

const answerers = {
  whoAmI: (state, { user, reach, rules }, { by }) => {
    const session = "session" in by ? sessionSummary(state, by.session) : null;
    return ok({
      ...userTold(state, user),
      reach,
      rules,
      expires: session?.expires ?? null,
    } satisfies WhoAmI);
  },
  logOut: (state, _actor, { by }) => {
    if ("operator" in by) return fail(refused(409, "conflict", "the operator's credential is no session, and stays"));
    endSession(state, by.session);
    return ok({});
  },
  can: (state, actor, { query }) =>
    can(state, actor, {
      user: textIn(query, "user"),
      domain: textIn(query, "domain"),
      verb: textIn(query, "verb"),
      path: textIn(query, "path"),
    }),
  listDomains,
  addDomain: (state, actor, asked) =>
    addDomain(state, actor, { path: bodyOf<NewDomain>(asked).path, uid: asked.fresh.uid, dryRun: asked.dryRun }),
  changeDomain: (state, actor, asked) =>
    changeDomain(state, actor, { uid: uidOf(asked), standing: bodyOf<StateChange>(asked).state, dryRun: asked.dryRun }),
  deleteDomain: (state, actor, asked) =>
    deleteDomain(state, actor, { ...deletingOf(asked), cleanup: asked.query.cleanup === true }),
  listAccounts,
  addAccount: (state, actor, asked) =>
    addAccount(state, actor, { path: bodyOf<NewAccount>(asked).path, ...asked.fresh, dryRun: asked.dryRun }),
  changeAccount: (state, actor, asked) =>
    changeAccount(state, actor, {
      uid: uidOf(asked),
      standing: bodyOf<StateChange>(asked).state,
      dryRun: asked.dryRun,
    }),
  deleteAccount: (state, actor, asked) => deleteAccount(state, actor, deletingOf(asked)),
  listUsers,
  addUser: (state, actor, asked) =>
    addUser(state, actor, {
      uid: asked.fresh.uid,
      user: bodyOf<NewUser>(asked),
      password: asked.password,
      dryRun: asked.dryRun,
    }),
  changeUser: (state, actor, asked) =>
    changeUser(state, actor, {
      uid: uidOf(asked),
      change: bodyOf<UserChange>(asked),
      password: asked.password,
      dryRun: asked.dryRun,
    }),
  deleteUser: (state, actor, asked) => deleteUser(state, actor, { uid: uidOf(asked), dryRun: asked.dryRun }),
  listRoles,
  addRole: (state, actor, asked) =>
    addRole(state, actor, { uid: asked.fresh.uid, role: bodyOf<NewRole>(asked), dryRun: asked.dryRun }),
  changeRole: (state, actor, asked) =>
    changeRole(state, actor, { uid: uidOf(asked), rules: bodyOf<RoleChange>(asked).rules, dryRun: asked.dryRun }),
  deleteRole: (state, actor, asked) => deleteRole(state, actor, { uid: uidOf(asked), dryRun: asked.dryRun }),
  giveCell: (state, actor, asked) =>
    giveCell(state, actor, {
      cell: asked.parameters.cell ?? "",
      account: bodyOf<OwnerChange>(asked).account,
      dryRun: asked.dryRun,
    }),
  linkUser: (state, actor, asked) =>
    asked.link === undefined
      ? fail(refused(400, "bad-request", "no link was drawn"))
      : linkUser(state, actor, { uid: uidOf(asked), hash: asked.link }),
  recoverAdmin: (state, actor, asked) =>
    asked.link === undefined
      ? fail(refused(400, "bad-request", "no link was drawn"))
      : recoverAdmin(state, actor, {
          name: bodyOf<NewRecovery>(asked).name,
          uid: asked.fresh.uid,
          hash: asked.link,
          dryRun: asked.dryRun,
        }),
  listKeys,
  addKey: (state, actor, asked) => {
    const { by, key } = asked;
    if (key === undefined) return fail(refused(400, "bad-request", "no key was drawn"));
    return addKey(state, actor, { by, asked: bodyOf<NewKey>(asked), key });
  },
  changeKey: (state, actor, asked) =>
    changeKey(state, actor, {
      id: asked.parameters.key ?? "",
      standing: bodyOf<KeyChange>(asked).state,
      dryRun: asked.dryRun,
    }),
  deleteKey: (state, actor, { parameters, dryRun }) => deleteKey(state, actor, { id: parameters.key ?? "", dryRun }),
  listDelegations,
  addDelegation: (state, actor, asked) =>
    addDelegation(state, actor, { uid: asked.fresh.uid, asked: bodyOf<NewDelegation>(asked), dryRun: asked.dryRun }),
  deleteDelegation: (state, actor, asked) =>
    deleteDelegation(state, actor, { uid: uidOf(asked), dryRun: asked.dryRun }),
  listInvitations,
  addInvitation: (state, actor, asked) =>
    asked.link === undefined
      ? fail(refused(400, "bad-request", "no link was drawn"))
      : addInvitation(state, actor, { uid: asked.fresh.uid, asked: bodyOf<NewInvitation>(asked), hash: asked.link }),
  deleteInvitation: (state, actor, asked) =>
    deleteInvitation(state, actor, { uid: uidOf(asked), dryRun: asked.dryRun }),
  listOpenings,
  addOpening: (state, actor, asked) =>
    addOpening(state, actor, { uid: asked.fresh.uid, asked: bodyOf<NewOpening>(asked), dryRun: asked.dryRun }),
  deleteOpening: (state, actor, asked) => deleteOpening(state, actor, { uid: uidOf(asked), dryRun: asked.dryRun }),
  listApplications,
  approveApplication: (state, actor, asked) =>
    approveApplication(state, actor, {
      uid: uidOf(asked),
      name: bodyOf<Approval>(asked).name,
      fresh: asked.fresh,
      dryRun: asked.dryRun,
    }),
  rejectApplication: (state, actor, asked) =>
    rejectApplication(state, actor, { uid: uidOf(asked), dryRun: asked.dryRun }),
  listSubscriptions,
  addSubscription: (state, actor, asked) => {
    const { by, sealed, dryRun } = asked;
    if (sealed === undefined) return fail(refused(400, "bad-request", "no secret was sealed"));
    return addSubscription(state, actor, { by, uid: asked.fresh.uid, asked: bodyOf(asked), sealed, dryRun });
  },
  changeSubscription: (state, actor, asked) =>
    changeSubscription(state, actor, {
      by: asked.by,
      uid: uidOf(asked),
      change: bodyOf(asked),
      sealed: asked.sealed,
      dryRun: asked.dryRun,
    }),
  deleteSubscription: (state, actor, asked) =>
    deleteSubscription(state, actor, { uid: uidOf(asked), dryRun: asked.dryRun }),
  listProviders,
  addProvider: (state, actor, asked) =>
    addProvider(state, actor, {
      uid: asked.fresh.uid,
      provider: bodyOf<NewProvider>(asked),
      sealed: asked.sealed,
      dryRun: asked.dryRun,
    }),
  deleteProvider: (state, actor, asked) => deleteProvider(state, actor, { uid: uidOf(asked), dryRun: asked.dryRun }),
  listQuotas,
  setQuota: (state, actor, asked) =>
    setQuota(state, actor, {
      uid: uidOf(asked),
      limits: bodyOf<QuotaChange>(asked).limits,
      dryRun: asked.dryRun,
      whyKept: (kind, path) => whyDeclared(state, actor, kind, path),
    }),
  listUsage: (state, actor, { query }) => listUsage(state, actor, query),
  // The gateway's own.
  cells: (state, actor, { query, by }) => ok(cellsTold(state, actor, by, query.accounts === true)),
  claimCell: (state, actor, { parameters, query, dryRun }) =>
    claimCell(state, actor, { cell: parameters.cell ?? "", isThere: query.isThere === true, dryRun }),
  freeCell: (state, actor, { parameters }) => freeCell(state, actor, parameters.cell ?? ""),
} as const satisfies Readonly<Record<string, Answerer>>;
export type AskName = keyof typeof answerers;
const reads: readonly AskName[] = [
  "whoAmI",
  "can",
  "listDomains",
  "listAccounts",
  "listUsers",
  "listRoles",
  "listKeys",
  "listSubscriptions",
  "listProviders",
  "listInvitations",
  "listOpenings",
  "listApplications",
  "listDelegations",
  "listQuotas",
  "listUsage",
  "cells",
];

export function answer(state: TenancyState, request: TenancyRequest): TenancyResponse {
  switch (request.kind) {
    case "login-begin":
      return responseOf(beginLogin(state, request));
    case "login-end":
      return responseOf(endLogin(state, request), 201);
    case "password-begin":
      return responseOf(beginPassword(state, request));
    case "password-end":
      return responseOf(endPassword(state, request));
    case "signed-begin":
      return responseOf(beginSigned(state, request));
    case "signed-end":
      return responseOf(endSigned(state, request), 201);
    case "link-begin":
    case "link-end":
      return responseOf(useLink(state, request));
    case "totp-begin":
      return responseOf(beginTotp(state, request));
    case "totp-look":
      return responseOf(lookTotp(state, request));
    case "totp-confirm":
      return responseOf(confirmTotp(state, request));
    case "totp-end":
      return responseOf(endTotp(state, request));
    case "registration-begin":
    case "registration-end":
      return responseOf(register(state, request), request.password === null ? 200 : 201);
    case "application-begin":
    case "application-end":
      return responseOf(apply(state, request), request.password === null ? 200 : 201);
    case "provider-look":
      return responseOf(lookProvider(state, request));
    case "oidc-login":
      return responseOf(loginByProvider(state, request), 201);
    case "logout-look":
      return responseOf(lookLogout(state, request));
    case "logout-refused":
      return responseOf(refuseLogout(state, request));
    case "oidc-logout":
      return responseOf(logOutByProvider(state, request));
    case "ticket":
      return responseOf(issueTicket(state, request.session, request));
    case "notice-add":
      addNotice(state, request.subscription, request.news);
      return responseOf(ok({}));
    case "notice-said":
      takeNoticeWord(state, request);
      return responseOf(ok({}));
    // It is answered when there is something (`tenancy.ts`).
    case "notice-next":
      return responseOf(ok({}));
    case "watch":
      return responseOf(beginWatch(state, request));
    case "audit":
      return responseOf(auditFor(state, request.by));
    case "ask":
      return respondTo(state, request);
  }
}

/** Lists in pages, where that is asked for, and tags of what is shown. */
function respondTo(state: TenancyState, request: Ask): TenancyResponse {
  const { name, query } = request;
  const answered = answerAsk(state, request);
  if (!answered.ok) return responseOf(answered);
  if (!isPaged(name)) {
    const isShown = isConditional(name) && !name.startsWith("delete");
    const body = answered.value as JsonObject;
    return responseOf(isShown && "uid" in body ? ok({ ...body, etag: tagOf(body) }) : answered);
  }
  const { limit, after } = query as { readonly limit?: number; readonly after?: string };
  if (limit === undefined && after === undefined) return responseOf(answered);
  const page = pageOf(name, answered.value as unknown as readonly JsonObject[], query);
  if (!page.ok) return responseOf(fail(refused(400, "bad-request", page.error)));
  const { items, next } = page.value;
  const tagged = items.map((item) => ({ ...item, etag: tagOf(item) }));
  return { ...responseOf(ok(tagged)), ...(next === null ? {} : { next }) };
}

/** Why what is to be changed is not what whoever asks has seen; null: it is, or he has not said what he saw. */
function unmet(state: TenancyState, actor: Actor, name: AskName, asked: Asked): Refused | null {
  const { ifMatch, parameters } = asked;
  if (ifMatch === undefined) return null;
  if (!isConditional(name)) return refused(400, "bad-request", `${name} takes no If-Match: what it changes has no tag`);
  const shown: Answerer = answerers[listShowing(name)];
  const list = shown(state, actor, { ...asked, query: {}, dryRun: true });
  const all = (list.ok ? list.value : []) as unknown as readonly JsonObject[];
  const item = all.find(({ uid, id }) => (uid ?? id) === (parameters.uid ?? parameters.key));
  if (item === undefined) {
    // What is not there is told by the request itself.
    const answered = answerers[name](state, actor, { ...asked, dryRun: true });
    if (!answered.ok) return answered.error;
    return refused(
      412,
      "version-mismatch",
      "no list shows this to you, so no tag of it is right: ask without If-Match",
    );
  }
  const tag = tagOf(item);
  if (ifMatch === null || ifMatch === tag) return null;
  return refused(
    412,
    "version-mismatch",
    `it was changed since it was seen: its tag is "${tag}" now; look at it again (\`${name}\` was not carried out)`,
  );
}

function answerAsk(state: TenancyState, { by, name, ...asked }: Ask): Result<object, Refused> {
  const watching = watchingActor(state, by, name);
  const actor = watching === null ? actorOf(state, by) : ok(watching);
  if (!actor.ok) return actor;
  const dryRun = asked.query.dryRun === true;
  const changed = unmet(state, actor.value, name, { ...asked, by, dryRun });
  if (changed !== null && (dryRun || reads.includes(name))) return fail(changed);
  if (dryRun || reads.includes(name)) return answerers[name](state, actor.value, { ...asked, by, dryRun });
  const { user } = actor.value;
  const makesOwn = name === "addSubscription" || (name === "addKey" && asked.body.user === undefined);
  const isOwn = makesOwn && user !== null;
  const about =
    name === "recoverAdmin"
      ? aboutAdmin(state, String(asked.body.name))
      : aboutOf(state, isOwn ? { uid: user.uid } : asked.parameters, asked.body);
  const told = {
    verb: name,
    actor: auditActorOf(state, actor.value, by, asked),
    own: user ?? undefined,
    about,
    body: asked.key === undefined ? asked.body : { ...asked.body, key: asked.key.id },
    isKnown: true,
  };
  const writes = state.outbox.effects.length;
  const answered = changed === null ? answerers[name](state, actor.value, { ...asked, by, dryRun }) : fail(changed);
  // Where the root cell's model says whose a cell is, nothing is written here, and that model's controller has the record.
  const isChanged = !gatewaysOwn.includes(name) || state.outbox.effects.length > writes;
  if (answered.ok && isChanged) {
    log(state.outbox, "tenancy/changed", { verb: name, by: actor.value.label, target: about.target });
    record(state, told, null);
  } else if (!answered.ok) record(state, told, answered.error);
  return answered;
}
const gatewaysOwn: readonly AskName[] = ["claimCell", "freeCell"];

function responseOf(result: Result<object, Refused>, status = 200): TenancyResponse {
  if (result.ok) return { status, body: toJson(result.value) };
  const { status: no, code, message, retryAfter } = result.error;
  return { status: no, body: { error: { code, message } }, ...(retryAfter === undefined ? {} : { retryAfter }) };
}
