import { cpuUnitMs } from "../../../model/testing/cpu-unit.testing.ts";
import { evaluate } from "../evaluate.ts";
import { hostileYaml } from "./yaml-hostile.testing.ts";

/** What reading one hostile text came to, as the one line that this program writes. Argument: the text's name. */
export interface YamlOutcome {
  readonly faults: readonly { readonly code: string; readonly message: string }[];
  /** CPU time of reading alone, of all threads. */
  readonly cpuMs: number;
  /** The same in units of work (`cpu-unit.testing.ts`). */
  readonly units: number;
  /** Largest resident memory of the whole process. */
  readonly memoryMiB: number;
}

const hostile = hostileYaml[process.argv[2] ?? ""];
if (hostile === undefined) throw new Error(`there is no hostile text "${process.argv[2]}"`);
const text = hostile.text();
const unitMs = cpuUnitMs();
const before = process.cpuUsage();
const result = await evaluate({ main: "hostile.yaml", files: { "hostile.yaml": text } });
const { user, system } = process.cpuUsage(before);
const outcome: YamlOutcome = {
  faults: result.ok ? [] : result.error.map(({ code, message }) => ({ code, message })),
  cpuMs: Math.round((user + system) / 1000),
  units: (user + system) / 1000 / unitMs,
  memoryMiB: Math.round(process.resourceUsage().maxRSS / 1024),
};
process.stdout.write(JSON.stringify(outcome));
