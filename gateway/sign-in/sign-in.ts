import type { TLSSocket } from "node:tls";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import {
  type CodeOf,
  cookieName,
  type SignedIn,
  type SignInRequest,
  signedInAs,
  signInTimes,
} from "../../model/contract/tenancy/sign-in.ts";
import { rootDomain, type WhoAmI } from "../../model/contract/tenancy/tenancy.ts";
import { parseJson } from "../../runtime/http/http.ts";
import type { ProcessConfiguration } from "../../runtime/installation.ts";
import { addressOf } from "../../runtime/transport/admission.ts";
import { hasVolumes } from "../requests/beside.ts";
import type { Person, Scope } from "../requests/credentials.ts";
import { RefusedError, refused } from "../requests/refused.ts";
import { serveRoute } from "../requests/serve.ts";
import { sessionFor } from "../tenancy/credentials.ts";
import { askTenancy, refusalOfTenancy } from "../tenancy/tenants.ts";
import { Attempts } from "./attempts.ts";
import { type Opened, SignIns } from "./kept.ts";
import { cookieCleared, cookieIn, cookieSet, pageFault } from "./page-request.ts";

/** Sign-in of a browser. The rest of the gateway sees of it a credential, as if the client had shown that itself. */
export interface SignIn {
  /**
   * A request with the sign-in's cookie and without a credential goes on with the one behind the cookie. Throws a refusal where the cookie is
   * over, or the request is none of the page.
   * @param follows it is a stream, which ends with the sign-in
   */
  admit(request: FastifyRequest, reply: FastifyReply, follows: boolean): void;
  /** The credential behind the request's cookie opens nothing any more. */
  lost(request: FastifyRequest, reply: FastifyReply): void;
}
export interface SignInOptions {
  readonly configuration: ProcessConfiguration;
  /** A name that the gateway's certificate is for. */
  readonly isOwnName: (name: string) => boolean;
  /** Who shows this. Rejects with a refusal where it opens nothing. */
  readonly scopeOf: (authorization: string, address: string) => Promise<Scope>;
  /** Of what `scopeOf` knows, whose it is. */
  readonly whoIs: (authorization: string) => Person;
  /** Milliseconds, monotonic. */
  readonly now?: () => number;
}

const sweepMs = 15_000;
interface Behind {
  readonly cookie: string;
  readonly opened: Opened;
}

export function createSignIn(app: FastifyInstance, options: SignInOptions): SignIn {
  const { configuration, isOwnName, now = () => performance.now() } = options;
  const signIns = new SignIns(now);
  const attempts = new Attempts(now);
  const behind = new WeakMap<FastifyRequest, Behind>();
  const sweeping = setInterval(() => signIns.sweep(), sweepMs).unref();
  app.addHook("onClose", async () => clearInterval(sweeping));

  const requirePage = (request: FastifyRequest): void => {
    const isEncrypted = (request.raw.socket as Partial<TLSSocket>).encrypted === true;
    const fault = pageFault({ method: request.method, headers: request.headers, isEncrypted }, isOwnName);
    if (fault !== null) throw fault;
  };
  const describe = async (authorization: string, address: string) => {
    const scope = await options.scopeOf(authorization, address);
    return whoIs(configuration, scope, authorization);
  };

  /** One attempt of the page, from an address that may make one now. */
  const attempt = async <T>(
    request: FastifyRequest,
    reply: FastifyReply,
    work: (address: string) => Promise<T>,
  ): Promise<T> => {
    requirePage(request);
    const address = addressOf(request.raw.socket);
    const waitS = attempts.waitS(address);
    if (waitS > 0) {
      reply.header("retry-after", String(waitS));
      throw refused(429, "login", "too many sign-ins from this address have failed; try again in a minute");
    }
    try {
      return await work(address);
    } catch (error) {
      if (error instanceof RefusedError && error.statusCode === 401) attempts.wrong(address);
      throw error;
    }
  };

  serveRoute(app, "signIn", ({ body, request }, reply) =>
    attempt(request, reply, async (address) => {
      const shown = await credentialIn(options, signIns, body ?? {}, address);
      if (shown.retryAfter !== undefined) reply.header("retry-after", shown.retryAfter);
      if ("refused" in shown) throw shown.refused;
      const who = await describe(`Bearer ${shown.credential}`, address).catch((error: unknown) => {
        // How a credential is shown in a header is of no use to who typed it into a field.
        const isWrong = error instanceof RefusedError && error.statusCode === 401 && body?.credential !== undefined;
        throw isWrong ? opensNothing : error;
      });
      if (body?.oneTimeCode !== undefined) takeAs(signIns, body, signedInAs(who.is));
      const { isOwn } = shown;
      const person = options.whoIs(`Bearer ${shown.credential}`);
      // Whoever signs in anew in the same browser has no use for the sign-in before.
      const before = cookieIn(request.headers);
      if (before !== null) signIns.end(before);
      const cookie = signIns.begin(shown.credential, { isOwn, leftMs: who.leftMs }, person);
      const longestMs = Math.min(signInTimes.longestMs, who.leftMs);
      reply.code(201).headers({
        "set-cookie": cookieSet(cookie, Math.ceil(longestMs / 1000)),
        "cache-control": "no-store",
      });
      const volumes = await hasVolumes(configuration);
      return { ...who.is, cookie: true, expires: inMs(longestMs), volumes } satisfies SignedIn;
    }),
  );
  serveRoute(app, "readSignInCode", ({ body, request }, reply) =>
    attempt(request, reply, async (address) => {
      const credential = signIns.readCode(body?.oneTimeCode ?? "");
      if (credential === null) throw opensNothing;
      const { is } = await describe(`Bearer ${credential}`, address);
      reply.header("cache-control", "no-store");
      return { ...is, as: signedInAs(is) } satisfies CodeOf;
    }),
  );
  serveRoute(app, "readSignIn", async ({ request }, reply) => {
    const { is } = await describe(request.headers.authorization ?? "", addressOf(request.raw.socket));
    reply.header("cache-control", "no-store");
    const leftMs = behind.get(request)?.opened.leftMs;
    return {
      ...is,
      cookie: leftMs !== undefined,
      expires: leftMs === undefined ? null : inMs(leftMs),
      volumes: await hasVolumes(configuration),
    } satisfies SignedIn;
  });
  serveRoute(app, "signOut", async ({ request }, reply) => {
    const own = behind.get(request);
    if (own === undefined)
      throw refused(409, "no-cookie", `this request has no cookie ${cookieName}, so there is no sign-in to end`);
    signIns.end(own.cookie);
    reply.header("set-cookie", cookieCleared);
    if (own.opened.isOwn) {
      const headers = { authorization: `Bearer ${own.opened.credential}` };
      const asked = { method: "DELETE", path: "/logins/current", headers, body: null };
      const answer = await askTenancy(configuration, asked);
      // 401: it has ended already.
      if (answer.status >= 300 && answer.status !== 401) throw refusalOfTenancy(answer);
    }
    return {};
  });
  serveRoute(app, "makeSignInCode", async ({ request }, reply) => {
    if (behind.has(request))
      throw refused(
        403,
        "forbidden",
        "a one-time code is made by a credential, as `cells web` does, and not by a sign-in: it would outlive that",
      );
    const { authorization = "" } = request.headers;
    const credential = /^Bearer +(\S+)$/i.exec(authorization)?.[1] ?? "";
    const code = signIns.makeCode(credential, options.whoIs(authorization));
    if (code === null) {
      reply.header("retry-after", "60");
      throw refused(503, "busy", "as many one-time codes as may be wait to be used; each ends after a minute");
    }
    reply.code(201).header("cache-control", "no-store");
    return { code, expires: inMs(signInTimes.codeMs) };
  });

  return {
    admit: (request, reply, follows) => {
      const cookie = request.headers.authorization === undefined ? cookieIn(request.headers) : null;
      if (cookie === null) return;
      requirePage(request);
      const opened = signIns.open(cookie);
      if (opened === null) {
        reply.header("set-cookie", cookieCleared);
        throw refused(
          401,
          "signed-out",
          "this sign-in is over: it was ended, was idle for an hour, or was its gateway's last one",
        );
      }
      behind.set(request, { cookie, opened });
      request.headers.authorization = `Bearer ${opened.credential}`;
      delete request.headers.cookie;
      if (follows)
        reply.raw.once(
          "close",
          signIns.hold(cookie, () => reply.raw.destroy()),
        );
    },
    lost: (request, reply) => {
      const own = behind.get(request);
      if (own === undefined) return;
      signIns.end(own.cookie);
      reply.header("set-cookie", cookieCleared);
    },
  };
}
const inMs = (ms: number): string => new Date(Date.now() + ms).toISOString();

interface Shown {
  readonly credential: string;
  readonly isOwn: boolean;
  readonly retryAfter?: undefined;
}
interface NotShown {
  readonly refused: RefusedError;
  readonly retryAfter: string | undefined;
}
const opensNothing = refused(401, "login", "this opens nothing: it is wrong, was used before, or is over");

async function credentialIn(
  { configuration }: SignInOptions,
  signIns: SignIns,
  { user, domain, password, code, credential, oneTimeCode }: SignInRequest,
  address: string,
): Promise<Shown | NotShown> {
  const ways = [user, credential, oneTimeCode].filter((each) => each !== undefined).length;
  if (ways !== 1 || (user !== undefined) !== (password !== undefined))
    throw refused(
      400,
      "bad-request",
      "a sign-in shows one of three: user and password, a credential, or a oneTimeCode",
    );
  if (credential !== undefined) return { credential: credential.trim(), isOwn: false };
  if (oneTimeCode !== undefined) {
    const taken = signIns.readCode(oneTimeCode);
    return taken === null ? { refused: opensNothing, retryAfter: undefined } : { credential: taken, isOwn: false };
  }
  const person = { user: user ?? "", password: password ?? "", ...(code === undefined ? {} : { code }) };
  const entered = await sessionFor(
    { configuration, source: address },
    { kind: "password", ...person, ...(domain === undefined ? {} : { domain }) },
  );
  if (entered.ok) return { credential: entered.value.session, isOwn: true };
  return { refused: entered.error.refused, retryAfter: entered.error.retryAfter };
}

/**
 * Uses the code up. Whoever follows a link with a code would be signed in as its maker, and work in his name without noticing: so a sign-in says whom
 * somebody has seen it to be.
 */
function takeAs(signIns: SignIns, { oneTimeCode = "", as }: SignInRequest, is: string): void {
  if (as !== is)
    throw refused(
      as === undefined ? 400 : 409,
      as === undefined ? "bad-request" : "conflict",
      as === undefined
        ? "a sign-in by a one-time code says `as` whom, as POST /login/codes/read tells; a page that does not is of an earlier version: load it again"
        : `this code signs in ${is}, and not ${as.slice(0, 100)}`,
    );
  if (signIns.takeCode(oneTimeCode) === null) throw opensNothing;
}

type Who = Pick<SignedIn, "kind" | "name" | "account">;
async function whoIs(
  configuration: ProcessConfiguration,
  scope: Scope,
  authorization: string,
): Promise<{ readonly is: Who; readonly leftMs: number }> {
  const leftMs = Number.POSITIVE_INFINITY;
  if (scope.kind === "operator") return { is: { kind: "operator", name: null, account: null }, leftMs };
  if (scope.kind === "cell") return { is: { kind: "cell", name: scope.cell, account: null }, leftMs };
  const asked = { method: "GET", path: "/whoami", headers: { authorization }, body: null };
  const answer = await askTenancy(configuration, asked);
  const read = parseJson(answer.text);
  if (answer.status !== 200 || !read.ok) throw refusalOfTenancy(answer);
  const { user, expires } = read.value as unknown as WhoAmI;
  return {
    is: {
      kind: "user",
      name: user === null ? null : `${user.name}@${user.domain}`,
      account: user?.account ?? rootDomain,
    },
    leftMs: expires === null ? leftMs : Math.max(0, Date.parse(expires) - Date.now()),
  };
}
