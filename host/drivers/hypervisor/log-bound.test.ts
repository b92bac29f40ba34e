import assert from "node:assert/strict";
import { closeSync, openSync, writeSync } from "node:fs";
import { mkdtemp, readFile, rm, stat, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { eventually } from "../../../runtime/installation.testing.ts";
import { boundLog, type LogBound } from "./log-bound.ts";

let directory = "";
const bounds: LogBound[] = [];
before(async () => {
  directory = await mkdtemp(join(tmpdir(), "cells-log-"));
});
after(async () => {
  for (const bound of bounds) bound.close();
  await rm(directory, { recursive: true, force: true });
});
const limit = 4096;
const bounded = (file: string): LogBound => {
  const bound = boundLog(file, limit);
  bounds.push(bound);
  return bound;
};
const sizeOf = async (file: string): Promise<number> => (await stat(file)).size;
/** Its end is there again, too. */
const isCut = async (file: string): Promise<boolean> => {
  const size = await sizeOf(file);
  return size <= limit && size > limit / 4;
};
const line = (number: number): string => `qemu-system-x86_64: warning ${number} about what the guest did\n`;

test("a log that somebody else appends to stays below its limit, and ends with what was written last", async () => {
  const file = join(directory, "qemu.log");
  // As QEMU has it: opened once, before anybody watches.
  const descriptor = openSync(file, "a", 0o600);
  try {
    bounded(file);
    let number = 0;
    for (let round = 1; round <= 3; round += 1) {
      const before = number;
      for (; (number - before) * line(number).length < 2 * limit; number += 1) writeSync(descriptor, line(number));
      await eventually("it is cut", () => isCut(file));
      writeSync(descriptor, line(number));
      const text = await readFile(file, "utf8");
      assert.ok(text.endsWith(line(number)), "what comes after the cut is appended to it");
      assert.match(text, /^qemu-system-x86_64: warning /, "it begins with a whole line");
      assert.equal(text.includes("\0"), false, "nothing was written past its end");
    }
  } finally {
    closeSync(descriptor);
  }
});

test("one that grew while nobody watched is cut at once; a short one is left as it is", async () => {
  const [long, short] = [join(directory, "long.log"), join(directory, "short.log")];
  const lines = Array.from({ length: 1000 }, (_, number) => line(number)).join("");
  await writeFile(long, lines);
  await writeFile(short, line(1));
  bounded(long);
  bounded(short);
  await eventually("it is cut", () => isCut(long));
  assert.ok(lines.endsWith(await readFile(long, "utf8")), "its end is kept");
  assert.equal(await readFile(short, "utf8"), line(1));
});

test("no file, a closed bound and a link in the log's place harm nobody", async () => {
  bounded(join(directory, "none.log"));
  const [target, link] = [join(directory, "target"), join(directory, "link.log")];
  await writeFile(target, "x".repeat(2 * limit));
  await symlink(target, link);
  const through = bounded(link);
  const file = join(directory, "closed.log");
  await writeFile(file, "");
  boundLog(file, limit).close();
  await writeFile(file, "x".repeat(2 * limit));
  // A cut of a third one shows that those of these would have been seen by now.
  const third = join(directory, "third.log");
  await writeFile(third, "y".repeat(2 * limit));
  bounded(third);
  await eventually("it is cut", () => isCut(third));
  assert.deepEqual([await sizeOf(target), await sizeOf(file)], [2 * limit, 2 * limit]);
  through.close();
});
