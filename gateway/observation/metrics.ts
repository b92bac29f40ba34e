import { counter, gauge, type Metric, sample } from "../../core/telemetry/metrics.ts";
import type { InstallationStatus } from "../../model/api.ts";
import { encodeMetrics, withLabels } from "../../runtime/observation/metrics.ts";
import { parseMetrics } from "../../runtime/observation/metrics-text.ts";
import type { Observer } from "../../runtime/observation/observer.ts";
import { askSupervisor } from "../cells/supervisor.ts";
import { isService } from "./event-merge.ts";
import type { Sources } from "./sources.ts";

export interface MetricsOptions {
  readonly sources: Sources;
  /** The gateway's own. */
  readonly observer: Observer;
  readonly self: string;
  readonly supervisorSocket: string | null;
}

/** A scrape by Prometheus waits 10 s at most by default; one service must not hold up the others' numbers. */
const processTimeoutMs = 2_000;
/** Of services in VMs, whose emulated processors may have other things to do. */
const vmTimeoutMs = 8_000;

/**
 * One exposition over all services, each sample with the label `service`, asked for in parallel. `up` is 0 for a service
 * that did not answer in time or not with a valid exposition. Null when there is no service of that name.
 */
export const installationMetrics = async (options: MetricsOptions, only: string | null): Promise<string | null> => {
  const { sources, observer, self } = options;
  const wanted = (service: string): boolean => only === null || isService(service, only);
  const services = (await sources.services()).filter(wanted);
  if (services.length === 0 && !wanted(self)) return null;
  const timeoutMs = options.supervisorSocket === null ? vmTimeoutMs : processTimeoutMs;
  const parts = services.map(async (service): Promise<readonly Metric[]> => {
    const metrics = await scrape(sources, service, timeoutMs);
    return [up(service, metrics !== null), ...withLabels(metrics ?? [], { service })];
  });
  if (wanted(self)) {
    parts.push(
      observer.metrics().then((metrics) => [up(self, true), ...withLabels(metrics, { service: self })]),
      supervised(options.supervisorSocket, wanted),
    );
  } else parts.push(supervised(options.supervisorSocket, wanted));
  return encodeMetrics((await Promise.all(parts)).flat());
};

const up = (service: string, answers: boolean): Metric =>
  gauge("up", "1 for a service that answered with its metrics.", [sample(answers ? 1 : 0, { service })]);

/** Null when it did not answer. */
const scrape = async (
  sources: Sources,
  service: Parameters<Sources["metrics"]>[0],
  timeoutMs: number,
): Promise<readonly Metric[] | null> => {
  try {
    const read = parseMetrics(await sources.metrics(service, AbortSignal.timeout(timeoutMs)));
    return read.ok ? read.value : null;
  } catch {
    return null;
  }
};

/** What only the supervisor knows: a process cannot count its own restarts. */
const supervised = async (socket: string | null, wanted: (service: string) => boolean): Promise<readonly Metric[]> => {
  if (socket === null) return [];
  try {
    const { services } = (await askSupervisor(socket, "GET", "/status")) as Pick<InstallationStatus, "services">;
    const members = services
      .map((service) => ({ ...service, labels: { service: service.peer ?? service.name } }))
      .filter(({ labels }) => wanted(labels.service));
    return [
      counter(
        "cells_service_restarts_total",
        "Times that the supervisor started a service's process again.",
        members.map(({ restarts, labels }) => sample(restarts, labels)),
      ),
      gauge(
        "cells_service_running",
        "1 for a service whose process is there.",
        members.map(({ running, labels }) => sample(running ? 1 : 0, labels)),
      ),
    ];
  } catch {
    return [];
  }
};
