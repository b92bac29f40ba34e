import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { cp, mkdir, mkdtemp, rm, stat, symlink, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import type { ImageManifest } from "../runtime/installation.ts";
import { oneAtATime } from "../runtime/process/one-at-a-time.ts";
import { kernelPackage, mergeUsr, type PackageVersion, resolvePackages, unpackPackages } from "./packages.ts";
import {
  copyWithLibraries,
  digestOfFiles,
  filesBelow,
  kernelRelease,
  moduleFiles,
  publish,
  sha256,
  textOf,
} from "./parts.ts";
import { reseedProgram } from "./reseed.ts";
import { saveState, savingInputs } from "./save.ts";

/**
 * The tiny guest image: Debian's cloud kernel, busybox, QEMU's guest agent, netcat and socat on a 64 MiB ext4 disk.
 * It is built from the machine's own Debian sources on first use and cached by content: the cache entry is named by a
 * hash over the package versions and the files of `image/tiny/`, so it is rebuilt exactly when one of those changes.
 *
 * It boots by its recorded kernel and a small initial RAM file system (`boot` in the manifest): a boot loader would cost
 * two more seconds on an emulated CPU. The root file system lies on the disk, so what a guest writes stays.
 */
const run = promisify(execFile);
const here = join(import.meta.dirname, "tiny");
const sizeMiB = 64;
const userland = ["busybox-static", "qemu-guest-agent", "netcat-openbsd", "socat", "nftables"];
const guestPrograms = ["usr/sbin/qemu-ga", "bin/nc.openbsd", "usr/bin/socat", "usr/sbin/nft"];
/** Modules of the initial RAM file system, and those that the guest loads once its root is there. */
const earlyModules = ["virtio_pci", "virtio_blk", "ext4", "virtio_scsi", "sd_mod", "ata_piix"];
const lateModules = ["af_packet", "virtio_net", "virtio_console", "virtio_rng", "isofs", "pvpanic-mmio"];
/** Those that only a guest which translates addresses loads (`rc.serve`). */
const onDemand = ["nft_chain_nat", "nft_masq"];

export interface BuildOptions {
  /** Cached images lie below `<cacheDirectory>/images/<name>-<digest>`, the current one is linked as `images/<name>`. */
  readonly cacheDirectory: string;
  readonly onProgress?: (message: string) => void;
}

/** Builds the image unless the cache has it. Returns the directory with manifest.json, disk.qcow2, kernel and initrd. */
export async function buildTinyImage({ cacheDirectory, onProgress = () => {} }: BuildOptions): Promise<string> {
  const images = join(cacheDirectory, "images");
  const onWait = (): void => onProgress("tiny image: waiting for another process that builds it");
  // Two that build it at once would each take away what the other has begun.
  return oneAtATime(join(images, ".tiny.lock"), onWait, () => build(images, onProgress));
}

async function build(images: string, progress: (message: string) => void): Promise<string> {
  const current = join(images, "tiny");
  const files = await digestOfInputs();
  // Asking the package sources costs seconds; while they and our own files are unchanged, so is the answer.
  const inputs = async (): Promise<string> =>
    `${files} ${(await stat("/var/lib/apt/lists")).mtimeMs} ${await savingInputs()}\n`;
  const checked = join(current, "checked");
  if ((await textOf(checked)) === (await inputs())) return current;
  try {
    await buildFrom(images, files, progress);
  } catch (error) {
    progress(
      `tiny image: ${error instanceof Error ? error.message.split("\n")[0] : error}; refreshing the package lists`,
    );
    await run("apt-get", ["update", "-qq"]);
    await buildFrom(images, files, progress);
  }
  await writeFile(checked, await inputs());
  return current;
}

async function buildFrom(images: string, files: string, progress: (message: string) => void): Promise<void> {
  const current = join(images, "tiny");
  const kernel = await kernelPackage("linux-image-cloud-amd64");
  const packages = await resolvePackages(userland);
  const kernelVersion = (await resolvePackages([kernel])).find(({ name }) => name === kernel);
  if (kernelVersion === undefined) throw new Error(`${kernel} is not offered by this machine's package sources`);
  const digest = digestOf([...packages, kernelVersion], `${files}${await savingInputs()}`);
  if ((await manifestOf(current))?.digest === digest) return;

  const work = await mkdtemp(join(images, ".building-"));
  try {
    await assemble(work, packages, kernelVersion, digest, progress);
    await publish(images, "tiny", digest, work);
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}

async function manifestOf(directory: string): Promise<ImageManifest | null> {
  const text = await textOf(join(directory, "manifest.json"));
  return text === null ? null : (JSON.parse(text) as ImageManifest);
}

function digestOf(packages: readonly PackageVersion[], files: string): string {
  const hash = createHash("sha256").update(files);
  for (const { name, version } of packages) hash.update(`${name}=${version}\n`);
  return hash.digest("hex");
}

/** Over these programs and everything that it puts into the image. */
const programs = ["build.ts", "packages.ts", "parts.ts", "reseed.ts", "save.ts"];
const digestOfInputs = async (): Promise<string> =>
  digestOfFiles(import.meta.dirname, [...programs, ...(await filesBelow(import.meta.dirname, "tiny"))]);

async function assemble(
  work: string,
  packages: readonly PackageVersion[],
  kernel: PackageVersion,
  digest: string,
  progress: (message: string) => void,
): Promise<void> {
  const [downloads, kernelDownloads] = [join(work, "deb"), join(work, "kernel-deb")];
  const [stage, kernelStage, root, initramfs, out] = ["stage", "kernel-stage", "root", "initramfs", "out"].map((name) =>
    join(work, name),
  ) as [string, string, string, string, string];
  for (const directory of [downloads, kernelDownloads, stage, kernelStage, out]) await mkdir(directory);
  progress(`tiny image: fetching ${packages.length + 1} Debian packages (kernel ${kernel.version})`);
  await unpackPackages(packages, downloads, stage);
  await unpackPackages([kernel], kernelDownloads, kernelStage);

  progress("tiny image: assembling the root file system");
  const release = await kernelRelease(kernelStage);
  await makeRoot(stage, kernelStage, release, root);
  await makeInitramfs(stage, kernelStage, release, initramfs);

  const disk = join(work, "disk.raw");
  await run("mke2fs", [
    "-q",
    "-t",
    "ext4",
    "-L",
    "cells-tiny",
    "-m",
    "0",
    "-O",
    "^has_journal,^metadata_csum",
    "-E",
    "root_owner=0:0,lazy_itable_init=0",
    "-d",
    root,
    disk,
    `${sizeMiB}M`,
  ]);
  await run("qemu-img", ["convert", "-f", "raw", "-O", "qcow2", disk, join(out, "disk.qcow2")]);
  await run("sh", ["-c", `find . | cpio --quiet -o -H newc -R 0:0 | gzip -9n >"$0"`, join(out, "initrd")], {
    cwd: initramfs,
  });
  await cp(join(kernelStage, "boot", `vmlinuz-${release}`), join(out, "kernel"));
  const manifest: ImageManifest = {
    name: "tiny",
    digest,
    disk: "disk.qcow2",
    sizeMiB,
    boot: {
      kernel: "kernel",
      initrd: "initrd",
      kernelSha256: await sha256(join(out, "kernel")),
      initrdSha256: await sha256(join(out, "initrd")),
      commandLine:
        "console=ttyS0 quiet loglevel=3 panic=-1 net.ifnames=0 random.trust_cpu=on tsc=reliable no_timer_check",
      agent: true,
    },
  };
  progress("tiny image: booting it once to save its state");
  const saved = await saveState(out, manifest).catch((error: Error) => {
    // The image is whole without: machines then boot, and say why.
    progress(`tiny image: no state of it is saved: ${error.message}`);
    return null;
  });
  const whole =
    saved === null || manifest.boot === null ? manifest : { ...manifest, boot: { ...manifest.boot, saved } };
  await writeFile(join(out, "manifest.json"), `${JSON.stringify(whole, null, 2)}\n`);
}

async function makeRoot(stage: string, kernelStage: string, release: string, root: string): Promise<void> {
  await mergeUsr(root);
  for (const directory of ["dev", "proc", "sys", "run", "tmp", "data", "root", "srv", "var"])
    await mkdir(join(root, directory), { recursive: true });
  await symlink("/run", join(root, "var/run"));
  await cp(join(here, "root"), root, { recursive: true });
  await installBusybox(stage, join(root, "bin"));
  await writeFile(join(root, "usr/sbin/reseed"), reseedProgram(), { mode: 0o755 });
  for (const program of guestPrograms) await copyWithLibraries(stage, root, program);
  await run("ln", ["-sf", "/bin/nc.openbsd", join(root, "bin/nc")]);
  for (const name of ["init", "poweroff", "reboot", "halt"])
    await run("ln", ["-sf", "/bin/busybox", join(root, "sbin", name)]);
  await copyModules(kernelStage, release, root, [...lateModules, ...onDemand]);
}

async function makeInitramfs(stage: string, kernelStage: string, release: string, target: string): Promise<void> {
  await mergeUsr(target);
  for (const directory of ["dev", "proc", "sys", "root"]) await mkdir(join(target, directory), { recursive: true });
  await cp(join(stage, "bin/busybox"), join(target, "bin/busybox"));
  await run("ln", ["-s", "busybox", join(target, "bin/sh")]);
  await run("ln", ["-s", "busybox", join(target, "bin/modprobe")]);
  await cp(join(here, "initramfs-init"), join(target, "init"));
  await copyModules(kernelStage, release, target, earlyModules);
}

/** Busybox with a link for each of its commands. */
async function installBusybox(stage: string, target: string): Promise<void> {
  const binary = join(stage, "bin/busybox");
  await cp(binary, join(target, "busybox"));
  const { stdout } = await run(binary, ["--list"]);
  for (const name of stdout.split("\n").filter((line) => line !== "" && line !== "busybox"))
    await run("ln", ["-s", "busybox", join(target, name)]);
}

/** Modules with what they depend on, and the index that modprobe reads. */
async function copyModules(
  kernelStage: string,
  release: string,
  target: string,
  names: readonly string[],
): Promise<void> {
  for (const file of await moduleFiles(kernelStage, release, names)) {
    await mkdir(dirname(join(target, file)), { recursive: true });
    await cp(join(kernelStage, file), join(target, file));
  }
  const modules = join("lib/modules", release);
  for (const index of ["modules.order", "modules.builtin"])
    await cp(join(kernelStage, modules, index), join(target, modules, index));
  await run("depmod", ["-b", target, release]);
}
