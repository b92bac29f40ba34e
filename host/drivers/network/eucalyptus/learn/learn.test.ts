import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { clangVersion } from "../../diverter/program/build.ts";
import { compile, readRecord, sourceHash } from "./build.ts";
import { objectFile } from "./learn.ts";

/* What it does is tried with packets: `../packets/plain.test.ts`. */

test("the committed object that learns addresses was made from the committed source", () => {
  assert.equal(readRecord().source, sourceHash(), "run `node host/drivers/network/eucalyptus/learn/build.ts`");
});

const compiles = spawnSync("clang", ["--version"]).status === 0;
test("compiling the source again gives the committed object that learns addresses", { skip: !compiles }, (t) => {
  if (clangVersion() !== readRecord().clang) return t.skip("another version of clang than the recorded one");
  const directory = mkdtempSync(join(tmpdir(), "cells-learn-"));
  try {
    compile(join(directory, "learn.o"));
    assert.ok(readFileSync(join(directory, "learn.o")).equals(readFileSync(objectFile)));
  } finally {
    rmSync(directory, { recursive: true });
  }
});
