import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { chmodSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { launch } from "./launch.ts";

/**
 * The outer walls, with QuickJS taken for broken: a program in the place of the evaluating one tries what it must not.
 * First alone, where all of it works, so that nothing fails for another reason.
 */
const program = join(import.meta.dirname, "testing/wall-attempts.testing.ts");
const linux = process.platform === "linux" && process.arch === "x64";
let directory = "";
let servers: readonly Server[] = [];
let targets = { port: 0, path: "", file: "", write: "" };

const listening = (where: { port: number; host: string } | { path: string }): Promise<Server> =>
  new Promise((resolve) => {
    const server = createServer((socket) => socket.on("error", () => {}).end());
    server.listen(where, () => resolve(server));
  });

before(async () => {
  directory = mkdtempSync(join(tmpdir(), "cells-wall-"));
  chmodSync(directory, 0o777);
  const path = join(directory, "socket");
  servers = [await listening({ port: 0, host: "127.0.0.1" }), await listening({ path })];
  chmodSync(path, 0o777);
  const address = servers[0]?.address();
  assert.ok(typeof address === "object" && address !== null);
  targets = { port: address.port, path, file: join(directory, "file"), write: join(directory, "written") };
  writeFileSync(targets.file, "secret", { mode: 0o644 });
});
after(() => {
  for (const server of servers) server.close();
  rmSync(directory, { recursive: true, force: true });
});

interface Attempted {
  readonly outcome: Readonly<Record<string, string>>;
  readonly uid: number;
  readonly status: string;
}

test("what it tries works outside of the walls", () => {
  // The servers of this process answer only when it runs, so connections are made from the kernel's queue.
  const alone = spawnSync(process.execPath, [program], {
    input: JSON.stringify(targets),
    encoding: "utf8",
    env: { ...process.env, CELLS_SECRET: "x" },
  });
  const { outcome } = JSON.parse(alone.stdout) as Attempted;
  assert.equal(Object.keys(outcome).length, 10);
  for (const [what, how] of Object.entries(outcome)) assert.equal(how, "done", what);
  rmSync(targets.write);
});

/** Of the answer of `wall-attempts.testing.ts` from inside. Gives the user that it runs as. */
function assertNothingWorks(text: string): number {
  const { outcome, uid, status } = JSON.parse(text) as Attempted;
  assert.deepEqual(outcome, {
    "read a file": "ERR_ACCESS_DENIED",
    "list a directory": "ERR_ACCESS_DENIED",
    "write a file": "ERR_ACCESS_DENIED",
    // Node's permissions say nothing of these: they are the kernel's answer.
    "connect over TCP": "EPERM",
    "connect to a Unix socket": "EPERM",
    "send a datagram": "EPERM",
    "start a program": "ERR_ACCESS_DENIED",
    "start a thread": "ERR_ACCESS_DENIED",
    "signal its parent": "EPERM",
    "find a variable of its parent": "there is none",
  });
  assert.match(status, /restricted/, "not even of itself can it read anything");
  assert.equal(existsSync(targets.write), false);
  return uid;
}
const skip = linux ? false : "the walls are Linux's";
const isRoot = process.getuid?.() === 0;
/** A checkout that only root can read can be run by root alone. */
const openToAll =
  isRoot &&
  [process.execPath, program].every(
    (file) => spawnSync("test", ["-r", file], { uid: 65_534, gid: 65_534, cwd: "/" }).status === 0,
  );

test("nothing of it works inside", { skip }, async () => {
  const ended = await launch(JSON.stringify(targets), { program });
  assert.equal(ended.how, "answer", JSON.stringify(ended));
  const uid = assertNothingWorks(ended.how === "answer" ? ended.text : "");
  if (openToAll) assert.ok(uid >= 1_900_100_000, `it runs as ${uid}`);
});

test("nor for a user who has no rights to build walls with", {
  skip: openToAll ? skip : "needs root, and a checkout that all may read",
}, () => {
  const script = `const { launch } = await import(${JSON.stringify(join(import.meta.dirname, "launch.ts"))});
    const ended = await launch(${JSON.stringify(JSON.stringify(targets))}, { program: ${JSON.stringify(program)} });
    process.stdout.write(ended.text ?? JSON.stringify(ended));`;
  const user = spawnSync(process.execPath, ["--input-type=module", "-e", script], {
    uid: 65_534,
    gid: 65_534,
    encoding: "utf8",
    cwd: "/",
  });
  assert.equal(user.status, 0, user.stderr);
  assert.equal(assertNothingWorks(user.stdout), 65_534);
});

const commandOf = (pid: number): string => {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8");
  } catch {
    return "";
  }
};
function descendants(of: number): readonly number[] {
  const parents = readdirSync("/proc").flatMap((name) => {
    try {
      const [, parent = ""] = /^PPid:\t(\d+)$/m.exec(readFileSync(`/proc/${name}/status`, "utf8")) ?? [];
      return /^\d+$/.test(name) ? [{ pid: Number(name), parent: Number(parent) }] : [];
    } catch {
      return [];
    }
  });
  const children = parents.filter(({ parent }) => parent === of).map(({ pid }) => pid);
  return [...children, ...children.flatMap(descendants)];
}

test("what runs too long is ended with all that it started", { timeout: 60_000 }, async () => {
  const loop = join(import.meta.dirname, "testing/endless.testing.ts");
  assert.deepEqual(await launch("", { program: loop, wallMs: 1500 }), { how: "too-long" });
  const stop = new AbortController();
  const running = launch("", { program: loop, signal: stop.signal });
  // The innermost is Node itself: with it, all are there.
  let started: readonly number[] = [];
  while (!started.some((pid) => commandOf(pid).startsWith(process.execPath))) {
    await sleep(50);
    started = descendants(process.pid);
  }
  stop.abort();
  assert.deepEqual(await running, { how: "aborted" });
  while (started.some((pid) => commandOf(pid) !== "")) await sleep(50);
  // The control: the same launch of a program that ends is not cut off.
  assert.equal((await launch(JSON.stringify(targets), { program })).how, "answer");
});

test("what says too much is ended", async () => {
  const flood = join(import.meta.dirname, "testing/flood.testing.ts");
  assert.deepEqual(await launch("", { program: flood }), { how: "too-large" });
});
