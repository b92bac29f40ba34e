import type { FastifyInstance } from "fastify";
import { peerName } from "../../model/cell/identifiers.ts";
import { type HaReport, haReport } from "../../model/contract/ha.ts";
import { peerRequest } from "../../runtime/http/https.ts";
import type { ProcessConfiguration } from "../../runtime/installation.ts";
import { listPeers } from "../../runtime/transport/peers.ts";
import { answerAs, answerOr } from "../requests/peer-answer.ts";
import { refused } from "../requests/refused.ts";
import { serveRoute } from "../requests/serve.ts";

const haManager = peerName("ha-manager");
const patienceMs = 10_000;

/** `GET /ha`, `POST /ha/pause` and `/ha/release`: what the HA Manager works on, and what it holds, for the operator. */
export function registerHa(app: FastifyInstance, configuration: ProcessConfiguration): void {
  serveRoute(app, "readHa", () => ask(configuration, "GET", "/ha"));
  serveRoute(app, "pauseHa", () => ask(configuration, "POST", "/ha/pause"));
  serveRoute(app, "releaseHa", ({ query: { vm = null } }) =>
    ask(configuration, "POST", `/ha/release${vm === null ? "" : `?${new URLSearchParams({ vm })}`}`),
  );
}

async function ask(configuration: ProcessConfiguration, method: string, path: string): Promise<HaReport> {
  if (!(await listPeers(configuration, haManager)).includes(haManager))
    throw refused(404, "ha/none", "this installation has no HA Manager: VMs of a host that is lost wait for it");
  const asked = { method, path, signal: AbortSignal.timeout(patienceMs) };
  const answer = await peerRequest(configuration, haManager, asked).catch((error: Error) => {
    throw refused(503, "ha/unreachable", `the HA Manager does not answer: ${error.message}`);
  });
  const text = await answer.text();
  if (answer.status !== 200) throw refused(503, "ha/unreachable", "the HA Manager is starting");
  return answerOr(() => answerAs(haReport, text, haManager), "ha/unreadable");
}
