import type { Bench, BenchOptions, Figure } from "../bench.ts";
import { median, rangeOf, ratios } from "../measure.ts";
import { inMachine } from "./in-machine.ts";
import type { RuleCosts } from "./rules-process.ts";

/** Its cells come one after another, as many as rounds. */
const run = ({ quick, say }: BenchOptions): Promise<readonly Figure[]> =>
  inMachine("rules-process.ts", async (agent) => {
    await agent.call("init");
    const figures: Figure[] = [];
    let cell = 0;
    await agent.call("costs", 1000, ++cell);
    for (const count of quick ? [1000, 2000] : [1000, 20_000, 50_000]) {
      say(`${count} rules`);
      const measured: RuleCosts[] = [];
      for (let round = 0; round < (quick ? 2 : 5); round += 1)
        measured.push(await agent.call<RuleCosts>("costs", count, ++cell));
      figures.push(...figuresOf(count, measured));
    }
    return figures;
  });

function figuresOf(count: number, measured: readonly RuleCosts[]): readonly Figure[] {
  const of = (part: keyof RuleCosts): readonly number[] => measured.map((costs) => costs[part]);
  const line = (what: string, unit: Figure["unit"], values: readonly number[]): Figure => ({
    what: `${count.toLocaleString("en")} rules: ${what}`,
    unit,
    value: median(values),
    range: rangeOf(values),
    atMost: null,
  });
  return [
    line("compiled and put in force", "ms", of("all")),
    line("one of them changed", "ms", of("one")),
    line("the same document again", "ms", of("same")),
    line("nothing new", "ms", of("none")),
    line("read back by the next process", "ms", of("adopted")),
    line("a change against all", "×", ratios(of("one"), of("all"))),
  ];
}

export const rules: Bench = {
  title: "Rules of one cell at one host",
  method:
    "CPU time of the network driver's process, from the document of the rules to the maps in the kernel, and the same " +
    "again with one rule changed, with the same document arriving once more, with nothing new, and by a new process, which " +
    "reads back what is in force.",
  run,
};
