import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { oneAtATime } from "./one-at-a-time.ts";

const withLock = async (use: (lock: string) => Promise<void>): Promise<void> => {
  const directory = await mkdtemp(join(tmpdir(), "cells-one-at-a-time-"));
  try {
    await use(join(directory, "images/.lock"));
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
};
const fails = (): void => assert.fail("nobody is to be waited for");

test("who comes second works when the first has ended, also by a fault", () =>
  withLock(async (lock) => {
    const said: string[] = [];
    const begins = Promise.withResolvers<void>();
    const waits = Promise.withResolvers<void>();
    const first = oneAtATime(lock, fails, async () => {
      said.push("first begins");
      begins.resolve();
      await waits.promise;
      said.push("first ends");
      throw new Error("a download failed");
    });
    await begins.promise;
    const second = oneAtATime(lock, waits.resolve, async () => said.push("second"));
    await assert.rejects(first, /a download failed/);
    await second;
    assert.deepEqual(said, ["first begins", "first ends", "second"]);
    await withLock((other) => oneAtATime(other, fails, () => oneAtATime(lock, fails, async () => undefined)));
  }));

test("a process that is killed while it works holds up nobody", () =>
  withLock(async (lock) => {
    const module = JSON.stringify(new URL("one-at-a-time.ts", import.meta.url).href);
    const program = `import { oneAtATime } from ${module};
      await oneAtATime(${JSON.stringify(lock)}, () => {}, async () => { console.log("works"); await new Promise(() => setInterval(() => {}, 1000)); });`;
    const first = spawn(process.execPath, ["--input-type=module", "--eval", program], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    await once(first.stdout, "data");
    const waits = Promise.withResolvers<void>();
    const next = oneAtATime(lock, waits.resolve, async () => "done");
    await waits.promise;
    first.kill("SIGKILL");
    assert.equal(await next, "done");
  }));
