import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { unitsOfASecond } from "../testing/cpu-unit.testing.ts";
import { hostileTexts } from "../testing/hostile.testing.ts";
import type { HostileOutcome } from "../testing/hostile-process.testing.ts";

/*
 * What somebody might submit who means the service ill. Each text is read in a process of its own, whose heap cannot
 * grow beyond what it may have; one that hangs is ended. What each costs is told in units of work, which the same process
 * measures before: a second of CPU, on a machine of any speed.
 */
const program = fileURLToPath(new URL("../testing/hostile-process.testing.ts", import.meta.url));
const memoryMiB = 256;
/** One that goes on without end is ended by the processor time it took; one that stands still, after a while. */
const mostCpuSeconds = 90;
const watchdogMs = 600_000;
/** Texts that one process works on, one after another: most of the time would go into starting processes. */
const together = 6;

/** By the name of each text; those behind one that ended the process are missing. */
interface Ended {
  readonly outcomes: ReadonlyMap<string, HostileOutcome>;
  readonly failure: string;
}
function outcomesOf(names: readonly string[]): Promise<Ended> {
  const args = [
    `--cpu=${mostCpuSeconds}`,
    process.execPath,
    "--disable-warning=ExperimentalWarning",
    "--max-old-space-size=150",
    "--max-semi-space-size=8",
    program,
    ...names,
  ];
  const options = { timeout: watchdogMs, killSignal: "SIGKILL", maxBuffer: 64 * 1024 * 1024 } as const;
  return new Promise((resolve) => {
    execFile("prlimit", args, options, (error, output, errors) => {
      const lines = output.split("\n").slice(0, -1);
      const outcomes = lines.map((line) => JSON.parse(line) as HostileOutcome);
      const failure = error ? `it ended with ${error.signal ?? error.code}: ${errors.slice(0, 2000)}` : "";
      resolve({ outcomes: new Map(outcomes.map((outcome) => [outcome.name, outcome])), failure });
    });
  });
}

/** What comes of more than reading is as large as the text once more: those have a process each. */
const batches: string[][] = [];
let room = 0;
for (const [name, { work }] of Object.entries(hostileTexts)) {
  if (work === undefined && room > 0) batches.at(-1)?.push(name);
  else batches.push([name]);
  room = work === undefined ? (room > 0 ? room : together) - 1 : 0;
}
const begun = new Map<readonly string[], Promise<Ended>>();
/** Begins the batch after it as well, so that two cores have work. */
function outcomeOf(name: string): Promise<Ended> {
  const at = batches.findIndex((batch) => batch.includes(name));
  const [own = [], next = []] = batches.slice(at, at + 2);
  const outcome = begun.get(own) ?? outcomesOf(own);
  begun.set(own, outcome);
  if (next.length > 0 && !begun.has(next)) begun.set(next, outcomesOf(next));
  return outcome;
}

for (const [name, { code }] of Object.entries(hostileTexts))
  test(`${name}: ${code === null ? "accepted" : "a clear error"}, in bounded memory`, async (context) => {
    const { outcomes, failure } = await outcomeOf(name);
    const outcome = outcomes.get(name);
    assert.ok(outcome, failure);
    const { ok, faults, cpuMs, units, memoryMiB: used, polluted } = outcome;
    context.diagnostic(`${cpuMs} ms, ${units.toFixed(0)} units of work, ${used} MiB`);
    assert.ok(units <= unitsOfASecond, `it cost ${units.toFixed(0)} units of work, and a second is ${unitsOfASecond}`);
    assert.equal(ok, code === null, faults[0]?.message);
    if (code !== null)
      assert.ok(
        faults.some((fault) => fault.code.startsWith(code)),
        JSON.stringify(faults[0]),
      );
    for (const { message } of faults) assert.ok(message.length > 0 && message.length < 5000, message.slice(0, 100));
    assert.ok(used <= memoryMiB, `${used} MiB are more than ${memoryMiB}`);
    assert.deepEqual(polluted, []);
  });

test("a process without bounds would be noticed", async () => {
  const { outcomes, failure } = await outcomesOf(["no such text"]);
  assert.equal(outcomes.size, 0);
  assert.match(failure, /there is no hostile text/);
});
