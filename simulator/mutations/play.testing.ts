import { parseFaults } from "../command.ts";
import { faultKinds } from "../histories/fault-kinds.ts";
import { generateHistory } from "../histories/generate.ts";
import { playScenario, readScenario } from "../histories/scenario.ts";
import { runHistory } from "../run.ts";

/**
 * `node play.testing.ts scenario NAME` or `… seeds FROM-TO [FAULTS]`: plays it with the code that stands around this file and
 * prints the first faults that it finds, one a line; nothing: there are none.
 */
const [what = "", which = "", faults] = process.argv.slice(2);
const playSeeds = async (): Promise<readonly string[]> => {
  const [from = 1, to = 1] = which.split("-").map(Number);
  const kinds = faults === undefined ? faultKinds : parseFaults(faults);
  for (let seed = from; seed <= to; seed += 1) {
    const history = generateHistory({ seed, hosts: 5, cells: 3, minutes: 0.5, faults: kinds });
    const { faults: found } = await runHistory(history);
    if (found.length > 0) return found.map((fault) => `seed ${seed}: ${fault}`);
  }
  return [];
};
const found = what === "scenario" ? await playScenario(readScenario(which), { expects: false }) : await playSeeds();
for (const fault of found) console.log(fault);
