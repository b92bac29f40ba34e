import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { hostileTexts } from "./testing/hostile.ts";
import type { HostileOutcome } from "./testing/hostile-process.ts";

/*
 * What somebody might submit who means the service ill. Each text is read in a process of its own, whose heap cannot
 * grow beyond what it may have; one that hangs is ended. How long each takes is measured by `./cells bench specification`:
 * a test asserts no time, but its watchdog leaves no more than some seconds on the slowest machine.
 */
const program = fileURLToPath(new URL("testing/hostile-process.ts", import.meta.url));
const memoryMiB = 256;
const watchdogMs = 30_000;

function outcomeOf(name: string): Promise<HostileOutcome> {
  const args = [
    "--disable-warning=ExperimentalWarning",
    "--max-old-space-size=150",
    "--max-semi-space-size=8",
    program,
    name,
  ];
  return new Promise((resolve, reject) => {
    execFile(process.execPath, args, { timeout: watchdogMs, killSignal: "SIGKILL" }, (error, output, errors) => {
      if (error) reject(new Error(`it ended with ${error.signal ?? error.code}: ${errors.slice(0, 2000)}`));
      else resolve(JSON.parse(output) as HostileOutcome);
    });
  });
}

for (const [name, { code }] of Object.entries(hostileTexts))
  test(`${name}: ${code === null ? "accepted" : "a clear error"}, in bounded memory`, async (context) => {
    const { ok, faults, cpuMs, memoryMiB: used, polluted } = await outcomeOf(name);
    context.diagnostic(`${cpuMs} ms, ${used} MiB`);
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
  await assert.rejects(outcomeOf("no such text"), /there is no hostile text/);
});
