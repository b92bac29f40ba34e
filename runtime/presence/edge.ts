import { type PeerHandler, servePeers } from "../https.ts";
import type { ProcessConfiguration } from "../installation.ts";
import { type Observer, observed } from "../observer.ts";
import type { Asked } from "../offers.ts";
import { stopAtSignals } from "../signals.ts";

export const hostsPath = "/hosts";

/** `GET /hosts`: what this member of the Presence group thinks of every host, for the gateway's picture of the installation. */
const answering =
  (asked: Asked): PeerHandler =>
  async ({ method, url, peer }, response) => {
    const json = (status: number, body: object): void => {
      response.writeHead(status, { "content-type": "application/json" });
      response.end(JSON.stringify(body));
    };
    const refuse = (status: number, code: string, message: string): void => json(status, { error: { code, message } });
    if (method !== "GET" || url !== hostsPath)
      refuse(404, "not-found", `there is no ${method} of ${url} here: GET /metrics, /events and /hosts are answered`);
    else if (peer !== "gateway")
      refuse(403, "forbidden", `only the gateway may ask for all hosts, and this is "${peer}"`);
    else if (asked.service === null) refuse(503, "busy", "the service is starting: ask again in a moment");
    else json(200, (await asked.service.request({ kind: "hosts" })) as object);
  };

/** Serves what an observer sees and what the member knows of the hosts, which is asked once it runs. */
export const servePresence = async (configuration: ProcessConfiguration, observer: Observer): Promise<Asked> => {
  const asked: Asked = { service: null };
  const server = await servePeers(configuration, observed(observer, answering(asked)));
  stopAtSignals(server.stop);
  return asked;
};
