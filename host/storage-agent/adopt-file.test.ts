import assert from "node:assert/strict";
import { mkdir, mkdtemp, readdir, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { takeAdoptFile } from "./adopt-file.ts";

test("a file `adopt` counts once, and only a plain one", async () => {
  const directory = await mkdtemp(join(tmpdir(), "cells-adopt-"));
  try {
    const file = join(directory, "adopt");
    assert.equal(await takeAdoptFile(directory), false);
    await writeFile(file, "");
    assert.equal(await takeAdoptFile(directory), true);
    assert.deepEqual(await readdir(directory), []);
    assert.equal(await takeAdoptFile(directory), false);
    await symlink("/dev/null", file);
    assert.equal(await takeAdoptFile(directory), false);
    await rm(file);
    await mkdir(file);
    assert.equal(await takeAdoptFile(directory), false);
  } finally {
    await rm(directory, { recursive: true });
  }
});
