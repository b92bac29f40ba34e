import { sha256 } from "../../../model/contract/audit/sha256.ts";
import type { Limits } from "../../../model/contract/tenancy/quotas.ts";
import type { Result } from "../../../model/result.ts";
import type {
  ActualDeclared,
  DeclaredAccount,
  DeclaredDomain,
  DeclaredRole,
  DesiredDeclared,
} from "../../documents/tenancy.ts";
import { audit, log, publish, sameJson, toJson } from "../../outbox.ts";
import { noteRoot } from "../owners/owners.ts";
import { addRole } from "../people.ts";
import { addAccount, addDomain, changeAccount, changeDomain } from "../places.ts";
import { setQuota } from "../quotas/quotas.ts";
import type { RoleRecord } from "../records.ts";
import type { Refused } from "../refused.ts";
import { accountAt, domainAt, domainsAbove, save, type TenancyState } from "../state.ts";
import { nameOf, specification } from "./keeper.ts";

/*
 * What the root cell's specification declares of domains, accounts and roles is made so here, and said to be so. A domain or an account that is there
 * already is taken over with all that it has. What is declared no longer goes on as it is: that something is missing in a document deletes nothing.
 *
 * Nobody else changes what is declared (`keeper.ts`), so what was made so once stays so, and nothing is looked at again but what waits.
 */

/** @param key of what is said of it */
export function takeDeclared(state: TenancyState, key: string, document: DesiredDeclared | null): void {
  const { all, of, pending } = state.declared;
  const before = all.get(key);
  if (before !== undefined) {
    const name = nameOf(before.kind, before.path);
    const keys = of.get(name);
    keys?.delete(key);
    if (keys?.size === 0) of.delete(name);
    // Whoever said otherwise of it may be right now.
    for (const other of keys ?? []) pending.add(other);
    all.delete(key);
    pending.delete(key);
  }
  if (document === null) {
    publish(state.outbox, key, null);
    if (before !== undefined && state.started) tell(state, before, "releaseDeclared", "goes on as it is");
    return;
  }
  noteRoot(state);
  const name = nameOf(document.kind, document.path);
  const keys = of.get(name) ?? new Set();
  of.set(name, keys.add(key));
  all.set(key, document);
  for (const each of keys) pending.add(each);
}

/** As far as it goes now: what is above comes before what is in it. */
export function advanceDeclared(state: TenancyState): void {
  const { all, pending } = state.declared;
  if (!state.started || pending.size === 0) return;
  const waiting = [...pending].flatMap((key) => {
    const document = all.get(key);
    return document === undefined ? [] : [{ key, document, depth: document.path.split("/").length }];
  });
  waiting.sort((one, other) => one.depth - other.depth);
  for (const { key, document } of waiting) {
    const why = whyNotSo(state, document);
    const phase = why === null ? "ready" : "waiting";
    const said: ActualDeclared = { phase, reason: why, tag: document.tag };
    publish(state.outbox, key, said);
    if (why === null) pending.delete(key);
  }
}

/** Makes it so. Null: it is. */
function whyNotSo(state: TenancyState, document: DesiredDeclared): string | null {
  if (state.held !== null)
    return "the store of the service of users is older than it was: `cells orphans release tenancy` lets it count, once somebody has looked";
  if (isContradicted(state, document))
    return "it is declared twice, and not alike: by an element of before, too, which the root cell's controller has forgotten; `cells orphans list` shows it";
  return document.kind === "role" ? makeRole(state, document) : makePlace(state, document);
}

/** A root controller that lost its store may not have taken back what it said before. */
function isContradicted({ declared }: TenancyState, document: DesiredDeclared): boolean {
  const same = ({ uid: _, at: __, tag: ___, ...rest }: DesiredDeclared): ReturnType<typeof toJson> => toJson(rest);
  return [...(declared.of.get(nameOf(document.kind, document.path)) ?? [])].some((key) => {
    const other = declared.all.get(key);
    return other !== undefined && !sameJson(same(other), same(document));
  });
}

function makePlace(state: TenancyState, document: DeclaredDomain | DeclaredAccount): string | null {
  const { kind, path, state: standing, limits } = document;
  const isDomain = kind === "domain";
  const there = isDomain ? domainAt(state, path) : accountAt(state, path);
  if (there?.deleting === true)
    return `${path} is being deleted, and is made anew when nothing of it is left: \`cells ${kind} list\` shows it`;
  let uid = there?.uid ?? "";
  if (there === undefined) {
    const asked = { path, ...freshFor(state, document), dryRun: false };
    uid = asked.uid;
    const why = refusalOf(isDomain ? addDomain(state, specification, asked) : addAccount(state, specification, asked));
    if (why !== null) return why;
    tell(state, document, isDomain ? "addDomain" : "addAccount");
  }
  const now = isDomain ? state.tables.domain.get(uid) : state.tables.account.get(uid);
  if (now === undefined) return null;
  if (now.state !== standing) {
    const asked = { uid, standing, dryRun: false };
    const change = isDomain ? changeDomain : changeAccount;
    const why = refusalOf(change(state, specification, asked));
    if (why !== null) return why;
    tell(state, document, isDomain ? "changeDomain" : "changeAccount", standing);
  }
  if (isSame(now.limits ?? {}, limits)) return null;
  const why = refusalOf(setQuota(state, specification, { uid, limits, dryRun: false }));
  if (why === null) tell(state, document, "setQuota");
  return why;
}
const isSame = (one: Limits, other: Limits): boolean => sameJson(toJson(one), toJson(other));

function makeRole(state: TenancyState, document: DeclaredRole): string | null {
  const { path, reach, rules, secondFactor } = document;
  const at = path.lastIndexOf("/");
  const [above, name] = [path.slice(0, at), path.slice(at + 1)];
  const domain = domainAt(state, above)?.uid;
  const there = [...state.tables.role.values()].find((each) => each.name === name && each.domain === domain);
  const demanded = secondFactor === true ? ({ secondFactor } as const) : {};
  if (there === undefined) {
    const { uid } = freshFor(state, document);
    const role = { name, domain: above, reach, rules, ...demanded };
    const why = refusalOf(addRole(state, specification, { uid, role, dryRun: false }));
    if (why === null) tell(state, document, "addRole");
    return why;
  }
  const record: RoleRecord = { uid: there.uid, name, domain: there.domain, reach, rules, ...demanded };
  if (sameJson(toJson(there), toJson(record))) return null;
  save(state, "role", there.uid, record);
  tell(state, document, "changeRole");
  return null;
}

const refusalOf = (result: Result<object, Refused>): string | null => (result.ok ? null : result.error.message);

/**
 * UID and number of what is made: nothing here draws any, and no two may ever be alike, nor that of one that has gone. Neither opens anything.
 * The audit has one record more with each that is made.
 */
function freshFor(state: TenancyState, { path, uid: of }: DesiredDeclared): { uid: string; number: string } {
  const { domain, account, role } = state.tables;
  for (let salt = 0; ; salt += 1) {
    const text = sha256(`${path} ${of} ${state.now.wallMs} ${state.outbox.audit.changes.next} ${salt}`);
    const uid = [
      [0, 8],
      [8, 12],
      [12, 16],
      [16, 20],
      [20, 32],
    ]
      .map(([from, to]) => text.slice(from, to))
      .join("-");
    const number = String(Number.parseInt(text.slice(32, 44), 16) % 10 ** 12).padStart(12, "0");
    const isTaken = [...account.values()].some((each) => each.number === number);
    if (!isTaken && !domain.has(uid) && !account.has(uid) && !role.has(uid)) return { uid, number };
  }
}

/** Who asked for it has a record at the root controller; this is what came of it. */
function tell(state: TenancyState, { path, at }: DesiredDeclared, verb: string, more = ""): void {
  const around = domainAt(state, path) ?? domainAt(state, path.slice(0, path.lastIndexOf("/")));
  const account = accountAt(state, path)?.uid;
  const domains = around === undefined ? [] : domainsAbove(state, around.uid).map(({ uid }) => uid);
  const within = [...(account === undefined ? [] : [account]), ...domains];
  audit(state.outbox, state.now, {
    who: specification.label,
    door: "specification",
    verb,
    target: path,
    what: [`declared at ${at}`, more].filter(Boolean).join(", "),
    outcome: "done",
    within,
  });
  log(state.outbox, "tenancy/changed", { verb, by: specification.label, target: path });
}
