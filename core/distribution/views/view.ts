import type { SliceDigest, Summary } from "../../documents/network/policy.ts";
import { groupOf, noSlices, toggled } from "./slices.ts";

/**
 * A view at its receiver: whole, or not at all. Documents come one by one, each in the place of the one before it, so
 * between two versions some of both are here. Until all of a version are, the last whole one counts.
 *
 * So that a crash in between does not lose that one, what of it was replaced is kept in records of the receiver's own, and
 * only for as long: the documents that are here, with those put back, are the last whole view. A change that comes in one
 * document, or in one step, leaves no record behind.
 *
 * Slices of groups that the manifest does not name count for nothing: a sender whose store was put back does not know of
 * them, and nobody would take them back.
 */
export interface Manifest {
  /** Absent: this document is all of the view. */
  readonly slices?: Summary;
}
export interface ViewSlice {
  readonly digest: SliceDigest;
}
export interface ViewKind<M extends Manifest> {
  /** Does the manifest speak of slices of this group? */
  readonly names: (manifest: M) => (group: string) => boolean;
}
/** What a view consists of. */
export interface Whole<M, S> {
  readonly manifest: M;
  /** By name, those that count. */
  readonly slices: ReadonlyMap<string, S>;
}
/** What was replaced since the view was whole, by the slice's name, or "" of the manifest. Null: there was none. */
export type Replaced<M, S> = ReadonlyMap<string, M | S | null>;
export interface RecordWrite<M, S> {
  readonly name: string;
  /** `was` null: there was none. Null: the record goes. */
  readonly record: { readonly was: M | S | null } | null;
}
export interface Taken<M, S> {
  /** The view is another one now; `gone`: there is none any more; null: it is as it was. */
  readonly now: Whole<M, S> | "gone" | null;
  readonly writes: readonly RecordWrite<M, S>[];
}

export class View<M extends Manifest, S extends ViewSlice> {
  readonly #kind: ViewKind<M>;
  #manifest: M | null = null;
  readonly #slices = new Map<string, S>();
  /** Of those that count by the present manifest; null: to be worked out. */
  #summary: { count: number; digest: SliceDigest } | null = null;
  #names: (group: string) => boolean = () => false;
  readonly #replaced: Map<string, M | S | null>;
  #wasWhole = false;
  #begun = false;

  /** @param replaced as its records said */
  constructor(kind: ViewKind<M>, replaced: Replaced<M, S> = new Map()) {
    this.#kind = kind;
    this.#replaced = new Map(replaced);
  }

  /** Nothing of it is here. */
  get isEmpty(): boolean {
    return this.#manifest === null && this.#slices.size === 0;
  }

  /** All that was durable is here again. */
  begin(): Taken<M, S> {
    this.#begun = true;
    if (this.#isWhole()) return this.#isThere();
    const before = this.#put();
    if (before === null) return { now: null, writes: this.#forget() };
    this.#wasWhole = true;
    return { now: before, writes: [] };
  }

  takeManifest(manifest: M | null): Taken<M, S> {
    const was = this.#manifest;
    this.#setManifest(manifest);
    if (!this.#begun) return { now: null, writes: [] };
    if (manifest === null) {
      const now = this.#wasWhole ? "gone" : null;
      this.#wasWhole = false;
      return { now, writes: this.#forget() };
    }
    return this.#settle("", was);
  }

  takeSlice(name: string, slice: S | null): Taken<M, S> {
    const was = this.#slices.get(name) ?? null;
    if (slice === null) this.#slices.delete(name);
    else this.#slices.set(name, slice);
    const isNamed = this.#names(groupOf(name));
    if (isNamed && was !== null) this.#count(was, false);
    if (isNamed && slice !== null) this.#count(slice, true);
    if (!this.#begun || (!isNamed && this.#isWhole())) return { now: null, writes: [] };
    return this.#settle(name, was);
  }

  #setManifest(manifest: M | null): void {
    this.#manifest = manifest;
    this.#names = manifest === null ? () => false : this.#kind.names(manifest);
    this.#summary = null;
  }
  #count(slice: S, isThere: boolean): void {
    if (this.#summary === null) return;
    this.#summary.count += isThere ? 1 : -1;
    this.#summary.digest = toggled(this.#summary.digest, slice.digest);
  }
  #summaryNow(): { count: number; digest: SliceDigest } {
    if (this.#summary !== null) return this.#summary;
    this.#summary = { count: 0, digest: noSlices };
    for (const [name, slice] of this.#slices) if (this.#names(groupOf(name))) this.#count(slice, true);
    return this.#summary;
  }
  #isWhole(): boolean {
    if (this.#manifest === null) return false;
    const { slices } = this.#manifest;
    if (slices === undefined) return true;
    const { count, digest } = this.#summaryNow();
    return count === slices.count && digest[0] === slices.digest[0] && digest[1] === slices.digest[1];
  }
  #whole(manifest: M): Whole<M, S> {
    if (manifest.slices === undefined) return { manifest, slices: new Map() };
    return { manifest, slices: new Map([...this.#slices].filter(([name]) => this.#names(groupOf(name)))) };
  }

  #settle(name: string, was: M | S | null): Taken<M, S> {
    if (this.#isWhole()) return this.#isThere();
    if (!this.#wasWhole || this.#replaced.has(name)) return { now: null, writes: [] };
    this.#replaced.set(name, was);
    return { now: null, writes: [{ name, record: { was } }] };
  }
  #isThere(): Taken<M, S> {
    this.#wasWhole = true;
    const manifest = this.#manifest as M;
    return { now: this.#whole(manifest), writes: this.#forget() };
  }
  #forget(): readonly RecordWrite<M, S>[] {
    const writes = [...this.#replaced.keys()].map((name) => ({ name, record: null }));
    this.#replaced.clear();
    return writes;
  }

  /** The last whole view: what is here, with what was replaced put back; null: that is none. */
  #put(): Whole<M, S> | null {
    if (this.#replaced.size === 0) return null;
    const former = new View<M, S>(this.#kind);
    former.#setManifest((this.#replaced.has("") ? this.#replaced.get("") : this.#manifest) as M | null);
    for (const [name, slice] of this.#slices) former.#slices.set(name, slice);
    for (const [name, was] of this.#replaced) {
      if (name === "") continue;
      if (was === null) former.#slices.delete(name);
      else former.#slices.set(name, was as S);
    }
    return former.#isWhole() ? former.#whole(former.#manifest as M) : null;
  }
}
