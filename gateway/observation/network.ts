import type { FastifyInstance } from "fastify";
import { peerName } from "../../model/cell/identifiers.ts";
import { type NetworkConfigured, networkConfigured } from "../../model/contract/operator/network.ts";
import type { ProcessConfiguration } from "../../runtime/installation.ts";
import { listPeers } from "../../runtime/transport/peers.ts";
import { askPeer } from "../requests/ask-peer.ts";
import { answerAs, answerOr, refusalIn } from "../requests/peer-answer.ts";
import { refused } from "../requests/refused.ts";
import { serveRoute } from "../requests/serve.ts";

const manager = peerName("network-view-manager");
const patienceMs = 10_000;

/** `GET` and `PUT /network/configuration`: of Eucalyptus networks, for the operator. */
export function registerNetwork(app: FastifyInstance, configuration: ProcessConfiguration): void {
  serveRoute(app, "readNetworkConfiguration", () => ask(configuration, { method: "GET", path: "/configuration" }));
  serveRoute(app, "setNetworkConfiguration", ({ body }) =>
    ask(configuration, {
      method: "PUT",
      path: "/configuration",
      body: JSON.stringify(body),
      headers: { "content-type": "application/json" },
    }),
  );
}

async function ask(
  configuration: ProcessConfiguration,
  order: Omit<Parameters<typeof askPeer>[2], "signal">,
): Promise<NetworkConfigured> {
  if (!(await listPeers(configuration, manager)).includes(manager))
    throw refused(
      404,
      "network/no-manager",
      "this installation has no Network View Manager: no service VM of the root cell has the role `network-view-manager`",
    );
  const asked = { ...order, signal: AbortSignal.timeout(patienceMs) };
  const answer = await askPeer(configuration, manager, asked).catch((error: Error) => {
    throw refused(503, "network/unreachable", `the Network View Manager does not answer: ${error.message}`);
  });
  const text = await answer.text();
  if (answer.status === 200) return answerOr(() => answerAs(networkConfigured, text, manager), "network/unreadable");
  const { code = "network/unreachable", message = "the Network View Manager is starting" } = refusalIn(text);
  throw refused([400, 404, 409].includes(answer.status) ? answer.status : 503, code, message);
}
