import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { probeAccelerator, probeCode } from "./accelerator.ts";

const inDirectory = async (work: (directory: string) => unknown): Promise<void> => {
  const directory = mkdtempSync(join(tmpdir(), "cells-accelerator-test-"));
  try {
    await work(directory);
  } finally {
    rmSync(directory, { recursive: true });
  }
};

test("the probe's code is what its source says", () =>
  inDirectory((directory) => {
    const [object, binary] = [join(directory, "probe.o"), join(directory, "probe.bin")];
    execFileSync("as", ["--64", join(import.meta.dirname, "probe.S"), "-o", object]);
    execFileSync("ld", ["-m", "elf_x86_64", "-Ttext", "0x7c00", "--oformat", "binary", object, "-o", binary]);
    const sector = readFileSync(binary);
    assert.equal(sector.length, 512);
    const code = Buffer.from(probeCode, "base64");
    assert.deepEqual(sector.subarray(0, code.length), code);
    assert.ok(sector.subarray(code.length, 510).every((byte) => byte === 0));
  }));

test("an answer is remembered, and one to another question is not", () =>
  inDirectory(async (directory) => {
    const file = join(directory, "accelerator.json");
    // As it was written when the probe did less.
    writeFileSync(file, '"kvm"\n');
    const accelerator = await probeAccelerator(directory, null);
    const answer = readFileSync(file, "utf8");
    assert.deepEqual(Object.keys(JSON.parse(answer)), ["accelerator", "asked", "kernel"]);
    const other = accelerator === "kvm" ? "tcg" : "kvm";
    writeFileSync(file, answer.replace(`"${accelerator}"`, `"${other}"`));
    assert.equal(await probeAccelerator(directory, null), other, "it was not asked again");
  }));
