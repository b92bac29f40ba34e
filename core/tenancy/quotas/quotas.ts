import { peerName } from "../../../model/cell/identifiers.ts";
import type { Limits, QuotaChange, QuotaSummary } from "../../../model/contract/tenancy/quotas.ts";
import { fail, ok, type Result } from "../../../model/result.ts";
import { actualLimits } from "../../documents/readers/tenancy.ts";
import type { DesiredLimits } from "../../documents/tenancy.ts";
import { actualKey } from "../../documents/vocabulary.ts";
import { desire } from "../../outbox.ts";
import { type Actor, denied, reaches } from "../actor.ts";
import { isKept } from "../owners/owners.ts";
import { accountFor, domainFor } from "../places.ts";
import type { AccountRecord, DomainRecord } from "../records.ts";
import { type Refused, refused, whyNotCounted } from "../refused.ts";
import { accountAt, accountPath, domainPath, domainsAbove, save, type TenancyState } from "../state.ts";

/*
 * What accounts and domains may have. It is kept here and counted at the root controller alone, which grants: this service desires every limit
 * there, and hears what was granted of it.
 */
const self = peerName("tenancy");
const rootController = peerName("controller.root");
const keyOf = (uid: string): string => `limits/${uid}`;

/** And machines of its cells are off; a domain's state is that of all below it. */
const isOff = ({ state }: AccountRecord | DomainRecord): boolean => state === "disabled";
const isLimited = ({ limits }: { readonly limits?: Limits }): boolean => Object.keys(limits ?? {}).length > 0;

/** What is to be said of one; null: nothing. */
function desiredOf(state: TenancyState, uid: string): DesiredLimits | null {
  const [domain, account] = [state.tables.domain.get(uid), state.tables.account.get(uid)];
  const of = domain ?? account;
  if (of === undefined) return null;
  const kind = domain === undefined ? "account" : "domain";
  const path = kind === "domain" ? domainPath(state, uid) : accountPath(state, uid);
  // By it the root controller knows the UID of an account that has cells, so that whoever has its path later is another one.
  const hasCells = account !== undefined && state.payers.saidOf(path).size > 0;
  if (!(isLimited(of) || isOff(of) || hasCells)) return null;
  return {
    uid,
    path,
    kind,
    limits: of.limits ?? {},
    ...(account === undefined ? {} : { within: domainsWithin(state, account) }),
    ...(isOff(of) ? { off: true } : {}),
    ...(of.deleting !== true ? {} : kind === "account" ? { ending: true } : { domainEnds: true }),
  };
}

const domainsWithin = (state: TenancyState, { domain }: AccountRecord): readonly string[] =>
  domainsAbove(state, domain)
    .map(({ uid }) => uid)
    .reverse();

/** Of an account it is looked anew what is to be said: it has a cell more, or one less. */
export function noteOwned(state: TenancyState, paths: readonly (string | null | undefined)[]): void {
  if (state.limitNews === "all") return;
  for (const path of paths) {
    const uid = path == null ? undefined : accountAt(state, path)?.uid;
    if (uid !== undefined) state.limitNews.add(uid);
  }
}

/** Where there is a root controller it is told every limit. One that lost its store says nothing anew before somebody has looked. */
export function desireLimits(state: TenancyState): void {
  const { limitNews, outbox } = state;
  if (!state.started || !isKept(state) || state.held !== null) return;
  if (limitNews !== "all" && limitNews.size === 0) return;
  state.limitNews = new Set();
  if (!state.hearsGranted) {
    state.hearsGranted = true;
    state.outbox.effects.push({ kind: "subscribe", to: rootController, prefix: actualKey(self, keyOf("")) });
  }
  const before = outbox.desired.get(rootController);
  const uids = limitNews === "all" ? allUids(state, [...(before?.keys() ?? [])]) : limitNews;
  for (const uid of uids) {
    const document = desiredOf(state, uid);
    if (document !== null || before?.has(keyOf(uid)) === true) desire(outbox, rootController, keyOf(uid), document);
  }
}
/** Those that have gone and of which something is still said included. */
const allUids = ({ tables }: TenancyState, said: readonly string[]): ReadonlySet<string> =>
  new Set([...tables.domain.keys(), ...tables.account.keys(), ...said.map((key) => key.slice(keyOf("").length))]);

/** What the root controller says. */
export function hearGranted(state: TenancyState, key: string, value: Parameters<typeof actualLimits.of>[0]): void {
  const uid = key.slice(actualKey(self, keyOf("")).length);
  const said = actualLimits.of(value);
  if (said === null) state.granted.delete(uid);
  else state.granted.set(uid, said.granted);
  if (said?.left === undefined) state.left.delete(uid);
  else state.left.set(uid, said.left);
}

const summaryOf = (
  state: TenancyState,
  kind: QuotaSummary["kind"],
  { uid, limits = {} }: AccountRecord | DomainRecord,
): QuotaSummary => ({
  uid,
  path: kind === "domain" ? domainPath(state, uid) : accountPath(state, uid),
  kind,
  limits,
  granted: state.granted.get(uid) ?? null,
});

/** Those that are limited, of what the actor may see; his own account and what it is in he may always see. */
export function listQuotas(state: TenancyState, actor: Actor): Result<readonly QuotaSummary[], Refused> {
  const no = denied(state, actor, "account.read");
  if (no !== null) return fail(no);
  const domains = [...state.tables.domain.values()].filter(
    (each) => isLimited(each) && reaches(state, actor, { domain: each.uid }),
  );
  const accounts = [...state.tables.account.values()].filter(
    (each) => isLimited(each) && reaches(state, actor, { account: each.uid }),
  );
  return ok(
    [
      ...domains.map((each) => summaryOf(state, "domain", each)),
      ...accounts.map((each) => summaryOf(state, "account", each)),
    ].sort((one, other) => (one.path < other.path ? -1 : 1)),
  );
}

interface NewQuota extends QuotaChange {
  readonly uid: string;
  readonly dryRun: boolean;
  /** Why it is not to be changed here (`declared/keeper.ts`); null: it may. */
  readonly whyKept?: (kind: QuotaSummary["kind"], path: string) => Refused | null;
}
/** Nobody changes what bounds himself: a domain's limit is of those who administer the one above it, an account's of those of its domain. */
export function setQuota(
  state: TenancyState,
  actor: Actor,
  { uid, limits, dryRun, whyKept }: NewQuota,
): Result<QuotaSummary, Refused> {
  const domain = state.tables.domain.get(uid);
  const found =
    domain === undefined
      ? accountFor(state, actor, accountPath(state, uid), "quota.change")
      : domainFor(state, actor, domainPath(state, uid), "quota.change");
  if (!found.ok) return found;
  const kind = domain === undefined ? "account" : "domain";
  const path = kind === "domain" ? domainPath(state, uid) : accountPath(state, uid);
  const above = domain === undefined ? (found.value as AccountRecord).domain : domain.parent;
  if (actor.user !== null && (above === null || !reaches(state, actor, { domain: above }))) {
    const message = `what bounds ${path} is for those who administer what it is in: ask one of them`;
    return fail(refused(403, "forbidden", message));
  }
  if (!isKept(state))
    return fail(
      refused(
        409,
        "conflict",
        "quotas are counted by the root controller, and here there is none: the services are processes",
      ),
    );
  const no = whyKept?.(kind, path) ?? whyNotCounted(limits);
  if (no !== null) return fail(no);
  const record = { ...found.value, limits };
  if (!dryRun && kind === "domain") save(state, "domain", uid, record as DomainRecord);
  if (!dryRun && kind === "account") save(state, "account", uid, record as AccountRecord);
  return ok(summaryOf(state, kind, record));
}
