import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { access, cp, mkdir, readdir, readFile, rename, rm, symlink } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { pipeline } from "node:stream/promises";
import { promisify } from "node:util";

/** What the images are put together from, and how a finished one gets into the cache. */
const run = promisify(execFile);

/** A program and the shared libraries that it names, found in the unpacked packages below `stage`. */
export async function copyWithLibraries(stage: string, root: string, program: string): Promise<void> {
  await mkdir(dirname(join(root, program)), { recursive: true });
  await cp(join(stage, program), join(root, program), { dereference: true });
  await copyLibraries(stage, root, join(stage, program));
}

/** The shared libraries that a program or library needs, with all that these need, and the program interpreter. */
export async function copyLibraries(stage: string, root: string, file: string): Promise<void> {
  const pending = [file];
  const seen = new Set<string>();
  for (let path = pending.pop(); path !== undefined; path = pending.pop()) {
    const { stdout } = await run("readelf", ["-d", "-l", path], { maxBuffer: 16 << 20 });
    const interpreter = /program interpreter: \/([^\]]+)\]/.exec(stdout)?.[1];
    const names = [...stdout.matchAll(/\(NEEDED\).*\[([^\]]+)\]/g)].map((match) => match[1] ?? "");
    const needed = await Promise.all(names.map((name) => findLibrary(stage, name)));
    for (const library of interpreter === undefined ? needed : [interpreter, ...needed]) {
      if (seen.has(library)) continue;
      seen.add(library);
      await mkdir(dirname(join(root, library)), { recursive: true });
      await cp(join(stage, library), join(root, library), { dereference: true });
      pending.push(join(stage, library));
    }
  }
}

async function findLibrary(stage: string, name: string): Promise<string> {
  for (const directory of ["lib/x86_64-linux-gnu", "usr/lib/x86_64-linux-gnu", "lib64", "usr/lib64"]) {
    try {
      await access(join(stage, directory, name));
      return join(directory, name);
    } catch {
      // Not in this directory.
    }
  }
  throw new Error(`no package of the image holds the library ${name}`);
}

/** The one release in an unpacked kernel package, its dependencies computed. */
export async function kernelRelease(kernelStage: string): Promise<string> {
  const release = (await readdir(join(kernelStage, "lib/modules")))[0];
  if (release === undefined) throw new Error(`the kernel package in ${kernelStage} holds no modules`);
  await run("depmod", ["-b", kernelStage, release]);
  return release;
}

/** Files of the modules with all that they depend on, in the order in which a kernel takes them; below `kernelStage`. */
export async function moduleFiles(
  kernelStage: string,
  release: string,
  names: readonly string[],
): Promise<readonly string[]> {
  const files = new Set<string>();
  for (const name of names) {
    const { stdout } = await run("modprobe", ["-d", kernelStage, "-S", release, "--show-depends", name]);
    for (const match of stdout.matchAll(/^insmod (\S+)/gm)) files.add((match[1] ?? "").slice(kernelStage.length + 1));
  }
  return [...files];
}

/** Puts what lies in `work/out` into the cache as `<images>/<name>-<digest>` and makes `<images>/<name>` mean that. */
export async function publish(images: string, name: string, digest: string, work: string): Promise<void> {
  const entry = join(images, `${name}-${digest.slice(0, 16)}`);
  await rm(entry, { recursive: true, force: true });
  await rename(join(work, "out"), entry);
  const link = join(images, `.${name}-${process.pid}`);
  await rm(link, { force: true });
  await symlink(basename(entry), link);
  await rename(link, join(images, name));
}

export async function textOf(file: string): Promise<string | null> {
  try {
    return await readFile(file, "utf8");
  } catch {
    return null;
  }
}

/** SHA-256 of a file, in hexadecimal. */
export async function sha256(file: string): Promise<string> {
  const hash = createHash("sha256");
  await pipeline(createReadStream(file), hash);
  return hash.digest("hex");
}

/** Over the names below `root` and the contents of files, in the order of their names. Missing ones are an error. */
export async function digestOfFiles(root: string, files: readonly string[]): Promise<string> {
  const hash = createHash("sha256");
  for (const file of files.toSorted()) {
    hash.update(`${file}\0`);
    hash.update(await readFile(join(root, file)));
  }
  return hash.digest("hex");
}

/** Paths of all files below `root`/`folder`, from `root`. */
export async function filesBelow(root: string, folder: string): Promise<readonly string[]> {
  const entries = await readdir(join(root, folder), { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(root.length + 1));
}
