import type { ServerResponse } from "node:http";
import { pino } from "pino";
import type { LogLine } from "../../core/distribution/node/types.ts";
import { mayAsk } from "../../core/documents/permissions.ts";
import type { EventName } from "../../core/telemetry/event-names.ts";
import type { Metric } from "../../core/telemetry/metrics.ts";
import type { PeerName } from "../../model/cell/identifiers.ts";
import { readQuery } from "../../model/contract/request.ts";
import type { PeerHandler, PeerRequest } from "../http/peer-handler.ts";
import { breakAtFailure, currentLife } from "../life/role-life.ts";
import { type AuditAccess, recordsPath } from "./asked-by.ts";
import { createEventRing, type EventRing, type LogEvent, serviceHeading, streamEvents } from "./events.ts";
import { answerLeftovers, type LeftoversAccess, leftoversPath } from "./leftovers.ts";
import { encodeMetrics, metricsMediaType, processMetrics } from "./metrics.ts";

/**
 * What one process lets others see of it: its lines of log, its newest events, its numbers. There is one per process, and
 * it outlives a service that is started again within it.
 */
export interface Observer {
  /** One change of state: a line of log and an event. Names come from `core/telemetry/event-names.ts`. */
  log(event: EventName, fields: LogLine["fields"]): void;
  record(event: LogEvent): void;
  readonly events: EventRing;
  /** What an operator may see and say of the service's clients; null: it does not run yet. */
  leftovers: LeftoversAccess | null;
  /** Who had something done here; null: it does not run yet. */
  audit: AuditAccess | null;
  /** Asked at every look at the numbers. Returns how to take it back. */
  measures(collect: () => readonly Metric[] | Promise<readonly Metric[]>): () => void;
  /** Gives a sealed copy of what the process keeps (`backup/serve.ts`); null: it keeps nothing, or has not started yet. */
  backup: PeerHandler | null;
  /** Every number that this process has. A collector that fails leaves its part out. */
  metrics(): Promise<readonly Metric[]>;
}

// A second line of defence: events are made without secrets in the first place.
const secretFields = ["pskHex", "pskIdentity", "exportName", "credential", "secret", "token", "password"];

/** Lines are JSON: `{"level": "info", "time": "<ISO 8601>", "service": …, "event": …, "fields": {…}}`. */
type Line = { readonly service: string } & LogEvent;
export const lineWriterTo = (destination: { write(line: string): void }): ((line: Line) => void) => {
  const log = pino(
    {
      base: null,
      timestamp: false,
      formatters: { level: (level) => ({ level }) },
      redact: secretFields.flatMap((field) => [`fields.${field}`, `fields.*.${field}`]),
    },
    destination,
  );
  return ({ service, event, fields, wallMs }) =>
    log.info({ time: new Date(wallMs).toISOString(), service, event, fields });
};

/** @param write where lines go; standard output when it is left out */
export const createObserver = (
  service: string,
  write = lineWriterTo(pino.destination({ dest: 1, sync: true })),
): Observer => {
  const events = createEventRing(service, Date.now().toString(36));
  const collectors = new Set<() => readonly Metric[] | Promise<readonly Metric[]>>();
  const record = (event: LogEvent): void => {
    write({ service, ...event });
    events.record(event);
  };
  return {
    leftovers: null,
    audit: null,
    events,
    record,
    backup: null,
    log: (event, fields) => record({ event, fields, wallMs: Date.now() }),
    measures: (collect) => {
      collectors.add(collect);
      return () => collectors.delete(collect);
    },
    metrics: async () => {
      const parts = await Promise.all(
        [processMetrics, ...collectors].map(async (collect) => {
          try {
            return await collect();
          } catch {
            return [];
          }
        }),
      );
      return parts.flat();
    },
  };
};

/**
 * The log of a part of a process: a name without its area gets this one. The names are in the table all the same, which
 * `core/telemetry/event-names.test.ts` sees to.
 */
export const logOf =
  (observer: Observer, area: string) =>
  (event: string, fields: LogLine["fields"]): void =>
    observer.log((event.includes("/") ? event : `${area}/${event}`) as EventName, fields);

/** Tells of an end by an error before Node prints its stack: one line of log among the others. A role tells of its own. */
export const logFatalErrors = (observer: Observer): void => {
  const tell = (error: Error): void => observer.log("process/failed", { why: error.message });
  if (currentLife() === null) process.on("uncaughtExceptionMonitor", tell);
  else breakAtFailure(tell);
};

/** Peers that may look: the gateway, which asks for people and for a Prometheus. The same at every kind of service. */
const mayObserve = (peer: PeerName, path: string): boolean => mayAsk("controller", peer, "GET", path);

/**
 * Adds `GET /metrics`, `GET /events[?follow=true]` and `/orphans` (`leftovers.ts`) to what a process answers over HTTPS, for
 * the gateway alone, and `POST /backup`. Everything else goes to `handler`; without one it is refused.
 */
export const observed =
  (observer: Observer, handler: PeerHandler = notFound): PeerHandler =>
  async (request, response) => {
    const [path, query = ""] = request.url.split("?", 2);
    if (path === "/backup") {
      if (observer.backup !== null) return observer.backup(request, response);
      return refuse(response, 503, "busy", "this process keeps nothing that could be copied, or is starting");
    }
    if (path === leftoversPath) {
      await answerLeftovers(observer.leftovers, request, response);
      return;
    }
    if (path === recordsPath) {
      await answerRecords(observer.audit, request, response);
      return;
    }
    if (request.method !== "GET" || (path !== "/metrics" && path !== "/events")) {
      await handler(request, response);
      return;
    }
    if (!mayObserve(request.peer, path)) {
      refuse(response, 403, "forbidden", `only the gateway may look into a service, and this is "${request.peer}"`);
      return;
    }
    if (path === "/metrics") {
      const text = encodeMetrics(await observer.metrics());
      response.writeHead(200, { "content-type": metricsMediaType });
      response.end(text);
      return;
    }
    const follows = new URLSearchParams(query).get("follow") === "true";
    const { events } = observer;
    streamEvents(response, {
      past: events.past(),
      heading: serviceHeading,
      ...(follows ? { follow: events.subscribe } : {}),
    });
  };

/** `GET /records`: who had something done here, for the gateway alone, which asks for the operator. */
async function answerRecords(
  access: AuditAccess | null,
  { peer, method, url }: PeerRequest,
  response: ServerResponse,
): Promise<void> {
  if (!mayObserve(peer, recordsPath))
    return refuse(response, 403, "forbidden", `only the gateway may look into a service, and this is "${peer}"`);
  const query = readQuery("readCellAudit", url);
  if (!query.ok) return refuse(response, 400, query.error.code, query.error.message);
  const part = method === "GET" ? ((await access?.read(query.value)) ?? null) : null;
  if (part === null) return refuse(response, 404, "not-found", "no records are kept beside this service");
  response.writeHead(200, { "content-type": "application/json" });
  response.end(JSON.stringify(part));
}

const notFound: PeerHandler = ({ method, url }, response) =>
  refuse(response, 404, "not-found", `there is no ${method} of ${url} here: GET /metrics and GET /events are answered`);

function refuse(response: ServerResponse, status: number, code: string, message: string): void {
  response.writeHead(status, { "content-type": "application/json" });
  response.end(JSON.stringify({ error: { code, message } }));
}
