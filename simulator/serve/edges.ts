import { kindOf, type ServiceKind } from "../../core/documents/permissions.ts";
import type { EventName } from "../../core/telemetry/event-names.ts";
import { createHostObservation } from "../../host/service/observation.ts";
import type { PeerName } from "../../model/cell/identifiers.ts";
import type { Json } from "../../model/json/json.ts";
import { openEvents } from "../../runtime/controller/events.ts";
import { createRoutes } from "../../runtime/controller/routes.ts";
import { haReleases } from "../../runtime/ha/release.ts";
import { sendJson, sendRefusal } from "../../runtime/http/http.ts";
import type { PeerHandler } from "../../runtime/http/peer-handler.ts";
import type { ProcessConfiguration } from "../../runtime/installation.ts";
import { createObserver, observed } from "../../runtime/observation/observer.ts";
import {
  answering,
  haQuestion,
  hostsQuestion,
  offersQuestion,
  type Question,
  roomsQuestion,
} from "../../runtime/process/asked.ts";
import type { RunningService } from "../../runtime/process/process.ts";
import type { AnyProcess, Installation } from "../world/installation.ts";

/**
 * What the processes of a simulated installation answer to the gateway: the same handlers as those of real ones, over services whose time,
 * disks and network are virtual. A process that does not run answers nobody.
 */
export interface Edge {
  readonly handler: PeerHandler;
  /** A line of the process' log. */
  record(event: string, fields: { readonly [key: string]: Json }): void;
  close(): void;
}

class Down extends Error {}
const requestOf =
  (process: AnyProcess) =>
  (request: Json): Promise<Json> =>
    process.request(request) ?? Promise.reject(new Down(`${process.name} does not run`));

const questions: Readonly<Record<string, readonly Question[]>> = {
  placer: [offersQuestion, roomsQuestion],
  "storage-manager": [offersQuestion],
  "address-manager": [offersQuestion],
  presence: [hostsQuestion],
  "ha-manager": [haQuestion],
};

export function edgeOf(installation: Installation, process: AnyProcess, configuration: ProcessConfiguration): Edge {
  const observer = createObserver(process.name, () => undefined);
  const { handler, record, close } = handlerOf(installation, process, configuration);
  const answer = observed(observer, handler);
  return {
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
    close,
  };
}

interface Handled {
  readonly handler: PeerHandler;
  readonly record: ReturnType<typeof openEvents>["record"];
  readonly close: () => void;
}
function handlerOf(installation: Installation, process: AnyProcess, configuration: ProcessConfiguration): Handled {
  const none = { record: () => undefined, close: () => undefined };
  const request = requestOf(process);
  const { controller } = configuration;
  if (controller !== undefined) {
    const events = openEvents(configuration.directory, controller.cell);
    return {
      handler: createRoutes({ configuration, controller, events, request }),
      record: (line) => events.record(line),
      close: () => events.close(),
    };
  }
  const kind = kindOf(process.name) as ServiceKind | null;
  if (kind === "host") return { ...none, handler: hostHandler(request) };
  if (kind === "agent") return { ...none, handler: agentHandler(installation, process.name) };
  const asked = { service: { request } as unknown as RunningService };
  const further = kind === "ha-manager" ? haReleases : undefined;
  return { ...none, handler: answering(asked, kind ?? "placer", questions[kind ?? ""] ?? [], further) };
}

function hostHandler(request: (request: Json) => Promise<Json>): PeerHandler {
  const { status } = createHostObservation({
    request,
    // A simulated machine uses no processor: what it has is shown, and no load.
    usages: async () => [],
    ownCpuSeconds: () => 0,
    nowSeconds: () => performance.now() / 1000,
    network: { counters: async () => ({ interfaces: [], rules: [] }), announced: async () => null },
  });
  return async ({ method, url }, response) => {
    if (method === "GET" && url === "/status") sendJson(response, 200, await status());
    else sendRefusal(response, 404, "not-found", `a simulated host has nothing to say to ${method} of ${url}`);
  };
}

function agentHandler(installation: Installation, name: PeerName): PeerHandler {
  return async ({ method, url }, response) => {
    const server = [...installation.servers.values()].find((each) => name === `agent.${each.server}`);
    if (server === undefined || method !== "GET" || url !== "/status") {
      sendRefusal(response, 404, "not-found", `a simulated storage server has nothing to say to ${method} of ${url}`);
      return;
    }
    const { files, usedMiB } = server.use;
    sendJson(response, 200, {
      ...{ server: server.server, address: server.address, bin: { files: 0, usedMiB: 0 } },
      ...{ totalMiB: server.totalMiB, freeMiB: server.totalMiB - usedMiB, volumes: files },
    });
  };
}
