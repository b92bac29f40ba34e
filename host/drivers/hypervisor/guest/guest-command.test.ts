import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import type { GuestAgent } from "./guest-agent.ts";
import { runInGuest } from "./guest-command.ts";

test("however many signals a client sends, few are on their way into the guest, and the last one arrives", async () => {
  const kills: { readonly name: string; done(): void }[] = [];
  const agent: GuestAgent = {
    hasAnswered: () => true,
    exec: async () => assert.fail("not asked for"),
    call: (command, parameters) =>
      new Promise((resolve) => {
        const { arg = [] } = parameters as { readonly arg?: readonly string[] };
        if (command !== "guest-exec") return;
        if (arg[0] === "-c" && arg[3] === "5") kills.push({ name: String(arg[2]), done: () => resolve({ pid: 6 }) });
        else resolve({ pid: 5 });
      }),
    close: () => undefined,
  };
  const output = { output: async () => undefined, notice: () => undefined };
  const run = runInGuest(agent, { command: ["cat"], input: null, timeoutMs: null }, output);
  run.exitCode.catch(() => undefined);
  for (let count = 0; count < 1000; count += 1) run.signal("INT");
  await turn();
  assert.deepEqual(
    kills.map(({ name }) => name),
    ["INT"],
    "those before its start are one",
  );
  for (let count = 0; count < 1000; count += 1) run.signal("INT");
  run.signal("HUP");
  await turn();
  assert.deepEqual(
    kills.map(({ name }) => name),
    ["INT", "HUP"],
  );
  for (const kill of kills.splice(0)) kill.done();
  await turn();
  assert.deepEqual(
    kills.map(({ name }) => name),
    ["INT"],
    "one more, since more came",
  );
});
