import type { CellName } from "../../model/cell/identifiers.ts";
import type { Limits } from "../../model/contract/tenancy/quotas.ts";
import type { Reach, Rule } from "../../model/contract/tenancy/rules.ts";
import type { CellNews, NoticeKind } from "../../model/contract/tenancy/subscriptions.ts";
import type { KeyState, Standing } from "../../model/contract/tenancy/tenancy.ts";

/*
 * What `tenancy` keeps, by the first part of a record's key: `domain/<uid>` and so on; sessions and tickets by their hashes, owners by the
 * names of cells, keys by their ids. No record holds what opens anything: hashes of 256 random bits, of passwords PHC strings, and secrets of keys
 * sealed, for whoever has the key of the process.
 */
export interface DomainRecord {
  readonly uid: string;
  readonly name: string;
  /** Null: the root of the tree. */
  readonly parent: string | null;
  readonly state: Standing;
  /** It ends, with all that is in it. */
  readonly deleting?: true;
  /** Absent: none. */
  readonly limits?: Limits;
}
export interface AccountRecord {
  readonly uid: string;
  readonly name: string;
  readonly domain: string;
  readonly number: string;
  readonly state: Standing;
  /** It ends (`deletion/`). */
  readonly deleting?: true;
  /** Absent: none. */
  readonly limits?: Limits;
}
export interface UserRecord {
  readonly uid: string;
  readonly name: string;
  readonly account: string;
  /** UID; of a built-in one `builtInUid`. */
  readonly role: string;
  readonly state: Standing;
  /** PHC string of argon2id; null: none was set. */
  readonly password: string | null;
  /** Hash of the link by which he may give himself a password until then. */
  readonly link?: { readonly hash: string; readonly untilMs: number };
  /** His second factor; absent: he has none. */
  readonly totp?: TotpRecord;
  /** Who he is at a provider of logins; absent: he is none of its. */
  readonly oidc?: Subject;
}
/** What a provider calls somebody for good (OpenID Connect Core 1.0, section 2). */
export interface Subject {
  readonly issuer: string;
  readonly subject: string;
}
export interface TotpRecord {
  /** Its secret, as of a key. */
  readonly sealed: string;
  /** It was confirmed by a first code, and a login needs it. */
  readonly isOn: boolean;
  /** The step of the code that was used last: no code is used twice. */
  readonly lastStep: number;
  /** Hashes of the recovery codes that are left. */
  readonly recovery: readonly string[];
}
export interface RoleRecord {
  readonly uid: string;
  readonly name: string;
  readonly domain: string;
  readonly reach: Reach;
  readonly rules: readonly Rule[];
  /** Who has it may nothing until he has a second factor. */
  readonly secondFactor?: true;
}
export interface SessionRecord {
  readonly user: string;
  /** Milliseconds since 1970. */
  readonly untilMs: number;
  /** Id of the key by which it was begun; absent: by a password, or a provider. */
  readonly key?: string;
  /** UID of the provider by which it was begun. */
  readonly provider?: string;
  /** What that calls it; absent: it has not said. */
  readonly sid?: string;
  /** UID of the subscription that it watches cells for: it reads these, says who it is for where that watches persistent volumes, and opens nothing else. */
  readonly watch?: string;
}
/** A URL that is told of cells (`subscriptions/`). */
export interface SubscriptionRecord {
  /** UID. */
  readonly user: string;
  readonly url: string;
  /** The secret that notices are signed with, as of a key. */
  readonly sealed: string;
  readonly cells: readonly string[];
  /** Also of persistent volumes. */
  readonly volumes?: true;
  readonly events: readonly NoticeKind[];
  /** Milliseconds since 1970. */
  readonly madeMs: number;
  /** Of the notice that was made last. */
  readonly number: number;
}
/** Record `notice/<uid of a subscription>/<number>`. */
export interface NoticeRecord {
  /** Milliseconds since 1970. */
  readonly atMs: number;
  /** Null: a test. */
  readonly news: CellNews | null;
  /** Why it was given up; absent: it waits. */
  readonly dead?: string;
}
/** A role that an account gives others on some of its cells. */
export interface DelegationRecord {
  readonly uid: string;
  /** UID of the account whose cells they are. */
  readonly account: string;
  /** Names; empty: all of them. */
  readonly cells: readonly string[];
  /** UID of the account, or of the one user, to whom it is given. */
  readonly to: string;
  /** UID. */
  readonly role: string;
}
/** By which somebody makes himself an account. */
export interface InvitationRecord {
  readonly uid: string;
  /** Hash of its link. */
  readonly hash: string;
  /** UID. */
  readonly domain: string;
  /** Name of the role of its first user. */
  readonly role: string;
  readonly limits?: Limits;
  /** Milliseconds since 1970. */
  readonly untilMs: number;
  /** UID of who invited; null: the operator. */
  readonly by: string | null;
}
/** A domain takes applications of who has such an address. */
export interface OpeningRecord {
  readonly uid: string;
  /** UID. */
  readonly domain: string;
  /** What stands behind the @ of addresses, in small letters. */
  readonly email: string;
  /** Name of the role of an account's first user. */
  readonly role: string;
  readonly limits?: Limits;
}
/** Somebody waits to be let in; his UID as a user will be that of this. */
export interface ApplicationRecord {
  readonly uid: string;
  /** UID. */
  readonly opening: string;
  readonly name: string;
  readonly email: string;
  /** PHC string. */
  readonly password: string;
  /** Milliseconds since 1970. */
  readonly untilMs: number;
  /** Address of the client. */
  readonly source: string;
}
/** An access key, by its id. */
export interface KeyRecord {
  /** UID. */
  readonly user: string;
  readonly note: string;
  readonly state: KeyState;
  /** Milliseconds since 1970. */
  readonly madeMs: number;
  /** When it last began a session; absent: never. */
  readonly usedMs?: number;
  /** Its secret; who opens it is the edge (`runtime/identity/own/seal.ts`). */
  readonly sealed: string;
}
/** A provider of logins. */
export interface ProviderRecord {
  readonly uid: string;
  readonly name: string;
  readonly issuer: string;
  readonly clientId: string;
  /** The client's secret, as of a key; absent: it has none. */
  readonly sealed?: string;
  readonly nameClaim: string;
  readonly scopes: readonly string[];
  /** PEM; absent: what everybody trusts. */
  readonly authority?: string;
  readonly hosts: readonly string[];
  readonly redirects: readonly string[];
  readonly mappings: readonly MappingRecord[];
}
/** `account` and `role`: UIDs. */
export interface MappingRecord {
  readonly claim: string;
  readonly value: string;
  readonly account: string;
  readonly role: string;
}
export interface TicketRecord {
  /** Hash of the session that it is for. */
  readonly session: string;
  readonly cell: string;
  /** At the root cell: for this child cell alone. */
  readonly child?: CellName;
}
/** Record `owner/<cell>`. A cell of which there is none is the operator's. */
export interface OwnerRecord {
  readonly account: string;
}
/** Record `usage/<day>/<number of an account>`: what its cells had on that day (UTC). It stays when the account has gone. */
export interface UsageRecord {
  readonly number: string;
  /** Path. */
  readonly account: string;
  /** UID of the account's domain; of the next one above that is left. */
  readonly domain: string;
  /** Milliseconds since 1970: as far as it is counted. */
  readonly untilMs: number;
  /** Times milliseconds. */
  readonly amounts: Limits;
  /** What of it was in use. Absent: nothing, or nobody counted. */
  readonly used?: Limits;
}
/** Record `held`: this store is older than what was seen of it. */
export interface HeldRecord {
  readonly why: string;
}
