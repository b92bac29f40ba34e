import { gives, route, sends } from "../route.ts";
import { jsonObject } from "../schema.ts";
import { networkConfigured } from "./network.ts";
import { pageCertificateRoutes } from "./page-certificate.ts";
import { zoneKeyAnswer, zoneKeyWord, zoneReport } from "./zone.ts";

/** What the operator says of networks: names for the outside, the page's own among them, and the network configuration of Eucalyptus. */
export const networkRoutes = {
  readZone: route("GET /zone", "operator", "gateway", {
    doc: "Names for the outside: which zones are handed to whom, under which number, and the names of keys that were given. Nothing shows a secret.",
    answer: gives(zoneReport),
  }),
  giveZoneKey: route("PUT /zone/keys/{name}", "operator", "gateway", {
    doc: "A secret by which transfers of the zone are signed (TSIG, hmac-sha256) once `x.zone.key` of the root cell names it. Another one of the same name is replaced. 409: there are 8 others.",
    body: sends(zoneKeyWord),
    answer: gives(zoneKeyAnswer),
  }),
  forgetZoneKey: route("DELETE /zone/keys/{name}", "operator", "gateway", {
    doc: "Forgets the secret. While `x.zone.key` names it nothing is handed over.",
    answer: gives(zoneKeyAnswer),
  }),
  readNetworkConfiguration: route("GET /network/configuration", "operator", "gateway", {
    doc: "The network configuration of Eucalyptus in force (decision 160), and the version of the view that hosts are told. 404: there is none yet, or this installation has no Network View Manager.",
    answer: gives(networkConfigured),
  }),
  setNetworkConfiguration: route("PUT /network/configuration", "operator", "gateway", {
    doc: "Puts a network configuration in force. 409: it has faults, all of which are named with their places, or it would move an address or tag that is in use, with the instances.",
    body: sends(jsonObject),
    answer: gives(networkConfigured),
  }),
  ...pageCertificateRoutes,
};
