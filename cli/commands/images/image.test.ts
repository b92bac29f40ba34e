import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import type { ImageUpload } from "../../connection/upload.ts";
import type { Context } from "../../context/context.ts";
import { CommandFailure } from "../../terminal/failure.ts";
import { plain } from "../../terminal/terminal.ts";
import { addImage } from "./image.ts";

/** 64 KiB with this somewhere in it. */
const bytesWith = (at: number, text: string): Buffer => {
  const bytes = Buffer.alloc(65_536);
  bytes.write(text, at, "latin1");
  return bytes;
};

test("the format of an image is found where the file shows it, and asked for where not", async (t) => {
  const directory = mkdtempSync(join(tmpdir(), "cells-image-"));
  t.after(() => rmSync(directory, { recursive: true, force: true }));
  const file = join(directory, "disk");
  const sent: ImageUpload[] = [];
  const client = {
    addImage: async (upload: ImageUpload) => {
      sent.push(upload);
      return { name: upload.name, digest: "", sizeMiB: 1, servers: ["s1"], missing: [] };
    },
  };
  const terminal = { paint: plain, live: false, print: () => undefined, warn: () => undefined };
  const context = { terminal, json: false, client: () => client } as unknown as Context;
  const add = async (bytes: Buffer, format?: string): Promise<string> => {
    writeFileSync(file, bytes);
    try {
      await addImage(context, { name: "disk", file, format, replace: false });
    } catch (error) {
      assert.ok(error instanceof CommandFailure && error.exitCode === 2, String(error));
      return error.message;
    }
    return sent.at(-1)?.format ?? "";
  };
  for (const [format, at, text] of [
    ["qcow2", 0, "QFI\xfb\0\0\0\x03"],
    ["raw", 510, "\x55\xaa"],
    ["raw", 512, "EFI PART"],
    ["raw", 4096, "EFI PART"],
    ["raw", 0x8001, "CD001"],
    ["raw", 1080, "\x53\xef"],
  ] as const)
    assert.equal(await add(bytesWith(at, text)), format);
  const uploads = sent.length;
  assert.match(await add(bytesWith(0, "KDMV")), /disk is a VMDK image: `qemu-img convert -O qcow2`/);
  assert.match(await add(bytesWith(0, "\xfd7zXZ\0")), /disk is compressed by xz: unpack it first/);
  assert.match(await add(Buffer.alloc(65_536)), /disk does not show what it is: .*--format raw/);
  assert.match(await add(Buffer.alloc(0)), /does not show what it is/);
  assert.equal(sent.length, uploads, "nothing was sent");
  assert.equal(await add(Buffer.alloc(65_536), "raw"), "raw", "what is declared is not looked for");
  assert.match(await add(bytesWith(0, "QFI\xfb"), "vmdk"), /--format is raw or qcow2/);
});
