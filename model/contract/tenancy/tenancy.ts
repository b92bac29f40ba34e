import { rootDomainPath, tenantPath } from "../../cell/tenants/path.ts";
import type { Tagged } from "./pages.ts";
import type { Limits } from "./quotas.ts";
import type { Reach, Rule } from "./rules.ts";

/*
 * What a client hears and says of domains, accounts, users and roles (`design: who is who`). UIDs stay, names may change.
 */

/**
 * `locked`: what runs goes on, and nothing new comes; `disabled`: nobody gets in. One that is in a domain or an account has at most what that
 * has.
 */
export const standings = ["enabled", "locked", "disabled"] as const;
export type Standing = (typeof standings)[number];

/** Of a domain, an account or a role. */
export const namePattern = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;
export const nameRule = "at most 63 small letters, digits and hyphens, a hyphen neither first nor last";
export const userPattern = /^[a-z0-9](?:[a-z0-9._-]{0,61}[a-z0-9])?$/;
export const userRule =
  "at most 63 small letters, digits, points, hyphens and underscores, a letter or digit first and last";
export const rootDomain = rootDomainPath;
export const pathPattern = tenantPath;
export const pathRule = "a path of names from the root of all domains: ROOT/acme/dev";
export const passwordLength = { least: 8, most: 1024 } as const;

export interface DomainSummary extends Tagged {
  readonly uid: string;
  readonly path: string;
  readonly state: Standing;
  /** It ends with all that is in it, and is there until nothing is left. */
  readonly deleting?: boolean;
  /** Of what is deleted: what goes with it, in its order. */
  readonly plan?: readonly string[];
  /** Where it stands in the root cell's specification, and is changed there alone; absent: nowhere. */
  readonly declared?: string;
}
export interface AccountSummary extends Tagged {
  readonly uid: string;
  readonly path: string;
  /** Twelve digits. */
  readonly number: string;
  readonly state: Standing;
  /** Names of the cells that belong to it, sorted; of the operator's account those that were given to it alone. */
  readonly cells: readonly string[];
  /** As of a domain. */
  readonly deleting?: boolean;
  readonly plan?: readonly string[];
  readonly declared?: string;
}
export interface UserSummary extends Tagged {
  readonly uid: string;
  readonly name: string;
  /** Path of the domain in which the name is unique, and with which it logs in. */
  readonly domain: string;
  /** Path of the account. */
  readonly account: string;
  readonly role: string;
  readonly state: Standing;
  /** It can log in with a password. */
  readonly hasPassword: boolean;
  /** And needs a code with it. */
  readonly hasSecondFactor: boolean;
}
export interface RoleSummary extends Tagged {
  readonly uid: string;
  readonly name: string;
  /** Where it is to be had: in this domain and all below; a built-in one in `ROOT`. */
  readonly domain: string;
  readonly reach: Reach;
  readonly rules: readonly Rule[];
  /** Who has the role may nothing until he has a second factor. */
  readonly secondFactor: boolean;
  readonly builtIn: boolean;
  /** As of a domain. */
  readonly declared?: string;
}

export interface NewDomain {
  readonly path: string;
}
export interface NewAccount {
  readonly path: string;
}
export interface StateChange {
  readonly state: Standing;
}
export interface NewUser {
  readonly name: string;
  /** Path. */
  readonly account: string;
  /** Name of the role. */
  readonly role: string;
  /** Absent: it cannot log in with a password yet. */
  readonly password?: string;
}
export interface UserChange {
  readonly state?: Standing;
  readonly role?: string;
  readonly password?: string;
  /** Takes his second factor away, as where a telephone was lost. */
  readonly totp?: "off";
}
export interface NewRole {
  readonly name: string;
  readonly domain: string;
  readonly reach: Reach;
  readonly rules: readonly Rule[];
  readonly secondFactor?: boolean;
}
export interface RoleChange {
  readonly rules: readonly Rule[];
}
export interface OwnerChange {
  /** Path of the account that a cell belongs to from now on. */
  readonly account: string;
}
export interface CellOwner {
  readonly cell: string;
  readonly account: string;
}

export interface LoginRequest {
  readonly user: string;
  /** Path; absent: `ROOT`. */
  readonly domain?: string;
  readonly password: string;
  /** Of a second factor, or a recovery code. */
  readonly code?: string;
}
export interface Login {
  /** A bearer credential, and a secret: this is its only appearance. */
  readonly session: string;
  readonly user: UserSummary;
  /** ISO 8601. */
  readonly expires: string;
}
export interface WhoAmI {
  /** Null: the operator, by the operator's credential. */
  readonly user: UserSummary | null;
  readonly reach: Reach;
  readonly rules: readonly Rule[];
  readonly expires: string | null;
  /** UIDs of the domains that the account is in, by their paths: a path is free again when its domain is deleted. Absent: the operator's, or of a version before. */
  readonly domains?: Readonly<Record<string, string>>;
}
/** A user gives himself another one. */
export interface OwnPassword {
  /** The present one. */
  readonly password: string;
  readonly newPassword: string;
}

/** By which a user gives himself his first password. */
export interface MadeLink {
  /** It opens once, and is a secret: this is its only appearance. */
  readonly link: string;
  /** As he logs in. */
  readonly user: string;
  /** ISO 8601. */
  readonly expires: string;
}
/** Who administers the installation from now on. */
export interface NewRecovery {
  /** Of a user of `ROOT`, who is there or is made. */
  readonly name: string;
}
export interface FirstPassword {
  readonly link: string;
  readonly password: string;
}

/** By which somebody makes himself an account in a domain, and is its first user. */
export interface NewInvitation {
  /** Path. */
  readonly domain: string;
  /** Name of a role that reaches an account; absent: `account-admin`. */
  readonly role?: string;
  /** What the account may have; absent: it has no limit of its own. */
  readonly limits?: Limits;
  /** How long it counts; absent: 7. */
  readonly days?: number;
}
export interface InvitationSummary extends Tagged {
  readonly uid: string;
  readonly domain: string;
  readonly role: string;
  readonly limits: Limits;
  /** Who invites. */
  readonly by: string;
  /** ISO 8601. */
  readonly expires: string;
}
export interface MadeInvitation {
  readonly invitation: InvitationSummary;
  /** It opens once, and is a secret: this is its only appearance. */
  readonly link: string;
}
export interface NewRegistration {
  readonly link: string;
  /** Of the account, and of its user. */
  readonly name: string;
  readonly password: string;
}

/** What stands behind the @ of an address of e-mail, and an address. */
export const emailDomainPattern = /^[A-Za-z0-9](?:[A-Za-z0-9.-]{0,250}[A-Za-z0-9])?$/;
export const emailDomainRule = "what stands behind the @ of addresses: acme.example";
export const emailPattern = /^[A-Za-z0-9._%+'-]{1,64}@[A-Za-z0-9](?:[A-Za-z0-9.-]{0,250}[A-Za-z0-9])?$/;
export const emailRule = "an address of e-mail: pat@acme.example";
/** A domain takes applications of who has such an address. */
export interface NewOpening {
  /** Path. */
  readonly domain: string;
  readonly email: string;
  /** Name of a role that reaches an account; absent: `account-admin`. */
  readonly role?: string;
  /** What an account may have; absent: it has no limit of its own. */
  readonly limits?: Limits;
}
export interface OpeningSummary extends Tagged {
  readonly uid: string;
  readonly domain: string;
  readonly email: string;
  readonly role: string;
  readonly limits: Limits;
}
export interface NewApplication {
  /** Path. */
  readonly domain: string;
  readonly email: string;
  /** Of the account, and of its user. */
  readonly name: string;
  readonly password: string;
}
export interface MadeApplication {
  /** What it is called: who applies says it to his administrator, who approves that one. */
  readonly application: string;
  /** ISO 8601. */
  readonly expires: string;
}
export interface ApplicationSummary extends Tagged {
  readonly uid: string;
  readonly domain: string;
  readonly name: string;
  readonly email: string;
  readonly role: string;
  readonly limits: Limits;
  /** Address of the client. */
  readonly source: string;
  /** ISO 8601. */
  readonly expires: string;
}
export interface Approval {
  /** Another name than was asked for, as where that is taken. */
  readonly name?: string;
}

/** A user gets a second factor, by his password. */
export interface NewTotp {
  readonly password: string;
}
export interface MadeTotp {
  /** In base 32, for an app that shows codes: this is its only appearance. */
  readonly secret: string;
  /** The same as a link, or a picture of it. */
  readonly uri: string;
}
export interface TotpCode {
  readonly code: string;
}
export interface RecoveryCodes {
  /** Each opens once where the telephone is lost: this is their only appearance. */
  readonly recoveryCodes: readonly string[];
}
export interface TotpOff {
  readonly password: string;
  readonly code: string;
}
export const longestCode = 64;

/** An account gives another account, or one user, a role on some of its cells. */
export interface NewDelegation {
  /** Path of the account whose cells they are. */
  readonly account: string;
  /** Names of cells; absent: all that it has and will have. */
  readonly cells?: readonly string[];
  /** Path of an account or `user@domain` that the asker may see; of what he may not see the account's number, or the user's UID. */
  readonly to: string;
  /** Name. */
  readonly role: string;
}
export interface DelegationSummary extends Tagged {
  readonly uid: string;
  readonly account: string;
  /** Empty: all. */
  readonly cells: readonly string[];
  /** As the asker may see it. */
  readonly to: string;
  readonly role: string;
}
export const mostDelegatedCells = 256;

/** A disabled one opens nothing until it is enabled. */
export const keyStates = ["enabled", "disabled"] as const;
export type KeyState = (typeof keyStates)[number];
export const longestNote = 100;
/** An access key: an id, and a secret by which requests are signed. */
export interface KeySummary extends Tagged {
  readonly id: string;
  /** Name and domain of its user, as he logs in. */
  readonly user: string;
  readonly state: KeyState;
  readonly note: string;
  /** ISO 8601. */
  readonly made: string;
  /** When it last began a session; null: never. */
  readonly used: string | null;
}
export interface NewKey {
  /** UID; absent: whoever asks. */
  readonly user?: string;
  readonly note?: string;
}
export interface MadeKey {
  readonly key: KeySummary;
  /** This is its only appearance. */
  readonly secret: string;
}
export interface KeyChange {
  readonly state: KeyState;
}
/** Whether a user may do something to a cell, or an account. */
export interface CanAnswer {
  readonly allowed: boolean;
  /** A sentence: what decides, and who could allow it. */
  readonly because: string;
}
