import { counter, gauge, type Metric, mebibyte, sample } from "../../telemetry/metrics.ts";
import type { AgentState } from "./records.ts";

/** What a storage agent holds and serves. */
export function measureAgent(state: AgentState): readonly Metric[] {
  const server = JSON.parse(state.published.get("server") ?? "null") as { totalMiB: number; freeMiB: number } | null;
  const volumes = [...state.volumes.values()];
  const leases = [...state.leases.values()];
  const writable = leases.filter(({ access, holder }) => access !== null && holder !== null).length;
  const readable = [...state.origins.values()].filter(({ access }) => access !== null).length;
  const binned = [...(state.bin?.values() ?? [])];
  const used = [...state.usedMiB.values()].reduce((sum, each) => sum + each, 0);
  const space =
    server === null
      ? []
      : [
          sample(server.totalMiB * mebibyte, { space: "total" }),
          sample(server.freeMiB * mebibyte, { space: "free" }),
          sample(used * mebibyte, { space: "volumes" }),
          sample(binned.reduce((sum, { usedMiB }) => sum + usedMiB, 0) * mebibyte, { space: "bin" }),
        ];
  return [
    gauge("cells_agent_space_bytes", "Space of the server's file system, and what volumes take of it.", space),
    gauge("cells_agent_volumes", "Volumes by what their file is.", [
      sample(volumes.filter(({ sizeMiB, removing }) => sizeMiB !== null && !removing).length, { file: "there" }),
      sample(volumes.filter(({ sizeMiB, removing }) => sizeMiB === null && !removing).length, { file: "coming" }),
      sample(volumes.filter(({ removing }) => removing).length, { file: "going" }),
    ]),
    gauge("cells_agent_bin_files", "Files of deleted volumes that are kept in the bin.", [sample(binned.length)]),
    gauge("cells_agent_exports", "Exports that are to run, by what they allow.", [
      sample(writable, { mode: "rw" }),
      sample(readable, { mode: "ro" }),
    ]),
    counter("cells_agent_epochs_granted_total", "Sum of the lease epochs of all volumes that this agent ever had.", [
      sample(leases.reduce((sum, { epoch }) => sum + epoch, 0)),
    ]),
    gauge("cells_agent_failures", "Volumes whose file or export could not be made; work on them is repeated.", [
      sample(state.failures.size),
    ]),
  ];
}
