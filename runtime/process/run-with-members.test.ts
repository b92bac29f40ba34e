import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { after, test } from "node:test";
import { peerName } from "../../model/cell/identifiers.ts";
import type { Json } from "../../model/json/json.ts";
import { createTestInstallation, eventually } from "../installation.testing.ts";
import type { ProcessConfiguration } from "../installation.ts";
import { createObserver } from "../observation/observer.ts";
import type { RunningService } from "./process.ts";
import { runWithMembers } from "./run-with-members.ts";

const installation = await createTestInstallation("members");
after(() => installation.remove());

/** What is asked of it here is to have been ended, and to take members that came. */
const service = (
  ended: () => void,
  request: RunningService["request"] = () => Promise.reject(new Error("nobody asks")),
): RunningService => ({
  request,
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

const knowIn =
  ({ peersFile }: ProcessConfiguration) =>
  (...names: readonly string[]): Promise<void> =>
    writeFile(peersFile, JSON.stringify({ peers: Object.fromEntries(names.map((name) => [name, "10.0.0.1"])) }));

test("members of Presence that come are told to a service that takes them, which keeps its life", async () => {
  const { configuration } = await installation.configure(peerName("ha-manager"));
  const know = knowIn(configuration);
  const lives: string[] = [];
  const told: Json[] = [];
  let takes = true;
  const take: RunningService["request"] = async (request) => {
    if (!takes) throw new Error("it has ended");
    told.push(request);
    return null;
  };
  const run = async (members: readonly string[]): Promise<RunningService> => {
    lives.push(members.join(" "));
    return service(() => undefined, take);
  };
  await know("host.h1", "presence.1");
  await runWithMembers(configuration, ["host.", "presence."], run, { restMs: 100, takesMembers: true });
  await know("host.h1", "presence.1", "presence.2", "presence.3");
  await eventually("they are told", () => told.length > 0);
  assert.deepEqual(told, [{ kind: "members", members: ["presence.1", "presence.2", "presence.3"] }]);
  await know("host.h1", "host.h2", "presence.1", "presence.2", "presence.3");
  await eventually("of a host it knows by a new life", () => lives.length === 2);
  await know("host.h1", "host.h2", "presence.1", "presence.3");
  await eventually("of one that went, too", () => lives.length === 3);
  await know("host.h1", "host.h2", "presence.1", "presence.3", "presence.4");
  await eventually("the next one is told again", () => told.length === 2);
  takes = false;
  await know("host.h1", "host.h2", "presence.1", "presence.3", "presence.4", "presence.5");
  await eventually("who cannot be told begins a new life", () => lives.length === 4);
  assert.deepEqual(lives.slice(1), [
    "host.h1 host.h2 presence.1 presence.2 presence.3",
    "host.h1 host.h2 presence.1 presence.3",
    "host.h1 host.h2 presence.1 presence.3 presence.4 presence.5",
  ]);
});

test("members that come one after the other within the rest are one change, and one new life", async () => {
  const { configuration } = await installation.configure(peerName("placer"));
  const know = knowIn(configuration);
  const lives: string[] = [];
  let ended = 0;
  const run = async (members: readonly string[]): Promise<RunningService> => {
    lives.push(members.join(" "));
    return service(() => {
      ended += 1;
    });
  };
  await know("host.h1", "agent.s1");
  await runWithMembers(configuration, ["host."], run, { restMs: 2500 });
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
