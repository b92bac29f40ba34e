import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { cp, mkdir, mkdtemp, readdir, readFile, rename, rm, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { oneAtATime } from "../runtime/process/one-at-a-time.ts";
import { exists, unpackDebian, unpackedBy } from "./debian-packages.ts";

/**
 * A Debian machine as an operator has it before there is a cloud, for `./cells bench real-machines`: Debian 12 with the
 * ordinary kernel, systemd, ifupdown and networkd, an SSH server, and the packages that `cells setup` asks for, which are
 * read from the script `cells` itself. Nothing of Cells is in it.
 *
 * Kernel and initial RAM disk lie beside the disk, QEMU starts them itself: a boot loader would be one more thing to build
 * and nothing that is tried here. What a machine has of its own (name, addresses, keys) comes as a tar on a second disk
 * with the serial number `seed`, and is unpacked over the root at its first start.
 */
const run = promisify(execFile);
const repository = join(import.meta.dirname, "..");
const system = [
  "linux-image-amd64",
  "initramfs-tools",
  "systemd-sysv",
  "libpam-systemd",
  "dbus",
  "udev",
  "apparmor",
  "ifupdown",
  "openssh-server",
  "less",
];
export const machineLabel = "machine";
const diskGiB = 12;

const files: Readonly<Record<string, string>> = {
  "etc/fstab": `LABEL=${machineLabel} / ext4 errors=remount-ro 0 1
LABEL=cells /opt ext4 defaults 0 2
`,
  "etc/machine-id": "",
  "etc/systemd/system/seed.service": `[Unit]
Description=What this machine has of its own
DefaultDependencies=no
ConditionPathExists=!/etc/seeded
After=local-fs.target systemd-udevd.service
Before=sysinit.target network-pre.target networking.service systemd-networkd.service ssh.service
[Service]
Type=oneshot
ExecStart=/bin/sh -euc 'tar -xf /dev/disk/by-id/virtio-seed -C /; hostname -F /etc/hostname; touch /etc/seeded'
[Install]
WantedBy=sysinit.target
`,
  // A machine has one of the two; the other finds nothing to do and must not be waited for.
  "etc/systemd/system/systemd-networkd-wait-online.service.d/own.conf": `[Unit]
ConditionDirectoryNotEmpty=/etc/systemd/network
`,
  "etc/network/interfaces": "auto lo\niface lo inet loopback\nsource /etc/network/interfaces.d/*\n",
  "etc/initramfs-tools/modules": "virtio_pci\nvirtio_blk\next4\n",
  "etc/initramfs-tools/conf.d/small": "MODULES=list\n",
};
const services = ["seed", "systemd-networkd", "serial-getty@ttyS0"];

export interface MachineImage {
  /** qcow2. */
  readonly disk: string;
  readonly kernel: string;
  readonly initrd: string;
}
export interface MachineImageOptions {
  /** Images lie below `<cacheDirectory>/machine/<digest>/`, named by what they are made of but for the archive. */
  readonly cacheDirectory: string;
  readonly onProgress: (message: string) => void;
}

/** Builds the image unless the cache has it: some minutes, 1.5 GB. */
export const buildMachineImage = ({ cacheDirectory, onProgress }: MachineImageOptions): Promise<MachineImage> => {
  const directory = join(cacheDirectory, "machine");
  const onWait = (): void => onProgress("Debian machine: waiting for another process that builds it");
  return oneAtATime(join(directory, ".lock"), onWait, () => build(directory, onProgress));
};

const build = async (directory: string, onProgress: (message: string) => void): Promise<MachineImage> => {
  const packages = [...system, ...(await packagesOfCells())];
  const digest = createHash("sha256")
    .update(await readFile(import.meta.filename))
    .update(await readFile(unpackedBy))
    .update(packages.join(" "))
    .digest("hex");
  const image = join(directory, digest.slice(0, 16));
  const found = { disk: join(image, "disk.qcow2"), kernel: join(image, "kernel"), initrd: join(image, "initrd") };
  if (await exists(image)) return found;
  const work = await mkdtemp(join(directory, ".building-"));
  try {
    const [root, out] = [join(work, "root"), join(work, "out")];
    onProgress(`Debian machine: fetching and unpacking ${packages.length} packages and what they need`);
    await unpackDebian(root, packages);
    await configure(root);
    await mkdir(out);
    await cp(join(root, "vmlinuz"), join(out, "kernel"), { dereference: true });
    await cp(join(root, "initrd.img"), join(out, "initrd"), { dereference: true });
    onProgress("Debian machine: writing its disk");
    await makeFileSystem(root, join(work, "disk.raw"), machineLabel, diskGiB * 1024);
    await run("qemu-img", ["convert", "-O", "qcow2", join(work, "disk.raw"), join(out, "disk.qcow2")]);
    await rename(out, image);
    for (const name of await readdir(directory))
      if (/^[0-9a-f]{16}$/.test(name) && join(directory, name) !== image)
        await rm(join(directory, name), { recursive: true, force: true });
    return found;
  } finally {
    await rm(work, { recursive: true, force: true });
  }
};

/** A raw, sparse disk with one ext4 file system that holds what the directory holds. */
export const makeFileSystem = async (
  directory: string,
  disk: string,
  label: string,
  sizeMiB: number,
): Promise<void> => {
  await writeFile(disk, "");
  await truncate(disk, sizeMiB * 1024 * 1024);
  const options = ["-q", "-F", "-t", "ext4", "-L", label, "-m", "1", "-E", "root_owner=0:0"];
  await run("mke2fs", [...options, "-d", directory, disk]);
};

/** The list in the script `cells`: what `cells setup` would install. */
const packagesOfCells = async (): Promise<readonly string[]> => {
  const text = await readFile(join(repository, "cells"), "utf8");
  const list = /^packages=\(([^)]*)\)/m.exec(text)?.[1];
  if (list === undefined) throw new Error("the script `cells` has no list of packages any more");
  return list.split(/\s+/).filter((each) => each !== "");
};

const configure = async (root: string): Promise<void> => {
  for (const [name, text] of Object.entries(files)) {
    await mkdir(join(root, name, ".."), { recursive: true });
    await writeFile(join(root, name), text);
  }
  await mkdir(join(root, "opt"), { recursive: true });
  for (const name of ["etc/resolv.conf", "etc/hostname", "var/lib/dbus/machine-id"])
    await rm(join(root, name), { force: true });
  await run("chroot", [root, "systemctl", "enable", ...services]);
  await run("chroot", [root, "update-initramfs", "-u", "-k", "all"]);
  for (const name of ["var/lib/apt/lists", "var/cache/apt/archives"])
    for (const entry of await readdir(join(root, name)))
      await rm(join(root, name, entry), { recursive: true, force: true });
};
