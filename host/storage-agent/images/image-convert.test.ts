import assert from "node:assert/strict";
import { copyFileSync, existsSync, readFileSync, truncateSync, writeFileSync } from "node:fs";
import { chmod, mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import fc from "fast-check";
import { imageIdentity } from "../../drivers/unix-users.ts";
import { type ConvertLimits, convertCommand, convertImage } from "./image-convert.ts";
import { HostileImage, type ImageFormat, inspectImage } from "./image-header.ts";
import {
  at,
  decompressionBomb,
  makeGood,
  patch,
  patched,
  pattern,
  qemu,
  withBackingFile,
  withDataFile,
} from "./image-hostile.testing.ts";
import { runSandboxed } from "./image-sandbox.ts";

/**
 * Every known way in which an uploaded image gets at more than its own bytes, tried for real: the bombs are live (where
 * it can be shown, QEMU's tools outside the sandbox follow them), and the good image beside each passes. Needs root.
 */
const limits: ConvertLimits = {
  virtualMiB: 128 * 1024,
  outputMiB: 64,
  cpuSeconds: 60,
  wallSeconds: 120,
  memoryMiB: 512,
  processes: 128,
};
const secret = "only-root-knows-this-line";
let base = "";
let good = "";
let secretFile = "";
let count = 0;

before(async () => {
  base = await mkdtemp(join(tmpdir(), "image-"));
  await chmod(base, 0o711);
  good = makeGood(join(base, "good"));
  // Readable by everybody: nothing but the sandbox keeps it from being read.
  secretFile = join(base, "s");
  writeFileSync(secretFile, `${secret}\n`.repeat(4096), { mode: 0o644 });
});
after(() => rm(base, { recursive: true, force: true }));

/** `length`: the upload is made that long, by a hole at its end. */
type Further = Partial<ConvertLimits & { length: number }>;

/** Converts as the store does. The result is there exactly when it resolves. */
async function convert(file: string, format: ImageFormat, further: Further = {}): Promise<string> {
  count += 1;
  const directory = join(base, `staging-${count}`);
  await mkdir(directory, { mode: 0o700 });
  copyFileSync(file, join(directory, "upload"));
  if (further.length !== undefined) truncateSync(join(directory, "upload"), further.length);
  const asked = { directory, upload: "upload", result: "disk.qcow2", format };
  try {
    await convertImage({ ...asked, limits: { ...limits, ...further } });
  } catch (error) {
    assert.equal(existsSync(join(directory, "disk.qcow2")), false, "what is refused leaves no result");
    throw error;
  }
  return join(directory, "disk.qcow2");
}
const refused = (file: string, format: ImageFormat, why: RegExp, further: Further = {}): Promise<void> =>
  assert.rejects(convert(file, format, further), (error: Error) => {
    assert.ok(error instanceof HostileImage, error.stack);
    assert.match(error.message, why);
    return true;
  });
const content = (file: string): Buffer => {
  qemu("qemu-img", "convert", "-f", "qcow2", "-O", "raw", file, `${file}.raw`);
  return readFileSync(`${file}.raw`);
};

const skip = process.getuid?.() === 0 ? false : "needs root, for namespaces";

describe("images that are what they say", { skip }, () => {
  for (const options of [[], ["compat=0.10"], ["cluster_size=512"], ["cluster_size=2M"], ["extended_l2=on"]]) {
    test(`qcow2 ${options.join()} becomes our own qcow2, byte for byte the same disk`, async () => {
      const made = await convert(makeGood(join(base, `good${options.join()}`), options), "qcow2");
      const disk = content(made);
      assert.equal(disk.length, 8 * 2 ** 20);
      assert.equal(
        disk.subarray(0, 2 ** 20).every((byte) => byte === pattern),
        true,
      );
      assert.equal(
        disk.subarray(2 ** 20, 7 * 2 ** 20).every((byte) => byte === 0),
        true,
      );
      assert.equal(disk.at(-1), pattern);
      assert.deepEqual(await inspectImage(made, "qcow2", { virtualBytes: 2 ** 30 }), { virtualBytes: 8 * 2 ** 20 });
    });
  }
  for (const compression of ["zlib", "zstd"]) {
    test(`compressed with ${compression}`, async () => {
      const packed = join(base, compression);
      qemu(
        "qemu-img",
        "convert",
        "-c",
        "-f",
        "qcow2",
        "-O",
        "qcow2",
        "-o",
        `compression_type=${compression}`,
        good,
        packed,
      );
      assert.deepEqual(content(await convert(packed, "qcow2")), content(good));
    });
  }
  test("raw, of a length that is no whole sector", async () => {
    const raw = join(base, "plain");
    writeFileSync(raw, Buffer.alloc(1_000_001, 7));
    const disk = content(await convert(raw, "raw"));
    assert.equal(disk.length, Math.ceil(1_000_001 / 512) * 512);
    assert.deepEqual(disk.subarray(0, 1_000_001), readFileSync(raw));
  });
});

describe("other files", { skip }, () => {
  test("a backing file, wherever it is said to be", async () => {
    const urls = [secretFile, "s", "/etc/shadow", "../../../../etc/shadow", "nbd://127.0.0.1:10809/x", "http://x/y"];
    for (const url of [...urls, `json:{"driver":"file","filename":"${secretFile}"}`])
      await refused(withBackingFile(base, good, "backing", url), "qcow2", /names a backing file/);
    // A name without a place, and the reverse, are no better.
    await refused(patched(good, join(base, "half"), [[at.backingLength, 4, 9]]), "qcow2", /backing file/);
    const format = join(base, "format");
    qemu("qemu-img", "create", "-q", "-f", "qcow2", "-b", secretFile, "-F", "raw", format);
    patch(format, [
      [at.backingOffset, 8, 0],
      [at.backingLength, 4, 0],
    ]);
    await refused(format, "qcow2", /format of a backing file/);
  });

  test("a data file", async () => {
    await refused(withDataFile(base, "data", secretFile), "qcow2", /data in another file/);
    await refused(withDataFile(base, "shadow", "/etc/shadow"), "qcow2", /data in another file/);
    // The extension without its feature bit.
    const hidden = withDataFile(base, "hidden", secretFile);
    patch(hidden, [
      [at.incompatible, 8, 0],
      [at.autoclear, 8, 0],
    ]);
    await refused(hidden, "qcow2", /another file for its data/);
  });

  test("without our own look at the header, the sandbox alone keeps them apart", async () => {
    const hollow = join(base, "hollow");
    qemu("qemu-img", "create", "-q", "-f", "qcow2", hollow, "8M");
    const bombs = {
      backing: withBackingFile(base, hollow, "live-backing", secretFile),
      data: withDataFile(base, "live-data", secretFile),
    };
    for (const [name, bomb] of Object.entries(bombs)) {
      const outside = join(base, `${name}-outside`);
      qemu("qemu-img", "convert", "-f", "qcow2", "-O", "raw", bomb, outside);
      assert.ok(readFileSync(outside).includes(secret), `the ${name} file is followed outside: the bomb is live`);
      const output = join(base, `${name}-inside`);
      writeFileSync(output, "");
      await chmod(output, 0o666);
      const end = await runSandboxed(convertCommand("qcow2"), {
        mountPoint: join(base, "root"),
        input: bomb,
        output,
        owner: imageIdentity(process.pid),
        limits: { ...limits, outputBytes: 2 ** 26 },
      });
      assert.equal(readFileSync(output).includes(secret), false, `${name}: ${end.stderr}`);
      if (name === "data") assert.match(end.stderr, /No such file/);
    }
  });
});

describe("other formats", { skip }, () => {
  const descriptor = (file: string): string =>
    `# Disk DescriptorFile\nversion=1\nCID=1\nparentCID=ffffffff\ncreateType="monolithicFlat"\nRW 8 FLAT "${file}" 0\n`;

  test("a VMDK descriptor that names a file, declared either way", async () => {
    const vmdk = join(base, "vmdk");
    for (const text of [descriptor(secretFile), `# a comment\n${descriptor("/etc/passwd").slice(22)}`]) {
      writeFileSync(vmdk, text.padEnd(4096, "\n"));
      assert.ok(qemu("qemu-img", "info", vmdk).includes("file format: vmdk"), "QEMU's probing would take it");
      await refused(vmdk, "raw", /VMDK descriptor, which names other files/);
      await refused(vmdk, "qcow2", /no qcow2 image: it begins as a VMDK/);
    }
  });

  test("every format that QEMU writes is refused as raw, by name", async () => {
    const raw = join(base, "zeros");
    writeFileSync(raw, Buffer.alloc(2 ** 20));
    await convert(raw, "raw");
    for (const format of ["qcow2", "qcow", "qed", "vmdk", "vdi", "vhdx", "vpc", "parallels"]) {
      const other = join(base, `other.${format}`);
      qemu("qemu-img", "convert", "-f", "raw", "-O", format, raw, other);
      await refused(other, "raw", /begins as an? .* and was declared raw/);
    }
    const fixed = join(base, "fixed.vhd");
    qemu("qemu-img", "convert", "-f", "raw", "-O", "vpc", "-o", "subformat=fixed", raw, fixed);
    await refused(fixed, "raw", /VHD image \(by its last sector\)/);
    await refused(other("luks", Buffer.from("LUKS\xba\xbe\0\x01", "latin1")), "raw", /LUKS/);
    await refused(other("gzip", Buffer.from([0x1f, 0x8b, 8, 0])), "raw", /gzip/);
    await refused(raw, "qcow2", /no qcow2 image; declare raw/);
    await refused(other("empty", Buffer.alloc(0)), "raw", /empty/);
    await refused(other("short", Buffer.from("QFI\xfb", "latin1")), "qcow2", /cut off/);
  });
  const other = (name: string, bytes: Buffer): string => {
    writeFileSync(join(base, name), bytes);
    return join(base, name);
  };
});

describe("headers that lie", { skip }, () => {
  const lies: readonly (readonly [name: string, fields: Parameters<typeof patch>[1], why: RegExp])[] = [
    ["8 EiB", [[at.virtualSize, 8, 2n ** 63n - 1n]], /at most 131072 MiB are accepted/],
    ["all that 64 bits hold", [[at.virtualSize, 8, 2n ** 64n - 1n]], /at most 131072 MiB/],
    ["an L1 table of 32 GiB", [[at.l1Size, 4, 0xffffffff]], /L1 table claims 4294967295 entries/],
    ["an L1 table that is too small", [[at.l1Size, 4, 0]], /L1 table has 0 entries/],
    ["an L1 table elsewhere", [[at.l1Offset, 8, 2n ** 40n]], /L1 table lies behind the end/],
    ["an L1 table in the header", [[at.l1Offset, 8, 8]], /L1 table begins at byte 8/],
    ["a reference table of 256 TiB", [[at.refcountClusters, 4, 0xffffffff]], /at most 8 MiB/],
    ["no reference table", [[at.refcountClusters, 4, 0]], /no reference count table/],
    ["a reference table elsewhere", [[at.refcountOffset, 8, 2n ** 40n]], /reference count table lies behind/],
    ["wide reference counts", [[at.refcountOrder, 4, 7]], /wider than 64 bits/],
    ["tiny clusters", [[at.clusterBits, 4, 8]], /2\^8 bytes/],
    ["huge clusters", [[at.clusterBits, 4, 63]], /2\^63 bytes/],
    ["a huge header", [[at.headerLength, 4, 0xfffffff8]], /header claims 4294967288 bytes/],
    ["another version", [[at.version, 4, 4]], /version is 4/],
    ["encryption", [[at.encryption, 4, 1]], /encrypted/],
    ["dirty", [[at.incompatible, 8, 1]], /dirty/],
    ["corrupt", [[at.incompatible, 8, 2]], /corrupt/],
    [
      "an unknown feature",
      [[at.incompatible, 8, 1n << 40n]],
      /features that are not known here \(bits 0x10000000000\)/,
    ],
    ["bitmaps", [[at.autoclear, 8, 1]], /persistent bitmaps/],
    ["unknown compression", [[at.compressionType, 1, 7]], /compression is of type 7/],
    ["hidden compression", [[at.compressionType, 1, 1]], /contradicts itself about compression/],
    ["snapshots", [[at.snapshots, 4, 3]], /holds 3 snapshots/],
  ];
  for (const [name, fields, why] of lies)
    test(name, () => refused(patched(good, join(base, "lie"), fields), "qcow2", why));

  test("a real snapshot, and a real bitmap", async () => {
    const file = makeGood(join(base, "snapshots"));
    await convert(file, "qcow2");
    qemu("qemu-img", "snapshot", "-c", "one", file);
    await refused(file, "qcow2", /holds 1 snapshots/);
    const marked = makeGood(join(base, "bitmap"));
    qemu("qemu-img", "bitmap", "--add", "-f", "qcow2", marked, "b");
    await refused(marked, "qcow2", /bitmaps/);
  });

  test("cut off: in its tables, and in its data", async () => {
    for (const [bytes, why] of [
      [100, /cut off/],
      [0x20000, /behind the end of the file/],
      [0x60000, /tables contradict each other, or it is cut off/],
    ] as const) {
      const file = patched(good, join(base, "short"), []);
      truncateSync(file, bytes);
      await refused(file, "qcow2", why);
    }
  });

  test("whatever a header says, it is read to an answer", async () => {
    const file = join(base, "random");
    const seed = Number(process.env.CELLS_SEED ?? Math.floor(Math.random() * 2 ** 31));
    console.log(`seed ${seed}; replay with CELLS_SEED=${seed}`);
    const change = fc.tuple(fc.nat(0x1ff), fc.nat(255));
    await fc.assert(
      fc.asyncProperty(fc.array(change, { minLength: 1, maxLength: 12 }), async (changes) => {
        patched(
          good,
          file,
          changes.map(([offset, value]) => [offset, 1, value] as const),
        );
        const shape = await inspectImage(file, "qcow2", { virtualBytes: 2 ** 40 }).catch((error: Error) => error);
        if (shape instanceof Error) assert.ok(shape instanceof HostileImage, shape.stack);
        else assert.ok(shape.virtualBytes > 0 && shape.virtualBytes <= 2 ** 40);
      }),
      { seed, numRuns: 200 },
    );
  });
});

describe("bombs", { skip }, () => {
  test("64 GiB of zeros to be unpacked from one cluster end at the limit of CPU time", async () => {
    const bomb = decompressionBomb(base, "zeros-bomb", Buffer.alloc(2 ** 21));
    assert.match(
      qemu("qemu-img", "check", "-f", "qcow2", bomb),
      /No errors were found/,
      "well formed, as far as QEMU sees",
    );
    await refused(bomb, "qcow2", /more than 2 s of CPU time/, { cpuSeconds: 2 });
  });
  test("the same, unpacked to something, ends at the limit of space, which is never passed", async () => {
    const bomb = decompressionBomb(base, "bytes-bomb", Buffer.alloc(2 ** 21, pattern));
    await refused(bomb, "qcow2", /more than 64 MiB, the most that is allowed/);
  });
  test("it ends at the limit of time, too", async () => {
    const bomb = join(base, "zeros-bomb");
    await refused(bomb, "qcow2", /more than 1 s, the longest that is allowed/, { wallSeconds: 1 });
  });
  test("tables that want more memory than there is", async () => {
    const further = { memoryMiB: 640 };
    const small = makeGood(join(base, "small-clusters"), ["cluster_size=512", "refcount_bits=64"]);
    await convert(small, "qcow2", further);
    // Checking it takes 8 bytes for each 512 of the file; holes cost the attacker nothing but the sending.
    await refused(small, "qcow2", /more memory than 640 MiB/, { ...further, length: 64 * 2 ** 30 });
  });
});
