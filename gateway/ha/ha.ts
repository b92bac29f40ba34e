import type { FastifyInstance } from "fastify";
import { peerName } from "../../model/cell/identifiers.ts";
import {
  type HaReport,
  haReport,
  mailRegistered,
  mailRemoved,
  powerRegistered,
  powerRemoved,
  webhookRegistered,
  webhookRemoved,
} from "../../model/contract/operator/ha.ts";
import type { Schema } from "../../model/contract/schema.ts";
import { refusal } from "../../model/contract/values.ts";
import type { ProcessConfiguration } from "../../runtime/installation.ts";
import { listPeers } from "../../runtime/transport/peers.ts";
import { askPeer } from "../requests/ask-peer.ts";
import { answerAs, answerOr } from "../requests/peer-answer.ts";
import { refused } from "../requests/refused.ts";
import { serveRoute } from "../requests/serve.ts";
import { serverOf } from "./mail.ts";
import { outsideAddress, outsideOf } from "./notices.ts";

const haManager = peerName("ha-manager");
const patienceMs = 10_000;
/** Two hosts may be asked, and each tries for a while. */
const powerPatienceMs = 45_000;

/** `GET /ha`, and `POST /ha/pause`, `/ha/release`, `/ha/cancel` and `/ha/retry`, `/alerts`: what the HA Manager works on, for the operator. Returns how to read it. */
export function registerHa(app: FastifyInstance, configuration: ProcessConfiguration): () => Promise<HaReport> {
  const read = (): Promise<HaReport> => ask(configuration, "GET", "/ha");
  serveRoute(app, "readHa", read);
  serveRoute(app, "pauseHa", () => ask(configuration, "POST", "/ha/pause"));
  serveRoute(app, "releaseHa", ({ query: { vm = null } }) =>
    ask(configuration, "POST", `/ha/release${vm === null ? "" : `?${new URLSearchParams({ vm })}`}`),
  );
  for (const verb of ["cancel", "retry"] as const)
    serveRoute(app, `${verb}Ha`, ({ query: { vm } }) =>
      ask(configuration, "POST", `/ha/${verb}?${new URLSearchParams({ vm })}`),
    );
  serveRoute(app, "acknowledgeAlert", ({ query: { kind, subject = "" } }) =>
    ask(configuration, "POST", `/ha/acknowledge?${new URLSearchParams({ alert: kind, subject })}`),
  );
  serveRoute(app, "setWebhook", async ({ body }) => {
    const url = body === null ? null : URL.parse(body.url);
    if (url === null) throw refused(400, "bad-request", "the body is {url, secret}, with a URL of http or https");
    await outsideOf(url).catch((error: Error) => {
      throw refused(409, "alerts/webhook", error.message);
    });
    const sent = JSON.stringify(body);
    return askFor(configuration, webhookRegistered, { method: "PUT", path: "/webhook", body: sent });
  });
  serveRoute(app, "forgetWebhook", () => askFor(configuration, webhookRemoved, { method: "DELETE", path: "/webhook" }));
  serveRoute(app, "setMail", async ({ body }) => {
    if (body === null) throw refused(400, "bad-request", "the body is {server, from, to, login, ca}");
    await outsideAddress(serverOf(body.server).host, "a mail server").catch((error: Error) => {
      throw refused(409, "alerts/mail", error.message);
    });
    const sent = JSON.stringify(body);
    return askFor(configuration, mailRegistered, { method: "PUT", path: "/mail", body: sent });
  });
  serveRoute(app, "forgetMail", () => askFor(configuration, mailRemoved, { method: "DELETE", path: "/mail" }));
  serveRoute(app, "registerPower", ({ parameters: { name }, body }) =>
    askFor(configuration, powerRegistered, {
      ...{ method: "PUT", path: `/power/${encodeURIComponent(name)}`, patienceMs: powerPatienceMs },
      body: JSON.stringify(body),
    }),
  );
  serveRoute(app, "forgetPower", ({ parameters: { name } }) =>
    askFor(configuration, powerRemoved, { method: "DELETE", path: `/power/${encodeURIComponent(name)}` }),
  );
  return read;
}

async function ask(configuration: ProcessConfiguration, method: string, path: string): Promise<HaReport> {
  return askFor(configuration, haReport, { method, path });
}
/** What is asked, and how it answers; of a refusal what it says. */
async function askFor<T>(
  configuration: ProcessConfiguration,
  schema: Schema<T>,
  asked: { readonly method: string; readonly path: string; readonly body?: string; readonly patienceMs?: number },
): Promise<T> {
  if (!(await listPeers(configuration, haManager)).includes(haManager))
    throw refused(404, "ha/none", "this installation has no HA Manager: VMs of a host that is lost wait for it");
  const { patienceMs: waits = patienceMs, ...order } = asked;
  const answer = await askPeer(configuration, haManager, {
    ...{ ...order, signal: AbortSignal.timeout(waits) },
    ...(order.body === undefined ? {} : { headers: { "content-type": "application/json" } }),
  }).catch((error: Error) => {
    throw refused(503, "ha/unreachable", `the HA Manager does not answer: ${error.message}`);
  });
  const text = await answer.text();
  if (answer.status === 400 || answer.status === 404 || answer.status === 409) {
    const { error } = answerOr(() => answerAs(refusal, text, haManager), "ha/unreadable");
    throw refused(answer.status, error.code, error.message);
  }
  if (answer.status !== 200) throw refused(503, "ha/unreachable", "the HA Manager is starting");
  return answerOr(() => answerAs(schema, text, haManager), "ha/unreadable");
}
