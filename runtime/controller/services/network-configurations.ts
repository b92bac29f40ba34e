import { text } from "node:stream/consumers";
import { mayAsk } from "../../../core/documents/permissions.ts";
import { type ConfigurationAnswer, configurationRequest } from "../../../core/eucalyptus/manager.ts";
import { toJson } from "../../../core/outbox.ts";
import { parseJson, sendJson, sendRefusal } from "../../http/http.ts";
import { askedBy } from "../../observation/asked-by.ts";
import type { Further } from "../../process/asked.ts";

const path = "/configuration";
/** Characters: 100,000 ranges of addresses. */
const longestBody = 4 * 1024 * 1024;

/** The network configuration at the Network View Manager's edge: `GET` and `PUT /configuration`. */
export const networkConfigurations: Further = {
  answers: (url) => url === path,
  handler:
    ({ service }) =>
    async (incoming, response) => {
      const { method, url, peer } = incoming;
      const refuse = (status: number, code: string, message: string): void =>
        sendRefusal(response, status, code, message);
      if (!mayAsk("network-view-manager", peer, method, url))
        return refuse(
          403,
          "forbidden",
          `only the gateway may ask for the network configuration, and this is "${peer}"`,
        );
      if (service === null) return refuse(503, "busy", "the service is starting: ask again in a moment");
      if (method === "GET") {
        const said = (await service.request(configurationRequest)) as unknown as ConfigurationAnswer;
        if (said.refused !== null) return refuse(404, "network/none", said.refused.join("; "));
        return sendJson(response, 200, { configuration: said.configuration, version: said.version });
      }
      const sent = await text(incoming.body).catch(() => "");
      const body = sent.length > longestBody ? null : parseJson(sent);
      if (body?.ok !== true) return refuse(400, "bad-request", "the body is a network configuration, a JSON object");
      const by = askedBy(incoming, { verb: "setNetworkConfiguration", target: "network" });
      const request = toJson({ kind: "configure", document: body.value });
      const said = (await service.request(request, by)) as unknown as ConfigurationAnswer;
      if (said.refused !== null) return refuse(409, "network/refused", said.refused.join("; "));
      return sendJson(response, 200, { configuration: said.configuration, version: said.version });
    },
};
