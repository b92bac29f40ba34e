import type { Tagged } from "./pages.ts";

/*
 * Logins by a provider of OpenID Connect: what is said of a provider, and how a login goes. A provider's document says which of its claims make
 * somebody a user here; whom none of them fits is nobody.
 */
export interface ProviderMapping {
  readonly claim: string;
  /** The claim, or one of its list, is this text. */
  readonly value: string;
  /** Path of the account whose user he is. */
  readonly account: string;
  /** Name of the role that he has. */
  readonly role: string;
}
export interface NewProvider {
  readonly name: string;
  readonly issuer: string;
  readonly clientId: string;
  /** Absent: this client is a public one. */
  readonly clientSecret?: string;
  /** The claim that names a user here; absent: `preferred_username`. */
  readonly nameClaim?: string;
  /** Asked for beside `openid`. */
  readonly scopes?: readonly string[];
  /** Certificates in PEM that the issuer's TLS is judged by; absent: those that everybody trusts. */
  readonly authority?: string;
  /** Hosts that the issuer uses beside its own, as `host:port`. */
  readonly hosts?: readonly string[];
  /** Where a page has its answer sent. */
  readonly redirects?: readonly string[];
  /** The first that fits counts. */
  readonly mappings: readonly ProviderMapping[];
}
export interface ProviderSummary extends Required<Omit<NewProvider, "clientSecret" | "authority">>, Tagged {
  readonly uid: string;
  readonly hasSecret: boolean;
  readonly hasAuthority: boolean;
}
export const usualNameClaim = "preferred_username";
export const usualScopes: readonly string[] = ["profile"];

export interface NewDeviceLogin {
  /** Name of a provider; absent: the only one. */
  readonly provider?: string;
}
/** Somebody says yes on whatever device he likes; who asked is told when he has. */
export interface DeviceLogin {
  /** A secret, by which its session is asked for. */
  readonly login: string;
  readonly provider: string;
  readonly userCode: string;
  readonly verificationUri: string;
  /** With the code in it; null: the provider has none. */
  readonly verificationUriComplete: string | null;
  /** Seconds to wait between two questions. */
  readonly intervalS: number;
  /** ISO 8601. */
  readonly expires: string;
}
export interface NewPageLogin extends NewDeviceLogin {
  /** One of the provider's `redirects`. */
  readonly redirect: string;
}
export interface PageLogin {
  /** A secret, by which its session is asked for: it stays with the page. */
  readonly login: string;
  readonly provider: string;
  /** Where the browser goes. */
  readonly authorizationUri: string;
  /** ISO 8601. */
  readonly expires: string;
}
export interface OidcEnd {
  readonly login: string;
  /** Of a page: the whole address to which the provider has sent the browser back. */
  readonly answer?: string;
}
export const issuerPattern = /^https:\/\/[a-z0-9.-]+(?::\d{1,5})?(?:\/[\w.~/-]*)?$/;
export const issuerRule = "an address https://host, without a query";
export const hostPattern = /^[a-z0-9.-]+:\d{1,5}$/;
export const hostRule = "host:port";
export const redirectPattern = /^https?:\/\/[^\s#?]+$/;
export const redirectRule = "an address http(s)://host/path, without a query";
export const claimPattern = /^[\w:./-]{1,128}$/;
export const claimRule = "at most 128 letters, digits and _:./-";
export const scopePattern = /^[\x21\x23-\x5b\x5d-\x7e]{1,64}$/;
export const scopeRule = "at most 64 printable characters without quotes and backslashes";
