import assert from "node:assert/strict";
import { test } from "node:test";
import type { RunResult } from "../run.ts";
import { formatHistory, type History, parseHistory } from "../world/history.ts";
import { generateHistory } from "./generate.ts";
import { shrink } from "./shrink.ts";

/** A bug that shows exactly when the Placer crashes some time after a host lost power. */
const planted = async (history: History): Promise<RunResult> => {
  const at = (verb: string): number => history.steps.findIndex(({ words }) => words.join(" ").startsWith(verb));
  const fails = at("power-off") >= 0 && at("crash placer") > at("power-off");
  const faults = fails ? ["7. planted: the Placer forgot a host"] : [];
  const rest = { digest: "", lines: 0, events: 0, endedMs: history.untilMs, settledAfterMs: 0, checked: [], log: "" };
  return { history, faults, ...rest };
};
const noise = generateHistory({ seed: 5, hosts: 10, cells: 3, minutes: 1, faults: ["partition", "pause", "clock"] });
const cause = parseHistory("at 30000 power-off h1 for 1000\nat 31000 crash placer for 100").steps;
const history: History = { ...noise, steps: [...noise.steps, ...cause].sort((a, b) => a.atMs - b.atMs) };

test("a failing history is shortened to the steps that make it fail", async () => {
  assert.ok(history.steps.length > 30, "there is something to leave away");
  const shrunk = await shrink(history, { run: planted });
  assert.deepEqual(shrunk?.history.steps, cause);
  assert.ok((shrunk?.runs ?? 0) < 100, `${shrunk?.runs} runs`);
  assert.equal(shrunk?.history.hosts, 1);
});

test("what waits for something else is no shorter history of the same", async () => {
  /** With all of its hosts a deleted cell is left; with fewer, a VM rightly waits for a host. */
  const waits = async (of: History): Promise<RunResult> => {
    const left = "c2: deleted, but c2/golden (deleting: it is the origin of a copy that a storage server has) is left";
    const apart = 'c1/m1x2 is waiting: no host can hold it: h1: x.placement.apartFrom keeps it apart from "c1/m1x4"';
    return { ...(await planted(of)), faults: [`not at rest: ${of.hosts > 4 ? left : apart}`] };
  };
  const shrunk = await shrink(history, { run: waits });
  assert.equal(shrunk?.history.hosts, 5);
  assert.deepEqual(shrunk.history.steps, []);
});

test("one that does not fail is not shortened, and the number of runs is bounded", async () => {
  assert.equal(await shrink(noise, { run: planted }), null);
  const bounded = await shrink(history, { run: planted, mostRuns: 5 });
  assert.ok((bounded?.runs ?? 0) <= 5);
});

test("what is printed is read back as the same history", () => {
  assert.deepEqual(parseHistory(formatHistory(history)), history);
});
