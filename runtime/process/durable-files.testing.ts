import { basename, dirname } from "node:path";
import type { FileOperations } from "./durable-files.ts";

interface Inode {
  text: string;
  /** What of it is on the disk; null: nothing. */
  durable: string | null;
}

/**
 * A file system that keeps what POSIX promises and nothing more: the bytes of a file once it was synchronized, the entries of
 * a directory once that was.
 */
export class FragileFiles implements FileOperations {
  readonly #entries = new Map<string, Inode>();
  #durable = new Map<string, Inode>();
  readonly done: string[] = [];

  readonly write = async (path: string, text: string): Promise<void> => {
    this.#done("write", path);
    this.#entries.set(path, { text, durable: text });
  };
  readonly rename = async (from: string, to: string): Promise<void> => {
    this.#done("rename", to);
    this.#entries.set(to, this.#at(from));
    this.#entries.delete(from);
  };
  readonly link = async (from: string, to: string): Promise<void> => {
    this.#done("link", to);
    if (this.#entries.has(to)) throw Object.assign(new Error("there is one"), { code: "EEXIST" });
    this.#entries.set(to, this.#at(from));
  };
  readonly remove = async (path: string): Promise<void> => {
    this.#entries.delete(path);
  };
  readonly synchronize = async (path: string): Promise<void> => {
    this.#done("synchronize", path);
    const inode = this.#entries.get(path);
    if (inode !== undefined) {
      inode.durable = inode.text;
      return;
    }
    const inside = (name: string): boolean => dirname(name) === path;
    const durable = new Map([...this.#durable].filter(([name]) => !inside(name)));
    for (const [name, each] of this.#entries) if (inside(name)) durable.set(name, each);
    this.#durable = durable;
  };

  read(path: string): string | null {
    return this.#entries.get(path)?.text ?? null;
  }

  /** The power is gone, and back. */
  cut(): void {
    this.#entries.clear();
    for (const [name, inode] of this.#durable)
      if (inode.durable !== null) this.#entries.set(name, { text: inode.durable, durable: inode.durable });
    this.#durable = new Map(this.#entries);
  }

  #at(path: string): Inode {
    const inode = this.#entries.get(path);
    if (inode === undefined) throw Object.assign(new Error(`no ${path}`), { code: "ENOENT" });
    return inode;
  }
  #done(what: string, path: string): void {
    this.done.push(`${what} ${basename(path).replace(/\.[0-9a-f]{12}$/, ".tmp")}`);
  }
}
