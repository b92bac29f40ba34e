import { randomBytes } from "node:crypto";
import type { ServerResponse } from "node:http";
import type { TenancyRequest, TenancyResponse } from "../../core/tenancy/asks.ts";
import type { FreshKey } from "../../core/tenancy/logins/keys.ts";
import type { SignedBegun } from "../../core/tenancy/logins/signed.ts";
import { boolean, oneOf, read, record, text } from "../../model/contract/schema.ts";
import type { Signed } from "../../model/contract/signatures/sigv4.ts";
import { keepNewest } from "../../model/limits.ts";
import { hashCredential } from "../http/bearer.ts";
import { parseJson, readBody, sendRefusal } from "../http/http.ts";
import type { PeerRequest } from "../http/peer-handler.ts";
import { seal, unseal } from "../identity/own/seal.ts";
import { newSession } from "../identity/tickets.ts";
import { sourceHeader } from "../observation/asked-by.ts";
import { isSignature } from "./signatures.ts";

/** Access keys at the edge of `tenancy`: secrets are drawn, sealed and opened here, and nowhere else. */
type AskService = (request: TenancyRequest) => Promise<TenancyResponse>;
type Send = (response: ServerResponse, answer: TenancyResponse, more?: { readonly session: string }) => void;

const longestBytes = 16 * 1024;
const signedSchema = record<Signed & { readonly fresh: boolean }>({
  scheme: oneOf("sigv4", "cloudstack"),
  key: text(128),
  stringToSign: text(8192),
  signature: text(128),
  fresh: boolean,
});

/** As AWS's ids look: letters of base 32. */
const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
const newId = (): string => `CELL${[...randomBytes(16)].map((byte) => alphabet[byte & 31]).join("")}`;

export class Keys {
  readonly #key: Buffer;
  /** Opened for an unknown key, so that it takes as long. */
  readonly #decoy: string;
  /** Of the sessions that keys have begun the last one each, which is given again. */
  readonly #sessions = new Map<string, string>();

  constructor(key: Buffer) {
    this.#key = key;
    this.#decoy = seal(key, "", newId());
  }

  draw(): { readonly fresh: FreshKey; readonly secret: string } {
    const [id, secret] = [newId(), randomBytes(32).toString("base64url")];
    return { fresh: { id, sealed: seal(this.#key, id, secret) }, secret };
  }

  /**
   * A session for whoever has signed. A personality whose every request is signed gets the same one as long as it goes on; who logs in gets
   * one of his own.
   */
  async enter(ask: AskService, incoming: PeerRequest, response: ServerResponse, send: Send): Promise<void> {
    const body = await readBody(incoming.body, longestBytes);
    const json = body.ok ? parseJson(body.value) : body;
    const said = json.ok ? read(signedSchema, json.value) : null;
    if (said === null || !("scheme" in said)) {
      sendRefusal(response, 400, "bad-request", "a signature has a scheme, a key, what was signed, and its value");
      return;
    }
    const { fresh, ...signed } = said;
    const source = String(incoming.headers[sourceHeader] ?? "");
    const asked = { signed: { scheme: signed.scheme, key: signed.key, stringToSign: signed.stringToSign }, source };
    const begun = await ask({ kind: "signed-begin", ...asked });
    if (begun.status !== 200) {
      send(response, begun);
      return;
    }
    const known = begun.body as unknown as SignedBegun;
    const matched = isSignature(this.#secretOf(signed.key, known.sealed), signed);
    const last = this.#sessions.get(signed.key);
    if (matched && !fresh && last !== undefined && known.live.includes(hashCredential(last))) {
      send(response, { status: 200, body: {} }, { session: last });
      return;
    }
    const session = newSession();
    const ended = await ask({ kind: "signed-end", ...asked, begun: known, matched, session: hashCredential(session) });
    if (ended.status === 201 && !fresh) this.#keep(signed.key, session);
    send(response, ended, { session });
  }
  #secretOf(id: string, sealed: string | null): string | null {
    const secret = unseal(this.#key, id, sealed ?? this.#decoy);
    return sealed === null ? null : secret;
  }
  #keep(key: string, session: string): void {
    this.#sessions.delete(key);
    this.#sessions.set(key, session);
    keepNewest(this.#sessions, mostKept);
  }
}
const mostKept = 16_384;
