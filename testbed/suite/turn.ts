import { appendFileSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

/**
 * Loaded before each file of the testbed, of which a run starts two at a time. A file begins at once where no other one runs, and
 * beside another one once the processors have had time to spare for a while: clouds wait for guests and clocks much of the time, on
 * a quiet machine. Where all processors have work two clouds would find each other's waits too short, and run one after the other.
 * `CELLS_TEST_TURNS` is a directory of the run. Who waited is noted there, in `waited`: `MILLISECONDS<tab>FILE`.
 */

/** Of all processors since the machine started, in ticks: all time, and what ordinary work would have had of it. */
export interface Ticks {
  readonly all: number;
  readonly spare: number;
}
/** @param stat of `/proc/stat` (proc(5)); work that is nice gives way, so its time is to spare */
export function ticksOf(stat: string): Ticks {
  const [user = 0, nice = 0, system = 0, idle = 0, waiting = 0, ...more] =
    /^cpu +(.*)$/m.exec(stat)?.[1]?.split(" ").map(Number) ?? [];
  const [interrupts = 0, soft = 0, stolen = 0] = more;
  const spare = nice + idle + waiting;
  return { all: spare + user + system + interrupts + soft + stolen, spare };
}
const looks = { everyMs: 5_000, together: 5 } as const;
const enough = 0.4;
/** @param samples the last looks, one each five seconds */
export function hasTimeToSpare(samples: readonly Ticks[]): boolean {
  const [first, last] = [samples.at(-looks.together), samples.at(-1)];
  if (first === undefined || last === undefined || last.all === first.all) return false;
  return (last.spare - first.spare) / (last.all - first.all) >= enough;
}

const isThere = (pid: string): boolean => {
  try {
    process.kill(Number(pid), 0);
    return true;
  } catch {
    return false;
  }
};
/** Files that run, as their processes. One that was killed leaves its own behind. */
const runningIn = (directory: string): readonly string[] =>
  readdirSync(directory).filter((name) => /^\d+$/.test(name) && isThere(name));

/** Begins where it may. Two that ask at the same time see each other: who finds both there gives way and asks again. */
function begins(directory: string, samples: readonly Ticks[]): boolean {
  const own = join(directory, String(process.pid));
  writeFileSync(own, "");
  if (runningIn(directory).length === 1 || hasTimeToSpare(samples)) return true;
  rmSync(own, { force: true });
  return false;
}

async function untilTurn(directory: string): Promise<void> {
  mkdirSync(directory, { recursive: true });
  const began = performance.now();
  const samples: Ticks[] = [];
  process.once("exit", () => rmSync(join(directory, String(process.pid)), { force: true }));
  for (;;) {
    if (performance.now() - began >= samples.length * looks.everyMs)
      samples.push(ticksOf(readFileSync("/proc/stat", "utf8")));
    if (begins(directory, samples)) break;
    // Not as long as the other one, so that of two that gave way to each other one begins.
    await sleep(250 + (process.pid % 16) * 25);
  }
  const waited = Math.round(performance.now() - began);
  const file = relative(process.cwd(), process.argv[1] ?? "");
  appendFileSync(join(directory, "waited"), `${waited}\t${file}\n`);
}

const directory = process.env.CELLS_TEST_TURNS;
// The process that starts the files has no turn of its own, nor has what a file starts.
if (directory !== undefined && process.env.NODE_TEST_CONTEXT !== undefined) {
  delete process.env.CELLS_TEST_TURNS;
  await untilTurn(directory);
}
