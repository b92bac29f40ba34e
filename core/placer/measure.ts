import { gauge, type Metric, mebibyte, sample } from "../telemetry/metrics.ts";
import { cpusFor, memoryFor, noUse, ratiosAt, takenMiB } from "./candidate.ts";
import type { PlacerState } from "./state.ts";

/** Room on every host, and who has no place. */
export function measurePlacer(state: PlacerState): readonly Metric[] {
  const hosts = [...state.hosts.values()].map(({ host, reachable, actual, pooled }) => {
    const use = state.usage.get(host) ?? noUse();
    const own = ratiosAt(pooled, state.ratios);
    const memory = actual === null ? 0 : memoryFor(actual, own);
    const cpus = actual === null ? 0 : cpusFor(actual, own);
    const taken = actual === null ? use.memoryMiB : takenMiB(actual, use);
    return { labels: { host }, reachable, use, memory, taken, cpus };
  });
  const free = hosts.map(({ memory, taken, labels }) => sample((memory - taken) * mebibyte, labels));
  return [
    gauge(
      "cells_placer_host_reachable",
      "1 for a host that may get VMs.",
      hosts.map(({ reachable, labels }) => sample(reachable ? 1 : 0, labels)),
    ),
    gauge(
      "cells_placer_host_memory_bytes",
      "Memory that VMs may have on a host, taken or not.",
      hosts.map(({ memory, labels }) => sample(memory * mebibyte, labels)),
    ),
    gauge("cells_placer_host_free_memory_bytes", "Of that, what no VM has a place in.", free),
    gauge(
      "cells_placer_host_free_cpus",
      "Virtual CPUs that may still be promised on a host.",
      hosts.map(({ cpus, use, labels }) => sample(cpus - use.cpus, labels)),
    ),
    gauge(
      "cells_placer_placements",
      "VM incarnations that have a place, by host.",
      hosts.map(({ use, labels }) =>
        sample([...use.reservations.values()].filter(({ off }) => off !== true).length, labels),
      ),
    ),
    gauge("cells_placer_waiting", "VM incarnations that no host can hold now.", [sample(state.waiting.size)]),
  ];
}
