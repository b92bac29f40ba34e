import { fuzz } from "../../host/drivers/network/diverter/fuzz/run.testing.ts";
import type { Bench, BenchOptions, Figure } from "../bench.ts";

const [few, many] = [20_000, 10_000_000];
/** In the tests worlds are smaller and change more often, and most of the time is the kernel's wait for each change. */
const [episode, changes] = [10_000, 1];

async function run({ quick, say }: BenchOptions): Promise<readonly Figure[]> {
  const seed = Date.now() % 1_000_000_000;
  const frames = quick ? few : many;
  say(`${frames.toLocaleString("en")} frames from seed ${seed} on`);
  const report = await fuzz({ seed, frames, episode, changes });
  if (report.story !== null) say(report.story);
  const count = (what: string, value: number, atMost: number | null): Figure => ({
    what,
    unit: "frames",
    value,
    range: null,
    atMost,
  });
  return [
    count("frames that reached a cell which never agreed", report.crossings, 0),
    count("frames that did anything else than the oracle says", report.differences, 0),
    count("frames that were tried", report.frames, null),
    count("of these delivered to a machine of the cloud", report.delivered, null),
    count("of these from one cell to another, which agreed", report.between, null),
    count("sent outside", report.outside, null),
    count("dropped", report.dropped, null),
    {
      what: `processor time for ${many.toLocaleString("en")} frames`,
      unit: "s",
      range: null,
      atMost: 300,
      value: (report.cpuSeconds / report.frames) * many,
    },
  ];
}

export const fuzzNetwork: Bench = {
  title: "Frames by a grammar, judged by an oracle",
  method:
    "Small installations are drawn from a seed: two hosts that run the program, cells, rules, machines, routers. Frames by a " +
    "grammar (honest ones, answers, errors, fragments, and such with something wrong) are given to the loaded programs by " +
    "`BPF_PROG_TEST_RUN`, and what one host sends to the other is given to that; rules, places and routers change in " +
    "between, one in a thousand frames, and after ten thousand there is another installation. An oracle that reads the rules as they are written, and shares no code with compiler, driver or program, says " +
    "what should become of each: verdict, bytes, counters. Processor time of one thread, everything included.",
  run,
};
