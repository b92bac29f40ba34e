import { execFile } from "node:child_process";
import { chmod, chown, copyFile, mkdir, open, readdir, rename, rm, stat, truncate } from "node:fs/promises";
import { basename, join } from "node:path";
import { promisify } from "node:util";
import type { BootRecord } from "../../core/documents.ts";
import type { VolumeSource } from "../../core/storage/agent-work.ts";
import type { Ipv4, Uid } from "../../model/identifiers.ts";
import { storageIdentity } from "../identity.ts";
import { bootRecord, readImage } from "./images.ts";
import { MiB, qemuImg, readHeader, servedLength } from "./qcow2.ts";

const run = promisify(execFile);

export interface VolumeFilesOptions {
  /** `volumes/` and `boot/` are made here. */
  readonly directory: string;
  readonly imagesDirectory: string;
  readonly address: Ipv4;
  /** Where this server hands out kernels. */
  readonly httpPort: number;
}
export interface CreatedFile {
  readonly sizeMiB: number;
  readonly boot: BootRecord | null;
}

/** The qcow2 files of one server, `volumes/<uid>.qcow2`. Methods throw a sentence; each may be repeated at any time. */
export class VolumeFiles {
  readonly #options: VolumeFilesOptions;
  readonly directory: string;
  readonly bootDirectory: string;

  constructor(options: VolumeFilesOptions) {
    this.#options = options;
    this.directory = join(options.directory, "volumes");
    this.bootDirectory = join(options.directory, "boot");
  }

  path = (volume: Uid): string => join(this.directory, `${volume}.qcow2`);

  async prepare(): Promise<void> {
    await mkdir(this.directory, { recursive: true });
    // `qemu-img` may reach the file it is told of, and list nothing.
    await chmod(this.directory, 0o711);
    await mkdir(this.bootDirectory, { recursive: true, mode: 0o700 });
  }

  /** An overlay names no backing file: the host composes it with the origin's node. A file that exists is kept. */
  async create(volume: Uid, source: VolumeSource, sizeMiB: number | null): Promise<CreatedFile> {
    const image = source.kind === "image" ? await readImage(this.#options.imagesDirectory, source.image) : null;
    const boot = image === null ? null : bootRecord(image, this.#options.address, this.#options.httpPort);
    if (boot !== null && image !== null && image.manifest.boot !== null)
      await this.#keepBoot(volume, boot.digest, image.directory, image.manifest.boot);
    const existing = await readHeader(this.path(volume)).catch((error: NodeJS.ErrnoException) => {
      if (error.code === "ENOENT") return null;
      throw error;
    });
    if (existing !== null) return { sizeMiB: Math.ceil(existing.virtualBytes / MiB), boot };

    const fresh = `${this.path(volume)}.new`;
    await rm(fresh, { force: true });
    let extra = 0;
    if (image === null) {
      if (sizeMiB === null) throw new Error(`volume ${volume} has no size; only one from an image may have none`);
      await this.#give(fresh);
      await qemuImg(this.directory, ["create", "-q", "-f", "qcow2", basename(fresh), `${sizeMiB}M`]);
    } else {
      const disk = join(image.directory, image.manifest.disk);
      await run("cp", ["--reflink=auto", "--sparse=always", disk, fresh]);
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
    await truncate(fresh, servedLength(virtualBytes) + extra);
    await synchronize(fresh);
    await rename(fresh, this.path(volume));
    await synchronize(this.directory);
    return { sizeMiB: Math.ceil(virtualBytes / MiB), boot };
  }

  /** Checks the file and grows it if it is smaller than `sizeMiB`; it must not be exported. Returns its size in MiB. */
  async ready(volume: Uid, sizeMiB: number | null): Promise<number> {
    const path = this.path(volume);
    const before = (await readHeader(path)).virtualBytes;
    if (sizeMiB === null || sizeMiB * MiB <= before) return Math.ceil(before / MiB);
    await qemuImg(this.directory, ["resize", "-q", "-f", "qcow2", basename(path), `${sizeMiB}M`]);
    const grown = servedLength(sizeMiB * MiB) - servedLength(before);
    await truncate(path, (await stat(path)).size + grown);
    await synchronize(path);
    return sizeMiB;
  }

  async remove(volume: Uid): Promise<void> {
    await rm(`${this.path(volume)}.new`, { force: true });
    await rm(this.path(volume), { force: true });
    await synchronize(this.directory);
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

  /** The operator may replace the image; a volume made from it still boots with the kernel it was made with. */
  async #keepBoot(
    volume: Uid,
    digest: string,
    from: string,
    boot: { readonly kernel: string; readonly initrd: string },
  ): Promise<void> {
    const into = join(this.bootDirectory, digest);
    if (await stat(into).catch(() => null)) return;
    const fresh = `${into}.${volume}.new`;
    await rm(fresh, { recursive: true, force: true });
    await mkdir(fresh, { mode: 0o700 });
    await copyFile(join(from, boot.kernel), join(fresh, "kernel"));
    await copyFile(join(from, boot.initrd), join(fresh, "initrd"));
    await rename(fresh, into).catch((error: NodeJS.ErrnoException) => {
      // Another volume of the same image was a moment earlier.
      if (error.code !== "ENOTEMPTY" && error.code !== "EEXIST") throw error;
    });
  }
}

async function synchronize(path: string): Promise<void> {
  const file = await open(path, "r");
  try {
    await file.sync();
  } finally {
    await file.close();
  }
}
