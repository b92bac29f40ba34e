import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { authorityKeyFile, createAuthority } from "../identity/certificates.ts";
import { FragileFiles } from "./durable-files.testing.ts";
import { type FileOperations, linkDurably, makeDirectoryDurably, realFiles } from "./durable-files.ts";
import { replaceFile } from "./replace-file.ts";

test("a file that was replaced is there after a power cut, as a whole, and so is the one before until then", async () => {
  const disk = new FragileFiles();
  await replaceFile("/data/host.key.pem", "first", disk);
  disk.cut();
  assert.equal(disk.read("/data/host.key.pem"), "first", "a token is spent by the key in it");
  await replaceFile("/data/host.key.pem", "second", disk);
  assert.deepEqual(disk.done.slice(-3), ["write host.key.pem.tmp", "rename host.key.pem", "synchronize data"]);
  disk.cut();
  assert.equal(disk.read("/data/host.key.pem"), "second");
});

test("what is linked is there after a power cut, also for whoever came second", async () => {
  const disk = new FragileFiles();
  await disk.write("/data/a.tmp", "authority");
  await disk.link("/data/a.tmp", "/data/a");
  // The first one's process ended before it had synchronized anything.
  await disk.write("/data/b.tmp", "another");
  await assert.rejects(linkDurably("/data/b.tmp", "/data/a", disk), { code: "EEXIST" });
  disk.cut();
  assert.equal(disk.read("/data/a"), "authority");
});

test("the authority's key is on the disk before anything is signed with it", async () => {
  const base = await mkdtemp(join(tmpdir(), "cells-durable-"));
  const done: string[] = [];
  const files: FileOperations = {
    ...realFiles,
    link: async (from, to) => {
      done.push(`link ${to}`);
      await realFiles.link(from, to);
    },
    synchronize: async (path) => {
      done.push(`synchronize ${path}`);
      await realFiles.synchronize(path);
    },
  };
  try {
    const directory = join(base, "state", "authority");
    await createAuthority(directory, files);
    assert.deepEqual(done, [`link ${authorityKeyFile(directory)}`, `synchronize ${directory}`]);
    const made = await readFile(authorityKeyFile(directory), "utf8");
    await createAuthority(directory, files);
    assert.equal(await readFile(authorityKeyFile(directory), "utf8"), made);
  } finally {
    await rm(base, { recursive: true, force: true });
  }
});

test("directories are made as deep as they are missing, and made again without harm", async () => {
  const base = await mkdtemp(join(tmpdir(), "cells-durable-"));
  try {
    const deep = join(base, "a", "b", "c");
    await makeDirectoryDurably(deep, 0o700);
    await makeDirectoryDurably(deep, 0o700);
    assert.ok((await stat(deep)).isDirectory());
    assert.equal((await stat(dirname(deep))).mode & 0o777, 0o700);
  } finally {
    await rm(base, { recursive: true, force: true });
  }
});
