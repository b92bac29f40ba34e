import type { FastifyInstance } from "fastify";
import { peerName } from "../../model/cell/identifiers.ts";
import { type HaReport, haReport } from "../../model/contract/ha.ts";
import { refusal } from "../../model/contract/values.ts";
import { peerRequest } from "../../runtime/http/https.ts";
import type { ProcessConfiguration } from "../../runtime/installation.ts";
import { listPeers } from "../../runtime/transport/peers.ts";
import { answerAs, answerOr } from "../requests/peer-answer.ts";
import { refused } from "../requests/refused.ts";
import { serveRoute } from "../requests/serve.ts";

const haManager = peerName("ha-manager");
const patienceMs = 10_000;

/** `GET /ha`, and `POST /ha/pause`, `/ha/release`, `/ha/cancel` and `/ha/retry`: what the HA Manager works on, for the operator. */
export function registerHa(app: FastifyInstance, configuration: ProcessConfiguration): void {
  serveRoute(app, "readHa", () => ask(configuration, "GET", "/ha"));
  serveRoute(app, "pauseHa", () => ask(configuration, "POST", "/ha/pause"));
  serveRoute(app, "releaseHa", ({ query: { vm = null } }) =>
    ask(configuration, "POST", `/ha/release${vm === null ? "" : `?${new URLSearchParams({ vm })}`}`),
  );
  for (const verb of ["cancel", "retry"] as const)
    serveRoute(app, `${verb}Ha`, ({ query: { vm } }) =>
      ask(configuration, "POST", `/ha/${verb}?${new URLSearchParams({ vm })}`),
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
  if (answer.status === 404 || answer.status === 409) {
    const { error } = answerOr(() => answerAs(refusal, text, haManager), "ha/unreadable");
    throw refused(answer.status, error.code, error.message);
  }
  if (answer.status !== 200) throw refused(503, "ha/unreachable", "the HA Manager is starting");
  return answerOr(() => answerAs(haReport, text, haManager), "ha/unreadable");
}
