import { counter, gauge, type Metric, sample } from "../../telemetry/metrics.ts";
import { authorityRefusals } from "./requests.ts";
import type { AuthorityState } from "./state.ts";

/** The authority's numbers. */
export function measure(state: AuthorityState): readonly Metric[] {
  const unspent = [...state.enrolments.keys()].filter((desire) => !state.spent.has(desire)).length;
  return [
    gauge("cells_identities", "Names that are enrolled and renewed.", [sample(state.identities.size)]),
    gauge("cells_enrolments_unspent", "Enrolments whose token nobody has shown.", [sample(unspent)]),
    counter(
      "cells_identity_refused_total",
      "Enrolments and renewals that were refused, by reason.",
      authorityRefusals.map((reason) => sample(state.refused.get(reason) ?? 0, { reason })),
    ),
  ];
}
