import type { Hash } from "node:crypto";
import type { ImageFormat } from "./image-header.ts";

/*
 * What has come of uploads that broke off, so that who sends them goes on there. It is known in memory alone, with the SHA-256 of all before: an
 * agent that starts again has nothing of it, and it begins anew. It is a favour: its time and its number are bounded, and it gives way to what needs its room.
 */
export interface Part {
  /** Of its directory below `image-staging`. */
  readonly id: string;
  readonly format: ImageFormat;
  /** Of the whole. */
  readonly length: number;
  /** Octets that are on the disk, and in the hash. */
  readonly received: number;
  readonly hash: Hash;
  /** When its first octet was to come, as `performance.now()` says it. */
  readonly begunMs: number;
}
/** As it is told to who asks how far it is. */
export interface PartShown extends Omit<Part, "id" | "hash" | "begunMs"> {
  /** SHA-256 of what is there, hexadecimal: whether it is the beginning of what he has. */
  readonly digest: string;
}
export interface PartLimits {
  /** Since it broke off. */
  readonly keptMs: number;
  /** Since it began: who breaks off again and again has its room no longer. */
  readonly wholeMs: number;
  readonly ofAccount: number;
  readonly inAll: number;
}
/** Less is sent again. */
export const leastPartBytes = 2 ** 20;
export const partLimits: PartLimits = { keptMs: 60 * 60_000, wholeMs: 48 * 60 * 60_000, ofAccount: 2, inAll: 8 };

/** Of `upload-<account>-<id>`. */
const accountIn = (name: string): string => name.slice(0, -33);

export class ImageParts {
  readonly #limits: PartLimits;
  readonly #remove: (id: string) => Promise<void>;
  /** By the image's name; the one that broke off first comes first. */
  readonly #kept = new Map<string, { readonly part: Part; readonly timer: NodeJS.Timeout }>();

  /** @param remove what it has on the disk */
  constructor(limits: PartLimits, remove: (id: string) => Promise<void>) {
    this.#limits = limits;
    this.#remove = remove;
  }

  async keep(name: string, part: Part): Promise<void> {
    // Two of one name may break off at once, as where the gateway is another one since.
    while (this.#kept.has(name)) await this.end(name);
    const { keptMs, wholeMs, ofAccount, inAll } = this.#limits;
    const leftMs = Math.min(keptMs, part.begunMs + wholeMs - performance.now());
    if (leftMs <= 0) return this.#remove(part.id);
    const timer = setTimeout(() => void this.end(name).catch(() => undefined), leftMs);
    timer.unref();
    this.#kept.set(name, { part, timer });
    if (this.#of(accountIn(name)).length > ofAccount) await this.end(this.#of(accountIn(name))[0] ?? name);
    else if (this.#kept.size > inAll) await this.end(this.#ofMost());
  }

  shown(name: string): PartShown | null {
    const part = this.#kept.get(name)?.part;
    if (part === undefined) return null;
    const { format, length, received, hash } = part;
    return { format, length, received, digest: hash.copy().digest("hex") };
  }

  has(name: string, { format, length, received }: Pick<Part, "format" | "length" | "received">): boolean {
    const part = this.#kept.get(name)?.part;
    return part !== undefined && part.format === format && part.length === length && part.received === received;
  }

  /** Whoever goes on with it has it alone. Null: it is none that this is the rest of. */
  take(name: string, rest: Pick<Part, "format" | "length" | "received">): Part | null {
    const kept = this.#kept.get(name);
    if (kept === undefined || !this.has(name, rest)) return null;
    clearTimeout(kept.timer);
    this.#kept.delete(name);
    return kept.part;
  }

  /** @returns whether there was one */
  async end(name: string): Promise<boolean> {
    const kept = this.#kept.get(name);
    if (kept === undefined) return false;
    clearTimeout(kept.timer);
    this.#kept.delete(name);
    await this.#remove(kept.part.id);
    return true;
  }
  /** Of all but this one. */
  octets(but: string): number {
    return [...this.#kept].reduce((sum, [name, { part }]) => (name === but ? sum : sum + part.received), 0);
  }
  /** One goes, where its room is needed. @param but never this one @returns whether there was one */
  giveWay(but: string): Promise<boolean> {
    return this.end(this.#ofMost(but));
  }

  #of = (account: string): readonly string[] => [...this.#kept.keys()].filter((name) => accountIn(name) === account);
  /** The first of an account that has most: so nobody's number takes the only one of another. */
  #ofMost(but?: string): string {
    const names = [...this.#kept.keys()].filter((name) => name !== but);
    const most = Math.max(...names.map((name) => this.#of(accountIn(name)).length));
    return names.find((name) => this.#of(accountIn(name)).length === most) ?? "";
  }
}
