import { gauge, type Metric, sample } from "../../telemetry/metrics.ts";
import { steps } from "../item.ts";
import type { HaState } from "../state.ts";
import { alertKinds } from "./alert.ts";

export function measureHa({ wanted, active, ended, over, alerts, orderly }: HaState): readonly Metric[] {
  const items = [active, ended, orderly.active, orderly.ended].flatMap((each) => [...each.values()]);
  return [
    gauge("cells_ha_protected", "Incarnations of VMs that are looked after.", [sample(wanted.size)]),
    gauge(
      "cells_ha_items",
      "Items of work by their step; those that have ended are kept for a day.",
      steps.map((step) => sample(items.filter((item) => item.step === step).length, { step })),
    ),
    gauge(
      "cells_alerts",
      "Matters that wait for a person, by their kind.",
      alertKinds.map((kind) => sample([...alerts.values()].filter((alert) => alert.kind === kind).length, { kind })),
    ),
    gauge("cells_ha_over", "Incarnations that were said to be over, and whose next one has not been heard of.", [
      sample(over.size),
    ]),
  ];
}
