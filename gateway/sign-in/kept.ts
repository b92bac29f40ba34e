import { randomBytes } from "node:crypto";
import { signInTimes } from "../../model/contract/tenancy/sign-in.ts";
import type { Person } from "../requests/credentials.ts";
import { hashOf, type Sealed, sealedWith, unsealed } from "./sealed.ts";

/**
 * Who is signed in, and codes that sign in. Each secret (a cookie's, or a code's) is kept as a hash, and the credential behind it sealed
 * under the secret itself: whoever reads this process' memory at rest finds nothing that opens anything. Nothing is written down, so a gateway that
 * begins anew knows nobody.
 */
interface Kept {
  readonly sealed: Sealed;
  readonly person: string;
  /** Whose share it is of. */
  readonly owner: string;
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
  /** Of the people of one account, or of whoever holds credentials of one cell. */
  readonly perOwner: number;
  readonly perPerson: number;
}
const signIns: KeptLimits = { inAll: 4096, perOwner: 512, perPerson: 32 };
const oneTimeCodes: KeptLimits = { inAll: 1024, perOwner: 128, perPerson: 8 };

export class SignIns {
  readonly #now: () => number;
  readonly #kept = new Map<string, Kept>();
  readonly #codes = new Map<string, Kept>();

  /** @param now milliseconds, monotonic */
  constructor(now: () => number) {
    this.#now = now;
  }

  /**
   * The cookie's value. Where there are too many, the oldest of the same person ends, or of those it shares with; where all places are taken, the oldest of
   * whoever has most: nobody is thrown out by how often somebody else signs in.
   * @param leftMs of the credential; it ends then at the latest
   */
  begin(
    credential: string,
    { isOwn, leftMs = Number.POSITIVE_INFINITY }: { readonly isOwn: boolean; readonly leftMs?: number },
    who: Person,
  ): string {
    const gone = this.#tooMany(this.#kept, signIns, who);
    if (gone !== null) this.#drop(gone);
    const endsMs = this.#now() + Math.min(signInTimes.longestMs, leftMs);
    return this.#keep(this.#kept, credential, { isOwn, endsMs, idleMs: signInTimes.idleMs }, who);
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

  /** Null: as many as may be of this person, or of those he shares with, wait to be used. */
  makeCode(credential: string, who: Person): string | null {
    this.sweep();
    const gone = this.#tooMany(this.#codes, oneTimeCodes, who);
    const [person, owner] = [who.person, ownerOf(who)];
    const old = gone === null ? undefined : this.#codes.get(gone);
    if (old?.person === person || old?.owner === owner) return null;
    this.#codes.delete(gone ?? "");
    const endsMs = this.#now() + signInTimes.codeMs;
    return this.#keep(this.#codes, credential, { isOwn: false, endsMs, idleMs: signInTimes.codeMs }, who);
  }

  /** The credential behind the code, which goes on opening it; null as of `takeCode`. */
  readCode(code: string): string | null {
    const kept = this.#codes.get(hashOf("id", code));
    return kept === undefined || this.#now() >= kept.endsMs ? null : unsealed(kept.sealed, code);
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
    who: Person,
  ): string {
    const secret = randomBytes(32).toString("base64url");
    to.set(hashOf("id", secret), {
      sealed: sealedWith(credential, secret),
      person: who.person,
      owner: ownerOf(who),
      isOwn,
      endsMs,
      idleUntilMs: this.#now() + idleMs,
      held: new Set(),
    });
    return secret;
  }
  /** Which one makes room for another of this person; null: there is room. */
  #tooMany(kept: ReadonlyMap<string, Kept>, limits: KeptLimits, who: Person): string | null {
    const all = [...kept];
    const owner = ownerOf(who);
    const own = all.filter(([, each]) => each.person === who.person);
    if (own.length >= limits.perPerson) return own[0]?.[0] ?? null;
    const shared = all.filter(([, each]) => each.owner === owner);
    if (shared.length >= limits.perOwner) return (own[0] ?? shared[0])?.[0] ?? null;
    if (all.length < limits.inAll) return null;
    const owners = Object.values(Object.groupBy(all, ([, each]) => each.owner));
    const [most = all] = owners.sort((one = [], other = []) => other.length - one.length);
    return most[0]?.[0] ?? null;
  }
  #drop(id: string): void {
    const kept = this.#kept.get(id);
    this.#kept.delete(id);
    for (const end of kept?.held ?? []) end();
  }
}

const ownerOf = ({ scope }: Person): string => JSON.stringify(scope);
