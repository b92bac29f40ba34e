import type { FastifyInstance } from "fastify";
import { peerName } from "../../model/cell/identifiers.ts";
import { zoneKeyAnswer, zoneReport } from "../../model/contract/operator/zone.ts";
import type { Schema } from "../../model/contract/schema.ts";
import type { ProcessConfiguration } from "../../runtime/installation.ts";
import { askPeer } from "../requests/ask-peer.ts";
import { answerAs, answerOr, refusalIn } from "../requests/peer-answer.ts";
import { refused } from "../requests/refused.ts";
import { serveRoute } from "../requests/serve.ts";

const dnsManager = peerName("dns-manager");
const patienceMs = 10_000;

/** `GET /zone`, `PUT /zone/keys/{name}` and `DELETE` of it: names for the outside, for the operator. */
export function registerZone(app: FastifyInstance, configuration: ProcessConfiguration): void {
  const keyPath = (name: string): string => `/zone/keys/${encodeURIComponent(name)}`;
  serveRoute(app, "readZone", () => ask(configuration, zoneReport, { method: "GET", path: "/zone" }));
  serveRoute(app, "giveZoneKey", ({ parameters: { name }, body }) =>
    ask(configuration, zoneKeyAnswer, {
      method: "PUT",
      path: keyPath(name),
      body: JSON.stringify(body),
      headers: { "content-type": "application/json" },
    }),
  );
  serveRoute(app, "forgetZoneKey", ({ parameters: { name } }) =>
    ask(configuration, zoneKeyAnswer, { method: "DELETE", path: keyPath(name) }),
  );
}

async function ask<T>(
  configuration: ProcessConfiguration,
  schema: Schema<T>,
  order: Omit<Parameters<typeof askPeer>[2], "signal">,
): Promise<T> {
  const asked = { ...order, signal: AbortSignal.timeout(patienceMs) };
  const answer = await askPeer(configuration, dnsManager, asked).catch((error: Error) => {
    throw refused(503, "zone/unreachable", `the DNS Manager does not answer: ${error.message}`);
  });
  const text = await answer.text();
  if (answer.status === 200) return answerOr(() => answerAs(schema, text, dnsManager), "zone/unreadable");
  const { code = "zone/unreachable", message = "the DNS Manager is starting" } = refusalIn(text);
  throw refused(answer.status === 400 || answer.status === 409 ? answer.status : 503, code, message);
}
