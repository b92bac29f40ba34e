import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { chmod, mkdir, mkdtemp, readdir, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import type { BinLabel } from "../../../core/storage/agent/work.ts";
import { cellName, elementPath, ipv4, peerName, uid } from "../../../model/cell/identifiers.ts";
import { VolumeFiles } from "../volume-files.ts";

/** Needs root and QEMU, as everything does that makes a volume's file. */
const run = promisify(execFile);
const skip = process.getuid?.() === 0 ? false : "needs root, since files are given to another user";
const [v1, v2] = [uid("shop-1"), uid("shop-2")];
const label: BinLabel = {
  about: { cell: cellName("shop"), path: elementPath("shop/db/data"), origin: null },
  overlay: false,
  manager: peerName("storage-manager"),
};
const empty = { kind: "empty" } as const;

const withFiles = async (work: (files: VolumeFiles, open: () => Promise<VolumeFiles>) => Promise<void>) => {
  const directory = await mkdtemp(join(tmpdir(), "cells-bin-"));
  try {
    await chmod(directory, 0o711);
    const open = async (): Promise<VolumeFiles> => {
      const files = new VolumeFiles({ directory, imagesDirectory: directory, address: ipv4("127.0.0.1"), httpPort: 1 });
      await files.prepare();
      return files;
    };
    await work(await open(), open);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
};
const io = async (path: string, command: string): Promise<string> =>
  (await run("qemu-io", ["-f", "qcow2", "-c", command, path])).stdout;

test("a deleted volume's bytes are in the bin, and are those of the volume that it becomes again", { skip }, () =>
  withFiles(async (files, open) => {
    await files.create(v1, empty, 10);
    await io(files.path(v1), "write -P 0x5a 0 64k");
    const { ino } = await stat(files.path(v1));
    const binned = await files.remove(v1, label);
    assert.deepEqual([binned?.file, binned?.volume, binned?.sizeMiB, binned?.about], ["shop-1.1", v1, 10, label.about]);
    assert.equal(await files.remove(v1, label), null, "a repetition finds nothing more to do");
    assert.deepEqual((await files.usage()).length, 0);

    await assert.rejects(files.create(v1, empty, 10), /a file of volume shop-1 is in the bin/);
    // Another agent, which has lost its store, reads it all from the bin itself.
    const later = await open();
    assert.deepEqual(
      (await later.bin.list()).map(({ file, manager, offered }) => ({ file, manager, offered })),
      [{ file: "shop-1.1", manager: label.manager, offered: false }],
    );
    assert.equal((await later.bin.offer("shop-1.1"))?.offered, true);
    assert.equal(await later.bin.offer("shop-1.2"), null);

    assert.equal((await later.create(v2, empty, 10, "shop-1.1")).sizeMiB, 10);
    assert.equal((await stat(later.path(v2))).ino, ino);
    assert.match(await io(later.path(v2), "read -P 0x5a 0 64k"), /read 65536/);
    assert.deepEqual(await later.bin.list(), []);
    assert.equal((await later.create(v2, empty, 10, "shop-1.1")).sizeMiB, 10, "a repetition finds it there");
    await assert.rejects(later.create(v1, empty, 10, "shop-1.1"), /is not in the bin any more/);
    assert.deepEqual(await readdir(later.bin.directory), []);
  }),
);

test("of files that nobody has written one is kept of a volume, and none keeps it from being made", { skip }, () =>
  withFiles(async (files, open) => {
    const untouched = { ...label, untouched: true } as const;
    for (const expected of ["shop-1.1", "shop-1.2"]) {
      assert.equal((await files.create(v1, empty, 10)).fresh, true);
      assert.equal((await files.create(v1, empty, 10)).fresh, undefined, "it is there");
      assert.deepEqual([(await files.remove(v1, untouched))?.file], [expected]);
    }
    const later = await open();
    assert.deepEqual(
      (await later.bin.list()).map(({ file, untouched }) => [file, untouched]),
      [["shop-1.2", true]],
    );
    await later.create(v1, empty, 10);
    await later.remove(v1, label);
    assert.equal((await later.bin.list()).length, 2, "what somebody wrote is kept beside it");
    await assert.rejects(later.create(v1, empty, 10), /a file of volume shop-1 is in the bin/);
  }),
);

test("each deletion of a volume is a file of its own, and what is emptied is gone", { skip }, () =>
  withFiles(async (files) => {
    for (const expected of ["shop-1.1", "shop-1.2"]) {
      await writeFile(files.path(v1), "bytes");
      assert.equal((await files.remove(v1, label))?.file, expected);
    }
    await files.bin.empty("shop-1.1");
    await files.bin.empty("../shop-1");
    assert.deepEqual(
      (await files.bin.list()).map(({ file }) => file),
      ["shop-1.2"],
    );
  }),
);

test("what an interrupted move leaves is cleared, and a file without a label stays", { skip }, () =>
  withFiles(async (files, open) => {
    await mkdir(files.bin.directory, { recursive: true });
    await writeFile(join(files.bin.directory, "shop-1.1.json"), JSON.stringify({ ...label, volume: v1 }));
    await writeFile(join(files.bin.directory, "shop-2.1.qcow2"), "bytes");
    await writeFile(join(files.bin.directory, "shop-2.2.qcow2"), "bytes");
    await writeFile(join(files.bin.directory, "shop-2.2.json"), "{ half");
    const [first, second, ...more] = await (await open()).bin.list();
    assert.deepEqual([first?.volume, first?.about, second?.file, more], [v2, null, "shop-2.2", []]);
    assert.ok(!(await readdir(files.bin.directory)).includes("shop-1.1.json"));
  }),
);

test("the time in the bin is counted over restarts of the agent, and not by the wall clock", { skip }, () =>
  withFiles(async (files, open) => {
    await writeFile(files.path(v1), "bytes");
    await files.remove(v1, label);
    await writeFile(join(files.bin.directory, "clock.json"), JSON.stringify({ ranMs: 3_600_000 }));
    const age = async (): Promise<number> => (await (await open()).bin.list())[0]?.ageMs ?? -1;
    assert.ok((await age()) >= 3_500_000);
    await rm(join(files.bin.directory, "clock.json"));
    // Without its clock it counts from what came last.
    const without = await age();
    assert.ok(without >= 0 && without < 3_500_000);
  }),
);
