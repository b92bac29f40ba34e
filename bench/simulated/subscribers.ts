import { type FanOutOptions, measureRetraction, measureUpdates } from "../../simulator/distribution/figures.ts";
import type { Bench, BenchOptions, Figure } from "../bench.ts";
import { percentile, rangeOf } from "../measure.ts";

const seconds = (values: readonly number[]): readonly number[] => values.map((value) => value / 1000);

const run = async ({ quick, say }: BenchOptions): Promise<readonly Figure[]> => {
  const subscribers = quick ? 500 : 5000;
  const options: FanOutOptions = { subscribers, seed: 1, keys: 20, updates: quick ? 3 : 20, broken: 0.05, slow: 0.05 };
  const figures: Figure[] = [];
  const spread = (values: readonly number[]): readonly [number, number] => [
    percentile(values, 0.5),
    percentile(values, 1),
  ];
  for (const [where, broken] of [
    ["connections stand", 0],
    ["5 % of connections break", options.broken],
  ] as const) {
    say(`${subscribers} subscribers, ${options.updates} updates; ${where}`);
    const updates = measureUpdates({ ...options, broken });
    const delivered = seconds(updates.deliveredMs);
    figures.push(
      {
        what: `${where}: an update at ${subscribers} subscribers, p99`,
        unit: "s",
        atMost: 2,
        value: percentile(delivered, 0.99),
        range: spread(delivered),
        note: `${delivered.length} deliveries, ${updates.missed} missed, ${updates.broken} breaks; median to longest`,
      },
      {
        what: `${where}: CPU time of the source for an update, median`,
        unit: "ms",
        atMost: null,
        value: percentile(updates.sourceCpuMs, 0.5),
        range: rangeOf(updates.sourceCpuMs),
        note: "without TLS and the kernel",
      },
      {
        what: `${where}: the longest that digests hold up the source`,
        unit: "ms",
        range: null,
        atMost: null,
        value: updates.longestDigestMs,
        note: `CPU time of all in 30 s: ${updates.digestsCpuMs.toFixed(0)} ms without TLS and the kernel`,
      },
    );
  }
  for (const broken of [0, options.broken]) {
    const where = broken === 0 ? "connections stand" : "5 % of connections break";
    say(`the death of a host that ${subscribers} follow; ${where}`);
    const { withdrawnMs, missed, broken: breaks } = measureRetraction({ ...options, seed: 2, broken });
    const withdrawn = seconds(withdrawnMs);
    figures.push({
      what: `${where}: from the declared death to its retraction at all`,
      unit: "s",
      atMost: 3,
      value: percentile(withdrawn, 1),
      range: spread(withdrawn),
      note: `${withdrawn.length} subscribers, ${missed} missed, ${breaks} breaks; median to longest`,
    });
  }
  return figures;
};

export const subscribers: Bench = {
  title: "State distribution to 5,000 subscribers, simulated",
  method:
    "Real nodes of state distribution over a virtual clock: one source with 20 publications, of which one changes every 7 s, " +
    "and subscribers 0.2-2 ms away at 1 Gbit/s, a twentieth of them 50-150 ms away at 1 Mbit/s. Connections break within " +
    "half a second around the update, what is on its way is lost, and they are dialled again after 25-50 ms and two round " +
    "trips. The CPU time of the source is really measured, TLS and kernel taken as 50 µs a write, and passes on the " +
    "virtual clock too. Retraction: three members of the Presence group declare the death, 100 ms after one another.",
  run,
};
