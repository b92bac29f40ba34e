import type { ServerResponse } from "node:http";
import { mayAsk, type ServiceKind } from "../../core/documents/permissions.ts";
import { offersRequest } from "../../core/documents/supply.ts";
import type { Json, JsonObject } from "../../model/json/json.ts";
import { servePeers } from "../http/https.ts";
import type { PeerHandler } from "../http/peer-handler.ts";
import type { ProcessConfiguration } from "../installation.ts";
import { stopAtSignals } from "../life/signals.ts";
import { type Observer, observed } from "../observation/observer.ts";
import { type RunningService, runService, type ServiceRun } from "./process.ts";

/** Where a service is asked for that may be started again meanwhile; null: it has not started yet. */
export interface Asked {
  service: RunningService | null;
}

/** What the gateway alone may ask a service, with `GET` of a path. */
export interface Question {
  readonly path: string;
  readonly request: Json;
  /**
   * Its query has words, which the service reads. It may take its time for the answer: the request has a number, `asked`, and where nobody waits any more
   * a second request of the kind "withdrawn" says so by that number.
   */
  readonly isWorded?: true;
  /** As in "only the gateway may ask …". */
  readonly asks: string;
}
/**
 * What a service could ever give. The gateway checks with it the first model of a cell that has no controller yet;
 * controllers are told of the same by state distribution.
 */
export const offersQuestion: Question = {
  path: "/offers",
  request: offersRequest,
  asks: "what a service could give",
};
/** What a member of the Presence group thinks of every host, for the gateway's picture of the installation. */
export const hostsQuestion: Question = { path: "/hosts", request: { kind: "hosts" }, asks: "for all hosts" };

/** Of each host, what a Placer knows: whether it takes VMs, and which are to leave it. */
export const roomsQuestion: Question = { path: "/rooms", request: { kind: "hosts" }, asks: "for all hosts" };

/** How many more of a VM fit. */
export const capacityQuestion: Question = {
  path: "/capacity",
  request: { kind: "capacity" },
  isWorded: true,
  asks: "how many more fit",
};

/** A plan of moves. */
export const rebalanceQuestion: Question = {
  path: "/rebalance",
  request: { kind: "rebalance" },
  isWorded: true,
  asks: "for a plan of moves",
};

/** What would come of it if a VM went elsewhere. */
export const trialQuestion: Question = {
  path: "/try",
  request: { kind: "try" },
  isWorded: true,
  asks: "what a move would do",
};

/** What the HA Manager works on. */
export const haQuestion: Question = { path: "/ha", request: { kind: "ha" }, asks: "what is being worked on" };

/** What else is asked of the service, by whom and how is its own matter. */
export interface Further {
  answers(url: string): boolean;
  handler(asked: Asked): PeerHandler;
}

/** Answers the questions, and what else there is. */
export const answering =
  (asked: Asked, at: ServiceKind, questions: readonly Question[], further: Further | undefined): PeerHandler =>
  async (incoming, response) => {
    const { method, url, peer } = incoming;
    if (further?.answers(url) === true) {
      await further.handler(asked)(incoming, response);
      return;
    }
    const json = (status: number, body: object): void => {
      response.writeHead(status, { "content-type": "application/json" });
      response.end(JSON.stringify(body));
    };
    const refuse = (status: number, code: string, message: string): void => json(status, { error: { code, message } });
    const [bare = "", words = ""] = url.split("?", 2);
    const question = questions.find(({ path, isWorded }) => path === (isWorded === true ? bare : url));
    const paths = ["/events", ...questions.map(({ path }) => path)];
    if (method !== "GET" || question === undefined) {
      const known = `GET /metrics, ${paths.slice(0, -1).join(", ")} and ${paths.at(-1)} are answered`;
      refuse(404, "not-found", `there is no ${method} of ${url} here: ${known}`);
    } else if (!mayAsk(at, peer, method, url))
      refuse(403, "forbidden", `only the gateway may ask ${question.asks}, and this is "${peer}"`);
    else if (asked.service === null) refuse(503, "busy", "the service is starting: ask again in a moment");
    else if (question.isWorded !== true) json(200, (await asked.service.request(question.request)) as object);
    else {
      const answer = await worded(asked.service, question.request, words, response);
      if (!response.destroyed) json(200, answer);
    }
  };

/** Of this process. */
let questions = 0;

/** Asks with the words of a query, each of which is a text, until whoever asked has gone. */
async function worded(
  service: Pick<RunningService, "request">,
  request: Json,
  words: string,
  response: ServerResponse,
): Promise<object> {
  questions += 1;
  const number = questions;
  const withdraw = (): void => {
    // A service that ends meanwhile has no answer to give.
    service.request({ kind: "withdrawn", asked: number }).catch(() => undefined);
  };
  response.once("close", withdraw);
  try {
    if (response.destroyed) return {};
    const asked = { ...Object.fromEntries(new URLSearchParams(words)), ...(request as JsonObject), asked: number };
    return (await service.request(asked)) as object;
  } finally {
    response.off("close", withdraw);
  }
}

/** Serves what an observer sees and the answers to the questions, which the service is asked once it runs. */
export const serveQuestions = async (
  configuration: ProcessConfiguration,
  observer: Observer,
  at: ServiceKind,
  questions: readonly Question[],
  further?: Further,
): Promise<Asked> => {
  const asked: Asked = { service: null };
  const server = await servePeers(
    configuration,
    observed(observer, answering(asked, at, questions, further)),
    undefined,
    { observer },
  );
  stopAtSignals(server.stop);
  return asked;
};

/** Runs a service; from then on it is the one that is asked. */
export const runAsked = async <State>(asked: Asked, run: ServiceRun<State>): Promise<RunningService> => {
  const running = await runService(run);
  asked.service = running;
  return running;
};
