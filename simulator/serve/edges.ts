import { randomBytes } from "node:crypto";
import { kindOf, type ServiceKind } from "../../core/documents/permissions.ts";
import type { EventName } from "../../core/telemetry/event-names.ts";
import type { TenancyRequest, TenancyResponse } from "../../core/tenancy/asks.ts";
import type { PacketCheck, PacketQuestion } from "../../host/drivers/network/driver.ts";
import { createHostObservation } from "../../host/service/observation.ts";
import { createHostSessions } from "../../host/sessions/sessions.ts";
import type { HostName, Ipv4, PeerName } from "../../model/cell/identifiers.ts";
import type { Json } from "../../model/json/json.ts";
import { openEvents } from "../../runtime/controller/events.ts";
import { createRoutes, createUpgrades } from "../../runtime/controller/routes.ts";
import { createSessions } from "../../runtime/controller/sessions.ts";
import { haReleases } from "../../runtime/ha/release.ts";
import { readBody, sendJson, sendRefusal } from "../../runtime/http/http.ts";
import type { PeerUpgradeHandler } from "../../runtime/http/https.ts";
import type { PeerHandler } from "../../runtime/http/peer-handler.ts";
import type { ProcessConfiguration } from "../../runtime/installation.ts";
import { createObserver, observed } from "../../runtime/observation/observer.ts";
import {
  answering,
  capacityQuestion,
  haQuestion,
  hostsQuestion,
  offersQuestion,
  type Question,
  rebalanceQuestion,
  roomsQuestion,
  trialQuestion,
} from "../../runtime/process/asked.ts";
import type { RunningService } from "../../runtime/process/process.ts";
import { tenancyHandler } from "../../runtime/tenancy/edge.ts";
import { Keys } from "../../runtime/tenancy/keys.ts";
import { Notices } from "../../runtime/tenancy/notices.ts";
import { Oidc } from "../../runtime/tenancy/oidc.ts";
import { SecondFactor } from "../../runtime/tenancy/second-factor.ts";
import { Tunnels } from "../../runtime/tenancy/tunnels.ts";
import { admits, policyOf } from "../world/dataplane.ts";
import { hostOfPeer } from "../world/host-presence.ts";
import type { AnyProcess, Installation } from "../world/installation.ts";
import { guestsAt, type Screens } from "./guests.ts";
import { imagesAt, serverOf } from "./images.ts";

/**
 * What the processes of a simulated installation answer to the gateway: the same handlers as those of real ones, over services whose time,
 * disks and network are virtual. A process that does not run answers nobody.
 */
export interface Edge {
  readonly handler: PeerHandler;
  /** Of those that open sessions. */
  readonly upgrade?: PeerUpgradeHandler;
  /** A line of the process' log. */
  record(event: string, fields: { readonly [key: string]: Json }): void;
  close(): Promise<void>;
}

const longestQuestion = 4096;
class Down extends Error {}
const requestOf =
  (process: AnyProcess) =>
  (request: Json): Promise<Json> =>
    process.request(request) ?? Promise.reject(new Down(`${process.name} does not run`));

const questions: Readonly<Record<string, readonly Question[]>> = {
  placer: [offersQuestion, roomsQuestion, capacityQuestion, rebalanceQuestion, trialQuestion],
  "storage-manager": [offersQuestion],
  "address-manager": [offersQuestion],
  presence: [hostsQuestion],
  "ha-manager": [haQuestion],
};

export function edgeOf(
  installation: Installation,
  process: AnyProcess,
  configuration: ProcessConfiguration,
  screens: Screens,
): Edge {
  const observer = createObserver(process.name, () => undefined);
  const { handler, upgrade, record, close } = handlerOf(installation, process, configuration, screens);
  const answer = observed(observer, handler);
  return {
    ...(upgrade === undefined
      ? {}
      : { upgrade: async (asked) => (process.isRunning ? upgrade(asked) : void asked.socket.destroy()) }),
    handler: async (incoming, response) => {
      if (!process.isRunning) {
        response.destroy();
        return;
      }
      try {
        await answer(incoming, response);
      } catch (error) {
        if (!(error instanceof Down)) throw error;
        response.destroy();
      }
    },
    record: (event, fields) => {
      const line = { event: event as EventName, fields, wallMs: Date.now() };
      observer.events.record(line);
      record(line);
    },
    close: async () => close(),
  };
}

interface Handled {
  readonly handler: PeerHandler;
  readonly upgrade?: PeerUpgradeHandler;
  readonly record: ReturnType<typeof openEvents>["record"];
  readonly close: () => void | Promise<void>;
}
function handlerOf(
  installation: Installation,
  process: AnyProcess,
  configuration: ProcessConfiguration,
  screens: Screens,
): Handled {
  const none = { record: () => undefined, close: () => undefined };
  const request = requestOf(process);
  const { controller } = configuration;
  if (controller !== undefined) {
    const events = openEvents(configuration.directory, controller.cell);
    const sessions = createSessions({ configuration, cell: controller.cell, request });
    return {
      handler: createRoutes({ configuration, controller, events, request }, sessions),
      upgrade: createUpgrades(controller.cell, sessions),
      record: (line) => events.record(line),
      close: () => events.close(),
    };
  }
  const kind = kindOf(process.name) as ServiceKind | null;
  if (kind === "host") {
    const guests = guestsAt(installation, hostOfPeer(process.name), screens);
    const { upgrade, close } = createHostSessions({ hypervisor: guests, request });
    return { ...none, handler: hostHandler(installation, process.name, request), upgrade, close: () => void close() };
  }
  if (kind === "agent") {
    const { answer, close } = imagesAt(installation, process.name, configuration.directory);
    return { ...none, handler: agentHandler(installation, process.name, answer), close };
  }
  if (kind === "tenancy") return { ...none, handler: tenancyEdge(request, configuration) };
  const asked = { service: { request } as unknown as RunningService };
  const further = kind === "ha-manager" ? haReleases : undefined;
  return { ...none, handler: answering(asked, kind ?? "placer", questions[kind ?? ""] ?? [], further) };
}

/** Its door is a real one, and its keys are of this process: nothing is kept. */
function tenancyEdge(request: (request: Json) => Promise<Json>, { tenancy }: ProcessConfiguration): PeerHandler {
  const sealKey = randomBytes(32);
  const secrets = {
    keys: new Keys(sealKey),
    factor: new SecondFactor(sealKey),
    oidc: new Oidc(sealKey, new Tunnels()),
    notices: new Notices(sealKey),
  };
  const ask = async (asked: TenancyRequest): Promise<TenancyResponse> =>
    (await request(asked as unknown as Json)) as unknown as TenancyResponse;
  return tenancyHandler(ask, secrets, tenancy?.credentialHashes ?? []);
}

/** What its maps would do with a packet, as far as rules decide. */
function examined(installation: Installation, host: HostName, question: PacketQuestion): readonly PacketCheck[] {
  const { side, source, destination, protocol, port } = question;
  const { endpoints, locations, policies } = installation.truth.dataplane(host);
  const own = endpoints.get(side === "sender" ? source : destination);
  if (own === undefined) return [{ check: "interface", passes: false, detail: `${host} has no such interface` }];
  const identified = (address: Ipv4) => endpoints.get(address)?.desired ?? locations.get(address);
  const [from, to] = [identified(source), identified(destination)];
  const policy = policyOf(policies, own.cellNumber);
  const passes = from !== undefined && to !== undefined && admits(policy, from, to, protocol, port ?? 0);
  return [{ check: "rule", passes, detail: passes ? "a rule of its cell admits it" : "no rule of its cell admits it" }];
}

function hostHandler(
  installation: Installation,
  name: PeerName,
  request: (request: Json) => Promise<Json>,
): PeerHandler {
  const { status, counters } = createHostObservation({
    request,
    // A simulated machine uses no processor: what it has is shown, and no load.
    usages: async () => [],
    ownCpuSeconds: () => 0,
    nowSeconds: () => performance.now() / 1000,
    network: {
      counters: async () => installation.truth.dataplane(hostOfPeer(name)).counts.read(),
      announced: async () => null,
    },
  });
  return async ({ method, url, body }, response) => {
    if (method === "GET" && url === "/status") sendJson(response, 200, await status());
    else if (method === "GET" && url === "/counters") sendJson(response, 200, await counters());
    else if (method === "POST" && url === "/examine") {
      const text = await readBody(body, longestQuestion);
      const question = JSON.parse(text.ok ? text.value : "{}") as PacketQuestion;
      sendJson(response, 200, examined(installation, hostOfPeer(name), question));
    } else sendRefusal(response, 404, "not-found", `a simulated host has nothing to say to ${method} of ${url}`);
  };
}

function agentHandler(
  installation: Installation,
  name: PeerName,
  ofImages: ReturnType<typeof imagesAt>["answer"],
): PeerHandler {
  return async (asked, response) => {
    if (await ofImages(asked, response)) return;
    const { method, url } = asked;
    const server = serverOf(installation, name);
    if (server === undefined || method !== "GET" || url !== "/status") {
      sendRefusal(response, 404, "not-found", `a simulated storage server has nothing to say to ${method} of ${url}`);
      return;
    }
    const { files, usedMiB } = server.use;
    sendJson(response, 200, {
      server: server.server,
      address: server.address,
      bin: { files: 0, usedMiB: 0 },
      totalMiB: server.totalMiB,
      freeMiB: server.totalMiB - usedMiB,
      volumes: files,
    });
  };
}
