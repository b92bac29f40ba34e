import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { after, test } from "node:test";
import { peerName } from "../../model/cell/identifiers.ts";
import { createTestInstallation, eventually } from "../installation.testing.ts";
import { createObserver } from "../observation/observer.ts";
import type { RunningService } from "./process.ts";
import { runWithMembers } from "./run-with-members.ts";

const installation = await createTestInstallation("members");
after(() => installation.remove());

/** What is asked of it here is to have been ended. */
const service = (ended: () => void): RunningService => ({
  request: () => Promise.reject(new Error("nobody asks")),
  audit: () => [],
  subscribeLog: () => () => undefined,
  observer: createObserver("members"),
  stop: async (options) => {
    assert.deepEqual(options, { goodbye: false });
    ended();
  },
  beginLife: () => undefined,
  declaredDead: () => undefined,
  distributionPort: 0,
});

test("members that come one after the other within the rest are one change, and one new life", async () => {
  const { configuration } = await installation.configure(peerName("placer"));
  const know = (...names: readonly string[]): Promise<void> =>
    writeFile(
      configuration.peersFile,
      JSON.stringify({ peers: Object.fromEntries(names.map((name) => [name, "10.0.0.1"])) }),
    );
  const lives: string[] = [];
  let ended = 0;
  const run = async (members: readonly string[]): Promise<RunningService> => {
    lives.push(members.join(" "));
    return service(() => {
      ended += 1;
    });
  };
  await know("host.h1", "agent.s1");
  await runWithMembers(configuration, ["host."], run, 2500);
  assert.deepEqual(lives, ["host.h1"]);
  // Another kind of peer is no change at all.
  await know("host.h1", "agent.s1", "agent.s2");
  for (const more of [["host.h2"], ["host.h2", "host.h3"], ["host.h2", "host.h3", "host.h4"]])
    await know("host.h1", ...more);
  await eventually("all of them are known", () => lives.at(-1) === "host.h1 host.h2 host.h3 host.h4");
  assert.equal(lives.length, 2);
  assert.equal(ended, 1);
  await know("host.h1");
  await eventually("those that went are gone", () => lives.at(-1) === "host.h1");
  assert.equal(ended, lives.length - 1);
});
