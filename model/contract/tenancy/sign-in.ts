import { gives, type Route, route, sends } from "../route.ts";
import { boolean, nullable, oneOf, optional, record, text, time } from "../schema.ts";

/*
 * Sign-in of a browser: it holds a cookie in place of a credential, which the gateway keeps sealed under that cookie. Everybody else shows a
 * credential as before.
 */

/** One of three ways: user, domain, password and a second factor's `code`; a `credential` that was pasted; or a one-time code, and whom it signs in. */
export interface SignInRequest {
  readonly user?: string;
  /** Path of the domain; absent: the first one, `ROOT`. */
  readonly domain?: string;
  readonly password?: string;
  readonly code?: string;
  readonly credential?: string;
  readonly oneTimeCode?: string;
  /** With a one-time code: who it signs in, as `readSignInCode` has said and somebody has seen. */
  readonly as?: string;
}
/** Whom a one-time code signs in, which is not used by that. */
export interface CodeOf {
  readonly kind: SignedIn["kind"];
  readonly name: string | null;
  readonly account: string | null;
  /** A few words for people, which a sign-in repeats as `as`. */
  readonly as: string;
}
/** Who is in. */
export interface SignedIn {
  readonly kind: "operator" | "user" | "cell";
  /** Of a user, as `ann@ROOT/acme`; of a cell's credential, the cell; null: the operator. */
  readonly name: string | null;
  /** Account of a user, by its path; else null. */
  readonly account: string | null;
  /** By a cookie; else by a credential that was shown itself. */
  readonly cookie: boolean;
  /** When the cookie ends at the latest, ISO 8601; null: there is none. */
  readonly expires: string | null;
  /** There are persistent volumes here. Absent: by a version before, which passes nobody on to CaaS. */
  readonly volumes?: boolean;
}
/** Somebody in a few words. */
export const signedInAs = ({ kind, name }: Pick<SignedIn, "kind" | "name">): string =>
  kind === "operator" ? "the operator" : kind === "cell" ? `the cell ${name}` : (name ?? "nobody");
export interface OneTimeCode {
  readonly code: string;
  /** ISO 8601. */
  readonly expires: string;
}

/** What a page says with each request but a GET: another origin cannot, without being asked first. */
export const pageHeader = "cells-page";
export const cookieName = "__Host-cells";
/** A cookie ends when nothing was asked with it for so long, and at the latest after `longestMs`. */
export const signInTimes = { idleMs: 3_600_000, longestMs: 12 * 3_600_000, codeMs: 60_000 } as const;

const longest = 512;
const signInRequest = record<SignInRequest>({
  user: optional(text(longest)),
  domain: optional(text(2048)),
  password: optional(text(1024)),
  code: optional(text(longest)),
  credential: optional(text(longest)),
  oneTimeCode: optional(text(longest)),
  as: optional(text(2048)),
});
const codeOf = record<CodeOf>(
  { kind: oneOf("operator", "user", "cell"), name: nullable(text()), account: nullable(text()), as: text() },
  "CodeOf",
);
const signedIn = record<SignedIn>(
  {
    kind: oneOf("operator", "user", "cell"),
    name: nullable(text()),
    account: nullable(text()),
    cookie: boolean,
    expires: nullable(time),
    volumes: optional(boolean),
  },
  "SignedIn",
);
const fromPage = {
  "Cells-Page": {
    schema: text(),
    doc: "Any value: with it and an `Origin` that is the gateway's own, the request is one of its page.",
  },
};

export const signInRoutes = {
  signIn: route("POST /login", "anyone", "gateway", {
    doc: "Signs a browser in: the answer sets the cookie `__Host-cells`, which stands for what was shown.",
    more: "It ends after an hour in which nothing was asked with it, after 12 hours at the latest, and when its user is not in any more. With the cookie, whatever is no GET needs the header `Cells-Page` and the gateway's own `Origin`, as this request does itself: 403 otherwise. Refused with 401 for what opens nothing, alike for what is wrong and what is over, and as `POST /logins` is; with 409 where a one-time code is of somebody else than `as` says, and it is not used by that; 429 after ten wrong ones in a minute from one address.",
    headers: fromPage,
    body: sends(signInRequest),
    answer: gives(signedIn, 201),
  }),
  readSignInCode: route("POST /login/codes/read", "anyone", "gateway", {
    doc: "Whom a one-time code signs in. It is not used by that.",
    more: "A link with a code signs in whoever follows it as its maker, so whoever follows one is asked first, and the sign-in says `as` whom. Refused as `POST /login` is: 401 for a code that opens nothing, 403 to whatever is not the gateway's own page, 429 after ten wrong ones.",
    headers: fromPage,
    body: sends(record<{ readonly oneTimeCode: string }>({ oneTimeCode: text(longest) })),
    answer: gives(codeOf),
  }),
  readSignIn: route("GET /login", "cell", "gateway", {
    doc: "Who is in. 401: nobody.",
    answer: gives(signedIn),
  }),
  signOut: route("DELETE /login", "cell", "gateway", {
    doc: "The cookie opens nothing any more, and what was followed with it ends; so does the user's session that began with a password here.",
    headers: fromPage,
    answer: gives(record<Record<never, never>>({})),
  }),
  makeSignInCode: route("POST /login/codes", "cell", "gateway", {
    doc: "A code that signs a browser in as whoever asks, once, within 60 s. This is its only appearance.",
    more: "Refused with 403 to whoever shows a sign-in's cookie, since what the code opens would outlive it, and with 503 where too many wait to be used.",
    answer: gives(record<OneTimeCode>({ code: text(), expires: time }), 201),
  }),
} as const satisfies { readonly [name: string]: Route };
