import { createHash, type Hash, randomBytes } from "node:crypto";
import { mkdir, open, readdir, rm, stat, statfs, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { addAbortSignal, type Readable } from "node:stream";
import type { EventName } from "../../../core/telemetry/event-names.ts";
import { imageNameRule, isImageName, isUpload } from "../../../model/cell/image-name.ts";
import type { Json } from "../../../model/json/json.ts";
import { fail, ok, type Result } from "../../../model/result.ts";
import type { ImageManifest } from "../../../runtime/installation.ts";
import { renameDurably, synchronize } from "../../../runtime/process/durable-files.ts";
import { createTurns } from "../../../runtime/process/one-at-a-time.ts";
import { removeLeftGroups } from "./image-cgroup.ts";
import { type ConvertLimits, type ConvertOptions, convertImage } from "./image-convert.ts";
import { HostileImage, type ImageFormat, type ImageShape } from "./image-header.ts";
import { ImageParts, leastPartBytes, type PartLimits, type PartShown, partLimits } from "./image-parts.ts";
import { findImage, type ImagePlaces, uploadedImages } from "./images.ts";
import { MiB } from "./qcow2.ts";

/**
 * Uploaded images of one server. Why bytes are refused is said in `image-header.ts` and `image-convert.ts`; what the gateway
 * refuses before that (too long, too many at once, no server) in `gateway/storage/images.ts`. An upload goes through three states, each of which a crash may end at any moment:
 *
 * 1. staged: `image-staging/<id>/`, cleared at every start; the bytes come in, are looked at and converted. What breaks off may
 *    be gone on with for a while (`image-parts.ts`);
 * 2. accepted: the disk is moved to `images/<name>/<id>.qcow2`, and then `manifest.json`, which names it, is renamed into
 *    place. This rename is the moment at which the image is there, or replaced;
 * 3. what no manifest names is swept away, at once and at the next start.
 *
 * Accepting is apart from staging, so that an image comes to all servers of an installation or, refused by one, to none.
 * A volume is a whole copy of its image: replacing or deleting an image harms none that was made from it.
 */
export interface ImageLimits extends ConvertLimits {
  readonly uploadMiB: number;
  /** A sender that is silent for longer is given up. */
  readonly silenceMs: number;
  /** A staged image that nobody accepts. */
  readonly stagedMs: number;
  /** What a user uploaded, for a volume that is to be made of it. */
  readonly uploadMs: number;
  /** What came before an upload broke off. */
  readonly parts: PartLimits;
}
export const imageLimits: ImageLimits = {
  uploadMiB: 64 * 1024,
  virtualMiB: 1024 * 1024,
  outputMiB: 64 * 1024,
  cpuSeconds: 1200,
  wallSeconds: 1800,
  memoryMiB: 1024,
  processes: 128,
  silenceMs: 60_000,
  stagedMs: 10 * 60_000,
  uploadMs: 24 * 60 * 60_000,
  parts: partLimits,
};
export interface ImageStoreOptions extends ImagePlaces {
  readonly limits?: Partial<ImageLimits>;
  /** Parent control groups of the sandboxes; may be empty. */
  readonly cgroups?: readonly string[];
  readonly log: (event: EventName, fields: { readonly [key: string]: Json }) => void;
  /** The list of images is another one. */
  readonly changed: () => void;
  /** Absent: as it is done; a simulated server has no bytes of volumes. */
  readonly convert?: (options: ConvertOptions) => Promise<ImageShape>;
  /** For tests. */
  readonly freeBytes?: () => number;
}
export interface Upload {
  readonly name: string;
  readonly format: ImageFormat;
  readonly replace: boolean;
  /** As announced by the sender, of the whole. */
  readonly length: number;
  /** The rest behind so many octets, which are here since it broke off; absent: all of it. */
  readonly from?: number;
  /** What comes of it stays for a while where it breaks off. */
  readonly keep?: boolean;
  readonly body: Readable;
}
/** How far it is. */
interface Progress {
  readonly id: string;
  readonly hash: Hash;
  readonly begunMs: number;
  received: number;
}
export interface StagedImage {
  /** To accept or discard it by; null: the very same image is already there, and there is nothing to do. */
  readonly id: string | null;
  readonly name: string;
  /** SHA-256 of the uploaded bytes, hexadecimal. */
  readonly digest: string;
  readonly sizeMiB: number;
}
/** With the HTTP status that says the same. */
export interface ImageRefusal {
  readonly status: 400 | 404 | 409 | 413 | 503 | 507;
  readonly code: string;
  readonly message: string;
}

const uploadFile = "upload";
const resultFile = "disk.qcow2";
const mostStaged = 4;
/** Left for the volumes that are there. */
const spareBytes = 64 * MiB;
/** What is free, less what is to stay so: users fill no more than half of it, however often they upload. @param freeBytes without what is on its way */
export const roomIn = (freeBytes: number, name: string): number =>
  isUpload(name) ? Math.floor(freeBytes / 2) : freeBytes - spareBytes;
const sweepMs = 10 * 60_000;

export class ImageStore {
  readonly #options: ImageStoreOptions;
  readonly #limits: ImageLimits;
  readonly #staging: string;
  readonly #staged = new Map<string, { readonly image: StagedImage; readonly timer: NodeJS.Timeout }>();
  readonly #parts: ImageParts;
  readonly #underWayNames = new Set<string>();
  readonly #stop = new AbortController();
  #underWay = 0;
  /** Octets that were announced, and are not written yet. */
  #coming = 0;
  #sweeps: NodeJS.Timeout | null = null;
  /** One conversion at a time: each may take all the memory that is meant for them. */
  readonly #conversions = createTurns();
  /** One change of what is there at a time. It waits for no conversion: a staged image would be over meanwhile. */
  readonly #changes = createTurns();

  constructor(options: ImageStoreOptions) {
    this.#options = options;
    this.#limits = { ...imageLimits, ...options.limits };
    this.#staging = join(options.directory, "image-staging");
    this.#parts = new ImageParts(this.#limits.parts, (id) =>
      rm(join(this.#staging, id), { recursive: true, force: true }),
    );
  }

  /** Clears what an earlier process left behind. */
  async prepare(): Promise<void> {
    await removeLeftGroups(this.#options.cgroups ?? []);
    await rm(this.#staging, { recursive: true, force: true });
    await mkdir(this.#staging, { recursive: true, mode: 0o700 });
    const images = uploadedImages(this.#options);
    await mkdir(images, { recursive: true, mode: 0o700 });
    for (const name of await readdir(images)) await this.#sweep(name);
    await this.#endUploads();
    this.#sweeps = setInterval(() => void this.#changes(() => this.#endUploads()).catch(() => undefined), sweepMs);
    this.#sweeps.unref();
  }

  /** What nobody made a volume of in time. */
  async #endUploads(): Promise<void> {
    const images = uploadedImages(this.#options);
    for (const name of (await readdir(images)).filter(isUpload)) {
      const record = join(images, name, "manifest.json");
      const written = await stat(record).catch(() => null);
      if (written === null || Date.now() - written.mtimeMs < this.#limits.uploadMs) continue;
      await this.#delete(name, { why: "no volume was made of this upload in time" });
    }
  }

  /** Breaks off what is under way; staged images go with the next start. */
  async close(): Promise<void> {
    this.#stop.abort();
    clearInterval(this.#sweeps ?? undefined);
    for (const { timer } of this.#staged.values()) clearTimeout(timer);
    await Promise.all([this.#conversions, this.#changes].map((inTurn) => inTurn(async () => undefined)));
  }

  /** Takes an upload in and converts it. When the sender goes away that is refused as well, though nobody may hear it; nothing of it stays. */
  async stage(upload: Upload): Promise<Result<StagedImage, ImageRefusal>> {
    const begun = await this.#begin(upload);
    if ("code" in begun) return fail(begun);
    let left = upload.length - begun.received;
    const came = (octets: number): void => {
      const less = Math.min(octets, left);
      left -= less;
      this.#coming -= less;
    };
    this.#underWayNames.add(upload.name);
    try {
      return await this.#take(upload, begun, came);
    } finally {
      came(left);
      this.#underWayNames.delete(upload.name);
      this.#underWay -= 1;
    }
  }
  async #take(
    upload: Upload,
    progress: Progress,
    came: (octets: number) => void,
  ): Promise<Result<StagedImage, ImageRefusal>> {
    const { id } = progress;
    const directory = join(this.#staging, id);
    try {
      if (progress.received === 0) await this.#parts.end(upload.name);
      await mkdir(directory, { mode: 0o700, recursive: true });
      await this.#receive(upload, progress, came);
      const digest = progress.hash.digest("hex");
      const there = await findImage(this.#options, upload.name);
      if (there !== null && there.manifest.digest === digest) {
        await rm(directory, { recursive: true, force: true });
        return ok({ id: null, name: upload.name, digest, sizeMiB: there.manifest.sizeMiB });
      }
      if (there !== null && !upload.replace) throw new Refused(exists(upload.name));
      const shape = await this.#conversions(() => this.#convert(directory, upload));
      await rm(join(directory, uploadFile), { force: true });
      const image = { id, name: upload.name, digest, sizeMiB: Math.ceil(shape.virtualBytes / MiB) };
      const timer = setTimeout(() => void this.discard(id), this.#limits.stagedMs);
      this.#staged.set(id, { image, timer });
      this.#options.log("image/staged", { ...image, format: upload.format });
      return ok(image);
    } catch (error) {
      if (error instanceof BrokenOff && upload.keep === true && progress.received >= leastPartBytes)
        await this.#parts.keep(upload.name, { ...progress, format: upload.format, length: upload.length });
      else await rm(directory, { recursive: true, force: true });
      const refused = asRefusal(upload.name, error);
      if (refused === null) throw error;
      this.#options.log("image/refused", { name: upload.name, why: refused.message });
      return fail(refused);
    }
  }

  /** Makes a staged image the one of its name. An image of that name that is there is replaced if `replace`. */
  async accept(id: string, replace: boolean): Promise<Result<StagedImage, ImageRefusal>> {
    const staged = this.#staged.get(id);
    if (staged === undefined) return fail(notStaged);
    const { image } = staged;
    return this.#changes(async () => {
      const there = await findImage(this.#options, image.name);
      if (there !== null && !replace && there.manifest.digest !== image.digest) return fail(exists(image.name));
      this.#forget(id);
      const { name, digest, sizeMiB } = image;
      try {
        await this.#install(id, { name, digest, disk: `${id}.qcow2`, sizeMiB, boot: null });
      } catch (error) {
        const refused = asRefusal(name, error);
        if (refused === null) throw error;
        return fail(refused);
      } finally {
        // What is there now is what the record says, whichever one it is.
        await rm(join(this.#staging, id), { recursive: true, force: true });
        await this.#sweep(name);
      }
      this.#options.log("image/added", { name, digest, sizeMiB, replaced: there?.manifest.digest ?? null });
      this.#options.changed();
      return ok(image);
    });
  }

  /** The disk first, then the record that names it. */
  async #install(id: string, manifest: ImageManifest): Promise<void> {
    const directory = join(uploadedImages(this.#options), manifest.name);
    await mkdir(directory, { recursive: true, mode: 0o700 });
    await synchronize(join(this.#staging, id, resultFile));
    await renameDurably(join(this.#staging, id, resultFile), join(directory, manifest.disk));
    const fresh = join(directory, "manifest.new");
    await writeFile(fresh, `${JSON.stringify(manifest, null, 2)}\n`, { mode: 0o600 });
    await synchronize(fresh);
    await renameDurably(fresh, join(directory, "manifest.json"));
    await synchronize(uploadedImages(this.#options));
  }

  async discard(id: string): Promise<void> {
    if (this.#forget(id)) await rm(join(this.#staging, id), { recursive: true, force: true });
  }

  async remove(name: string): Promise<ImageRefusal | null> {
    if (!isImageName(name)) return badName(name);
    return this.#changes(async () => {
      const wasPart = await this.#parts.end(name);
      const there = await findImage(this.#options, name);
      if (there === null && wasPart) return null;
      if (there === null) return { status: 404, code: "image/unknown", message: `there is no image "${name}"` };
      if (there.provided) return provided(name);
      await this.#delete(name, { digest: there.manifest.digest });
      return null;
    });
  }

  /** The record first: what none names is swept. */
  async #delete(name: string, more: { readonly [field: string]: Json }): Promise<void> {
    const directory = join(uploadedImages(this.#options), name);
    await rm(join(directory, "manifest.json"), { force: true });
    await synchronize(directory);
    await this.#sweep(name);
    this.#options.log("image/deleted", { name, ...more });
    this.#options.changed();
  }

  #forget(id: string): boolean {
    clearTimeout(this.#staged.get(id)?.timer);
    return this.#staged.delete(id);
  }

  /** What has come of one that broke off. */
  part(name: string): Result<PartShown, ImageRefusal> {
    if (this.#underWayNames.has(name)) return fail(stillComing);
    const shown = this.#parts.shown(name);
    return shown === null ? fail(noPart) : ok(shown);
  }

  /** What can be said before a byte has come; otherwise it has a place, and its room is nobody else's. */
  async #begin({ name, format, length, from = 0 }: Upload): Promise<Progress | ImageRefusal> {
    if (!isImageName(name)) return badName(name);
    const there = await findImage(this.#options, name);
    if (there?.provided) return provided(name);
    if (length > this.#limits.uploadMiB * MiB)
      return {
        status: 413,
        code: "image/too-large",
        message: `${Math.ceil(length / MiB)} MiB are too many: an upload may have ${this.#limits.uploadMiB} MiB`,
      };
    // Users leave the operator a place.
    if (this.#underWay + this.#staged.size >= (isUpload(name) ? mostStaged - 1 : mostStaged))
      return {
        status: 503,
        code: "image/busy",
        message: `${mostStaged} images are being added already; try again when one is done`,
      };
    const rest = { format, length, received: from };
    if (from !== 0 && !this.#parts.has(name, rest)) return this.#noRestOf(name);
    // Room comes last, since others may lose for it what they have here. The place is nobody else's meanwhile.
    this.#underWay += 1;
    let begun: Progress | null = null;
    try {
      if (!(await this.#hasRoom(length - from, name))) return noSpace;
      const part = from === 0 ? null : this.#parts.take(name, rest);
      if (from !== 0 && part === null) return this.#noRestOf(name);
      this.#coming += length - from;
      const { id, hash, begunMs } = part ?? {
        id: randomBytes(8).toString("hex"),
        hash: createHash("sha256"),
        begunMs: performance.now(),
      };
      begun = { id, hash, begunMs, received: from };
      return begun;
    } finally {
      if (begun === null) this.#underWay -= 1;
    }
  }
  #noRestOf = (name: string): ImageRefusal => (this.#underWayNames.has(name) ? stillComing : otherPart);

  /** What broke off gives way to what comes: as much of it as is needed, and nothing where all of it would not do. */
  async #hasRoom(octets: number, name: string): Promise<boolean> {
    const isThere = async (more: number): Promise<boolean> => {
      const freeBytes = await this.#freeBytes();
      return octets <= roomIn(freeBytes + more - this.#coming, name);
    };
    if (await isThere(0)) return true;
    if (!(await isThere(this.#parts.octets(name)))) return false;
    while (await this.#parts.giveWay(name)) if (await isThere(0)) return true;
    return false;
  }

  /** Writes the bytes behind those that are there. What it says of its progress is so at its end, however it ends. */
  async #receive({ body, length }: Upload, progress: Progress, came: (octets: number) => void): Promise<void> {
    const silence = setTimeout(
      () => body.destroy(new Error(`the sender was silent for ${this.#limits.silenceMs} ms`)),
      this.#limits.silenceMs,
    );
    addAbortSignal(this.#stop.signal, body);
    try {
      const file = await open(join(this.#staging, progress.id, uploadFile), "a", 0o600);
      try {
        for await (const chunk of body as AsyncIterable<Buffer>) {
          silence.refresh();
          if (progress.received + chunk.length > length)
            throw new HostileImage(`more bytes came than the ${length} announced`);
          await file.appendFile(chunk);
          progress.received += chunk.length;
          progress.hash.update(chunk);
          came(chunk.length);
        }
      } finally {
        await file.close();
      }
    } catch (error) {
      if (this.#stop.signal.aborted || error instanceof HostileImage || isOfFile(error)) throw error;
      // Whatever else ends it is the sender's.
      throw new BrokenOff(brokenOff((error as Error).message));
    } finally {
      clearTimeout(silence);
    }
    if (progress.received !== length)
      throw new HostileImage(`${progress.received} bytes came of the ${length} announced`);
  }

  async #convert(
    directory: string,
    { name, format, length }: Pick<Upload, "name" | "format" | "length">,
  ): Promise<{ readonly virtualBytes: number }> {
    // What comes of it is about as long. It may be more or less: its bound is what there is.
    await this.#hasRoom(length, name);
    const free = Math.floor(roomIn((await this.#freeBytes()) - this.#coming, name) / MiB);
    if (free < 1) throw new Refused(noSpace);
    const limits = { ...this.#limits, outputMiB: Math.min(this.#limits.outputMiB, free) };
    const convert = this.#options.convert ?? convertImage;
    return convert({
      directory,
      format,
      limits,
      upload: uploadFile,
      result: resultFile,
      signal: this.#stop.signal,
      ...(this.#options.cgroups === undefined ? {} : { cgroups: this.#options.cgroups }),
    });
  }

  async #freeBytes(): Promise<number> {
    if (this.#options.freeBytes !== undefined) return this.#options.freeBytes();
    const disk = await statfs(this.#options.directory);
    return disk.bavail * disk.bsize;
  }

  /** Removes what the manifest of this name does not name; without one, everything. */
  async #sweep(name: string): Promise<void> {
    const directory = join(uploadedImages(this.#options), name);
    let keep: readonly string[] = [];
    try {
      const { manifest } = (await readOwn(directory)) ?? {};
      if (manifest !== undefined) keep = ["manifest.json", manifest.disk];
    } catch {
      // A record that cannot be read is not ours to judge here: it stays for a person to see.
      return;
    }
    if (keep.length === 0) return rm(directory, { recursive: true, force: true });
    for (const entry of await readdir(directory))
      if (!keep.includes(entry)) await rm(join(directory, entry), { recursive: true, force: true });
  }
}

/** What the file system says names what was called there. */
const isOfFile = (error: unknown): boolean => {
  const { syscall } = error as NodeJS.ErrnoException;
  return syscall === "open" || syscall === "write" || syscall === "close";
};
const brokenOff = (why: string): ImageRefusal => ({
  status: 400,
  code: "image/broken",
  message: `the bytes ended before their announced end: ${why}`,
});

class Refused extends Error {
  readonly refusal: ImageRefusal;
  constructor(refusal: ImageRefusal) {
    super(refusal.message);
    this.refusal = refusal;
  }
}
/** By its sender. */
class BrokenOff extends Refused {}

/** Null: no fault of the upload, but of the way or of this server. */
function asRefusal(name: string, error: unknown): ImageRefusal | null {
  if (error instanceof Refused) return error.refusal;
  if (error instanceof HostileImage)
    return { status: 400, code: "image/refused", message: `image "${name}" is refused: ${error.message}` };
  return (error as NodeJS.ErrnoException).code === "ENOSPC" ? noSpace : null;
}

const noSpace: ImageRefusal = {
  status: 507,
  code: "image/no-space",
  message: "this server has too little space left for it",
};
const notStaged: ImageRefusal = {
  status: 404,
  code: "image/not-staged",
  message: "this upload is not there any more: it was accepted, took too long, or the server started again",
};
const noPart: ImageRefusal = {
  status: 404,
  code: "image/no-part",
  message: "nothing of this upload is kept: send it from its beginning",
};
const otherPart: ImageRefusal = {
  status: 409,
  code: "image/offset",
  message: "what is kept of this upload does not end there, or is of another length or format; ask how far it is",
};
const stillComing: ImageRefusal = {
  status: 409,
  code: "image/under-way",
  message: "this upload is under way already",
};
const badName = (name: string): ImageRefusal => ({
  status: 400,
  code: "image/bad-name",
  message: `"${name.slice(0, 80)}" cannot name an image: use ${imageNameRule}`,
});
const exists = (name: string): ImageRefusal => ({
  status: 409,
  code: "image/exists",
  message: `there is an image "${name}" with other content; choose another name, or replace it (--replace)`,
});
const provided = (name: string): ImageRefusal => ({
  status: 409,
  code: "image/provided",
  message: `the image "${name}" comes with the installation and cannot be replaced or deleted; choose another name`,
});

async function readOwn(directory: string): Promise<{ readonly manifest: ImageManifest } | null> {
  const file = await open(join(directory, "manifest.json"), "r").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return null;
    throw error;
  });
  if (file === null) return null;
  try {
    return { manifest: JSON.parse(await file.readFile("utf8")) as ImageManifest };
  } finally {
    await file.close();
  }
}
