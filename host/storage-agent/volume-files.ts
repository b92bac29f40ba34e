import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { access, chmod, chown, mkdir, open, readdir, readFile, rm, stat, truncate } from "node:fs/promises";
import { basename, join } from "node:path";
import { pipeline } from "node:stream/promises";
import { promisify } from "node:util";
import type { Mark } from "../../core/documents/bin.ts";
import { savedParts } from "../../core/documents/saved-state.ts";
import type { BinLabel, VolumeSource } from "../../core/storage/agent/work.ts";
import type { BinFile } from "../../core/storage/bin.ts";
import type { Ipv4, Uid } from "../../model/cell/identifiers.ts";
import { renameDurably, synchronize } from "../../runtime/process/durable-files.ts";
import { replaceFile } from "../../runtime/process/replace-file.ts";
import { storageIdentity } from "../drivers/unix-users.ts";
import { BinFiles } from "./bin/bin-files.ts";
import { bootRecord, type FoundImage, ImageFault, readImage } from "./images/images.ts";
import { lengthWithRoom, MiB, qemuImg, readHeader, roomMiBOf, servedLength } from "./images/qcow2.ts";
import { type CreatedFile, FileMissing, type ReadyFile } from "./machinery.ts";

const run = promisify(execFile);
const markFile = "mark.json";

export interface VolumeFilesOptions {
  /** `volumes/` and `boot/` are made here. */
  readonly directory: string;
  readonly imagesDirectory: string;
  readonly address: Ipv4;
  /** Where this server hands out kernels. */
  readonly httpPort: number;
}
/** The qcow2 files of one server, `volumes/<uid>.qcow2`. Methods throw a sentence; each may be repeated at any time. */
export class VolumeFiles {
  readonly #options: VolumeFilesOptions;
  readonly directory: string;
  readonly bootDirectory: string;
  readonly bin: BinFiles;

  constructor(options: VolumeFilesOptions) {
    this.#options = options;
    this.directory = join(options.directory, "volumes");
    this.bootDirectory = join(options.directory, "boot");
    this.bin = new BinFiles(this.directory);
  }

  path = (volume: Uid): string => join(this.directory, `${volume}.qcow2`);

  async prepare(): Promise<void> {
    await mkdir(this.directory, { recursive: true });
    // `qemu-img` may reach the file it is told of, and list nothing.
    await chmod(this.directory, 0o711);
    await mkdir(this.bootDirectory, { recursive: true, mode: 0o700 });
    await this.bin.prepare();
  }

  /**
   * An overlay names no backing file: the host composes it with the origin's node. A file that exists is kept, and one in
   * the bin is never covered by a blank one. `from`: the file in the bin that becomes the volume's.
   */
  async create(volume: Uid, source: VolumeSource, sizeMiB: number | null, from?: string): Promise<CreatedFile> {
    const image = source.kind === "image" ? await readImage(this.#options, source.image) : null;
    if (source.kind === "image" && source.digest !== undefined && image?.manifest.digest !== source.digest)
      throw new Error(
        `the image "${source.image}" here is not the one that volume ${volume} was made of (its digest was ${source.digest})`,
      );
    const boot = image === null ? null : bootRecord(image, this.#options.address, this.#options.httpPort);
    if (boot !== null && image !== null) await this.#keepBoot(volume, image);
    const header = () =>
      readHeader(this.path(volume)).catch((error: NodeJS.ErrnoException) => {
        if (error.code === "ENOENT") return null;
        throw error;
      });
    let existing = await header();
    if (existing === null && from !== undefined) {
      if (!(await this.bin.giveBack(from, this.path(volume))))
        throw new Error(`${from}, which volume ${volume} was to begin with, is not in the bin any more`);
      existing = await header();
    } else if (existing === null && (await this.bin.keeps(volume)))
      throw new Error(`a file of volume ${volume} is in the bin: bring it back, or empty it`);
    if (existing !== null) return { ...(await this.ready(volume, null)), boot };

    const fresh = `${this.path(volume)}.new`;
    await rm(fresh, { force: true });
    let extra = 0;
    if (image === null) {
      if (sizeMiB === null) throw new Error(`volume ${volume} has no size; only one from an image may have none`);
      await this.#give(fresh);
      await qemuImg(this.directory, ["create", "-q", "-f", "qcow2", basename(fresh), `${sizeMiB}M`]);
    } else {
      await copyDisk(image, fresh);
      await this.#give(fresh);
      // Compressed clusters of the image stay where they are while their successors are written elsewhere.
      extra = (await stat(fresh)).size;
      const { virtualBytes } = await readHeader(fresh);
      if (sizeMiB !== null && sizeMiB * MiB < virtualBytes)
        throw new Error(
          `volume ${volume} of ${sizeMiB} MiB is too small for image "${image.manifest.name}", which needs ${Math.ceil(virtualBytes / MiB)} MiB`,
        );
      if (sizeMiB !== null && sizeMiB * MiB > virtualBytes)
        await qemuImg(this.directory, ["resize", "-q", "-f", "qcow2", basename(fresh), `${sizeMiB}M`]);
    }
    const { virtualBytes } = await readHeader(fresh);
    await truncate(fresh, Math.max(servedLength(virtualBytes) + extra, lengthWithRoom(virtualBytes)));
    await synchronize(fresh);
    await renameDurably(fresh, this.path(volume));
    const made = { ...(await this.ready(volume, null)), boot, fresh: true } as const;
    return { ...made, ...(image && { image: image.manifest.digest }) };
  }

  /**
   * Checks the file. With `sizeMiB` it is grown if its disk is smaller, and given room to grow; it must not be exported then,
   * since the length of what is exported is fixed.
   */
  async ready(volume: Uid, sizeMiB: number | null): Promise<ReadyFile> {
    const path = this.path(volume);
    const header = await readHeader(path).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== "ENOENT") throw error;
      throw new FileMissing(`its file ${path} is gone: bring it back, or delete the volume`);
    });
    const before = header.virtualBytes;
    const { size: length } = await stat(path);
    const nowMiB = Math.ceil(before / MiB);
    if (sizeMiB === null) return { sizeMiB: nowMiB, roomMiB: roomMiBOf(length) };
    const wanted = sizeMiB * MiB;
    const grows = wanted > before;
    if (grows) await qemuImg(this.directory, ["resize", "-q", "-f", "qcow2", basename(path), `${sizeMiB}M`]);
    const grown = grows ? servedLength(wanted) - servedLength(before) : 0;
    // A host may have written any size into the header: the length is bounded by the one that was ordered.
    const longer = Math.min(length + grown, 2 * servedLength(wanted));
    const needs = Math.max(length, longer, lengthWithRoom(wanted));
    if (grows || length < needs) {
      await truncate(path, needs);
      await synchronize(path);
    }
    return { sizeMiB: Math.max(nowMiB, sizeMiB), roomMiB: roomMiBOf((await stat(path)).size) };
  }

  /** Its bytes stay, in the bin. Resolves with what they are there; null: there was no file. */
  async remove(volume: Uid, label: BinLabel): Promise<BinFile | null> {
    await rm(`${this.path(volume)}.new`, { force: true });
    const file = await this.bin.take(volume, this.path(volume), label);
    await synchronize(this.directory);
    return file;
  }

  /** Beside the files, so that it goes back with them (`core/storage/agent/mark.ts`). Null: there is none. */
  async readMark(): Promise<Mark | null> {
    const text = await readFile(join(this.directory, markFile), "utf8").catch((error: NodeJS.ErrnoException) => {
      if (error.code === "ENOENT") return null;
      throw error;
    });
    try {
      return text === null ? null : (JSON.parse(text) as Mark);
    } catch {
      // What it said is not known, and that it was there is.
      return { start: "", tick: 0 };
    }
  }

  writeMark(mark: Mark): Promise<void> {
    return replaceFile(join(this.directory, markFile), JSON.stringify(mark));
  }

  /** What each file really takes. */
  async usage(): Promise<readonly { readonly volume: Uid; readonly usedMiB: number }[]> {
    const used: { volume: Uid; usedMiB: number }[] = [];
    for (const name of await readdir(this.directory)) {
      if (!name.endsWith(".qcow2")) continue;
      const found = await stat(join(this.directory, name)).catch(() => null);
      if (found === null) continue;
      used.push({ volume: basename(name, ".qcow2") as Uid, usedMiB: Math.ceil((found.blocks * 512) / MiB) });
    }
    return used;
  }

  async #give(path: string): Promise<void> {
    await (await open(path, "a")).close();
    await chmod(path, 0o600);
    await chown(path, storageIdentity.uid, storageIdentity.gid);
  }

  /**
   * The operator may replace the image; a volume made from it still boots with the kernel it was made with. A file that
   * is not what the record says is never kept, and a kept one that has been damaged is replaced.
   */
  async #keepBoot(volume: Uid, image: FoundImage): Promise<void> {
    const { boot, digest } = image.manifest;
    if (boot === null) return;
    const into = join(this.bootDirectory, digest);
    const files = [
      { name: "kernel", from: boot.kernel, sha256: boot.kernelSha256 },
      { name: "initrd", from: boot.initrd, sha256: boot.initrdSha256 },
      ...savedParts(boot).map(({ name, sha256 }) => ({ name, from: name, sha256 })),
    ];
    const kept = await Promise.all(files.map(({ name, sha256 }) => isWhat(join(into, name), sha256)));
    if (kept.every((is) => is)) return;
    const fresh = `${into}.${volume}.new`;
    await rm(fresh, { recursive: true, force: true });
    await mkdir(fresh, { mode: 0o700 });
    for (const { name, from, sha256 } of files) {
      const path = join(fresh, name);
      await copySparse(join(image.directory, from), path).catch((error: NodeJS.ErrnoException) => {
        if (error.code !== "ENOENT") throw error;
        throw new ImageFault(
          `image "${image.manifest.name}" has lost its ${name}: ${join(image.directory, from)} is not there`,
        );
      });
      if (!(await isWhat(path, sha256)))
        throw new ImageFault(
          `the ${name} of image "${image.manifest.name}" is not what its record says (SHA-256): build or copy the image again`,
        );
      await synchronize(path);
    }
    await synchronize(fresh);
    if (await stat(into).catch(() => null)) await rm(into, { recursive: true, force: true });
    await renameDurably(fresh, into).catch((error: NodeJS.ErrnoException) => {
      // Another volume of the same image was a moment earlier.
      if (error.code !== "ENOTEMPTY" && error.code !== "EEXIST") throw error;
    });
  }
}

/** Is it there, and with that SHA-256 (hexadecimal) where one is known? */
async function isWhat(path: string, sha256: string | undefined): Promise<boolean> {
  if ((await stat(path).catch(() => null)) === null) return false;
  if (sha256 === undefined) return true;
  const hash = createHash("sha256");
  await pipeline(createReadStream(path), hash);
  return hash.digest("hex") === sha256.toLowerCase();
}

async function copyDisk({ directory, manifest }: FoundImage, into: string): Promise<void> {
  const disk = join(directory, manifest.disk);
  if ((await stat(disk).catch(() => null)) === null)
    throw new ImageFault(`image "${manifest.name}" has lost its disk: ${disk} is not there`);
  await readHeader(disk).catch((error: Error) => {
    throw new ImageFault(`the disk of image "${manifest.name}" is damaged: ${error.message}`);
  });
  await run("cp", ["--reflink=auto", "--sparse=always", disk, into]).catch((error: { stderr?: string }) => {
    throw new Error(error.stderr?.trim() || `cannot copy ${disk}`);
  });
}

/** A saved memory is mostly holes, and stays so. Rejects with ENOENT when `from` is not there. */
async function copySparse(from: string, to: string): Promise<void> {
  await access(from);
  await run("cp", ["--reflink=auto", "--sparse=always", from, to]);
}
