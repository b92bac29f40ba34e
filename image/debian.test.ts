import assert from "node:assert/strict";
import { test } from "node:test";
import { debianSizeMiB, masterBootRecord } from "./debian.ts";

test("the boot sector keeps GRUB's code and gains one bootable partition up to the disk's end", () => {
  const code = Buffer.alloc(512, 0x90);
  const record = masterBootRecord(code);
  assert.deepEqual(record.subarray(0, 440), code.subarray(0, 440));
  assert.equal(record.readUInt16BE(510), 0x55aa);
  assert.equal(record[446], 0x80);
  assert.equal(record[450], 0x83);
  const [start, length] = [record.readUInt32LE(454), record.readUInt32LE(458)];
  assert.equal(start * 512, 1024 * 1024);
  assert.equal((start + length) * 512, debianSizeMiB * 1024 * 1024);
  assert.ok(
    record.subarray(462, 510).every((byte) => byte === 0),
    "no second partition",
  );
  assert.equal(code[446], 0x90, "what was given stays as it was");
});
