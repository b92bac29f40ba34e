import { readSpecification } from "../specification.ts";
import { hostileTexts } from "./hostile.ts";

/** What reading one hostile text came to, as the one line that this program writes. Argument: the text's name. */
export interface HostileOutcome {
  readonly ok: boolean;
  /** Codes and messages of what was wrong. */
  readonly faults: readonly { readonly code: string; readonly message: string }[];
  /** CPU time of reading alone, in milliseconds, of all threads. */
  readonly cpuMs: number;
  /** Largest resident memory of the whole process. */
  readonly memoryMiB: number;
  /** Names that every object has now and had not before. */
  readonly polluted: readonly string[];
}

const hostile = hostileTexts[process.argv[2] ?? ""];
if (hostile === undefined) throw new Error(`there is no hostile text "${process.argv[2]}"`);
const bundle = hostile.text();
const before = process.cpuUsage();
const result = readSpecification(bundle);
const { user, system } = process.cpuUsage(before);
const polluted: string[] = [];
for (const name in {}) polluted.push(name);
const outcome: HostileOutcome = {
  ok: result.ok,
  faults: result.ok ? [] : result.error.map(({ code, message }) => ({ code, message })),
  cpuMs: Math.round((user + system) / 1000),
  memoryMiB: Math.round(process.resourceUsage().maxRSS / 1024),
  polluted,
};
process.stdout.write(JSON.stringify(outcome));
