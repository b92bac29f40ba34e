import { createHash } from "node:crypto";
import type { FastifyInstance, FastifyRequest } from "fastify";
import { type Parameters, readCloudStack } from "../../model/contract/signatures/cloudstack.ts";
import { type RequestAsSent, readSigV4, type Signed } from "../../model/contract/signatures/sigv4.ts";
import type { LoginRequest } from "../../model/contract/tenancy/tenancy.ts";
import { fail, ok, type Result } from "../../model/result.ts";
import { bearerOf } from "../../runtime/http/bearer.ts";
import { parseJson } from "../../runtime/http/http.ts";
import { isSession } from "../../runtime/identity/tickets.ts";
import type { ProcessConfiguration } from "../../runtime/installation.ts";
import { sourceHeader } from "../../runtime/observation/asked-by.ts";
import { signaturesPath } from "../../runtime/tenancy/source.ts";
import { addressOf } from "../../runtime/transport/admission.ts";
import { type RefusedError, refused } from "../requests/refused.ts";
import { serveRoute } from "../requests/serve.ts";
import { type Asked, askTenancy, refusalOfTenancy } from "./tenants.ts";

/**
 * What somebody shows at a door, in whatever protocol that speaks. Every door of every personality makes a session of it here, or refuses; the
 * service `tenancy` decides which, and the gateway has no secret of a key.
 */
export type Credential =
  /** The header `Authorization` with a session. */
  | { readonly kind: "bearer"; readonly authorization: string }
  | ({ readonly kind: "password" } & LoginRequest)
  | { readonly kind: "sigv4"; readonly request: RequestAsSent }
  | { readonly kind: "cloudstack"; readonly parameters: Parameters };

export interface Door {
  readonly configuration: ProcessConfiguration;
  /** Address of the client. */
  readonly source: string;
  /** A session of its own, which ends by itself; else the one that this key has already is given again. */
  readonly fresh?: boolean;
}
export interface Entered {
  /** A bearer credential of the client's, never shown to a controller. */
  readonly session: string;
  /** Of a session that was begun by this, what the client may hear of it. */
  readonly answer: string;
}

export interface NotEntered {
  readonly refused: RefusedError;
  /** Seconds. */
  readonly retryAfter?: string;
}
type Entering = Result<Entered, NotEntered>;

/** The session of whoever shows this; else how he is refused. */
export async function sessionFor(door: Door, credential: Credential): Promise<Entering> {
  switch (credential.kind) {
    case "bearer": {
      const session = bearerOf(credential.authorization);
      if (session === null || !isSession(session)) return fail({ refused: none });
      const { authorization } = credential;
      return ask(door, { method: "GET", path: "/whoami", headers: { authorization }, body: null }, session);
    }
    case "password": {
      const { kind: _, ...body } = credential;
      return ask(door, { method: "POST", path: "/logins", headers: {}, body: JSON.stringify(body) });
    }
    case "sigv4":
      return bySignature(door, readSigV4(credential.request, sha256));
    case "cloudstack":
      return bySignature(door, readCloudStack(credential.parameters));
  }
}
const none = refused(401, "unauthorized", "nothing was shown that begins a session");
const sha256 = (text: string | Buffer): string => createHash("sha256").update(text).digest("hex");

async function bySignature(door: Door, signed: Result<Signed, string> | null): Promise<Entering> {
  if (signed === null) return fail({ refused: none });
  if (!signed.ok) return fail({ refused: refused(401, "signature", `this request's signature: ${signed.error}`) });
  const body = JSON.stringify({ ...signed.value, fresh: door.fresh === true });
  return ask(door, { method: "POST", path: signaturesPath, headers: {}, body });
}

const patienceMs = 30_000;
async function ask({ configuration, source }: Door, asked: Asked, session?: string): Promise<Entering> {
  const headers = { "content-type": "application/json", [sourceHeader]: source, ...asked.headers };
  const { status, text, headers: passed } = await askTenancy(configuration, { ...asked, headers, waitMs: patienceMs });
  const read = parseJson(text);
  const said = ((read.ok ? read.value : null) ?? {}) as { readonly session?: string };
  const retryAfter = passed["retry-after"];
  const begun = session ?? said.session;
  if (status < 300 && begun !== undefined) return ok({ session: begun, answer: text });
  return fail({
    refused: refusalOfTenancy({ status, text }),
    ...(retryAfter === undefined ? {} : { retryAfter }),
  });
}

/** The request as it came, whatever was read of it since. */
export const asSent = ({ raw, body }: FastifyRequest): RequestAsSent => ({
  method: raw.method ?? "",
  target: raw.url ?? "",
  headers: raw.rawHeaders.flatMap((name, at, all) => (at % 2 === 0 ? [[name, all[at + 1] ?? ""] as const] : [])),
  bodyHash: sha256(body instanceof Buffer ? body : ""),
});

/** The one request here that is signed: a login. */
export function registerSigned(app: FastifyInstance, configuration: ProcessConfiguration): void {
  serveRoute(app, "logInSigned", async ({ request }, reply) => {
    const door = { configuration, source: addressOf(request.raw.socket), fresh: true };
    const entered = await sessionFor(door, { kind: "sigv4", request: asSent(request) });
    if (!entered.ok) {
      if (entered.error.retryAfter !== undefined) reply.header("retry-after", entered.error.retryAfter);
      throw entered.error.refused;
    }
    reply.code(201).type("application/json").header("cache-control", "no-store").send(entered.value.answer);
  });
}
