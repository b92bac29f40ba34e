import type { FastifyReply } from "fastify";
import { bearerOf, hashCredential } from "../runtime/credentials.ts";
import { peerRequest } from "../runtime/https.ts";
import type { ProcessConfiguration } from "../runtime/installation.ts";
import type { Cells } from "./cells.ts";
import type { Scope } from "./credentials.ts";
import { controllerOf } from "./forward.ts";
import { type RefusedError, refused } from "./refused.ts";

/**
 * Who gets any of the gateway's own means: a place among the requests under way, memory for a body, an answer that tells
 * of other cells. That something looks like a credential of a cell earns none of it; the cell's controller is asked first.
 * Its word is remembered for that only: what a request may do, the controller says again when it gets there.
 */
const rememberedMs = 10 * 60_000;
const mostRemembered = 1024;
/** Questions under way: of one cell, and of all. */
const mostQuestions = { perCell: 8, inAll: 64 } as const;
const patienceMs = 30_000;

/** Rejects with a refusal unless the cell's controller knows the credential. A cell that is not there knows none. */
export type Introduction = (cell: string, authorization: string) => Promise<void>;

export const createIntroduction = (configuration: ProcessConfiguration, cells: Cells): Introduction => {
  /** Hash of a credential → until when (milliseconds, monotonic), oldest first. */
  const known = new Map<string, number>();
  const questions = new Counts();

  const remember = (hash: string): void => {
    known.delete(hash);
    known.set(hash, performance.now() + rememberedMs);
    for (const oldest of known.keys()) {
      if (known.size <= mostRemembered) break;
      known.delete(oldest);
    }
  };
  const ask = async (cell: string, authorization: string): Promise<void> => {
    if (!(await cells.has(cell))) throw noCredential(cell);
    const answer = await peerRequest(configuration, controllerOf(cell), {
      method: "GET",
      path: `/cells/${cell}`,
      headers: { authorization },
      signal: AbortSignal.timeout(patienceMs),
    }).catch((error: Error) => {
      const message = `the controller of the cell "${cell}" does not answer: ${error.message}`;
      throw refused(502, "controller-unreachable", message);
    });
    answer.body.destroy();
    if (answer.status === 401) throw noCredential(cell);
    if (answer.status !== 200)
      throw refused(502, "controller-unreachable", `the controller of the cell "${cell}" answered ${answer.status}`);
  };
  return async (cell, authorization) => {
    const hash = hashCredential(bearerOf(authorization) ?? "");
    if ((known.get(hash) ?? 0) > performance.now()) return;
    if (questions.of(cell) >= mostQuestions.perCell || questions.all >= mostQuestions.inAll) throw busy();
    questions.add(cell, 1);
    try {
      await ask(cell, authorization);
    } finally {
      questions.add(cell, -1);
    }
    remember(hash);
  };
};

/** As the controller says it. */
const noCredential = (cell: string): RefusedError =>
  refused(
    401,
    "unauthorized",
    `this is no credential of the cell ${cell}: ask its operator for one (cells credential add ${cell})`,
  );
const busy = (): RefusedError => refused(503, "busy", "too many requests are under way; try again in a second");

/** Streams of events last, so they are counted apart from what is answered and over. */
export type Kind = "requests" | "followers";
const most: Readonly<Record<Kind, { readonly inAll: number; readonly perCell: number }>> = {
  requests: { inAll: 64, perCell: 16 },
  followers: { inAll: 128, perCell: 32 },
};

/**
 * Whoever is too many is told at once, before the body is read. The holders of one cell's credentials together have a
 * share, so that they are in the way of no other cell, nor of the operator.
 */
export const createPlaces = () => {
  const underWay = { requests: new Counts(), followers: new Counts() } as const;
  return (scope: Scope, kind: Kind, reply: FastifyReply): void => {
    // It left while its credential was looked at, and nobody will say so again.
    if (reply.raw.destroyed) throw refused(400, "gone", "the client has left");
    const counts = underWay[kind];
    const owner = scope.kind === "cell" ? scope.cell : "";
    const shared = scope.kind === "cell" && counts.of(owner) >= most[kind].perCell;
    if (shared || counts.all >= most[kind].inAll) {
      reply.header("retry-after", "1");
      if (!shared) throw busy();
      const message = `${most[kind].perCell} ${kind} of the cell "${owner}" are under way, and that is its share; try again in a second`;
      throw refused(503, "busy", message);
    }
    counts.add(owner, 1);
    reply.raw.once("close", () => counts.add(owner, -1));
  };
};

class Counts {
  all = 0;
  readonly #each = new Map<string, number>();

  of(name: string): number {
    return this.#each.get(name) ?? 0;
  }
  add(name: string, change: 1 | -1): void {
    this.all += change;
    const count = this.of(name) + change;
    if (count === 0) this.#each.delete(name);
    else this.#each.set(name, count);
  }
}
