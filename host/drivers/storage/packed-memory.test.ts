import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { packMemory, unpackMemory } from "./packed-memory.ts";

test("a saved memory is what it was after it was packed, with its holes, and nothing longer is taken", async () => {
  const directory = await mkdtemp(join(tmpdir(), "cells-packed-"));
  const [memory, packed, unpacked] = ["memory", "packed", "unpacked"].map((name) => join(directory, name)) as [
    string,
    string,
    string,
  ];
  try {
    const bytes = Buffer.alloc(8 * 1024 * 1024);
    for (let at = 0; at < 300_000; at += 1) bytes[3_000_001 + at] = Math.imul(at + 1, 2_654_435_761) >>> 24;
    await writeFile(memory, bytes);
    await packMemory(memory, packed);
    assert.ok((await stat(packed)).size < 400_000);
    await unpackMemory(packed, unpacked, bytes.length);
    assert.ok(bytes.equals(await readFile(unpacked)));
    assert.ok((await stat(unpacked)).blocks * 512 < 1024 * 1024, "what was zero takes no room");
    await assert.rejects(unpackMemory(packed, unpacked, bytes.length - 1), /holds more than/);
    await assert.rejects(unpackMemory(packed, unpacked, bytes.length + 1), /holds 8388608 bytes and not/);
    await writeFile(packed, (await readFile(packed)).subarray(0, 1000));
    await assert.rejects(unpackMemory(packed, unpacked, bytes.length));
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
});
