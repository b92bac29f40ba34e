import { counter, gauge, type Metric, mebibyte, perPhase, sample } from "../../telemetry/metrics.ts";
import type { ManagerState } from "./state.ts";

/** Where volumes lie and who writes them, as the Storage Manager knows it. */
export function measureStorageManager(state: ManagerState): readonly Metric[] {
  const leases = [...state.leases.values()];
  const held = leases.filter(({ holder }) => holder !== null).length;
  const agents = [...state.agents.values()].map((agent) => ({ ...agent, labels: { agent: agent.name } }));
  const volumesOf = Map.groupBy(state.volumes.values(), ({ agent }) => agent);
  return [
    gauge(
      "cells_volumes",
      "Volumes by storage agent and phase, as their agents say.",
      agents.flatMap(({ volumes, labels }) =>
        perPhase(
          [...volumes.values()].map(({ phase }) => phase),
          labels,
        ),
      ),
    ),
    gauge(
      "cells_volumes_placed",
      "Volumes that have a place at an agent.",
      agents.map(({ name, labels }) => sample(volumesOf.get(name)?.length ?? 0, labels)),
    ),
    gauge("cells_volumes_unplaced", "Volumes that no server can hold now.", [sample(state.unplaced.size)]),
    gauge("cells_leases", "Writable leases by what was asked for last.", [
      sample(held, { state: "held" }),
      sample(leases.length - held, { state: "fenced" }),
    ]),
    counter("cells_lease_epochs_total", "Epochs that were asked for, grants and fences, of volumes that exist.", [
      sample(leases.reduce((sum, { epoch }) => sum + epoch, 0)),
    ]),
    gauge(
      "cells_connections",
      "Connections of VMs to volumes that are granted.",
      (["rw", "ro"] as const).map((mode) =>
        sample([...state.connections.values()].filter((connection) => connection.mode === mode).length, { mode }),
      ),
    ),
    gauge(
      "cells_agent_reachable",
      "1 for a storage agent that is in step.",
      agents.map(({ reachable, labels }) => sample(reachable === true ? 1 : 0, labels)),
    ),
    gauge(
      "cells_agent_provisioned_bytes",
      "Sum of the sizes of the volumes placed at an agent; files are sparse, so it may exceed its space.",
      agents.map(({ provisionedMiB, labels }) => sample(provisionedMiB * mebibyte, labels)),
    ),
  ];
}
