import { readFile } from "node:fs/promises";
import { type IncomingMessage, request } from "node:http";
import type { ServiceEvent } from "../../model/api.ts";
import { type PeerName, peerName } from "../../model/cell/identifiers.ts";
import { serviceEvent } from "../../model/contract/values.ts";
import type { Json } from "../../model/json/json.ts";
import { readEventStream } from "../../runtime/http/event-stream.ts";
import { type OutgoingPeerRequest, type PeerResponse, peerRequest } from "../../runtime/http/https.ts";
import type { PeerBook, ProcessConfiguration } from "../../runtime/installation.ts";
import { watchPeers } from "../../runtime/transport/peers-watch.ts";
import { isBeside } from "../requests/beside.ts";
import { saidAs } from "../requests/peer-answer.ts";
import type { Connections } from "./connections.ts";

/** Whom the gateway asks about itself: every service, and the supervisor. */
export interface Sources {
  /** The supervisor's name, where there is one. */
  readonly supervisor: readonly string[];
  /** Services as they are in the peers file now, this gateway left out. */
  services(): Promise<readonly PeerName[]>;
  /** Tells when they may be others. Returns how to be told no more. */
  watch(changed: () => void): () => void;
  /** Events of one service or of `supervisor`. Ends when the source ends; rejects when it does not answer. */
  events(source: string, follow: boolean, signal: AbortSignal): AsyncGenerator<ServiceEvent>;
  /** A service's exposition. Rejects when it does not answer, or not with one. */
  metrics(service: PeerName, signal: AbortSignal): Promise<string>;
}

export const supervisorName = "supervisor";
/** Events come with a sign of life every 15 s. */
const silenceMs = 40_000;

export const createSources = (
  configuration: ProcessConfiguration,
  supervisorSocket: string | null,
  connections: Connections,
): Sources => {
  /** Once more where the connection was one to a former life of the service, which only its use shows. */
  const askKept = async (
    service: PeerName,
    asked: OutgoingPeerRequest & { readonly signal: AbortSignal },
  ): Promise<PeerResponse> => {
    const ask = () => peerRequest(configuration, service, { ...asked, connection: connections.to(service) });
    try {
      return await ask();
    } catch (error) {
      if (asked.signal.aborted) throw error;
      return ask();
    }
  };
  const open = async (source: string, follow: boolean, signal: AbortSignal): Promise<IncomingMessage> => {
    const path = `/events${follow ? "?follow=true" : ""}`;
    if (source === supervisorName && supervisorSocket !== null) return askSocket(supervisorSocket, path, signal);
    const asked = { method: "GET", path, signal, idleTimeoutMs: silenceMs };
    // Who follows keeps a connection of its own.
    const answer = await (follow
      ? peerRequest(configuration, peerName(source), asked)
      : askKept(peerName(source), asked));
    if (answer.status === 200) return answer.body;
    answer.body.destroy();
    throw new Error(`"${source}" answered ${answer.status} when asked for its events`);
  };
  return {
    supervisor: supervisorSocket === null ? [] : [supervisorName],
    services: async () => {
      const { peers } = JSON.parse(await readFile(configuration.peersFile, "utf8")) as PeerBook;
      return Object.keys(peers)
        .filter((name) => name !== configuration.name && !isBeside(name))
        .map(peerName);
    },
    watch: (changed) => watchPeers(configuration.peersFile, changed),
    events: async function* (source, follow, signal) {
      for await (const said of readEventStream<Json>(await open(source, follow, signal))) {
        const event = saidAs(serviceEvent, said, source);
        // In nobody else's name.
        yield source === supervisorName ? event : { ...event, service: source };
      }
    },
    metrics: async (service, signal) => {
      const answer = await askKept(service, { method: "GET", path: "/metrics", signal });
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
