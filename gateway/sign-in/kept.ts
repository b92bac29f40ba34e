import { createCipheriv, createDecipheriv, createHash, randomBytes } from "node:crypto";
import { signInTimes } from "../../model/contract/tenancy/sign-in.ts";

/**
 * Who is signed in, and codes that sign in. Each secret (a cookie's, or a code's) is kept as a hash, and the credential behind it sealed
 * under the secret itself: whoever reads this process' memory at rest finds nothing that opens anything. Nothing is written down, so a gateway that
 * begins anew knows nobody.
 */
interface Sealed {
  readonly nonce: Buffer;
  readonly text: Buffer;
  readonly tag: Buffer;
}
interface Kept {
  readonly sealed: Sealed;
  /** Of the credential: whose it is. */
  readonly person: string;
  /** The session behind it began with it, and ends with it. */
  readonly isOwn: boolean;
  readonly endsMs: number;
  idleUntilMs: number;
  /** What was opened with it and goes on. */
  readonly held: Set<() => void>;
}
export interface Opened {
  readonly credential: string;
  readonly isOwn: boolean;
  /** Time until it ends at the latest. */
  readonly leftMs: number;
}
export interface KeptLimits {
  readonly inAll: number;
  readonly perPerson: number;
}
const signIns: KeptLimits = { inAll: 4096, perPerson: 32 };
const oneTimeCodes: KeptLimits = { inAll: 1024, perPerson: 8 };

export class SignIns {
  readonly #now: () => number;
  readonly #kept = new Map<string, Kept>();
  readonly #codes = new Map<string, Kept>();

  /** @param now milliseconds, monotonic */
  constructor(now: () => number) {
    this.#now = now;
  }

  /** The cookie's value; of one person, and of all, the oldest ends where there are too many. @param leftMs of the credential; it ends then at the latest */
  begin(credential: string, isOwn: boolean, leftMs = Number.POSITIVE_INFINITY): string {
    const person = hashOf("person", credential);
    const all = [...this.#kept].filter(([, kept]) => kept.person === person);
    const [oldest] = this.#kept.keys();
    if (all.length >= signIns.perPerson) this.#drop(all[0]?.[0] ?? "");
    else if (this.#kept.size >= signIns.inAll) this.#drop(oldest ?? "");
    const endsMs = this.#now() + Math.min(signInTimes.longestMs, leftMs);
    return this.#keep(this.#kept, credential, { isOwn, endsMs, idleMs: signInTimes.idleMs });
  }

  /** What the cookie stands for; null: it is unknown, or over. Whoever asks is not idle. */
  open(cookie: string): Opened | null {
    const id = hashOf("id", cookie);
    const kept = this.#kept.get(id);
    if (kept === undefined) return null;
    const nowMs = this.#now();
    if (nowMs >= Math.min(kept.endsMs, kept.idleUntilMs)) {
      this.#drop(id);
      return null;
    }
    kept.idleUntilMs = nowMs + signInTimes.idleMs;
    return { credential: unsealed(kept.sealed, cookie), isOwn: kept.isOwn, leftMs: kept.endsMs - nowMs };
  }

  /** `end` is called when the cookie ends before what was opened with it. Returns how to say that it has ended. */
  hold(cookie: string, end: () => void): () => void {
    const held = this.#kept.get(hashOf("id", cookie))?.held;
    held?.add(end);
    return () => held?.delete(end);
  }

  end(cookie: string): void {
    this.#drop(hashOf("id", cookie));
  }

  /** Null: as many as may be wait to be used. */
  makeCode(credential: string): string | null {
    this.sweep();
    const person = hashOf("person", credential);
    const own = [...this.#codes.values()].filter((kept) => kept.person === person).length;
    if (own >= oneTimeCodes.perPerson || this.#codes.size >= oneTimeCodes.inAll) return null;
    const endsMs = this.#now() + signInTimes.codeMs;
    return this.#keep(this.#codes, credential, { isOwn: false, endsMs, idleMs: signInTimes.codeMs });
  }

  /** The credential behind the code, which opens nothing a second time; null: it is unknown, used, or over. */
  takeCode(code: string): string | null {
    const id = hashOf("id", code);
    const kept = this.#codes.get(id);
    this.#codes.delete(id);
    return kept === undefined || this.#now() >= kept.endsMs ? null : unsealed(kept.sealed, code);
  }

  /** Ends what is over: what it held open ends with it. */
  sweep(): void {
    const nowMs = this.#now();
    for (const [id, { endsMs, idleUntilMs }] of this.#kept) if (nowMs >= Math.min(endsMs, idleUntilMs)) this.#drop(id);
    for (const [id, { endsMs }] of this.#codes) if (nowMs >= endsMs) this.#codes.delete(id);
  }

  #keep(
    to: Map<string, Kept>,
    credential: string,
    { isOwn, endsMs, idleMs }: { readonly isOwn: boolean; readonly endsMs: number; readonly idleMs: number },
  ): string {
    const secret = randomBytes(32).toString("base64url");
    to.set(hashOf("id", secret), {
      ...{ sealed: sealedWith(credential, secret), person: hashOf("person", credential), isOwn, endsMs },
      ...{ idleUntilMs: this.#now() + idleMs, held: new Set() },
    });
    return secret;
  }
  #drop(id: string): void {
    const kept = this.#kept.get(id);
    this.#kept.delete(id);
    for (const end of kept?.held ?? []) end();
  }
}

/** One secret gives a name and a key, neither of which says anything of the other. */
const digest = (purpose: string, secret: string): Buffer =>
  createHash("sha256").update(`cells sign-in ${purpose} ${secret}`).digest();
const hashOf = (purpose: "id" | "person", secret: string): string => digest(purpose, secret).toString("hex");

const cipher = "aes-256-gcm";
function sealedWith(text: string, secret: string): Sealed {
  const nonce = randomBytes(12);
  const sealing = createCipheriv(cipher, digest("key", secret), nonce);
  return { nonce, text: Buffer.concat([sealing.update(text, "utf8"), sealing.final()]), tag: sealing.getAuthTag() };
}
function unsealed({ nonce, text, tag }: Sealed, secret: string): string {
  const opening = createDecipheriv(cipher, digest("key", secret), nonce);
  opening.setAuthTag(tag);
  return Buffer.concat([opening.update(text), opening.final()]).toString("utf8");
}
