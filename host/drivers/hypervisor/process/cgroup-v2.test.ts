import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { chmod, copyFile, mkdir, mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { test } from "node:test";
import { build } from "esbuild";
import { uid } from "../../../../model/cell/identifiers.ts";
import type { ComposedDisk } from "../../storage/driver.ts";
import { createQemuDriver } from "../qemu.ts";

/**
 * Limits by cgroup v2, on a kernel that really has it: this machine may have given all its controllers to v1, a guest's
 * kernel has not. The guest gets a second disk with Node, its libraries and the driver with all that it imports, as one file.
 */
const cached = "/var/cache/cells/images/tiny";
const skip =
  process.getuid?.() !== 0
    ? "needs root"
    : existsSync(join(cached, "manifest.json"))
      ? false
      : "the tiny image is not built: run image/build.ts";

const node = process.execPath;
/** `mke2fs -d` makes the file system without a mount. */
const makeDisk = async (directory: string): Promise<string> => {
  const tree = join(directory, "tree");
  await mkdir(join(tree, "lib"), { recursive: true });
  const libraries = execFileSync("ldd", [node], { encoding: "utf8" });
  const files = [...libraries.matchAll(/(\/\S+) \(0x/g)].map(([, file]) => file ?? "");
  for (const file of files) await copyFile(file, join(tree, "lib", basename(file)));
  await copyFile(node, join(tree, "node"));
  execFileSync("strip", ["-s", join(tree, "node")]);
  await build({
    entryPoints: [join(import.meta.dirname, "cgroup-v2.testing.ts")],
    outfile: join(tree, "cgroup-v2.mjs"),
    bundle: true,
    platform: "node",
    format: "esm",
    logLevel: "error",
  });
  const disk = join(directory, "node.img");
  execFileSync("mke2fs", ["-q", "-t", "ext4", "-O", "^has_journal", "-d", tree, disk, "160M"]);
  await chmod(disk, 0o666);
  return disk;
};

test("cgroup v2: a machine's processor time, memory and threads are limited, and its parent's", { skip }, async () => {
  const directory = await mkdtemp(join(tmpdir(), "cells-cgroup2-"));
  await chmod(directory, 0o711);
  const driver = createQemuDriver({ runDirectory: join(directory, "run") });
  const vm = uid("c1-1");
  try {
    const manifest = JSON.parse(await readFile(join(cached, "manifest.json"), "utf8")) as {
      readonly disk: string;
      readonly boot: { readonly kernel: string; readonly initrd: string; readonly commandLine: string };
    };
    const overlay = join(directory, "root.qcow2");
    const base = join(cached, manifest.disk);
    execFileSync("qemu-img", ["create", "-q", "-f", "qcow2", "-F", "qcow2", "-b", base, overlay]);
    await chmod(overlay, 0o666);
    const disk = (name: string, format: string, file: string, boot: ComposedDisk["boot"]): ComposedDisk => ({
      desired: {
        connection: uid(`c1-${name}`),
        busType: "virtio",
        busNumber: null,
        busSlot: null,
        bootOrder: null,
        readOnly: false,
        attachment: { volume: uid("c1-8"), epoch: 1, sizeMiB: 64, layers: [], boot: null },
      },
      objects: [],
      blockdevs: [JSON.stringify({ driver: format, "node-name": name, file: { driver: "file", filename: file } })],
      node: name,
      boot,
      secretDirectories: [],
    });
    const boot = {
      kernel: join(cached, manifest.boot.kernel),
      initrd: join(cached, manifest.boot.initrd),
      commandLine: manifest.boot.commandLine,
    };
    const disks = [disk("root", "qcow2", overlay, boot), disk("node", "raw", await makeDisk(directory), null)];
    await driver.start({
      vm,
      incarnation: 1,
      name: "groups",
      memoryMiB: 1024,
      cpus: 2,
      disks,
      interfaces: [],
      data: null,
    });
    const inside = [
      "mkdir -p /tmp/node /tmp/groups && mount -t ext4 -o ro /dev/vdb /tmp/node",
      "mount -t cgroup2 none /tmp/groups",
      "cd /tmp/node && ./lib/ld-linux-x86-64.so.2 --library-path lib ./node cgroup-v2.mjs /tmp/groups 2>&1 | tee /dev/ttyS0",
    ].join(" && ");
    const result = await driver.exec(vm, ["/bin/sh", "-c", inside], 180_000);
    assert.equal(result.exitCode, 0, `${result.stdout}\n${result.stderr}`);
    assert.match(result.stdout, /cgroup v2 holds/);
  } finally {
    await driver.stop(vm, 0);
    await driver.close();
    await rm(directory, { recursive: true, force: true });
  }
});
