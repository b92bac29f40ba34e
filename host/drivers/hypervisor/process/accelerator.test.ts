import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { type ProbeOutcome, probeAccelerator, probeCode } from "./accelerator.ts";

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
    const { accelerator, doubt } = await probeAccelerator(directory, null);
    assert.equal(doubt, undefined);
    const answer = readFileSync(file, "utf8");
    assert.deepEqual(Object.keys(JSON.parse(answer)), ["accelerator", "asked", "kernel"]);
    const other = accelerator === "kvm" ? "tcg" : "kvm";
    writeFileSync(file, answer.replace(`"${accelerator}"`, `"${other}"`));
    assert.deepEqual(await probeAccelerator(directory, null), { accelerator: other }, "it was not asked again");
  }));

test("that KVM did not answer in time is no answer: it is asked once more, and by the next process if need be", () =>
  inDirectory(async (directory) => {
    const asked: string[] = [];
    const probe = (...answers: ProbeOutcome[]) =>
      probeAccelerator(directory, null, async (accelerator) => {
        asked.push(accelerator);
        return answers.shift() ?? assert.fail("it is asked too often");
      });
    const late = await probe("late", "works", "late");
    assert.equal(late.accelerator, "tcg");
    assert.match(
      late.doubt ?? "",
      /^KVM has not answered within \d+ s, .* the next start of the Host Manager asks again$/,
    );
    assert.deepEqual(asked.splice(0), ["kvm", "tcg", "kvm"]);
    assert.deepEqual(await probe("late", "works", "works"), { accelerator: "kvm" });
    assert.deepEqual(await probe(), { accelerator: "kvm" }, "that is remembered");
    rmSync(join(directory, "accelerator.json"));
    assert.deepEqual(await probe("late", "works", "fails"), { accelerator: "tcg" });
    assert.deepEqual(await probe(), { accelerator: "tcg" }, "that too");
    rmSync(join(directory, "accelerator.json"));
    assert.deepEqual(await probe("late", "late", "works"), { accelerator: "kvm" });
    rmSync(join(directory, "accelerator.json"));
    await assert.rejects(probe("late", "late", "late"), /has not booted a 512-byte payload in time/);
    await assert.rejects(probe("fails", "fails"), /cannot boot a 512-byte payload/);
  }));
