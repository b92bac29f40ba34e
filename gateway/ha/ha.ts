import type { FastifyInstance } from "fastify";
import { type PeerName, peerName } from "../../model/cell/identifiers.ts";
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
import { RefusedError, refused } from "../requests/refused.ts";
import { serveRoute } from "../requests/serve.ts";
import { type Heard, joined, reportOf } from "./join.ts";
import { serverOf } from "./mail.ts";
import { outsideAddress, outsideOf } from "./notices.ts";

const haManager = peerName("ha-manager");
const patienceMs = 10_000;
/** Two hosts may be asked, and each tries for a while. */
const powerPatienceMs = 45_000;

/**
 * `GET /ha`, and `POST /ha/pause`, `/ha/release`, `/ha/cancel` and `/ha/retry`, `/alerts`: what the HA Managers work on, for the operator. A word
 * about a VM or an alert goes to who works on it, one about all to all. Returns how to read it.
 */
export function registerHa(app: FastifyInstance, configuration: ProcessConfiguration): () => Promise<HaReport> {
  const read = (): Promise<HaReport> => readAll(configuration);
  serveRoute(app, "readHa", read);
  serveRoute(app, "pauseHa", () => tellAll(configuration, "/ha/pause"));
  serveRoute(app, "releaseHa", ({ query: { vm = null } }) =>
    vm === null
      ? tellAll(configuration, "/ha/release")
      : tellWhose(configuration, `/ha/release?${new URLSearchParams({ vm })}`, worksOn(vm)),
  );
  for (const verb of ["cancel", "retry"] as const)
    serveRoute(app, `${verb}Ha`, ({ query: { vm } }) =>
      tellWhose(configuration, `/ha/${verb}?${new URLSearchParams({ vm })}`, worksOn(vm)),
    );
  serveRoute(app, "acknowledgeAlert", ({ query: { kind, subject = "" } }) =>
    tellWhose(configuration, `/ha/acknowledge?${new URLSearchParams({ alert: kind, subject })}`, ({ alerts = [] }) =>
      alerts.some((alert) => alert.kind === kind && alert.subject === subject),
    ),
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
      method: "PUT",
      path: `/power/${encodeURIComponent(name)}`,
      patienceMs: powerPatienceMs,
      body: JSON.stringify(body),
    }),
  );
  serveRoute(app, "forgetPower", ({ parameters: { name } }) =>
    askFor(configuration, powerRemoved, { method: "DELETE", path: `/power/${encodeURIComponent(name)}` }),
  );
  return read;
}

/** @param vm its cell's whole name first; in its cell's own document a child's path begins with its own name */
const worksOn = (vm: string): ((report: HaReport) => boolean) => {
  const [cell = "", ...rest] = vm.split("/");
  const path = [cell.split(".", 1)[0], ...rest].join("/");
  return ({ items }) => items.some((item) => item.cell === cell && item.path === path);
};

/** The first one, which is there or was never; then further ones, each with cells of its own. */
async function managersOf(configuration: ProcessConfiguration): Promise<readonly PeerName[]> {
  const there = await listPeers(configuration, haManager);
  if (!there.includes(haManager))
    throw refused(404, "ha/none", "this installation has no HA Manager: VMs of a host that is lost wait for it");
  return [haManager, ...there.filter((peer) => peer.startsWith(`${haManager}.`))];
}

/** What each of them answers, at once; rejects with the refusal where there is only one. */
async function hear(
  configuration: ProcessConfiguration,
  managers: readonly PeerName[],
  asked: { readonly method: string; readonly path: string },
): Promise<readonly Heard[]> {
  return Promise.all(
    managers.map(async (manager) => {
      try {
        return { manager, said: await askFor(configuration, haReport, asked, manager) };
      } catch (error) {
        if (managers.length === 1 || !(error instanceof RefusedError)) throw error;
        return { manager, said: error.refusal.message };
      }
    }),
  );
}
/** Rejects where nobody has answered. */
const asOne = (heard: readonly Heard[]): HaReport => {
  const report = joined(heard);
  if (report === null) throw refused(503, "ha/unreachable", `no HA Manager answers: ${sentenceOf(heard)}`);
  return report;
};
const sentenceOf = (heard: readonly Heard[]): string =>
  heard.flatMap(({ manager, said }) => (typeof said === "string" ? [`${manager}: ${said}`] : [])).join("; ");

async function readAll(configuration: ProcessConfiguration): Promise<HaReport> {
  return asOne(await hear(configuration, await managersOf(configuration), { method: "GET", path: "/ha" }));
}

/** Who has not heard it goes on as before, so that is refused, with who has not; it may be said again. */
async function tellAll(configuration: ProcessConfiguration, path: string): Promise<HaReport> {
  const heard = await hear(configuration, await managersOf(configuration), { method: "POST", path });
  if (heard.some((each) => reportOf(each) === null))
    throw refused(503, "ha/unreachable", `not every HA Manager has heard it: ${sentenceOf(heard)}; say it again`);
  return asOne(heard);
}

/** Of several, those whose it is are told; where it is nobody's the first one says so, unless it may be that of one who does not answer. */
async function tellWhose(
  configuration: ProcessConfiguration,
  path: string,
  isOf: (report: HaReport) => boolean,
): Promise<HaReport> {
  const managers = await managersOf(configuration);
  const tell = (manager: PeerName): Promise<HaReport> =>
    askFor(configuration, haReport, { method: "POST", path }, manager);
  if (managers.length === 1) return tell(haManager);
  const heard = await hear(configuration, managers, { method: "GET", path: "/ha" });
  const whose = managers.filter((_manager, at) => {
    const report = heard[at] === undefined ? null : reportOf(heard[at]);
    return report !== null && isOf(report);
  });
  if (whose.length === 0) {
    if (heard.some((each) => reportOf(each) === null))
      throw refused(503, "ha/unreachable", `nobody who answers works on that, and not all do: ${sentenceOf(heard)}`);
    return tell(haManager);
  }
  for (const manager of whose) await tell(manager);
  return readAll(configuration);
}

/** What is asked, and how it answers; of a refusal what it says. */
async function askFor<T>(
  configuration: ProcessConfiguration,
  schema: Schema<T>,
  asked: { readonly method: string; readonly path: string; readonly body?: string; readonly patienceMs?: number },
  manager: PeerName | null = null,
): Promise<T> {
  const [first] = manager === null ? await managersOf(configuration) : [manager];
  const at = first ?? haManager;
  const { patienceMs: waits = patienceMs, ...order } = asked;
  const answer = await askPeer(configuration, at, {
    ...order,
    signal: AbortSignal.timeout(waits),
    ...(order.body === undefined ? {} : { headers: { "content-type": "application/json" } }),
  }).catch((error: Error) => {
    throw refused(503, "ha/unreachable", `the HA Manager does not answer: ${error.message}`);
  });
  const text = await answer.text();
  if (answer.status === 400 || answer.status === 404 || answer.status === 409) {
    const { error } = answerOr(() => answerAs(refusal, text, at), "ha/unreadable");
    throw refused(answer.status, error.code, error.message);
  }
  if (answer.status !== 200) throw refused(503, "ha/unreachable", "the HA Manager is starting");
  return answerOr(() => answerAs(schema, text, at), "ha/unreadable");
}
