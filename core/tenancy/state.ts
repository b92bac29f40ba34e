import type { PeerName } from "../../model/cell/identifiers.ts";
import type { Limits } from "../../model/contract/tenancy/quotas.ts";
import { builtInRoles, builtInUid, type Rule } from "../../model/contract/tenancy/rules.ts";
import { rootDomain, type Standing, type UserSummary } from "../../model/contract/tenancy/tenancy.ts";
import type { DesiredDeclared, DesiredOwner } from "../documents/tenancy.ts";
import type { Instant } from "../env.ts";
import { type Outbox, write } from "../outbox.ts";
import type { Payers } from "./quotas/payers.ts";
import type {
  AccountRecord,
  ApplicationRecord,
  DelegationRecord,
  DomainRecord,
  HeldRecord,
  InvitationRecord,
  KeyRecord,
  NoticeRecord,
  OpeningRecord,
  OwnerRecord,
  ProviderRecord,
  RoleRecord,
  SessionRecord,
  Subject,
  SubscriptionRecord,
  TicketRecord,
  UsageRecord,
  UserRecord,
} from "./records.ts";

/** What a controller has asked to know: of this ticket. */
export interface Look {
  readonly controller: PeerName;
  readonly ticket: string;
}
/** Logins that failed of one user from one address. */
export interface Failures {
  readonly count: number;
  /** Monotonic: not tried again before. */
  readonly untilMs: number;
}

/** What of domains, accounts and roles the root cell's specification declares (`declared/`). */
export interface DeclaredOnes {
  /** By the keys of the documents. */
  readonly all: Map<string, DesiredDeclared>;
  /** Their keys by what they are of. */
  readonly of: Map<string, Set<string>>;
  /** Of what is not so yet, as far as it is known here. */
  readonly pending: Set<string>;
}

interface Tables {
  readonly domain: Map<string, DomainRecord>;
  readonly account: Map<string, AccountRecord>;
  readonly user: Map<string, UserRecord>;
  readonly role: Map<string, RoleRecord>;
  readonly session: Map<string, SessionRecord>;
  readonly ticket: Map<string, TicketRecord>;
  readonly owner: Map<string, OwnerRecord>;
  readonly key: Map<string, KeyRecord>;
  readonly provider: Map<string, ProviderRecord>;
  readonly delegation: Map<string, DelegationRecord>;
  readonly invitation: Map<string, InvitationRecord>;
  readonly opening: Map<string, OpeningRecord>;
  readonly application: Map<string, ApplicationRecord>;
  readonly usage: Map<string, UsageRecord>;
  readonly subscription: Map<string, SubscriptionRecord>;
  readonly notice: Map<string, NoticeRecord>;
}
/** The notices of one subscription, by their numbers, the oldest first, and how it goes with the first. */
export interface Queue {
  readonly waiting: number[];
  readonly dead: number[];
  tried: number;
  /** Monotonic: not tried again before. */
  dueMs: number;
  said: string | null;
  /** Monotonic: when one was carried last. */
  carriedMs: number;
}
export interface Carried {
  /** Of the subscription. */
  readonly uid: string;
  readonly account: string;
  /** Monotonic: whoever carries it has said nothing until then, and another one may. */
  readonly untilMs: number;
}
export interface Notices {
  /** By UID of the subscription. */
  readonly queues: Map<string, Queue>;
  /** Under way, by their records: also one whose subscription has gone or has another URL meanwhile, until its word comes. */
  readonly carried: Map<string, Carried>;
  /** When this process began, milliseconds since 1970, and how often it has changed since then what is to be watched. */
  since: number;
  changes: number;
  /** The question of whoever carries notices, which is answered once there is something. */
  waiting: { readonly id: number; readonly watched: string | null } | null;
}
export interface TenancyState {
  readonly outbox: Outbox;
  readonly tables: Tables;
  readonly notices: Notices;
  /** `<uid of a domain>/<name>` → UID of the user. */
  readonly logins: Map<string, string>;
  /** `subjectKey` → UID of the user. */
  readonly subjects: Map<string, string>;
  /** By the key of the document. */
  readonly looks: Map<string, Look>;
  /** What the root controller says, by the key of the document, and by the cell's name (`owners.ts`). */
  readonly owners: Map<string, DesiredOwner>;
  readonly ownersOf: Map<string, Set<DesiredOwner>>;
  readonly payers: Payers;
  readonly declared: DeclaredOnes;
  /** UIDs of accounts by their paths; null: nobody has asked yet. */
  accountsAt: Map<string, string> | null;
  /** The same of domains. */
  domainsAt: Map<string, string> | null;
  /** UIDs of delegations by whose cells they are of; null: to be gathered anew. */
  delegationsOf: ReadonlyMap<string, readonly string[]> | null;
  /** Hashes of sessions by the keys that began them. */
  readonly sessionsBy: Map<string, Set<string>>;
  /** What the root controller has granted of the limits of accounts and domains, by their UIDs. */
  readonly granted: Map<string, Limits>;
  /** And how many cells it says are left of accounts that are being deleted. */
  readonly left: Map<string, number>;
  /** Monotonic, by UID of an account that has cells: as far as it is counted what they have. */
  readonly counted: Map<string, number>;
  countedAllMs: number;
  /** UIDs of accounts and domains that are being deleted. */
  readonly ending: Set<string>;
  /** UIDs of accounts and domains of which the root controller may not have been told as they are now; `all`: of any. */
  limitNews: Set<string> | "all";
  /** What it says is followed. */
  hearsGranted: boolean;
  /** Monotonic, by hash: tickets that no controller has asked about yet are dropped then. */
  readonly unused: Map<string, number>;
  readonly failures: Map<string, Failures>;
  /** Hashes of links that were made here while the store was held. */
  readonly linked: Set<string>;
  /** Null: this store is whole, as far as anybody knows. */
  held: HeldRecord | null;
  /** The root controller was heard once, now or by a process before. */
  hasRoot: boolean;
  started: boolean;
  /** The store was put back from a copy since the last start. */
  readonly wasPutBack: boolean;
  now: Instant;
}
export type Kind = keyof Tables;

export const emptyTables = (): Tables => ({
  domain: new Map(),
  account: new Map(),
  user: new Map(),
  role: new Map(),
  session: new Map(),
  ticket: new Map(),
  owner: new Map(),
  key: new Map(),
  provider: new Map(),
  delegation: new Map(),
  invitation: new Map(),
  usage: new Map(),
  opening: new Map(),
  application: new Map(),
  subscription: new Map(),
  notice: new Map(),
});

type RecordOf<K extends Kind> = Tables[K] extends Map<string, infer Value> ? Value : never;

/** Takes a record in, or (null) out, durably. */
export function save<K extends Kind>(state: TenancyState, kind: K, key: string, value: RecordOf<K> | null): void {
  const table = state.tables[kind] as Map<string, RecordOf<K>>;
  const before = table.get(key);
  if (kind === "user") {
    noteLogin(state, before as UserRecord | undefined, null);
    noteLogin(state, value as UserRecord | null, key);
  }
  if (kind === "session") noteSession(state, key, (value ?? before) as SessionRecord | undefined, value !== null);
  if (kind === "domain" && value === null) handUpUsage(state, key);
  if (value === null) table.delete(key);
  else table.set(key, value);
  if (kind === "delegation") state.delegationsOf = null;
  if (kind === "domain" || kind === "account") {
    if (state.limitNews !== "all") state.limitNews.add(key);
    if ((value as AccountRecord | DomainRecord | null)?.deleting === true) state.ending.add(key);
    else state.ending.delete(key);
  }
  // What they are called never changes, so neither does where they are, but that they come and go.
  if ((before === undefined) !== (value === null)) {
    if (kind === "account") noteAccount(state, (value ?? before) as AccountRecord, value !== null);
    if (kind === "domain") noteDomain(state, (value ?? before) as DomainRecord, value !== null);
  }
  if (kind === "owner") notePayers(state, state.ownersOf.get(key) ?? []);
  write(state.outbox, `${kind}/${key}`, value as object | null);
}
function noteAccount(state: TenancyState, { uid, domain, name }: AccountRecord, isThere: boolean): void {
  const { payers, accountsAt } = state;
  const path = `${domainPath(state, domain)}/${name}`;
  if (isThere) accountsAt?.set(path, uid);
  else accountsAt?.delete(path);
  notePayers(state, [...payers.cellsOf(uid), ...payers.saidOf(path)]);
}
function noteDomain(state: TenancyState, { uid, parent, name }: DomainRecord, isThere: boolean): void {
  const path = parent === null ? rootDomain : `${domainPath(state, parent)}/${name}`;
  if (isThere) state.domainsAt?.set(path, uid);
  else state.domainsAt?.delete(path);
}
/** Looks anew who pays for these. */
export function notePayers(state: TenancyState, cells: Iterable<DesiredOwner>): void {
  for (const cell of [...cells]) state.payers.put(cell, payerOf(state, cell));
}
/** UID of the account that pays for a cell: where its own is not there, the operator's. */
export function payerOf(state: TenancyState, { account, cell }: DesiredOwner): string {
  const uid = account === null ? state.tables.owner.get(cell)?.account : accountAt(state, account)?.uid;
  return uid !== undefined && state.tables.account.has(uid) ? uid : operatorUid;
}
/** What was had in a domain that goes is a matter of who administers the one above. */
function handUpUsage(state: TenancyState, uid: string): void {
  const above = state.tables.domain.get(uid)?.parent ?? rootUid;
  for (const [key, record] of state.tables.usage)
    if (record.domain === uid) save(state, "usage", key, { ...record, domain: above });
}
export function noteSession(
  { sessionsBy }: TenancyState,
  hash: string,
  session: SessionRecord | undefined,
  isThere: boolean,
): void {
  if (session?.key === undefined) return;
  const own = sessionsBy.get(session.key) ?? new Set();
  if (isThere) sessionsBy.set(session.key, own.add(hash));
  else if (own.delete(hash) && own.size === 0) sessionsBy.delete(session.key);
}
export function noteLogin(state: TenancyState, user: UserRecord | null | undefined, uid: string | null): void {
  if (user === null || user === undefined) return;
  const login = loginKey(state.tables.account.get(user.account)?.domain ?? "", user.name);
  if (uid === null) state.logins.delete(login);
  else state.logins.set(login, uid);
  if (user.oidc === undefined) return;
  if (uid === null) state.subjects.delete(subjectKey(user.oidc));
  else state.subjects.set(subjectKey(user.oidc), uid);
}
/** No issuer has a blank. */
export const subjectKey = ({ issuer, subject }: Subject): string => `${issuer} ${subject}`;
export const loginKey = (domain: string, name: string): string => `${domain}/${name}`;

// --- the tree ------------------------------------------------------------------------------------------------------

/** UID of the root of all domains, and of the operator's account in it. */
export const rootUid = "domain.root";
export const operatorUid = "account.operator";

/** From the root down to it. */
export function domainsAbove({ tables }: TenancyState, uid: string): readonly DomainRecord[] {
  const found: DomainRecord[] = [];
  for (let next = tables.domain.get(uid); next !== undefined; ) {
    found.push(next);
    next = next.parent === null ? undefined : tables.domain.get(next.parent);
  }
  return found.reverse();
}
export const isInDomain = (state: TenancyState, uid: string, above: string): boolean =>
  domainsAbove(state, uid).some((each) => each.uid === above);

export const domainPath = (state: TenancyState, uid: string): string =>
  domainsAbove(state, uid)
    .map(({ parent, name }) => (parent === null ? rootDomain : name))
    .join("/");
export function accountPath(state: TenancyState, uid: string): string {
  const account = state.tables.account.get(uid);
  return account === undefined ? "" : `${domainPath(state, account.domain)}/${account.name}`;
}
export function domainAt(state: TenancyState, path: string): DomainRecord | undefined {
  state.domainsAt ??= new Map([...state.tables.domain.keys()].map((uid) => [domainPath(state, uid), uid]));
  return state.tables.domain.get(state.domainsAt.get(path) ?? "");
}
export function accountAt(state: TenancyState, path: string): AccountRecord | undefined {
  const uids = accountsAt(state);
  return state.tables.account.get(uids.get(path) ?? "");
}
function accountsAt(state: TenancyState): Map<string, string> {
  state.accountsAt ??= new Map([...state.tables.account.keys()].map((uid) => [accountPath(state, uid), uid]));
  return state.accountsAt;
}

// --- users ---------------------------------------------------------------------------------------------------------

export function roleOf({ tables }: TenancyState, uid: string): RoleRecord | undefined {
  const builtIn = builtInRoles.find(({ name }) => builtInUid(name) === uid);
  if (builtIn === undefined) return tables.role.get(uid);
  const { name, reach, rules } = builtIn;
  return { uid, name, domain: rootUid, reach, rules };
}

const worst = (states: readonly Standing[]): Standing =>
  states.includes("disabled") ? "disabled" : states.includes("locked") ? "locked" : "enabled";
/** Of a user with all that it is in. */
export function standingOf(state: TenancyState, user: UserRecord): Standing {
  const account = state.tables.account.get(user.account);
  if (account === undefined) return "disabled";
  return worst([user.state, account.state, ...domainsAbove(state, account.domain).map((each) => each.state)]);
}
/** Who is locked does nothing new. */
export const lockedOut: readonly Rule[] = ["cell.create", "cell.change", "credential.add"].map((verb) => ({
  verb,
  effect: "deny",
}));

export const lacksSecondFactor = ({ totp }: UserRecord, { secondFactor }: Pick<RoleRecord, "secondFactor">): boolean =>
  secondFactor === true && totp?.isOn !== true;

/** Of an account with the domains that it is in. */
export const accountStanding = (state: TenancyState, { state: own, domain }: AccountRecord): Standing =>
  worst([own, ...domainsAbove(state, domain).map((each) => each.state)]);

/** What a user may now; null: nothing, not even that somebody looks who it is. */
export function rightsOf(state: TenancyState, user: UserRecord | undefined): RoleRecord | null {
  const role = user === undefined ? undefined : roleOf(state, user.role);
  if (user === undefined || role === undefined) return null;
  // The way in for who puts it right, and for nobody whose role merely reaches as far.
  if (state.held !== null && user.role !== builtInUid("root-admin")) return null;
  const standing = standingOf(state, user);
  if (standing === "disabled") return null;
  // He gets in, and does what needs no right: to see to that is all he may.
  if (lacksSecondFactor(user, role)) return { ...role, rules: [] };
  return standing === "locked" ? { ...role, rules: [...lockedOut, ...role.rules] } : role;
}

/** May what a user has be used on this account? */
export function isReached(state: TenancyState, user: UserRecord, role: RoleRecord, account: string): boolean {
  if (role.reach === "installation" || account === user.account) return state.tables.account.has(account);
  if (role.reach === "account") return false;
  const [own, other] = [state.tables.account.get(user.account), state.tables.account.get(account)];
  return own !== undefined && other !== undefined && isInDomain(state, other.domain, own.domain);
}

const sessionAt = (state: TenancyState, hash: string): SessionRecord | undefined => {
  const session = state.tables.session.get(hash);
  return session === undefined || session.untilMs <= state.now.wallMs ? undefined : session;
};
/** The user of a session that counts; one that watches cells is nobody's here. */
export function userOfSession(state: TenancyState, hash: string): UserRecord | undefined {
  const session = sessionAt(state, hash);
  return session === undefined || session.watch !== undefined ? undefined : state.tables.user.get(session.user);
}
/** For whom this session reads these cells; undefined: it is none that watches. */
export function watcherOf(state: TenancyState, hash: string, cell: string): UserRecord | undefined {
  const { watch = "", user = "" } = sessionAt(state, hash) ?? {};
  const { cells = [] } = state.tables.subscription.get(watch) ?? {};
  return cells.includes(cell) ? state.tables.user.get(user) : undefined;
}

/** For whom this session watches persistent volumes; undefined: it does not. */
export function volumesWatcherOf(state: TenancyState, hash: string): UserRecord | undefined {
  const { watch = "", user = "" } = sessionAt(state, hash) ?? {};
  return state.tables.subscription.get(watch)?.volumes === true ? state.tables.user.get(user) : undefined;
}

export const labelOf = (state: TenancyState, user: UserRecord): string =>
  `${user.name}@${domainPath(state, state.tables.account.get(user.account)?.domain ?? "")}`;

export const userSummary = (state: TenancyState, user: UserRecord): UserSummary => ({
  uid: user.uid,
  name: user.name,
  domain: domainPath(state, state.tables.account.get(user.account)?.domain ?? ""),
  account: accountPath(state, user.account),
  role: roleOf(state, user.role)?.name ?? "",
  state: user.state,
  hasPassword: user.password !== null,
  hasSecondFactor: user.totp?.isOn === true,
});

/**
 * There is one supply of each thing for all. One part of the installation has what it asks for as long as twice as much as it has is free: so one
 * alone never has more than a third, and each newcomer finds some.
 */
export function hasItsShare(most: number, taken: number, own: () => number): boolean {
  const free = most - taken;
  return 2 * taken > free && 2 * own() > free;
}
/** The domain right below the root in which this one is: whoever administers it may make domains and accounts there as he likes. */
export const partOf = (state: TenancyState, domain: string): string => domainsAbove(state, domain)[1]?.uid ?? rootUid;

/** Records of the first start. */
export function beginTree(state: TenancyState): void {
  const { domain, account } = state.tables;
  if (!domain.has(rootUid))
    save(state, "domain", rootUid, { uid: rootUid, name: rootDomain, parent: null, state: "enabled" });
  if (!account.has(operatorUid)) {
    const number = "0".repeat(12);
    save(state, "account", operatorUid, {
      uid: operatorUid,
      name: "operator",
      domain: rootUid,
      number,
      state: "enabled",
    });
  }
}
