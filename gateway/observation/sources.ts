import { readFile } from "node:fs/promises";
import { type IncomingMessage, request } from "node:http";
import type { ServiceEvent } from "../../model/api.ts";
import { type PeerName, peerName } from "../../model/cell/identifiers.ts";
import { readEventStream } from "../../runtime/http/event-stream.ts";
import { peerRequest } from "../../runtime/http/https.ts";
import type { PeerBook, ProcessConfiguration } from "../../runtime/installation.ts";

/** Whom the gateway asks about itself: every service, and the supervisor. */
export interface Sources {
  /** The supervisor's name, where there is one. */
  readonly supervisor: readonly string[];
  /** Services as they are in the peers file now, this gateway left out. */
  services(): Promise<readonly PeerName[]>;
  /** Events of one service or of `supervisor`. Ends when the source ends; rejects when it does not answer. */
  events(source: string, follow: boolean, signal: AbortSignal): AsyncGenerator<ServiceEvent>;
  /** A service's exposition. Rejects when it does not answer, or not with one. */
  metrics(service: PeerName, signal: AbortSignal): Promise<string>;
}

export const supervisorName = "supervisor";
/** Events come with a sign of life every 15 s. */
const silenceMs = 40_000;

export const createSources = (configuration: ProcessConfiguration, supervisorSocket: string | null): Sources => {
  const open = async (source: string, follow: boolean, signal: AbortSignal): Promise<IncomingMessage> => {
    const path = `/events${follow ? "?follow=true" : ""}`;
    if (source === supervisorName && supervisorSocket !== null) return askSocket(supervisorSocket, path, signal);
    const answer = await peerRequest(configuration, peerName(source), {
      method: "GET",
      path,
      signal,
      idleTimeoutMs: silenceMs,
    });
    if (answer.status === 200) return answer.body;
    answer.body.destroy();
    throw new Error(`"${source}" answered ${answer.status} when asked for its events`);
  };
  return {
    supervisor: supervisorSocket === null ? [] : [supervisorName],
    services: async () => {
      const { peers } = JSON.parse(await readFile(configuration.peersFile, "utf8")) as PeerBook;
      return Object.keys(peers)
        .filter((name) => name !== configuration.name)
        .map(peerName);
    },
    events: async function* (source, follow, signal) {
      yield* readEventStream<ServiceEvent>(await open(source, follow, signal));
    },
    metrics: async (service, signal) => {
      const answer = await peerRequest(configuration, service, { method: "GET", path: "/metrics", signal });
      const text = await answer.text();
      if (answer.status !== 200) throw new Error(`"${service}" answered ${answer.status} when asked for its metrics`);
      return text;
    },
  };
};

const askSocket = (socketPath: string, path: string, signal: AbortSignal): Promise<IncomingMessage> =>
  new Promise((resolve, reject) => {
    const asking = request({ socketPath, path, signal, timeout: silenceMs });
    asking.once("timeout", () => asking.destroy(new Error("the supervisor is silent")));
    asking.once("error", reject);
    asking.once("response", (response) => {
      if (response.statusCode === 200) resolve(response);
      else {
        response.destroy();
        reject(new Error(`the supervisor answered ${response.statusCode} when asked for its events`));
      }
    });
    asking.end();
  });
