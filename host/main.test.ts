import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { chmod, mkdir, mkdtemp, rm, rmdir } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

/** Groups below the ones this process sits in (cgroup v1), where they may be made. */
const makeParents = async (): Promise<readonly string[]> => {
  const parents: string[] = [];
  for (const line of readFileSync("/proc/self/cgroup", "utf8").split("\n")) {
    const [, controller, path] = line.split(":");
    if (controller !== "memory" && controller !== "cpu" && controller !== "pids") continue;
    const directory = join("/sys/fs/cgroup", controller, path ?? "", `cells-test-${process.pid}`);
    await mkdir(directory).then(
      () => parents.push(directory),
      () => undefined,
    );
  }
  return parents;
};

test("a Host Manager process runs, survives its restart, reports and frees a VM, over its real drivers", {
  skip: process.getuid?.() === 0 && existsSync("/dev/net/tun") ? false : "needs root and /dev/net/tun",
}, async () => {
  const directory = await mkdtemp(join(tmpdir(), "cells-host-"));
  const parents = await makeParents();
  try {
    // QEMU's user must pass through.
    await chmod(directory, 0o711);
    // Gone with its first process: the network namespace with the taps, and every mount.
    const inner = ["--net", "--mount", process.execPath, join(import.meta.dirname, "main.testing.ts"), directory];
    const child = spawn("unshare", [...inner, ...parents], { stdio: ["ignore", "pipe", "inherit"] });
    let output = "";
    child.stdout.on("data", (chunk: Buffer) => {
      output += chunk.toString("utf8");
    });
    const code = await new Promise((resolve) => child.once("exit", resolve));
    assert.equal(code, 0, output);
  } finally {
    for (const parent of parents) await rmdir(parent);
    await rm(directory, { recursive: true, force: true });
  }
});
