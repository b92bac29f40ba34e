import { mayAsk } from "../core/identity/permissions.ts";
import { offersRequest } from "../core/supply.ts";
import { type PeerHandler, servePeers } from "./https.ts";
import type { ProcessConfiguration } from "./installation.ts";
import { type Observer, observed } from "./observer.ts";
import { type RunningService, runService, type ServiceRun } from "./process.ts";
import { stopAtSignals } from "./signals.ts";

/** Where a service is asked for that may be started again meanwhile; null: it has not started yet. */
export interface Asked {
  service: RunningService | null;
}

export const offersPath = "/offers";

/**
 * `GET /offers`: what a service could ever give, for the gateway, which checks the first model of a cell that has no
 * controller yet. Controllers are told of the same by state distribution.
 */
const offering =
  (asked: Asked): PeerHandler =>
  async ({ method, url, peer }, response) => {
    const json = (status: number, body: object): void => {
      response.writeHead(status, { "content-type": "application/json" });
      response.end(JSON.stringify(body));
    };
    const refuse = (status: number, code: string, message: string): void => json(status, { error: { code, message } });
    if (method !== "GET" || url !== offersPath)
      refuse(404, "not-found", `there is no ${method} of ${url} here: GET /metrics, /events and /offers are answered`);
    else if (!mayAsk("placer", peer, method, url))
      refuse(403, "forbidden", `only the gateway may ask what a service could give, and this is "${peer}"`);
    else if (asked.service === null) refuse(503, "busy", "the service is starting: ask again in a moment");
    else json(200, (await asked.service.request(offersRequest)) as object);
  };

/** Serves what an observer sees and what the service could give, which is asked once it runs. */
export const serveOffers = async (configuration: ProcessConfiguration, observer: Observer): Promise<Asked> => {
  const asked: Asked = { service: null };
  const server = await servePeers(configuration, observed(observer, offering(asked)));
  stopAtSignals(server.stop);
  return asked;
};

/** Runs a service; from then on it is the one that is asked. */
export const runAsked = async <State>(asked: Asked, run: ServiceRun<State>): Promise<RunningService> => {
  const running = await runService(run);
  asked.service = running;
  return running;
};
