import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { BoundedLog } from "./bounded-log.ts";

const directory = mkdtempSync(join(tmpdir(), `cells-log-${process.pid}-`));
after(() => rmSync(directory, { recursive: true, force: true }));

test("a log keeps at least its newest part, and never more than twice its limit", () => {
  const file = join(directory, "a.log");
  const log = new BoundedLog(file, 1000);
  const lines = Array.from({ length: 500 }, (_, number) => `line ${number}\n`);
  for (const line of lines) {
    log.write(line);
    assert.ok(statSync(file).size <= 1000);
  }
  log.close();
  const kept = readFileSync(`${file}.1`, "utf8") + readFileSync(file, "utf8");
  assert.ok(lines.join("").endsWith(kept) && kept.length >= 1000, "the newest, without a gap");
});

test("a log goes on where an earlier process ended, and a directory that is gone harms nobody", () => {
  const file = join(directory, "b.log");
  for (const text of ["one\n", "two\n"]) {
    const log = new BoundedLog(file, 1000);
    log.write(Buffer.from(text));
    log.close();
  }
  assert.equal(readFileSync(file, "utf8"), "one\ntwo\n");
  assert.ok(!existsSync(`${file}.1`));
  new BoundedLog(join(directory, "absent", "c.log")).write("lost");
});
