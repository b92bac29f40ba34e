import { mkdir, readdir, readFile, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { isBinFileName } from "../../../core/documents/bin.ts";
import type { BinLabel } from "../../../core/storage/agent/work.ts";
import type { BinFile } from "../../../core/storage/bin.ts";
import type { Uid } from "../../../model/cell/identifiers.ts";
import { renameDurably, synchronize } from "../../../runtime/process/durable-files.ts";
import { replaceFile } from "../../../runtime/process/replace-file.ts";
import { MiB, readHeader } from "../images/qcow2.ts";

/**
 * The files of deleted volumes: `bin/<uid>.<number>.qcow2` below the volumes' directory, so that a file comes here and goes
 * back by being renamed, and beside each what it was, `.json`. It says all of itself: a server whose store is lost still
 * knows what is in its bin. `bin/clock.json` counts how long the agent ran. Methods may be repeated at any time, and throw a
 * sentence.
 */
interface Label extends BinLabel {
  readonly volume: Uid;
  /** Milliseconds since 1970. */
  readonly deletedMs: number;
  /** What the bin's own clock said. */
  readonly atMs: number;
  readonly offered?: true;
}
const clockFile = "clock.json";
/** What is lost of the clock when the agent ends otherwise than in order. */
const clockEveryMs = 10 * 60_000;
const unknown: BinLabel = { about: null, overlay: false, manager: null };

export class BinFiles {
  readonly directory: string;
  /** How long agents of this server ran before, and since when this one does. */
  #ranMs = 0;
  #keptMs = 0;
  readonly #startedAt = performance.now();

  /** @param volumes the directory of the volumes' files */
  constructor(volumes: string) {
    this.directory = join(volumes, "bin");
  }

  async prepare(): Promise<void> {
    await mkdir(this.directory, { recursive: true, mode: 0o700 });
    const names = new Set(await readdir(this.directory));
    // It was to say what a file is whose turn did not come.
    for (const name of names)
      if (name.endsWith(".json") && name !== clockFile && !names.has(name.replace(/json$/, "qcow2")))
        await rm(join(this.directory, name), { force: true });
    const clock = await readJson<{ readonly ranMs?: unknown }>(join(this.directory, clockFile));
    const latest = Math.max(0, ...(await this.#labels()).map(({ label }) => label?.atMs ?? 0));
    this.#ranMs = Math.max(latest, typeof clock?.ranMs === "number" ? clock.ranMs : 0);
    this.#keptMs = this.#ranMs;
  }

  #now(): number {
    return this.#ranMs + (performance.now() - this.#startedAt);
  }

  /** Moves a volume's file here. Null: there is no such file. */
  async take(volume: Uid, path: string, label: BinLabel): Promise<BinFile | null> {
    if ((await stat(path).catch(() => null)) === null) return null;
    const numbers = (await readdir(this.directory)).map((name) => {
      const [uid, number] = name.split(".");
      return uid === volume ? Number(number) : 0;
    });
    const file = `${volume}.${Math.max(0, ...numbers) + 1}`;
    const all: Label = { ...label, volume, deletedMs: Date.now(), atMs: this.#now() };
    // What it is comes first: a file in the bin is never without.
    await this.#write(file, all);
    const before = label.untouched === true ? await this.#filesOf(volume) : [];
    await renameDurably(path, this.#path(file));
    // One that holds the same, of whoever makes and gives back a volume over and over, is enough.
    for (const each of before) if (each.isUntouched) await this.empty(each.file);
    return this.#describe(file, all);
  }

  /** Moves a file back among the volumes. False: it is not here. */
  async giveBack(file: string, path: string): Promise<boolean> {
    if (!isBinFileName(file) || (await stat(this.#path(file)).catch(() => null)) === null) return false;
    await renameDurably(this.#path(file), path);
    await rm(this.#labelPath(file), { force: true });
    return true;
  }

  /** The next volume with its cell and path begins with it. Null: there is no such file. */
  async offer(file: string): Promise<BinFile | null> {
    const found = (await this.#labels()).find((each) => each.file === file);
    if (found === undefined) return null;
    const label: Label = { ...(found.label ?? (await this.#unlabelled(file))), offered: true };
    await this.#write(file, label);
    return this.#describe(file, label);
  }

  /** For good. */
  async empty(file: string): Promise<void> {
    if (!isBinFileName(file)) return;
    await rm(this.#path(file), { force: true });
    await rm(this.#labelPath(file), { force: true });
    await synchronize(this.directory);
  }

  /** Has it a file of that volume that somebody may have written? */
  async keeps(volume: Uid): Promise<boolean> {
    return (await this.#filesOf(volume)).some(({ isUntouched }) => !isUntouched);
  }
  async #filesOf(volume: Uid): Promise<readonly { readonly file: string; readonly isUntouched: boolean }[]> {
    const names = await readdir(this.directory);
    const own = names.filter((name) => name.startsWith(`${volume}.`) && name.endsWith(".qcow2"));
    return Promise.all(
      own.map(async (name) => {
        const file = name.slice(0, -".qcow2".length);
        const label = await readJson<Label>(this.#labelPath(file));
        return { file, isUntouched: label?.untouched === true && label.offered !== true };
      }),
    );
  }

  async list(): Promise<readonly BinFile[]> {
    await this.#keepClock();
    const found: BinFile[] = [];
    for (const { file, label } of await this.#labels()) {
      const described = await this.#describe(file, label ?? (await this.#unlabelled(file)));
      if (described !== null) found.push(described);
    }
    return found;
  }

  async #keepClock(): Promise<void> {
    const now = this.#now();
    if (now - this.#keptMs < clockEveryMs) return;
    await replaceFile(join(this.directory, clockFile), JSON.stringify({ ranMs: Math.floor(now) }));
    this.#keptMs = now;
  }

  #path = (file: string): string => join(this.directory, `${file}.qcow2`);
  #labelPath = (file: string): string => join(this.directory, `${file}.json`);

  async #write(file: string, label: Label): Promise<void> {
    await replaceFile(this.#labelPath(file), JSON.stringify(label));
  }

  async #labels(): Promise<readonly { readonly file: string; readonly label: Label | null }[]> {
    const names = await readdir(this.directory);
    const files = names.filter((name) => name.endsWith(".qcow2")).map((name) => name.slice(0, -".qcow2".length));
    return Promise.all(
      files.filter(isBinFileName).map(async (file) => ({ file, label: await readJson<Label>(this.#labelPath(file)) })),
    );
  }

  /** Of a file whose label is lost: it counts as having come now, each time, and so stays until somebody looks. */
  async #unlabelled(file: string): Promise<Label> {
    const { mtimeMs } = await stat(this.#path(file));
    return { ...unknown, volume: file.slice(0, file.lastIndexOf(".")) as Uid, deletedMs: mtimeMs, atMs: this.#now() };
  }

  /** Null: it has gone meanwhile. */
  async #describe(file: string, { volume, deletedMs, atMs, offered, ...label }: Label): Promise<BinFile | null> {
    const found = await stat(this.#path(file)).catch(() => null);
    if (found === null) return null;
    const header = await readHeader(this.#path(file)).catch(() => null);
    return {
      file,
      volume,
      about: label.about,
      overlay: label.overlay,
      manager: label.manager,
      sizeMiB: Math.ceil((header?.virtualBytes ?? 0) / MiB),
      usedMiB: Math.ceil((found.blocks * 512) / MiB),
      deleted: new Date(deletedMs).toISOString(),
      ageMs: Math.max(0, this.#now() - atMs),
      offered: offered === true,
      ...(label.untouched === true ? { untouched: true as const } : {}),
    };
  }
}

/** Null: it is not there, or cannot be read. */
async function readJson<T>(path: string): Promise<T | null> {
  try {
    return JSON.parse(await readFile(path, "utf8")) as T;
  } catch {
    return null;
  }
}
