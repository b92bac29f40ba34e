import type { FastifyReply } from "fastify";
import { keepNewest } from "../../model/limits.ts";
import { bearerOf, hashCredential } from "../../runtime/http/bearer.ts";
import { peerRequest } from "../../runtime/http/https.ts";
import type { ProcessConfiguration } from "../../runtime/installation.ts";
import type { Cells } from "../cells/cells.ts";
import { controllerOf } from "../requests/cell-names.ts";
import type { Scope } from "../requests/credentials.ts";
import { type PlaceLimits, Places, type QuestionLimits, Questions } from "../requests/places.ts";
import { RefusedError, refused } from "../requests/refused.ts";

/**
 * Who gets any of the gateway's own means: a place among the requests under way, memory for a body, an answer that tells
 * of other cells. That something looks like a credential of a cell earns none of it; the cell's controller is asked first.
 * Its word is remembered for that only: what a request may do, the controller says again when it gets there.
 */
const rememberedMs = 10 * 60_000;
/** As many as 256 cells can have. */
const mostRemembered = 16_384;
const strangers: QuestionLimits = { inAll: 256, perAddress: 64, perCell: 8, perBoth: 4 };
/** Of credentials that were known once: whoever makes some up takes no place of theirs. */
const acquaintances: QuestionLimits = { inAll: 64, perAddress: 64, perCell: 4, perBoth: 4 };
const answerTimeoutMs = 30_000;

export interface Introduction {
  /**
   * Rejects with a refusal unless the cell's controller knows the credential. A cell that is not there knows none.
   * @param address that the client's connection comes from
   */
  introduce(cell: string, authorization: string, address: string): Promise<void>;
  /** Its controller has refused it. */
  forget(authorization: string): void;
}

/** `now`: milliseconds, monotonic. */
export const createIntroduction = (
  configuration: ProcessConfiguration,
  cells: Pick<Cells, "has">,
  now: () => number = () => performance.now(),
): Introduction => {
  /** Hash of a credential that was known → until when that counts (milliseconds, monotonic), least recently used first. */
  const known = new Map<string, number>();
  const questions = { strangers: new Questions(strangers), acquaintances: new Questions(acquaintances) };

  const remember = (hash: string): void => {
    known.delete(hash);
    known.set(hash, now() + rememberedMs);
    keepNewest(known, mostRemembered);
  };
  const hashOf = (authorization: string): string => hashCredential(bearerOf(authorization) ?? "");
  const ask = async (cell: string, authorization: string): Promise<void> => {
    if (!(await cells.has(cell))) throw noCredential(cell);
    const answer = await peerRequest(configuration, controllerOf(cell), {
      method: "GET",
      path: `/cells/${cell}`,
      headers: { authorization },
      signal: AbortSignal.timeout(answerTimeoutMs),
    }).catch((error: Error) => {
      const message = `the controller of the cell "${cell}" does not answer: ${error.message}`;
      throw refused(502, "controller-unreachable", message);
    });
    answer.body.destroy();
    if (answer.status === 401) throw noCredential(cell);
    // Of a part of the cell it opens no summary, and is known: a stranger's is 401.
    if (answer.status !== 200 && answer.status !== 403)
      throw refused(502, "controller-unreachable", `the controller of the cell "${cell}" answered ${answer.status}`);
  };
  return {
    introduce: async (cell, authorization, address) => {
      const hash = hashOf(authorization);
      const until = known.get(hash);
      if (until === undefined || until <= now()) {
        const kind = until === undefined ? questions.strangers : questions.acquaintances;
        const end = kind.begin(cell, address);
        if (end === null) throw busy();
        try {
          await ask(cell, authorization);
        } catch (error) {
          if (error instanceof RefusedError && error.statusCode === 401) known.delete(hash);
          throw error;
        } finally {
          end();
        }
      }
      // Whoever is at work is not asked about again.
      remember(hash);
    },
    forget: (authorization) => known.delete(hashOf(authorization)),
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

/**
 * Streams of events last, so they are counted apart from what is answered and over. What CaaS asks for a request that was passed on
 * to it (decision 201) is apart as well: that one has its place already, and would else wait for further ones of the same people.
 */
export type Kind = "requests" | "followers" | "passed";
const most: Readonly<Record<Kind, PlaceLimits>> = {
  requests: { inAll: 64, reserved: 16, perCell: 16 },
  followers: { inAll: 128, reserved: 16, perCell: 32 },
  passed: { inAll: 128, reserved: 32, perCell: 48 },
};
const called: Readonly<Record<Kind, string>> = {
  requests: "requests",
  followers: "followers",
  passed: "requests about persistent volumes",
};

/**
 * Whoever is too many is told at once, before the body is read. The holders of one cell's credentials together have a
 * share, so that they are in the way of no other cell, nor of the operator.
 */
export const createPlaces = () => {
  const places: Readonly<Record<Kind, Places>> = {
    requests: new Places(most.requests),
    followers: new Places(most.followers),
    passed: new Places(most.passed),
  };
  return (scope: Scope, kind: Kind, reply: FastifyReply): void => {
    // It left while its credential was looked at, and nobody will say so again.
    if (reply.raw.destroyed) throw refused(400, "bad-request", "the client has left");
    const taken = places[kind].take(scope);
    if (typeof taken === "function") {
      reply.raw.once("close", taken);
      return;
    }
    reply.header("retry-after", "1");
    if (taken === "full" || scope.kind === "operator") throw busy();
    const whose = scope.kind === "cell" ? `the cell "${scope.cell}"` : "your account";
    const message = `as many ${called[kind]} of ${whose} are under way as it may have now (at most ${most[kind].perCell}); try again in a second`;
    throw refused(503, "busy", message);
  };
};
