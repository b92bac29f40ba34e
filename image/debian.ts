import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import {
  appendFile,
  cp,
  mkdir,
  mkdtemp,
  open,
  readdir,
  readFile,
  rename,
  rm,
  symlink,
  truncate,
  writeFile,
} from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { oneAtATime } from "../runtime/process/one-at-a-time.ts";
import { exists, unpackDebian, unpackedBy } from "./debian-packages.ts";

/**
 * A Debian cloud image as other clouds have it: Debian 12, its cloud kernel, cloud-init, the guest agent, GRUB in the
 * master boot record. Nothing in it knows of Cells: it takes its name, its address and `x.data` from the seed volume
 * (NoCloud) and by DHCP, and it comes into a cloud like any image from outside, by `cells image add`.
 *
 * It is made without loop devices, so that it can be made in a container: mmdebstrap fills a directory, mke2fs makes a
 * file system of it, GRUB's first sectors and the partition table are written in front of that. Not reproducible to the
 * byte: Debian's archive moves on.
 */
const run = promisify(execFile);

export const debianSizeMiB = 2048;
const partitionAtMiB = 1;
const sectorBytes = 512;
const label = "cells-debian";
const packages = [
  "linux-image-cloud-amd64",
  "initramfs-tools",
  "systemd-sysv",
  "systemd-resolved",
  "libnss-resolve",
  "dbus",
  "udev",
  "cloud-init",
  "qemu-guest-agent",
  "grub-pc-bin",
  "grub-common",
  "iproute2",
  "iputils-ping",
  "netcat-openbsd",
  "sudo",
  "ca-certificates",
  "less",
];
const services = ["systemd-networkd", "systemd-resolved", "serial-getty@ttyS0"];
/** What GRUB 2.06 can read, whatever the e2fsprogs of the machine would choose. */
const features =
  "none,has_journal,ext_attr,resize_inode,dir_index,filetype,extent,64bit,flex_bg,sparse_super,large_file";

const files: Readonly<Record<string, string>> = {
  "etc/cloud/cloud.cfg.d/90_cells.cfg": `datasource_list: [NoCloud, None]
locale: false
updates: {network: {when: [boot]}}
system_info: {network: {renderers: [networkd]}}
`,
  "etc/fstab": `LABEL=${label} / ext4 errors=remount-ro 0 1
LABEL=CIDATA /data iso9660 ro,nofail 0 0
`,
  "etc/machine-id": "",
  "boot/grub/grub.cfg": `serial --unit=0 --speed=115200
terminal_input serial
terminal_output serial
search --no-floppy --label ${label} --set=root
linux /vmlinuz root=LABEL=${label} ro console=ttyS0 quiet net.ifnames=0
initrd /initrd.img
boot
`,
};

export interface DebianOptions {
  /** Images lie below `<cacheDirectory>/debian/<digest>.qcow2`, named by what they are made of but for the archive. */
  readonly cacheDirectory: string;
  readonly onProgress?: (message: string) => void;
}

/** Builds the image unless the cache has it: about a minute, and 160 MB. Returns the qcow2 file. */
export async function buildDebianImage({ cacheDirectory, onProgress = () => {} }: DebianOptions): Promise<string> {
  const directory = join(cacheDirectory, "debian");
  const onWait = (): void => onProgress("Debian image: waiting for another process that builds it");
  return oneAtATime(join(directory, ".lock"), onWait, () => build(directory, onProgress));
}

async function build(directory: string, onProgress: (message: string) => void): Promise<string> {
  const digest = createHash("sha256")
    .update(await readFile(import.meta.filename))
    .update(await readFile(unpackedBy))
    .digest("hex");
  const image = join(directory, `${digest.slice(0, 16)}.qcow2`);
  if (await exists(image)) return image;
  const work = await mkdtemp(join(directory, ".building-"));
  try {
    const root = join(work, "root");
    onProgress(`Debian image: fetching and unpacking ${packages.length} packages and what they need`);
    await unpackDebian(root, packages);
    onProgress("Debian image: making it bootable");
    await configure(root);
    const loader = await bootLoader(root, work);
    const disk = await makeDisk(root, work, loader);
    await run("qemu-img", ["convert", "-f", "raw", "-O", "qcow2", "-c", disk, join(work, "disk.qcow2")]);
    await rename(join(work, "disk.qcow2"), image);
    for (const name of await readdir(directory))
      if (name.endsWith(".qcow2") && join(directory, name) !== image) await rm(join(directory, name), { force: true });
    return image;
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}

async function configure(root: string): Promise<void> {
  for (const directory of ["boot/grub", "data", "etc/cloud/cloud.cfg.d"])
    await mkdir(join(root, directory), { recursive: true });
  for (const [name, text] of Object.entries(files)) await writeFile(join(root, name), text);
  for (const name of ["etc/resolv.conf", "etc/hostname", "var/lib/dbus/machine-id"])
    await rm(join(root, name), { force: true });
  await symlink("../run/systemd/resolve/stub-resolv.conf", join(root, "etc/resolv.conf"));
  await run("chroot", [root, "systemctl", "enable", ...services]);
  for (const name of ["var/lib/apt/lists", "var/cache/apt/archives"]) {
    for (const entry of await readdir(join(root, name)))
      await rm(join(root, name, entry), { recursive: true, force: true });
  }
}

/** The image's own GRUB, as it stands before the first partition: the boot sector, then the core image. */
async function bootLoader(root: string, work: string): Promise<Buffer> {
  const modules = ["biosdisk", "part_msdos", "ext2", "normal", "linux", "serial", "terminal", "search", "search_label"];
  const core = "/boot/grub/core.img";
  await run("chroot", [
    root,
    "grub-mkimage",
    "--format=i386-pc",
    "--prefix=(hd0,msdos1)/boot/grub",
    `--output=${core}`,
    ...modules,
  ]);
  await cp(join(root, core), join(work, "core.img"));
  const boot = await readFile(join(root, "usr/lib/grub/i386-pc/boot.img"));
  return Buffer.concat([masterBootRecord(boot.subarray(0, sectorBytes)), await readFile(join(work, "core.img"))]);
}

/**
 * GRUB's boot sector with a partition table: one bootable Linux partition up to the end of the disk. The sector where the
 * core image begins is 1 in GRUB's own file already.
 */
export function masterBootRecord(bootSector: Buffer): Buffer {
  const record = Buffer.from(bootSector);
  const start = (partitionAtMiB * 1024 * 1024) / sectorBytes;
  const length = ((debianSizeMiB - partitionAtMiB) * 1024 * 1024) / sectorBytes;
  record.fill(0, 440, 510);
  record.write("CELL", 440, "latin1");
  // Status, first CHS (none that counts), type, last CHS, first sector, sectors.
  record.set([0x80, 0xfe, 0xff, 0xff, 0x83, 0xfe, 0xff, 0xff], 446);
  record.writeUInt32LE(start, 454);
  record.writeUInt32LE(length, 458);
  record.set([0x55, 0xaa], 510);
  return record;
}

async function makeDisk(root: string, work: string, loader: Buffer): Promise<string> {
  if (loader.length > partitionAtMiB * 1024 * 1024) throw new Error("GRUB does not fit in front of the partition");
  const disk = join(work, "disk.raw");
  await appendFile(disk, loader);
  await truncate(disk, debianSizeMiB * 1024 * 1024);
  const offset = partitionAtMiB * 1024 * 1024;
  const options = `root_owner=0:0,lazy_itable_init=0,offset=${offset}`;
  const blocks = `${(debianSizeMiB - partitionAtMiB) * 1024}k`;
  await run("mke2fs", [
    "-q",
    "-F",
    "-t",
    "ext4",
    "-L",
    label,
    "-m",
    "1",
    "-O",
    features,
    "-E",
    options,
    "-d",
    root,
    disk,
    blocks,
  ]);
  // mke2fs clears what it takes for an old boot sector.
  const file = await open(disk, "r+");
  try {
    await file.write(loader, 0, loader.length, 0);
  } finally {
    await file.close();
  }
  return disk;
}
