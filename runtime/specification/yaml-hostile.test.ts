import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { unitsOfASecond } from "../../model/testing/cpu-unit.testing.ts";
import { hostileYaml } from "./testing/yaml-hostile.testing.ts";
import type { YamlOutcome } from "./testing/yaml-hostile-process.testing.ts";

/* As `model/specification/hostile.test.ts`: each text in a process of its own, with bounded memory and a watchdog. */
const program = fileURLToPath(new URL("testing/yaml-hostile-process.testing.ts", import.meta.url));
const memoryMiB = 256;

function outcomeOf(name: string): Promise<YamlOutcome> {
  const bounds = ["--max-old-space-size=150", "--max-semi-space-size=8"];
  // By processor time: others may have the machine meanwhile.
  const args = ["--cpu=45", process.execPath, "--disable-warning=ExperimentalWarning", ...bounds, program, name];
  return new Promise((resolve, reject) => {
    execFile("prlimit", args, { timeout: 600_000, killSignal: "SIGKILL" }, (error, output, errors) => {
      if (error) reject(new Error(`it ended with ${error.signal ?? error.code}: ${errors.slice(0, 2000)}`));
      else resolve(JSON.parse(output) as YamlOutcome);
    });
  });
}

for (const [name, { code }] of Object.entries(hostileYaml))
  test(`${name}: a clear error, in bounded memory`, async (context) => {
    const { faults, cpuMs, units, memoryMiB: used } = await outcomeOf(name);
    context.diagnostic(`${cpuMs} ms, ${units.toFixed(0)} units of work, ${used} MiB`);
    assert.ok(units <= unitsOfASecond, `it cost ${units.toFixed(0)} units of work, and a second is ${unitsOfASecond}`);
    assert.ok(
      faults.some((fault) => fault.code === code),
      JSON.stringify(faults[0] ?? null),
    );
    for (const { message } of faults) assert.ok(message.length > 0 && message.length < 5000, message.slice(0, 100));
    assert.ok(used <= memoryMiB, `${used} MiB are more than ${memoryMiB}`);
  });

test("a process without bounds would be noticed", async () => {
  await assert.rejects(outcomeOf("no such text"), /there is no hostile text/);
});
