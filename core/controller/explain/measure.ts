import { counter, gauge, type Metric, perPhase, sample } from "../../telemetry/metrics.ts";
import { type ControllerState, rulesOfPolicy, runs } from "../state.ts";

/** A cell in numbers. Elements are counted by type and phase; only VMs have series of their own. */
export function measureController(state: ControllerState): readonly Metric[] {
  const elements = Map.groupBy(state.elements.values(), ({ type }) => type);
  const vms = [...state.vms.values()].map((vm) => ({
    ...vm,
    labels: { path: state.elements.get(vm.uid)?.path ?? vm.uid },
  }));
  const stages = ["placing", "connecting", "running", "stopping"] as const;
  const runsNow = [...runs(state)];
  return [
    gauge("cells_model_version", "Version of the cell's model.", [sample(state.model.version)]),
    gauge("cells_policy_version", "Version of the cell's compiled rules.", [sample(state.policy.version)]),
    gauge("cells_policy_rules", "Compiled rules of the cell.", [
      sample(rulesOfPolicy(state.policy, state.policyParts)),
    ]),
    gauge(
      "cells_elements",
      "Elements of the cell by type and phase, those that are being deleted included.",
      [...elements].flatMap(([type, records]) =>
        perPhase(
          records.map(({ phase }) => phase ?? "waiting"),
          { type },
        ),
      ),
    ),
    gauge(
      "cells_vm_runs",
      "VM incarnations by stage.",
      stages.map((stage) => sample(runsNow.filter(({ run }) => run.stage === stage).length, { stage })),
    ),
    gauge("cells_vm_starts_waiting", "VMs that wait for a start of the cell's rate.", [
      sample(state.starts.queue.size),
    ]),
    counter(
      "cells_vm_incarnations_total",
      "Incarnations minted for a VM: its first start and every restart.",
      vms.map(({ incarnation, labels }) => sample(incarnation, labels)),
    ),
    gauge(
      "cells_vm_failures_in_a_row",
      "Ends of a VM in a row that nobody asked for.",
      vms.map(({ failures, labels }) => sample(failures, labels)),
    ),
  ];
}
