import assert from "node:assert/strict";
import { mkdir, mkdtemp, readFile, readlink, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { mergeUsr } from "./packages.ts";

test("files of both releases' layouts are found under either path, and merging again changes nothing", async () => {
  const root = await mkdtemp(join(tmpdir(), "cells-merge-"));
  try {
    await mkdir(join(root, "bin"));
    await writeFile(join(root, "bin/busybox"), "twelve");
    await mkdir(join(root, "usr/bin"), { recursive: true });
    await writeFile(join(root, "usr/bin/socat"), "thirteen");
    await mergeUsr(root);
    await mergeUsr(root);
    for (const directory of ["bin", "usr/bin"]) {
      assert.equal(await readFile(join(root, directory, "busybox"), "utf8"), "twelve");
      assert.equal(await readFile(join(root, directory, "socat"), "utf8"), "thirteen");
    }
    assert.equal(await readlink(join(root, "lib64")), "usr/lib64");
  } finally {
    await rm(root, { recursive: true });
  }
});
