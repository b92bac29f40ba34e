import type { GoneHosts } from "../../core/env.ts";
import type { Json } from "../../model/json/json.ts";
import type { Random } from "./random.ts";

/** What the disk does to a commit. */
export type DiskHealth = "well" | "slow" | "full" | "failing";

/**
 * A service's store on a simulated disk. A commit is atomic and takes time; a crash meanwhile loses it, or does not: that
 * it had landed was only not known yet. What is kept is text, so that nothing durable is shared with what lives.
 */
export class Disk {
  health: DiskHealth = "well";
  readonly #random: Random;
  readonly #durable = new Map<string, string>();
  #copy: ReadonlyMap<string, string> = new Map();
  #pending: readonly (readonly [string, string | null])[] | null = null;
  /** Commits, and those that a crash took. */
  commits = 0;
  lost = 0;

  constructor(random: Random) {
    this.#random = random;
  }

  /** All of it, after a start. */
  load(): Map<string, Json> {
    return new Map([...this.#durable].map(([key, text]) => [key, JSON.parse(text) as Json]));
  }

  /** One record as it is durable now; null: there is none. */
  read(key: string): Json {
    const text = this.#durable.get(key);
    return text === undefined ? null : (JSON.parse(text) as Json);
  }

  /** A copy of it, as a backup makes it; what was lost since is what `putBack` takes away. */
  copy(): void {
    this.#copy = new Map(this.#durable);
  }
  /** It is as the last copy from now on, blank where there is none. Not while a process runs from it. */
  putBack(): void {
    this.#become(this.#copy);
  }
  /** It is as the last copy, and what it was until now is the copy: another one may bring that back. */
  exchange(): void {
    const content = new Map(this.#durable);
    this.#become(this.#copy);
    this.#copy = content;
  }
  /** The same where nothing of then runs any more at these hosts, or at any (`noteRestored` of runtime/process/store.ts). */
  putBackAnew(gone: GoneHosts): void {
    this.putBack();
    const forgets = (key: string): boolean =>
      gone === "all" ? key.startsWith("history/peer/host.") : gone.some((host) => key === `history/peer/host.${host}`);
    for (const key of [...this.#durable.keys()]) if (forgets(key)) this.#durable.delete(key);
    const hosts = gone === "all" ? "gone" : gone;
    this.#durable.set("history/restored", JSON.stringify({ from: "a copy", wallMs: 0, hosts }));
  }
  /** Everything on it is gone. */
  lose(): void {
    this.#become(new Map());
  }
  #become(content: ReadonlyMap<string, string>): void {
    this.#pending = null;
    this.#durable.clear();
    for (const [key, text] of content) this.#durable.set(key, text);
  }

  get size(): number {
    return this.#durable.size;
  }

  /** Begins a commit: how long it takes, or null where the disk refuses it. One at a time. */
  begin(writes: ReadonlyMap<string, Json>): number | null {
    if (this.#pending !== null) throw new Error("a commit is under way");
    if (writes.size === 0) return 0;
    if (this.health === "failing" || this.health === "full") return null;
    this.#pending = [...writes].map(([key, value]) => [key, value === null ? null : JSON.stringify(value)]);
    const scale = this.health === "slow" ? 400 : 1;
    return (0.3 + this.#random.next() * 3) * scale;
  }

  /** The commit under way is durable. */
  finish(): void {
    for (const [key, text] of this.#pending ?? []) {
      if (text === null) this.#durable.delete(key);
      else this.#durable.set(key, text);
    }
    if (this.#pending !== null) this.commits += 1;
    this.#pending = null;
  }

  /** Power or process is gone in the middle of whatever there was. */
  crash(): void {
    if (this.#pending === null) return;
    if (this.#random.chance(0.5)) this.finish();
    else this.lost += 1;
    this.#pending = null;
  }
}
