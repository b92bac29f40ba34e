import { createLocalJWKSet, decodeJwt, errors, type JSONWebKeySet, type JWTPayload, jwtVerify } from "jose";
import { fail, ok, type Result } from "../../model/result.ts";

/*
 * Logout tokens (OpenID Connect Back-Channel Logout 1.0, section 2.6), by which a provider says that somebody has logged out there. Whoever has
 * one logs others out, so everything of it is looked at, and it counts once.
 */
const logoutEvent = "http://schemas.openid.net/event/backchannel-logout";
/** A secret that two share signs none: only the provider has what signs these. */
const algorithms = [
  "RS256",
  "RS384",
  "RS512",
  "PS256",
  "PS384",
  "PS512",
  "ES256",
  "ES384",
  "ES512",
  "EdDSA",
  "Ed25519",
];
const mostSeconds = 5 * 60;
const toleranceSeconds = 60;
const mostKept = 16_384;

export interface LoggedOut {
  /** Null: it names a session alone. */
  readonly subject: string | null;
  /** Null: all of this subject. */
  readonly sid: string | null;
}
/** Whose it says to be, which nobody has looked at yet; null: it is no token. */
export function saysToBe(token: string): { readonly issuer: string; readonly audience: readonly string[] } | null {
  try {
    const { iss, aud } = decodeJwt(token);
    return iss === undefined ? null : { issuer: iss, audience: [aud ?? []].flat() };
  } catch {
    return null;
  }
}
/** Nothing that the provider's keys of before could have signed would do with those of now. */
export const isOfAnotherKey = (error: unknown): boolean => error instanceof errors.JWKSNoMatchingKey;

export class LogoutTokens {
  /** Until when, by issuer and `jti`. Milliseconds since 1970; oldest first. */
  readonly #seen = new Map<string, number>();

  /** Rejects where the signature or a claim is not right. */
  async read(
    token: string,
    { issuer, clientId, keys }: { readonly issuer: string; readonly clientId: string; readonly keys: JSONWebKeySet },
  ): Promise<Result<LoggedOut, string>> {
    const { payload, protectedHeader } = await jwtVerify(token, createLocalJWKSet(keys), {
      issuer,
      audience: clientId,
      algorithms,
      maxTokenAge: mostSeconds,
      clockTolerance: toleranceSeconds,
      requiredClaims: ["iat", "jti", "events"],
    });
    const { typ } = protectedHeader;
    if (typ !== undefined && !/^(?:application\/)?(?:logout\+jwt|jwt)$/i.test(typ)) return fail(`its type is ${typ}`);
    const no = faultIn(payload);
    if (no !== null) return fail(no);
    if (!this.#isFirst(`${issuer} ${payload.jti}`)) return fail("it was shown before");
    const { sub = null, sid } = payload;
    return ok({ subject: sub, sid: typeof sid === "string" ? sid : null });
  }

  #isFirst(id: string): boolean {
    const nowMs = Date.now();
    for (const [old, untilMs] of this.#seen) if (untilMs <= nowMs) this.#seen.delete(old);
    if (this.#seen.has(id) || this.#seen.size >= mostKept) return false;
    this.#seen.set(id, nowMs + (mostSeconds + 2 * toleranceSeconds) * 1000);
    return true;
  }
}

function faultIn({ events, nonce, sub, sid }: JWTPayload): string | null {
  const event = (events as Readonly<Record<string, unknown>> | null)?.[logoutEvent];
  if (typeof event !== "object" || event === null) return "it is of no logout: `events` does not say so";
  // An ID token has one: it lets in, and puts nobody out.
  if (nonce !== undefined) return "it has a `nonce`, as tokens of logins have";
  if (sid !== undefined && typeof sid !== "string") return "`sid` is no text";
  return sub === undefined && sid === undefined ? "it names nobody: neither `sub` nor `sid`" : null;
}
