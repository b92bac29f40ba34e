import type { FastifyInstance } from "fastify";
import type { EventName } from "../../core/telemetry/event-names.ts";
import type { ServiceEvent } from "../../model/api.ts";
import type { ProcessConfiguration } from "../../runtime/installation.ts";
import { serviceHeading, streamEvents } from "../../runtime/observation/events.ts";
import { metricsMediaType } from "../../runtime/observation/metrics.ts";
import type { Observer } from "../../runtime/observation/observer.ts";
import { refused } from "../requests/refused.ts";
import { serveRoute } from "../requests/serve.ts";
import type { Connections } from "./connections.ts";
import { type EventFilter, isService, passes, passesUnnamed, readEventFilter } from "./event-merge.ts";
import { installationMetrics } from "./metrics.ts";
import { createSources } from "./sources.ts";
import { attach, createTimeline, type Past, type Timeline } from "./timeline.ts";

/** `GET /metrics` and `GET /events`: all services at one place, for the operator. */
export const registerObservation = (
  app: FastifyInstance,
  configuration: ProcessConfiguration,
  supervisorSocket: string | null,
  observer: Observer,
  connections: Connections,
): Pick<Timeline, "follow"> => {
  const sources = createSources(configuration, supervisorSocket, connections);
  const timeline = createTimeline(sources, observer.events);
  app.addHook("onClose", async () => timeline.stop());
  serveRoute(app, "readMetrics", async ({ query: { service: only = null } }, reply) => {
    const text = await installationMetrics({ sources, observer, self: configuration.name, supervisorSocket }, only);
    if (text === null) throw refused(404, "not-found", `there is no service "${only}"; see \`cells status\``);
    reply.type(metricsMediaType).send(text);
    return reply;
  });
  serveRoute(app, "followServices", async ({ request }, reply) => {
    const filter = readEventFilter(new URLSearchParams(request.url.split("?")[1]));
    if (!filter.ok) throw refused(400, "bad-request", filter.error);
    const wanted = (event: ServiceEvent): boolean => passes(event, filter.value);
    const first = (event: ServiceEvent): boolean => passesUnnamed(event, filter.value);
    const attached = filter.value.follow ? await attach(timeline, first) : null;
    const told = attached?.past ?? (await timeline.past(first));
    const known = filter.value.past ? told.events.filter(wanted) : [];
    const past = [...known, ...whatIsMissing(told, filter.value, configuration.name)];
    reply.hijack();
    if (attached !== null && reply.raw.destroyed) {
      attached.leave();
      return;
    }
    const follow = (listener: (event: ServiceEvent) => void): (() => void) =>
      attached?.listen((event) => {
        if (wanted(event)) listener(event);
      }) ?? (() => undefined);
    streamEvents(reply.raw, { past, heading: serviceHeading, ...(attached === null ? {} : { follow }) });
  });
  return timeline;
};

/** A line at the end of a past that is not whole, so that nobody takes silence for peace. */
const whatIsMissing = ({ silent, leftOut }: Past, { service }: EventFilter, self: string): readonly ServiceEvent[] => {
  const asked = silent.filter((name) => service === null || isService(name, service));
  if (asked.length === 0 && leftOut === 0) return [];
  const time = new Date().toISOString();
  const event = "timeline/incomplete" satisfies EventName;
  const fields = { silent: asked.join(", "), leftOut };
  return [{ id: `${time}-1`, time, service: self, event, cell: null, path: null, fields }];
};
