import type { Verdict } from "../../core/presence/swim/types.ts";
import { counter, gauge, type Metric, sample } from "../../core/telemetry/metrics.ts";
import type { PresenceMember } from "./member.ts";

const verdicts: readonly Verdict[] = ["alive", "suspect", "failed", "dead", "left"];
const asCounted = (told: Verdict): Verdict => (told === "doubted" ? "suspect" : told);

/** A host's part in the membership protocol: what it thinks of the others, and what it sends and takes for that. */
export const measureMember = ({ state, datagrams, refusals }: PresenceMember): readonly Metric[] => {
  const others = [...state.members.values()].filter((member) => member !== state.self);
  return [
    gauge(
      "cells_swim_members",
      "Other hosts by what this one thinks of them.",
      verdicts.map((verdict) => sample(others.filter(({ told }) => asCounted(told) === verdict).length, { verdict })),
    ),
    gauge("cells_swim_doubts", "Hosts that do not answer this one at present, of which nobody was told yet.", [
      sample(state.doubts.size),
    ]),
    gauge("cells_swim_local_health", "How far this host doubts itself: 0 not at all.", [sample(state.localHealth)]),
    gauge("cells_swim_generation", "The life that this host is in, and how often it refuted a suspicion in it.", [
      sample(state.self.generation, { of: "generation" }),
      sample(state.self.incarnation, { of: "incarnation" }),
    ]),
    counter("cells_swim_datagrams_total", "Datagrams of the membership protocol.", [
      sample(datagrams.sent, { direction: "sent" }),
      sample(datagrams.received, { direction: "received" }),
    ]),
    counter(
      "cells_swim_refused_total",
      "Datagrams that were no packet of this installation, by what was wrong with them.",
      [...refusals, ["no host's address", datagrams.strangers] as const].map(([fault, count]) =>
        sample(count, { fault }),
      ),
    ),
  ];
};
