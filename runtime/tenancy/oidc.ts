import { randomBytes } from "node:crypto";
import type { ServerResponse } from "node:http";
import {
  AuthorizationResponseError,
  authorizationCodeGrant,
  buildAuthorizationUrl,
  type Configuration,
  calculatePKCECodeChallenge,
  fetchUserInfo,
  genericGrantRequest,
  initiateDeviceAuthorization,
  ResponseBodyError,
  randomNonce,
  randomPKCECodeVerifier,
  randomState,
  type TokenEndpointResponse,
  type TokenEndpointResponseHelpers,
} from "openid-client";
import type { TenancyRequest, TenancyResponse } from "../../core/tenancy/asks.ts";
import type { ProviderRecord } from "../../core/tenancy/records.ts";
import { isoTime } from "../../model/cell/iso-time.ts";
import type {
  DeviceLogin,
  NewDeviceLogin,
  NewPageLogin,
  OidcEnd,
  PageLogin,
} from "../../model/contract/tenancy/oidc.ts";
import type { Json, JsonObject } from "../../model/json/json.ts";
import { fail, ok, type Result } from "../../model/result.ts";
import { hashCredential } from "../http/bearer.ts";
import { seal, unseal } from "../identity/own/seal.ts";
import { newSession } from "../identity/tickets.ts";
import { Issuers } from "./issuer.ts";
import { isOfAnotherKey, LogoutTokens, saysToBe } from "./logout-token.ts";
import type { Tunnels } from "./tunnels.ts";

/*
 * Logins by a provider of OpenID Connect at the edge of `tenancy`. `openid-client` speaks with the provider and judges what it says: issuer, audience,
 * nonce, state, signature, time. Who somebody is by that is decided in `core/tenancy/logins/oidc.ts`.
 *
 * A login that was begun is in memory alone, by the hash of a secret that its client has: after a restart he begins again.
 */
type AskService = (request: TenancyRequest) => Promise<TenancyResponse>;
type Send = (response: ServerResponse, answer: TenancyResponse, more?: JsonObject) => void;
export interface OidcAsker {
  readonly ask: AskService;
  /** Address of the client. */
  readonly source: string;
  /** Id of the request's tunnel to the outside. */
  readonly tunnel: string;
}

interface Begun {
  readonly provider: ProviderRecord;
  readonly source: string;
  /** Milliseconds, monotonic. */
  readonly until: number;
  readonly how: Device | Page;
}
interface Device {
  readonly code: string;
  /** Not asked again before. */
  nextMs: number;
  intervalMs: number;
}
interface Page {
  readonly verifier: string;
  readonly state: string;
  readonly nonce: string;
  readonly redirect: string;
}
type Tokens = TokenEndpointResponse & TokenEndpointResponseHelpers;

const lifeMs = 10 * 60_000;
const longestSid = 256;
const [mostBegun, mostOfSource] = [4096, 64];
const deviceGrant = "urn:ietf:params:oauth:grant-type:device_code";
/** By which its client's secret is sealed. */
const sealedFor = (uid: string): string => `provider ${uid}`;
const refusal = (status: number, code: string, message: string, retryAfter?: number): TenancyResponse => ({
  status,
  body: { error: { code, message } },
  ...(retryAfter === undefined ? {} : { retryAfter }),
});

export class Oidc {
  readonly #key: Buffer;
  readonly #issuers: Issuers;
  readonly #logouts = new LogoutTokens();
  /** By the hash of the login, oldest first. */
  readonly #begun = new Map<string, Begun>();

  constructor(key: Buffer, tunnels: Tunnels) {
    this.#key = key;
    this.#issuers = new Issuers(tunnels);
  }

  seal(uid: string, secret: string): string {
    return seal(this.#key, sealedFor(uid), secret);
  }

  async beginDevice(asker: OidcAsker, { provider: name }: NewDeviceLogin): Promise<TenancyResponse> {
    return this.#begin(asker, name, async (provider, issuer) => {
      const said = await initiateDeviceAuthorization(issuer, { scope: scopeOf(provider) });
      const intervalS = Math.min(60, Math.max(1, said.interval ?? 5));
      const life = Math.min(lifeMs, said.expires_in * 1000);
      const how = { code: said.device_code, nextMs: 0, intervalMs: intervalS * 1000 };
      const login = this.#keep({ provider, source: asker.source, until: performance.now() + life, how });
      return {
        login,
        provider: provider.name,
        userCode: said.user_code,
        verificationUri: said.verification_uri,
        verificationUriComplete: said.verification_uri_complete ?? null,
        intervalS,
        expires: isoTime(Date.now() + life),
      } satisfies DeviceLogin;
    });
  }

  async beginPage(asker: OidcAsker, { provider: name, redirect }: NewPageLogin): Promise<TenancyResponse> {
    return this.#begin(asker, name, async (provider, issuer) => {
      if (!provider.redirects.includes(redirect))
        return refusal(
          400,
          "bad-request",
          `the provider ${provider.name} sends nobody back to ${redirect}: its document names others`,
        );
      const [verifier, state, nonce] = [randomPKCECodeVerifier(), randomState(), randomNonce()];
      const uri = buildAuthorizationUrl(issuer, {
        redirect_uri: redirect,
        scope: scopeOf(provider),
        state,
        nonce,
        code_challenge: await calculatePKCECodeChallenge(verifier),
        code_challenge_method: "S256",
      });
      const how = { verifier, state, nonce, redirect };
      const login = this.#keep({ provider, source: asker.source, until: performance.now() + lifeMs, how });
      const expires = isoTime(Date.now() + lifeMs);
      return { login, provider: provider.name, authorizationUri: uri.href, expires } satisfies PageLogin;
    });
  }

  async end(asker: OidcAsker, { login, answer }: OidcEnd, response: ServerResponse, send: Send): Promise<void> {
    const hash = hashCredential(login);
    const begun = this.#begun.get(hash);
    if (begun === undefined || begun.until <= performance.now()) {
      this.#begun.delete(hash);
      send(
        response,
        refusal(401, "oidc", "no such login is under way: it has ended, or took longer than it may; begin again"),
      );
      return;
    }
    const { provider, how } = begun;
    if (!("code" in how) && !isBackAt(answer, how.redirect)) {
      const right = `answer is the address to which the provider has sent the browser back, which begins ${how.redirect}?`;
      send(response, refusal(400, "bad-request", right));
      return;
    }
    const tokens = await this.#tokens(asker, begun, answer);
    if (!tokens.ok) {
      // Who has not said yes yet may still do it; whatever else was answered is this login's end.
      if (!isPending(tokens.error)) this.#begun.delete(hash);
      send(response, tokens.error);
      return;
    }
    this.#begun.delete(hash);
    const { claims, subject, sid } = tokens.value;
    const session = newSession();
    const ended = await asker.ask({
      kind: "oidc-login",
      provider: provider.uid,
      issuer: provider.issuer,
      subject,
      claims,
      uid: crypto.randomUUID(),
      session: hashCredential(session),
      source: asker.source,
      ...(sid === null ? {} : { sid }),
    });
    send(response, ended, { session });
  }

  /** A provider says that somebody has logged out there. */
  async logOut({ ask, source, tunnel }: OidcAsker, token: string): Promise<TenancyResponse> {
    const said = saysToBe(token);
    if (said === null) return refusal(400, "bad-request", "logout_token in the form is no token that is signed");
    const looked = await ask({ kind: "logout-look", ...said });
    if (looked.status !== 200) return looked;
    const provider = looked.body as unknown as ProviderRecord;
    const { uid, issuer, clientId } = provider;
    const read = async (isStale: boolean): ReturnType<LogoutTokens["read"]> => {
      const keys = await this.#issuers.keysOf(provider, this.#secretOf(provider), tunnel, isStale);
      return this.#logouts.read(token, { issuer, clientId, keys });
    };
    const counted = await read(false)
      .catch((error: unknown) => {
        if (isOfAnotherKey(error)) return read(true);
        throw error;
      })
      .catch((error: unknown) => fail(reasonOf(error)));
    if (!counted.ok) return ask({ kind: "logout-refused", provider: uid, why: counted.error, source });
    return ask({ kind: "oidc-logout", provider: uid, issuer, ...counted.value, source });
  }

  async #begin(
    { ask, source, tunnel }: OidcAsker,
    name: string | undefined,
    work: (provider: ProviderRecord, issuer: Configuration) => Promise<TenancyResponse | DeviceLogin | PageLogin>,
  ): Promise<TenancyResponse> {
    const looked = await ask({ kind: "provider-look", name: name ?? null });
    if (looked.status !== 200) return looked;
    const provider = looked.body as unknown as ProviderRecord;
    this.#dropOld();
    const own = [...this.#begun.values()].filter((each) => each.source === source).length;
    if (this.#begun.size >= mostBegun || own >= mostOfSource)
      return refusal(503, "busy", "too many logins are under way; try again in a minute", 60);
    try {
      const done = await work(provider, await this.#issuers.of(provider, this.#secretOf(provider), tunnel));
      return "status" in done ? done : { status: 201, body: done as unknown as Json };
    } catch (error) {
      return refusal(502, "provider", `the provider ${provider.name} begins no login: ${reasonOf(error)}`);
    }
  }

  async #tokens(
    { tunnel }: OidcAsker,
    { provider, how }: Begun,
    answer: string | undefined,
  ): Promise<
    Result<{ readonly subject: string; readonly sid: string | null; readonly claims: JsonObject }, TenancyResponse>
  > {
    if ("code" in how && how.nextMs > performance.now()) return fail(pending(how));
    try {
      const issuer = await this.#issuers.of(provider, this.#secretOf(provider), tunnel);
      if ("code" in how) how.nextMs = performance.now() + how.intervalMs;
      const tokens: Tokens =
        "code" in how
          ? await genericGrantRequest(issuer, deviceGrant, { device_code: how.code })
          : await authorizationCodeGrant(issuer, new URL(answer ?? ""), {
              pkceCodeVerifier: how.verifier,
              expectedState: how.state,
              expectedNonce: how.nonce,
              idTokenExpected: true,
            });
      const told = tokens.claims();
      if (told === undefined) return fail(refusal(401, "oidc", `the provider ${provider.name} has sent no ID token`));
      const hasMore = issuer.serverMetadata().userinfo_endpoint !== undefined;
      const more = hasMore ? await fetchUserInfo(issuer, tokens.access_token, told.sub) : {};
      const sid = typeof told.sid === "string" && told.sid.length <= longestSid ? told.sid : null;
      return ok({ subject: told.sub, sid, claims: claimsOf(provider, { ...more, ...told }) });
    } catch (error) {
      if (error instanceof ResponseBodyError && "code" in how) {
        if (error.error === "slow_down") how.intervalMs += 5000;
        if (error.error === "slow_down" || error.error === "authorization_pending") return fail(pending(how));
      }
      return fail(refusal(401, "oidc", `the provider ${provider.name} lets nobody in: ${reasonOf(error)}`));
    }
  }

  #secretOf({ uid, sealed }: ProviderRecord): string | null {
    return sealed === undefined ? null : unseal(this.#key, sealedFor(uid), sealed);
  }
  #keep(begun: Begun): string {
    const login = `login.${randomBytes(32).toString("base64url")}`;
    this.#begun.set(hashCredential(login), begun);
    return login;
  }
  #dropOld(): void {
    for (const [hash, { until }] of this.#begun) if (until <= performance.now()) this.#begun.delete(hash);
  }
}

const scopeOf = ({ scopes }: ProviderRecord): string => [...new Set(["openid", ...scopes])].join(" ");

const pendingCode = "oidc-pending";
const pending = ({ nextMs }: Device): TenancyResponse =>
  refusal(
    409,
    pendingCode,
    "nobody has said yes yet: ask again after a while",
    Math.max(1, Math.ceil((nextMs - performance.now()) / 1000)),
  );
const isPending = ({ body }: TenancyResponse): boolean =>
  (body as { readonly error?: { readonly code?: string } }).error?.code === pendingCode;

const isBackAt = (answer: string | undefined, redirect: string): boolean =>
  answer?.startsWith(`${redirect}?`) === true && URL.canParse(answer);

/** What the mappings and the name rest on, and nothing else of what a provider tells. */
function claimsOf({ nameClaim, mappings }: ProviderRecord, told: object): JsonObject {
  const wanted = new Set([nameClaim, ...mappings.map(({ claim }) => claim)]);
  return Object.fromEntries(Object.entries(told).filter(([name]) => wanted.has(name))) as JsonObject;
}

/** What the library says, and the cause that it names. */
function reasonOf(error: unknown): string {
  if (error instanceof ResponseBodyError || error instanceof AuthorizationResponseError)
    return [error.error, error.error_description].filter(Boolean).join(": ").slice(0, 300);
  const said: string[] = [];
  for (let next = error; next instanceof Error && said.length < 4; next = next.cause) {
    if (!said.includes(next.message)) said.push(next.message);
    if (!(next.cause instanceof Error)) said.push(...detailOf(next.cause));
  }
  return said.join(": ").slice(0, 500);
}
/** Which claim it was, and what it should have been. */
function detailOf(cause: unknown): readonly string[] {
  const { claim, expected } = (cause ?? {}) as { readonly claim?: unknown; readonly expected?: unknown };
  return typeof claim === "string"
    ? [`"${claim}"${expected === undefined ? "" : ` is not ${JSON.stringify(expected)}`}`]
    : [];
}
