import type { FastifyInstance } from "fastify";
import type { ServiceEvent } from "../../model/api.ts";
import type { ProcessConfiguration } from "../../runtime/installation.ts";
import { serviceHeading, streamEvents } from "../../runtime/observation/events.ts";
import { metricsMediaType } from "../../runtime/observation/metrics.ts";
import type { Observer } from "../../runtime/observation/observer.ts";
import { refused } from "../edge/refused.ts";
import { serveRoute } from "../edge/serve.ts";
import { passes, readEventFilter } from "./event-merge.ts";
import { installationMetrics } from "./metrics.ts";
import { createSources } from "./sources.ts";
import { attach, createTimeline } from "./timeline.ts";

/** `GET /metrics` and `GET /events`: all services at one place, for the operator. */
export const registerObservation = (
  app: FastifyInstance,
  configuration: ProcessConfiguration,
  supervisorSocket: string | null,
  observer: Observer,
): void => {
  const sources = createSources(configuration, supervisorSocket);
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
    const attached = filter.value.follow ? await attach(timeline) : null;
    const past = (attached?.past ?? (await timeline.past())).filter(wanted);
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
};
