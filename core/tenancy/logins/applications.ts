import { isoTime } from "../../../model/cell/iso-time.ts";
import type {
  ApplicationSummary,
  MadeApplication,
  NewApplication,
  NewOpening,
  OpeningSummary,
  UserSummary,
} from "../../../model/contract/tenancy/tenancy.ts";
import { fail, ok, type Result } from "../../../model/result.ts";
import { log } from "../../outbox.ts";
import { type Actor, denied, reaches } from "../actor.ts";
import { record } from "../audit/audited.ts";
import { isKept } from "../owners/owners.ts";
import { addUser, refuseUser, roleFor } from "../people.ts";
import { addAccount, domainFor } from "../places.ts";
import type { ApplicationRecord, OpeningRecord } from "../records.ts";
import { beyondShare, noSuch, type Refused, refused, whyNotCounted } from "../refused.ts";
import { domainAt, domainPath, domainsAbove, hasItsShare, partOf, save, type TenancyState } from "../state.ts";
import { heldMessage } from "./logins.ts";
import { dropOpening } from "./openings.ts";

/*
 * Registration that is open: an administrator says for which addresses of e-mail a domain takes applications, and with which role and limits;
 * whoever has such an address applies with a name and a password, and is let in when an administrator says so. Nothing here sends mail, so an
 * address is what somebody says: he is shown what his application is called, and his administrator approves that one.
 */
const [waitsDays, dayMs] = [30, 24 * 60 * 60_000];
const most = { openings: 1_000, waiting: 100, ofOneSource: 3 } as const;

const openingSummary = (state: TenancyState, { uid, domain, email, role, limits }: OpeningRecord): OpeningSummary => ({
  uid,
  domain: domainPath(state, domain),
  email,
  role,
  limits: limits ?? {},
});

export function listOpenings(state: TenancyState, actor: Actor): Result<readonly OpeningSummary[], Refused> {
  const no = denied(state, actor, "account.read");
  if (no !== null) return fail(no);
  const seen = [...state.tables.opening.values()].filter(({ domain }) => reaches(state, actor, { domain }));
  return ok(seen.map((each) => openingSummary(state, each)));
}

export function addOpening(
  state: TenancyState,
  actor: Actor,
  { uid, asked, dryRun }: { readonly uid: string; readonly asked: NewOpening; readonly dryRun: boolean },
): Result<OpeningSummary, Refused> {
  const { domain: path, role = "account-admin", limits } = asked;
  const email = asked.email.toLowerCase();
  const domain = domainFor(state, actor, path, "account.add");
  if (!domain.ok) return domain;
  const no = whyNotGiven(state, actor, domain.value.uid, { role, limits });
  if (no !== null) return fail(no);
  if (limits !== undefined && !isKept(state))
    return fail(refused(409, "conflict", "quotas are counted by the root controller, and here there is none"));
  const uncounted = whyNotCounted(limits ?? {});
  if (uncounted !== null) return fail(uncounted);
  const { opening } = state.tables;
  if ([...opening.values()].some((each) => each.domain === domain.value.uid && each.email === email))
    return fail(refused(409, "conflict", `${path} is open to addresses at ${email} already`));
  if (opening.size >= most.openings)
    return fail(refused(409, "conflict", `${most.openings} domains are open, and that is the limit`));
  const part = partOf(state, domain.value.uid);
  const own = (): number => [...opening.values()].filter((each) => partOf(state, each.domain) === part).length;
  if (actor.user !== null && hasItsShare(most.openings, opening.size, own)) return fail(beyondShare("openings"));
  const made: OpeningRecord = {
    uid,
    domain: domain.value.uid,
    email,
    role,
    ...(limits === undefined ? {} : { limits }),
  };
  if (!dryRun) save(state, "opening", uid, made);
  return ok(openingSummary(state, made));
}

/** What an account and its first user would get is no more than he has who gives it. */
function whyNotGiven(
  state: TenancyState,
  actor: Actor,
  domain: string,
  { role, limits }: Pick<OpeningRecord, "role"> & { readonly limits?: OpeningRecord["limits"] | undefined },
): Refused | null {
  const no = denied(state, actor, "user.add") ?? (limits === undefined ? null : denied(state, actor, "quota.change"));
  if (no !== null) return no;
  const given = roleFor(state, actor, domain, role);
  if (!given.ok) return given.error;
  return given.value.reach === "account"
    ? null
    : refused(400, "bad-request", `the role ${role} is for more than the account that is to be`);
}

export function deleteOpening(
  state: TenancyState,
  actor: Actor,
  { uid, dryRun }: { readonly uid: string; readonly dryRun: boolean },
): Result<OpeningSummary, Refused> {
  const found = state.tables.opening.get(uid);
  if (found === undefined || !reaches(state, actor, { domain: found.domain }))
    return fail(noSuch("opening", uid, "`cells registration` shows them"));
  const no = denied(state, actor, "account.add");
  if (no !== null) return fail(no);
  const gone = openingSummary(state, found);
  if (!dryRun) dropOpening(state, uid);
  return ok(gone);
}

// --- who applies ---------------------------------------------------------------------------------------------------

/** The step before the password's hash is computed, and the one with it. */
export interface Application extends Omit<NewApplication, "password"> {
  readonly kind: "application-begin" | "application-end";
  readonly uid: string;
  /** PHC string; null: in the first step. */
  readonly password: string | null;
  /** Address of the client. */
  readonly source: string;
}

/** A domain that nobody has and one that is closed are answered alike, and so is a name that is taken: his administrator sees that. */
export function apply(state: TenancyState, asked: Application): Result<MadeApplication, Refused> {
  const { uid, domain: path, email, name, password, source } = asked;
  if (state.held !== null) return fail(refused(503, "held", heldMessage(state.held.why)));
  const domain = domainAt(state, path);
  const at = email.slice(email.lastIndexOf("@") + 1).toLowerCase();
  const opening = [...state.tables.opening.values()].find((each) => each.domain === domain?.uid && each.email === at);
  if (opening === undefined) {
    log(state.outbox, "login/refused", { source });
    const message = `nobody registers in ${path} with an address at ${at}: an administrator of it can invite you`;
    return fail(refused(403, "registration-closed", message));
  }
  const waiting = [...state.tables.application.values()].filter((each) => each.opening === opening.uid);
  if (waiting.length >= most.waiting || waiting.filter((each) => each.source === source).length >= most.ofOneSource)
    return fail({
      ...refused(503, "busy", "as many wait for an administrator's word as may: try again when some have it"),
      retryAfter: 3_600,
    });
  const untilMs = state.now.wallMs + waitsDays * dayMs;
  if (password === null) return ok({ application: uid, expires: isoTime(untilMs) });
  save(state, "application", uid, { uid, opening: opening.uid, name, email, password, untilMs, source });
  tell(state, opening.domain, source);
  return ok({ application: uid, expires: isoTime(untilMs) });
}
/** An address is of a person, and stays with the application. */
function tell(state: TenancyState, domain: string, source: string): void {
  const target = `an application to ${domainPath(state, domain)}`;
  const within = domainsAbove(state, domain).map((each) => each.uid);
  const actor = { who: "an unknown user", door: "gateway", source };
  record(state, { verb: "apply", actor, own: undefined, about: { target, within }, body: {} }, null);
  log(state.outbox, "tenancy/changed", { verb: "apply", by: "an unknown user", target });
}

/** Those whose time has come. */
export function dropOldApplications(state: TenancyState): void {
  for (const [uid, { untilMs }] of state.tables.application)
    if (untilMs <= state.now.wallMs) save(state, "application", uid, null);
}

// --- who decides ---------------------------------------------------------------------------------------------------

const summary = (
  state: TenancyState,
  { uid, name, email, source, untilMs }: ApplicationRecord,
  { domain, role, limits }: OpeningRecord,
): ApplicationSummary => ({
  uid,
  domain: domainPath(state, domain),
  name,
  email,
  role,
  limits: limits ?? {},
  source,
  expires: isoTime(untilMs),
});
const openingOf = (state: TenancyState, { opening }: ApplicationRecord): OpeningRecord | undefined =>
  state.tables.opening.get(opening);

export function listApplications(state: TenancyState, actor: Actor): Result<readonly ApplicationSummary[], Refused> {
  const no = denied(state, actor, "user.read");
  if (no !== null) return fail(no);
  return ok(
    [...state.tables.application.values()].flatMap((each) => {
      const opening = openingOf(state, each);
      return opening !== undefined && reaches(state, actor, { domain: opening.domain })
        ? [summary(state, each, opening)]
        : [];
    }),
  );
}

function applicationFor(
  state: TenancyState,
  actor: Actor,
  uid: string,
): Result<{ readonly application: ApplicationRecord; readonly opening: OpeningRecord }, Refused> {
  const application = state.tables.application.get(uid);
  const opening = application === undefined ? undefined : openingOf(state, application);
  if (application === undefined || opening === undefined || !reaches(state, actor, { domain: opening.domain }))
    return fail(noSuch("application", uid, "`cells registration` shows those that wait"));
  const no = denied(state, actor, "account.add");
  return no === null ? ok({ application, opening }) : fail(no);
}

/** The account and its user are given by who approves, with what he may now. */
export function approveApplication(
  state: TenancyState,
  actor: Actor,
  asked: {
    readonly uid: string;
    /** Another one than was asked for. */
    readonly name: string | undefined;
    readonly fresh: { readonly uid: string; readonly number: string };
    readonly dryRun: boolean;
  },
): Result<UserSummary, Refused> {
  const found = applicationFor(state, actor, asked.uid);
  if (!found.ok) return found;
  const { application, opening } = found.value;
  const { domain, role, limits } = opening;
  const name = asked.name ?? application.name;
  const path = `${domainPath(state, domain)}/${name}`;
  const { uid: accountUid, number } = asked.fresh;
  const no =
    whyNotGiven(state, actor, domain, { role, limits }) ?? refuseUser(state, domain, name, actor.user === null);
  if (no !== null) return fail(no);
  const place = addAccount(state, actor, { path, uid: accountUid, number, dryRun: asked.dryRun });
  if (!place.ok) return place;
  const user = { name, account: path, role };
  if (asked.dryRun)
    return ok({
      uid: application.uid,
      ...user,
      domain: domainPath(state, domain),
      state: "enabled",
      hasPassword: true,
      hasSecondFactor: false,
    });
  const account = state.tables.account.get(accountUid);
  if (account !== undefined && limits !== undefined) save(state, "account", accountUid, { ...account, limits });
  const made = addUser(state, actor, { uid: application.uid, user, password: application.password, dryRun: false });
  if (!made.ok) throw new Error(`a user who may be made was refused: ${made.error.message}`);
  save(state, "application", application.uid, null);
  return made;
}

export function rejectApplication(
  state: TenancyState,
  actor: Actor,
  { uid, dryRun }: { readonly uid: string; readonly dryRun: boolean },
): Result<ApplicationSummary, Refused> {
  const found = applicationFor(state, actor, uid);
  if (!found.ok) return found;
  const { application, opening } = found.value;
  if (!dryRun) save(state, "application", uid, null);
  return ok(summary(state, application, opening));
}
