import { isUtf8 } from "node:buffer";
import { type Dirent, readdirSync, readFileSync, realpathSync, statSync } from "node:fs";
import { dirname, join, posix, relative, sep } from "node:path";
import type { Bundle } from "../../model/cell/cell.ts";
import { limits } from "../../model/limits.ts";
import { includesOf } from "../spec/bundle.ts";

/** Bounds on what is read of a workspace, which may be a whole home directory. */
const most = { files: 2000, entries: 50_000, depth: 12, bundle: 1000 } as const;

interface Disk {
  readonly modified: number;
  readonly size: number;
  readonly text: string | null;
}

/**
 * The texts of a workspace, by absolute path: those that are open in the editor, saved or not, before those on the disk.
 * Nothing outside the workspace's folders is read, not through symbolic links either.
 */
export class Sources {
  readonly #roots: { readonly path: string; readonly depth: number }[] = [];
  readonly #open = new Map<string, string>();
  readonly #disk = new Map<string, Disk>();
  /** What each known file includes, as absolute paths; null until the folders are looked through. */
  #includes: Map<string, readonly string[]> | null = null;

  /** A folder that may be read. Files that include others are looked for in it, as many directories deep. */
  addRoot(folder: string, depth: number = most.depth): void {
    try {
      const path = realpathSync(folder);
      if (this.#roots.some((root) => root.path === path)) return;
      this.#roots.push({ path, depth });
      this.#includes = null;
    } catch {
      // It is gone: then there is nothing to read.
    }
  }

  get opened(): ReadonlyMap<string, string> {
    return this.#open;
  }
  open(path: string, text: string): void {
    this.#open.set(path, text);
    this.#includes?.set(path, targetsOf(path, text));
  }
  close(path: string): void {
    this.#open.delete(path);
    this.changed(path);
  }
  /** The file on the disk was made, changed or removed. */
  changed(path: string): void {
    this.#disk.delete(path);
    const text = this.read(path);
    if (text === null) this.#includes?.delete(path);
    else this.#includes?.set(path, targetsOf(path, text));
  }

  /** Null if there is no such text, or none that may be read. */
  read(path: string): string | null {
    const open = this.#open.get(path);
    if (open !== undefined) return open;
    try {
      const { mtimeMs, size } = statSync(path);
      const known = this.#disk.get(path);
      if (known?.modified === mtimeMs && known.size === size) return known.text;
      const text = this.#mayRead(path) && size <= limits.textLength ? decoded(readFileSync(path)) : null;
      this.#disk.set(path, { modified: mtimeMs, size, text });
      return text;
    } catch {
      this.#disk.delete(path);
      return null;
    }
  }
  #mayRead(path: string): boolean {
    const real = realpathSync(path);
    return this.#roots.some((root) => isInside(root.path, real));
  }

  /** A main file with all that it includes, as far as it can be had. Names are relative to its directory. */
  bundle(main: string): Bundle {
    const directory = dirname(main);
    const files: Record<string, string> = {};
    const open = [main];
    for (const path of open) {
      const name = nameIn(directory, path);
      if (Object.hasOwn(files, name) || Object.keys(files).length === most.bundle) continue;
      const text = this.read(path);
      if (text === null) continue;
      files[name] = text;
      for (const target of targetsOf(path, text)) if (isInside(directory, target)) open.push(target);
    }
    return { main: nameIn(directory, main), files };
  }

  /**
   * The files that a text is read as part of: those that include it, directly or through others, and that none includes;
   * itself if there are none. Open ones come first.
   */
  mains(path: string): readonly string[] {
    const includes = this.#known();
    const by = new Map<string, string[]>();
    for (const [from, targets] of includes)
      for (const target of targets) {
        const some = by.get(target);
        if (some) some.push(from);
        else by.set(target, [from]);
      }
    const seen = new Set([path]);
    const tops: string[] = [];
    for (const at of seen) {
      // The directory of a main file bounds what it may include.
      const outer = (by.get(at) ?? []).filter((each) => isInside(dirname(each), path));
      if (outer.length === 0 && at !== path) tops.push(at);
      for (const each of outer) seen.add(each);
    }
    const rank = (each: string): number => (this.#open.has(each) ? 0 : 1);
    return tops.length === 0 ? [path] : tops.toSorted((a, b) => rank(a) - rank(b));
  }

  #known(): Map<string, readonly string[]> {
    if (this.#includes) return this.#includes;
    const includes = new Map<string, readonly string[]>();
    this.#includes = includes;
    for (const path of this.#smartFrogFiles()) {
      const text = this.read(path);
      if (text?.includes("#include")) includes.set(path, targetsOf(path, text));
    }
    for (const [path, text] of this.#open) includes.set(path, targetsOf(path, text));
    return includes;
  }

  #smartFrogFiles(): readonly string[] {
    const found: string[] = [];
    const open = [...this.#roots];
    let entries = 0;
    for (const { path, depth } of open)
      for (const entry of entriesOf(path)) {
        if (++entries > most.entries || found.length === most.files) return found;
        const inside = join(path, entry.name);
        if (entry.isFile() && entry.name.endsWith(".sf")) found.push(inside);
        const skipped = entry.name.startsWith(".") || entry.name === "node_modules";
        if (entry.isDirectory() && !skipped && depth > 0) open.push({ path: inside, depth: depth - 1 });
      }
    return found;
  }
}

function entriesOf(directory: string): readonly Dirent[] {
  try {
    return readdirSync(directory, { withFileTypes: true });
  } catch {
    return [];
  }
}

const decoded = (bytes: Buffer): string | null => (isUtf8(bytes) ? bytes.toString("utf8") : null);

const isInside = (directory: string, path: string): boolean => {
  const way = relative(directory, path);
  return way !== "" && way !== ".." && !way.startsWith(`..${sep}`);
};

/** Files of a bundle have `/` between names. */
const nameIn = (directory: string, path: string): string => relative(directory, path).split(sep).join("/");

const targetsOf = (path: string, text: string): readonly string[] =>
  path.endsWith(".sf") && text.includes("#include")
    ? includesOf(text)
        .filter(({ name }) => !posix.isAbsolute(name))
        .map(({ name }) => join(dirname(path), name))
    : [];
