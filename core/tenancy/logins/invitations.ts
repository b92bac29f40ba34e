import { isoTime } from "../../../model/cell/iso-time.ts";
import type { InvitationSummary, NewInvitation, UserSummary } from "../../../model/contract/tenancy/tenancy.ts";
import { fail, ok, type Result } from "../../../model/result.ts";
import { log } from "../../outbox.ts";
import { type Actor, actorAs, denied, operator, reaches } from "../actor.ts";
import { record } from "../audit/audited.ts";
import { isKept } from "../owners/owners.ts";
import { addUser, refuseUser, roleFor } from "../people.ts";
import { addAccount, domainFor } from "../places.ts";
import type { InvitationRecord } from "../records.ts";
import { beyondShare, noSuch, type Refused, refused, whyNotCounted } from "../refused.ts";
import { domainPath, domainsAbove, hasItsShare, labelOf, partOf, rightsOf, save, type TenancyState } from "../state.ts";
import { heldMessage } from "./logins.ts";

/*
 * Registration by invitation: an administrator of a domain makes a link, and whoever has it makes himself an account there, and is its first user with
 * the role and the limits that the invitation says. What he gets is the administrator's to give at that moment: with the right of who
 * invited ends what he has invited to.
 */
const [usualDays, dayMs] = [7, 24 * 60 * 60_000];
const mostInvitations = 10_000;

/** The step before the password's hash is computed, and the one with it. */
export interface Registration {
  readonly kind: "registration-begin" | "registration-end";
  readonly invitation: string;
  /** Of the link. */
  readonly hash: string;
  /** Of the account, and of its user. */
  readonly name: string;
  /** PHC string; null: in the first step. */
  readonly password: string | null;
  /** Drawn for what is made. */
  readonly fresh: { readonly account: string; readonly user: string; readonly number: string };
  /** Address of the client. */
  readonly source: string;
}

const summary = (
  state: TenancyState,
  { uid, domain, role, limits, untilMs, by }: InvitationRecord,
): InvitationSummary => {
  const user = by === null ? undefined : state.tables.user.get(by);
  return {
    uid,
    domain: domainPath(state, domain),
    role,
    limits: limits ?? {},
    expires: isoTime(untilMs),
    by: by === null ? "operator" : user === undefined ? "" : labelOf(state, user),
  };
};

export function listInvitations(state: TenancyState, actor: Actor): Result<readonly InvitationSummary[], Refused> {
  const no = denied(state, actor, "account.read");
  if (no !== null) return fail(no);
  const seen = [...state.tables.invitation.values()].filter(({ domain }) => reaches(state, actor, { domain }));
  return ok(seen.map((each) => summary(state, each)));
}

export function addInvitation(
  state: TenancyState,
  actor: Actor,
  { uid, asked, hash }: { readonly uid: string; readonly asked: NewInvitation; readonly hash: string },
): Result<InvitationSummary, Refused> {
  const { domain: path, role = "account-admin", limits, days = usualDays } = asked;
  const domain = domainFor(state, actor, path, "account.add");
  if (!domain.ok) return domain;
  const no = denied(state, actor, "user.add") ?? (limits === undefined ? null : denied(state, actor, "quota.change"));
  if (no !== null) return fail(no);
  const given = roleFor(state, actor, domain.value.uid, role);
  if (!given.ok) return given;
  if (given.value.reach !== "account")
    return fail(refused(400, "bad-request", `the role ${role} is for more than the account that is to be`));
  if (limits !== undefined && !isKept(state))
    return fail(refused(409, "conflict", "quotas are counted by the root controller, and here there is none"));
  const uncounted = whyNotCounted(limits ?? {});
  if (uncounted !== null) return fail(uncounted);
  const { invitation } = state.tables;
  if (invitation.size >= mostInvitations)
    return fail(refused(409, "conflict", `there are ${mostInvitations} invitations, and that is the limit`));
  const part = partOf(state, domain.value.uid);
  const own = (): number => [...invitation.values()].filter((each) => partOf(state, each.domain) === part).length;
  if (actor.user !== null && hasItsShare(mostInvitations, invitation.size, own))
    return fail(beyondShare("invitations"));
  const made: InvitationRecord = {
    uid,
    hash,
    domain: domain.value.uid,
    role,
    by: actor.user?.uid ?? null,
    untilMs: state.now.wallMs + days * dayMs,
    ...(limits === undefined ? {} : { limits }),
  };
  save(state, "invitation", uid, made);
  return ok(summary(state, made));
}

export function deleteInvitation(
  state: TenancyState,
  actor: Actor,
  { uid, dryRun }: { readonly uid: string; readonly dryRun: boolean },
): Result<InvitationSummary, Refused> {
  const found = state.tables.invitation.get(uid);
  if (found === undefined || !reaches(state, actor, { domain: found.domain }))
    return fail(noSuch("invitation", uid, "`cells invitation list` shows them"));
  const no = denied(state, actor, "account.add");
  if (no !== null) return fail(no);
  const gone = summary(state, found);
  if (!dryRun) save(state, "invitation", uid, null);
  return ok(gone);
}

/** Those whose time has come. */
export function dropOldInvitations(state: TenancyState): void {
  for (const [uid, { untilMs }] of state.tables.invitation)
    if (untilMs <= state.now.wallMs) save(state, "invitation", uid, null);
}

const opensNothing = refused(
  401,
  "login",
  "this invitation opens nothing: it was used before, its time is over, or who gave it may not invite any more",
);

/** Who invited, with what he may now; null: nothing. */
function inviterOf(state: TenancyState, { by }: InvitationRecord): Actor | null {
  if (by === null) return operator;
  const user = state.tables.user.get(by);
  const role = rightsOf(state, user);
  return user === undefined || role === null ? null : actorAs(state, user, role);
}

export function register(state: TenancyState, asked: Registration): Result<UserSummary, Refused> {
  const { invitation: uid, hash, name, password, fresh, source } = asked;
  // What was used since is there again in an older store.
  if (state.held !== null) return fail(refused(503, "held", heldMessage(state.held.why)));
  const found = state.tables.invitation.get(uid);
  const isRight = found !== undefined && found.hash === hash && found.untilMs > state.now.wallMs;
  const actor = isRight ? inviterOf(state, found) : null;
  const within = found === undefined ? [] : domainsAbove(state, found.domain).map((each) => each.uid);
  const tell = (who: string, account: string, no: Refused | null): void =>
    record(
      state,
      {
        verb: "register",
        actor: { who, door: "gateway", source },
        own: undefined,
        about: { target: account, within: [...within, ...(no === null ? [fresh.account] : [])] },
        body:
          no === null && found !== undefined
            ? { role: found.role, ...(found.limits ? { limits: found.limits } : {}) }
            : {},
      },
      no,
    );
  const refuse = (no: Refused): { readonly ok: false; readonly error: Refused } => {
    log(state.outbox, "login/refused", { source });
    tell(
      "an unknown user",
      found === undefined ? "an invitation" : `an invitation to ${domainPath(state, found.domain)}`,
      no,
    );
    return fail(no);
  };
  if (found === undefined || !isRight || actor === null) return refuse(opensNothing);
  const path = `${domainPath(state, found.domain)}/${name}`;
  const { account: accountUid, number } = fresh;
  const limited = found.limits === undefined ? null : denied(state, actor, "quota.change");
  const role = roleFor(state, actor, found.domain, found.role);
  const place = addAccount(state, actor, { path, uid: accountUid, number, dryRun: true });
  const no = limited ?? denied(state, actor, "user.add") ?? refuseUser(state, found.domain, name, actor.user === null);
  if (!place.ok) return refuse(place.error.status === 409 ? place.error : opensNothing);
  if (!role.ok || no !== null) return refuse(no?.status === 409 ? no : opensNothing);
  if (password === null)
    return ok({ ...nobody, name, domain: domainPath(state, found.domain), account: path, role: found.role });
  addAccount(state, actor, { path, uid: accountUid, number, dryRun: false });
  const account = state.tables.account.get(accountUid);
  if (account !== undefined && found.limits !== undefined)
    save(state, "account", accountUid, { ...account, limits: found.limits });
  const user = { name, account: path, role: found.role };
  const made = addUser(state, actor, { uid: fresh.user, user, password, dryRun: false });
  if (!made.ok) throw new Error(`a user who may be made was refused: ${made.error.message}`);
  save(state, "invitation", uid, null);
  const label = `${name}@${domainPath(state, found.domain)}`;
  log(state.outbox, "tenancy/changed", { verb: "register", by: label, target: path });
  tell(label, path, null);
  return made;
}
const nobody = { uid: "", state: "enabled", hasPassword: false, hasSecondFactor: false } as const;
