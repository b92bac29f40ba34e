import { createHmac, randomBytes } from "node:crypto";
import type { FastifyRequest } from "fastify";
import { match } from "../../model/contract/match.ts";
import type { RouteName } from "../../model/contract/routes.ts";
import { bearerOf } from "../../runtime/http/bearer.ts";
import { refused } from "../requests/refused.ts";
import { hashOf, type Sealed, sealedWith, unsealed } from "./sealed.ts";

/**
 * What CaaS is shown of somebody who asks the gateway itself for persistent volumes, as the gateway's page does (decision 201). It stands for his
 * credential for some minutes, and opens what these volumes take and nothing beside it; so a cookie, a session and the operator's credential are
 * none of CaaS' to see. What it stands for is asked about anew each time: where that is revoked, it opens nothing either.
 */
export interface Given {
  readonly shown: string;
  /** The request that it was given for is over. */
  readonly over: () => void;
}
interface Kept {
  readonly sealed: Sealed;
  endsMs: number;
  /** Requests for which it was given and that are under way: an upload may last. */
  inUse: number;
}
/** All that somebody asks for in such a time is shown the same. It is good for that and the next. */
const turnMs = 5 * 60_000;
export const passMs = 2 * turnMs;
const most = 1024;

/** Who asks, what he may see, a volume of his cell (read, and granted to the primary cell), and what he has uploaded for one. */
const opened: ReadonlySet<RouteName> = new Set<RouteName>([
  "whoAmI",
  "listCells",
  "listAccounts",
  "listQuotas",
  "readModel",
  "readElement",
  "patchModel",
  "listUploads",
  "removeUpload",
]);
const form = /^pass\.[A-Za-z0-9_-]{43}$/;

export class Passes {
  readonly #now: () => number;
  /** Of this process: without the credential as well nobody makes one. */
  readonly #secret = randomBytes(32);
  readonly #kept = new Map<string, Kept>();

  /** @param now milliseconds, monotonic */
  constructor(now: () => number) {
    this.#now = now;
  }

  /** For a request of whoever shows this credential. */
  give(credential: string): Given {
    const turn = Math.floor(this.#now() / turnMs);
    const secret = createHmac("sha256", this.#secret).update(`${turn} ${credential}`).digest("base64url");
    const shown = `pass.${secret}`;
    const id = hashOf("id", shown);
    const kept = this.#kept.get(id) ?? { sealed: sealedWith(credential, shown), endsMs: 0, inUse: 0 };
    kept.endsMs = turn * turnMs + passMs;
    kept.inUse += 1;
    this.#kept.delete(id);
    this.#kept.set(id, kept);
    this.#sweep();
    let isOver = false;
    const over = (): void => {
      if (!isOver) kept.inUse -= 1;
      isOver = true;
    };
    return { shown, over };
  }

  /** The credential that it stands for; null: it is none, or over. */
  open(shown: string): string | null {
    const kept = this.#kept.get(hashOf("id", shown));
    return kept === undefined || this.#isOver(kept) ? null : unsealed(kept.sealed, shown);
  }

  /**
   * A request that shows one goes on with what it stands for. Throws a refusal where it is over, or is not for that.
   * @returns whether it shows one
   */
  admit({ headers, method, url }: Pick<FastifyRequest, "headers" | "method" | "url">): boolean {
    const shown = bearerOf(headers.authorization);
    if (shown === null || !form.test(shown)) return false;
    const credential = this.open(shown);
    if (credential === null) throw refused(401, "unauthorized", "what stood for somebody's credential here is over");
    const { name } = match(method, url) ?? {};
    if (name === undefined || !opened.has(name))
      throw refused(
        403,
        "forbidden",
        `what CaaS was given for whoever asks it opens what persistent volumes take, and ${method} of ${url.slice(0, 100)} is not of that`,
      );
    headers.authorization = `Bearer ${credential}`;
    return true;
  }

  #isOver({ endsMs, inUse }: Kept): boolean {
    return inUse === 0 && this.#now() >= endsMs;
  }
  /** Those in use are as many at most as the gateway has places for requests. */
  #sweep(): void {
    for (const [id, kept] of this.#kept)
      if (this.#isOver(kept) || (kept.inUse === 0 && this.#kept.size > most)) this.#kept.delete(id);
  }
}
