import type { ServerResponse } from "node:http";
import type { TenancyRequest, TenancyResponse } from "../../core/tenancy/asks.ts";
import type { GivenCode } from "../../core/tenancy/logins/codes.ts";
import type { LoginBegun } from "../../core/tenancy/logins/logins.ts";
import type { MadeTotp, NewTotp, RecoveryCodes, TotpCode, TotpOff } from "../../model/contract/tenancy/tenancy.ts";
import type { JsonObject } from "../../model/json/json.ts";
import { seal, unseal } from "../identity/own/seal.ts";
import { verifyPassword } from "./passwords.ts";
import { base32, hashOfRecovery, newRecoveryCodes, newSecret, stepOf, uriOf } from "./totp/totp.ts";

/** Second factors at the edge of `tenancy`: secrets are drawn, sealed and opened here, and nowhere else. */
export interface Asker {
  readonly ask: (request: TenancyRequest) => Promise<TenancyResponse>;
  readonly session: string;
  /** Address of the client. */
  readonly source: string;
}
type Send = (response: ServerResponse, answer: TenancyResponse, more?: JsonObject) => void;
type Body = { readonly name: string; readonly body: JsonObject };

/** What is sealed is for this user, and is nobody else's and no key's. */
const sealedFor = (user: string | null): string => `totp/${user}`;

export class SecondFactor {
  readonly #key: Buffer;

  constructor(key: Buffer) {
    this.#key = key;
  }

  /** What a code is, by the secret that it may be of. */
  read({ user, totp }: Pick<LoginBegun, "user" | "totp">, code: string): GivenCode {
    const secret = totp === null ? null : unseal(this.#key, sealedFor(user), totp);
    const step = secret === null ? null : stepOf(Buffer.from(secret, "hex"), code.replaceAll(" ", ""), Date.now());
    return { step, hash: hashOfRecovery(code) };
  }

  async answer(asker: Asker, { name, body }: Body, response: ServerResponse, send: Send): Promise<void> {
    if (name === "beginTotp") await this.#begin(asker, body as unknown as NewTotp, response, send);
    else if (name === "confirmTotp") await this.#confirm(asker, body as unknown as TotpCode, response, send);
    else await this.#end(asker, body as unknown as TotpOff, response, send);
  }

  async #begin({ ask, ...own }: Asker, { password }: NewTotp, response: ServerResponse, send: Send): Promise<void> {
    const begun = await ask({ kind: "password-begin", ...own });
    if (begun.status !== 200) {
      send(response, begun);
      return;
    }
    const known = begun.body as unknown as LoginBegun;
    const { matched } = await verifyPassword(password, known.password);
    const secret = newSecret();
    const sealed = seal(this.#key, sealedFor(known.user), secret.toString("hex"));
    const made = await ask({ kind: "totp-begin", ...own, begun: known, matched, sealed });
    const { label } = made.body as unknown as { readonly label: string };
    const shown = { secret: base32(secret), uri: uriOf(label, secret) } satisfies MadeTotp;
    send(response, made.status === 200 ? { status: 201, body: shown } : made);
  }
  async #confirm({ ask, ...own }: Asker, { code }: TotpCode, response: ServerResponse, send: Send): Promise<void> {
    const looked = await ask({ kind: "totp-look", session: own.session });
    if (looked.status !== 200) {
      send(response, looked);
      return;
    }
    const { user, sealed } = looked.body as unknown as { readonly user: string; readonly sealed: string };
    const recoveryCodes = newRecoveryCodes();
    const recovery = recoveryCodes.map(hashOfRecovery);
    const done = await ask({
      kind: "totp-confirm",
      ...own,
      sealed,
      code: this.read({ user, totp: sealed }, code),
      recovery,
    });
    send(response, done.status === 200 ? { status: 200, body: { recoveryCodes } satisfies RecoveryCodes } : done);
  }
  async #end({ ask, ...own }: Asker, { password, code }: TotpOff, response: ServerResponse, send: Send): Promise<void> {
    const begun = await ask({ kind: "password-begin", ...own });
    if (begun.status !== 200) {
      send(response, begun);
      return;
    }
    const known = begun.body as unknown as LoginBegun;
    const { matched } = await verifyPassword(password, known.password);
    send(response, await ask({ kind: "totp-end", ...own, begun: known, matched, code: this.read(known, code) }));
  }
}
