import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { launchPrefix } from "./arguments.ts";
import { limitParents, makeCgroups, removeCgroups } from "./cgroup.ts";

/** The inside of `cgroup-v2.test.ts`: runs in a guest whose kernel has given all controllers to cgroup v2, mounted here. */
const [root = ""] = process.argv.slice(2);
const parent = join(root, "machines");
mkdirSync(parent);
for (const directory of [root, parent]) writeFileSync(join(directory, "cgroup.subtree_control"), "+cpu +memory +pids");

await limitParents([parent], 600);
const [group = ""] = await makeCgroups([parent], "a-1", { memoryMiB: 64, cpus: 1 });
const read = (directory: string, file: string): string => readFileSync(join(directory, file), "utf8").trim();
assert.deepEqual(
  ["memory.max", "cpu.weight", "cpu.max", "pids.max"].map((file) => read(group, file)),
  [String(320 * 1024 * 1024), "100", "125000 100000", "129"],
);
assert.deepEqual(
  ["memory.max", "cpu.weight"].map((file) => read(parent, file)),
  [String(600 * 1024 * 1024), "50"],
);

/** As a machine is launched, without changing the user. */
const launch = (command: readonly string[]) => {
  const [program = "", ...args] = [...launchPrefix(null, null, [group]), ...command];
  return spawn(program, args, { stdio: "ignore" });
};
const ended = (child: ReturnType<typeof launch>): Promise<string | number | null> =>
  new Promise((resolve) => child.once("exit", (code, signal) => resolve(signal ?? code)));

// Two that compute on two processors, where one and a quarter were promised.
const busy = [launch(["sh", "-c", "while :; do :; done"]), launch(["sh", "-c", "while :; do :; done"])];
while (Number(/^nr_throttled (\d+)$/m.exec(read(group, "cpu.stat"))?.[1] ?? 0) < 3) await sleep(100);
const members = read(group, "cgroup.procs").split("\n").map(Number);
assert.deepEqual(members.sort(), busy.map(({ pid }) => pid).sort());
assert.equal(readFileSync(`/proc/${busy[0]?.pid}/oom_score_adj`, "utf8").trim(), "500");
for (const child of busy) {
  const end = ended(child);
  child.kill("SIGKILL");
  await end;
}
// One that takes more memory (of a tmpfs) than was promised to all together: the kernel ends it, and nobody else.
await limitParents([parent], 40);
const file = "/tmp/greed";
const greedy = launch(["dd", "if=/dev/zero", `of=${file}`, "bs=1M", "count=60"]);
await ended(greedy);
assert.ok(Number(/^oom_kill (\d+)$/m.exec(read(parent, "memory.events"))?.[1] ?? 0) >= 1);
rmSync(file, { force: true });

await removeCgroups([parent], "a-1");
assert.equal(existsSync(group), false);
process.stdout.write("cgroup v2 holds\n");
