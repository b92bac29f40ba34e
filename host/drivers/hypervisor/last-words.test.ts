import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { lastWords } from "./launch.ts";

const warning = "qemu-system-x86_64: warning: netdev net0 has no peer";
const failed =
  "ERROR:../../accel/tcg/tcg-accel-ops.c:82:tcg_handle_interrupt: assertion failed: (qemu_mutex_iothread_locked())";

test("what QEMU ended by is told, and not a warning of before", async (t) => {
  const directory = mkdtempSync(join(tmpdir(), "cells-words-"));
  t.after(() => rmSync(directory, { recursive: true, force: true }));
  const log = join(directory, "log");
  const words = (text: string): Promise<string> => {
    writeFileSync(log, text);
    return lastWords({ log });
  };
  assert.equal(await words(`${warning}\n**\n${failed}\nBail out! ${failed}\n`), `Bail out! ${failed}`);
  assert.equal(await words(`${warning}\n${failed}\n`), failed);
  assert.equal(
    await words(`${warning}\nqemu-system-x86_64: cannot set up guest memory\n`),
    "cannot set up guest memory",
  );
  assert.equal(await words(`${warning}\nmalloc(): corrupted top size\n`), "malloc(): corrupted top size");
  assert.equal(await words(`${warning}\n`), "warning: netdev net0 has no peer");
  assert.equal(await words(""), "it left no message");
  assert.equal(await lastWords({ log: join(directory, "none") }), "it left no message");
});
