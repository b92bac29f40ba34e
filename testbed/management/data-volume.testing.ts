import assert from "node:assert/strict";
import { statSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { runCommand } from "../command.ts";
import type { Testbed } from "../harness.ts";
import { stateOf } from "../lab.testing.ts";
import { memberDirectory } from "../places.ts";
import { killMachine, vmState } from "./self-hosted.testing.ts";

/**
 * What is on the data volume of a service VM, looked at and changed while the VM is off, as by somebody who has its storage
 * server. The file system is worked on in a copy, without being mounted.
 */

const storeFiles = ["state.sqlite", "state.sqlite-wal", "state.sqlite-shm"] as const;

const run = async (command: string, args: readonly string[], codes: readonly number[] = [0]): Promise<string> => {
  const { code, stdout, stderr } = await runCommand(command, args);
  assert.ok(codes.includes(code), `${command} ${args.join(" ")} ended with ${code}\n${stdout}\n${stderr}`);
  return stdout;
};

/** A file system in a file, as raw bytes. */
class FileSystem {
  readonly #file: string;
  constructor(file: string) {
    this.#file = file;
  }
  look(request: string): Promise<string> {
    return run("debugfs", ["-R", request, this.#file]);
  }
  change(request: string): Promise<string> {
    return run("debugfs", ["-w", "-R", request, this.#file]);
  }
  async has(path: string): Promise<boolean> {
    return /Inode:/.test(await this.look(`stat ${path}`));
  }
  /** The journal is replayed; what a crash left is mended. */
  async mend(): Promise<void> {
    await run("e2fsck", ["-fp", this.#file], [0, 1]);
  }

  /** A role's store alone: its keys stay. */
  async removeStore(role: string): Promise<void> {
    for (const name of storeFiles) if (await this.has(`/${role}/${name}`)) await this.change(`rm /${role}/${name}`);
    assert.ok(!(await this.has(`/${role}/state.sqlite`)));
  }
}

/** `work` on the file system in a qcow2 file that nobody writes to, though a daemon may hold it open. */
export const onDataVolume = async (file: string, work: (found: FileSystem) => Promise<void>): Promise<void> => {
  const directory = await mkdtemp(join(tmpdir(), "cells-data-volume-"));
  const raw = join(directory, "raw");
  try {
    await run("qemu-img", ["convert", "-U", "-f", "qcow2", "-O", "raw", file, raw]);
    const found = new FileSystem(raw);
    await found.mend();
    await work(found);
    await found.mend();
    // Into the same file, since an export has it open.
    const target = `driver=qcow2,file.driver=file,file.locking=off,file.filename=${file}`;
    await run("qemu-img", ["convert", "-n", "-f", "raw", "--target-image-opts", raw, target]);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
};

/** What its machine had sent has arrived at the volume. */
const quietMs = 500;
const untilQuiet = async (file: string): Promise<void> => {
  const limit = performance.now() + 20_000;
  for (
    let [before, now] = [-1, statSync(file).mtimeMs];
    before !== now;
    [before, now] = [now, statSync(file).mtimeMs]
  ) {
    assert.ok(performance.now() < limit, `${file} is still written to`);
    await sleep(quietMs);
  }
};

/**
 * Ends a service VM as a crash does, and does `work` on its data volume before its host starts it again: the Host Manager
 * stands still meanwhile, for less time than it takes to be suspected.
 * @param service path of the element with the `vm` and its `data`
 */
export const crashOf = async (
  t: Testbed,
  service: string,
  work: (found: FileSystem) => Promise<void>,
): Promise<void> => {
  const { host, uid } = await vmState(t, `${service}/vm`);
  const data = await stateOf(t, `${service}/data`);
  assert.ok(data?.server !== undefined && data.server !== null, `${service}/data is on no server`);
  const file = join(memberDirectory(t.at, data.server), "data", "volumes", `${data.uid}.qcow2`);
  await t.kill(host, "SIGSTOP");
  try {
    await killMachine(t, host, uid);
    await untilQuiet(file);
    await onDataVolume(file, work);
  } finally {
    await t.kill(host, "SIGCONT");
  }
};
