import type { Outbox } from "../../outbox.ts";
import { AllDesires, DesireBook, type Desires, type Entry } from "./desires.ts";
import { forget, Task, type TrackedMap, type Tracking } from "./tracked.ts";

/**
 * How a pass over a cell goes: step by step, always in the same order. A step looks at each key of a collection by itself, or at
 * something as a whole; it reads what is known, changes what is its own to change, and desires documents.
 *
 * `Changes` runs again only what rests on something that has changed since it ran last (`tracked.ts`). Since a step is a function
 * of what it reads, and running it twice changes nothing, this has the same effects, in the same order, as running everything.
 * `Everything` does run everything, knows nothing of tracking, and is what the other is compared with (`agreement.testing.ts`).
 *
 * Rejected: to say by hand which input concerns which element. It is fewer lines until the first one that was forgotten, and
 * what is lost then is a desire, silently.
 */
export interface Pass {
  /** By itself for every key, in the collection's order. `order`: another one. */
  each<Key, Value>(
    step: string,
    source: TrackedMap<Key, Value>,
    work: (value: Value, key: Key, desires: Desires) => void,
    only?: Only<Key, Value>,
  ): void;
  /** As a whole. */
  whole(step: string, work: (desires: Desires) => void): void;
  /** As a whole in every pass: it rests on the time, or on what is not tracked. */
  always(step: string, work: (desires: Desires) => void): void;
  /**
   * Goes through the steps that `work` takes and nothing but these, in slices: yields when so much has been done that whoever asks
   * should have an answer, at the latest after the step's next key. Nothing may change until it goes on; what it does is the same.
   */
  slices(work: () => void): Iterable<void>;
  /** A slice begins. */
  begin(): void;
  /** Something else was done, that counts for so many keys. @returns true: that was enough for this slice */
  spend(keys: number): boolean;
  /** Places what was desired, in slices. */
  place(outbox: Outbox): Iterable<void>;
  /** Is a document desired? */
  isDesired(peer: Parameters<Desires["get"]>[0], key: string): boolean;
  /** Does it look at everything each time? */
  readonly isWhole: boolean;
  /** Something changed that is not tracked: everything is looked at again. */
  restart(): void;
  /**
   * Of what there is, one part of so many is looked at again, but not less than `fewest`; the next time the one behind it.
   * @returns names of the steps
   */
  look(parts: number, fewest: number): ReadonlySet<string>;
}
export interface Only<Key, Value> {
  /** Rests on what never changes of a value. */
  readonly of?: (value: Value) => boolean;
  readonly order?: (key: Key) => number;
}

const nothing: readonly Entry[] = [];
/** Of a few microseconds to a few hundredths of a millisecond each. */
const keysInSlice = 250;

/** What a step does of one key. */
class Item<Key> extends Task {
  readonly key: Key;
  readonly place: { readonly rank: number; order: number };
  readonly #arrives: (item: Item<Key>) => void;
  desires: readonly Entry[] = nothing;

  constructor(key: Key, rank: number, arrives: (item: Item<Key>) => void) {
    super();
    this.key = key;
    this.place = { rank, order: 0 };
    this.#arrives = arrives;
  }
  override onStale(): void {
    this.#arrives(this);
  }
}

/** One step over the keys of a collection. */
class Each<Key, Value> {
  readonly items = new Map<Key, Item<Key>>();
  readonly #stale = new Set<Item<Key>>();
  readonly #rank: number;
  readonly #source: TrackedMap<Key, Value>;
  readonly #order: (key: Key) => number;
  /** Keys that came, of which nothing is made before the step's turn: a large model comes at once, and its steps in slices. */
  readonly #came = new Set<Key>();
  /** Became stale while the step runs. */
  #arrived: Item<Key>[] = [];
  /** What is left of a run that was interrupted. */
  #left: readonly Item<Key>[] | null = null;
  readonly #arrives = (item: Item<Key>): void => {
    this.#stale.add(item);
    this.#arrived.push(item);
  };

  constructor(rank: number, source: TrackedMap<Key, Value>, book: DesireBook, { of, order }: Only<Key, Value>) {
    this.#rank = rank;
    this.#source = source;
    this.#order = order ?? ((key) => source.orderOf(key));
    source.watch((key, before, after) => {
      if (after !== undefined && (of === undefined || of(after))) {
        if (before === undefined || !this.items.has(key)) this.#came.add(key);
      } else if (before !== undefined) this.#drop(key, book);
    });
  }

  #takeIn(): void {
    for (const key of this.#came) {
      const item = new Item(key, this.#rank, this.#arrives);
      this.items.set(key, item);
      this.#arrives(item);
    }
    this.#came.clear();
  }
  #drop(key: Key, book: DesireBook): void {
    this.#came.delete(key);
    const item = this.items.get(key);
    if (item === undefined) return;
    this.items.delete(key);
    this.#stale.delete(item);
    forget(item);
    item.isStale = true;
    if (item.desires.length > 0) book.drop(item.desires);
  }

  /** @returns false: `isOver` said so before the last key, and the next call goes on there */
  run(
    tracking: Tracking,
    book: DesireBook,
    work: (value: Value, key: Key, desires: Desires) => void,
    isOver: () => boolean,
  ): boolean {
    this.#takeIn();
    this.#arrived = [];
    if (this.#stale.size === 0) return true;
    const sorted = (items: Iterable<Item<Key>>): Item<Key>[] => {
      const all = [...items];
      for (const item of all) item.place.order = this.#order(item.key);
      return all.sort((one, other) => one.place.order - other.place.order);
    };
    let queue = this.#left ?? sorted(this.#stale);
    this.#left = null;
    for (let at = 0; at < queue.length; at += 1) {
      const item = queue[at];
      if (item === undefined || !this.#stale.has(item)) continue;
      if (isOver()) {
        this.#left = queue.slice(at);
        return false;
      }
      this.#stale.delete(item);
      item.desires = tracking.run(item, () =>
        book.collect(item.place, item.desires, (desires) => {
          const value = this.#source.get(item.key);
          if (value !== undefined) work(value, item.key, desires);
        }),
      );
      // It has gone while it ran.
      if (this.items.get(item.key) !== item) {
        forget(item);
        item.isStale = true;
        book.drop(item.desires);
      }
      this.#takeIn();
      if (this.#arrived.length === 0) continue;
      // What comes after this one has its turn in this pass; what came before, in the next one, as in a pass over everything.
      const { order } = item.place;
      const later = sorted(this.#arrived).filter((each) => each !== item && each.place.order > order);
      this.#arrived = [];
      if (later.length > 0) queue = sorted(new Set([...queue.slice(at + 1), ...later]));
      if (later.length > 0) at = -1;
    }
    return true;
  }
  restart(): void {
    for (const item of this.items.values()) this.look(item);
  }
  look(item: Item<Key>): void {
    item.isStale = true;
    this.#stale.add(item);
  }
}

interface WholeStep {
  readonly task: Task;
  readonly place: { readonly rank: number; order: number };
  desires: readonly Entry[];
}

export class Changes implements Pass {
  readonly isWhole = false;
  readonly #tracking: Tracking;
  readonly #book: DesireBook;
  readonly #steps = new Map<string, Each<unknown, unknown>>();
  readonly #wholes = new Map<string, WholeStep>();
  #rank = 0;
  #looks: Iterator<string> | null = null;
  /** So many keys are looked at in a slice. */
  readonly #slice: number;
  #spent = 0;
  /** Of the steps that are gone through in slices: which one is next, and how many are through. Null: none are. */
  #sliced: { next: number; through: number; isOver: boolean } | null = null;

  constructor(tracking: Tracking, outbox: Outbox, slice = keysInSlice) {
    this.#tracking = tracking;
    this.#book = new DesireBook(tracking, outbox);
    this.#slice = slice;
  }

  *slices(work: () => void): Iterable<void> {
    for (let through = 0; ; yield) {
      const sliced = { next: 0, through, isOver: false };
      this.#sliced = sliced;
      work();
      this.#sliced = null;
      if (!sliced.isOver) return;
      through = sliced.through;
    }
  }
  begin(): void {
    this.#spent = 0;
  }
  spend(keys: number): boolean {
    this.#spent += keys;
    return this.#spent >= this.#slice;
  }
  /** Takes a step of those that are gone through in slices, unless it is through already, or this slice is over. */
  #take(step: () => boolean): void {
    const sliced = this.#sliced;
    if (sliced === null) {
      step();
      return;
    }
    if (sliced.isOver) return;
    sliced.next += 1;
    if (sliced.next <= sliced.through) return;
    if (step()) sliced.through = sliced.next;
    else sliced.isOver = true;
  }
  readonly #isOver = (): boolean => {
    if (this.#sliced === null) return false;
    if (this.#spent >= this.#slice) return true;
    this.#spent += 1;
    return false;
  };

  each<Key, Value>(
    step: string,
    source: TrackedMap<Key, Value>,
    work: (value: Value, key: Key, desires: Desires) => void,
    only: Only<Key, Value> = {},
  ): void {
    let known = this.#steps.get(step) as Each<Key, Value> | undefined;
    if (known === undefined) {
      known = new Each(this.#nextRank(), source, this.#book, only);
      this.#steps.set(step, known as unknown as Each<unknown, unknown>);
    }
    const each = known;
    this.#take(() => each.run(this.#tracking, this.#book, work, this.#isOver));
  }
  whole(step: string, work: (desires: Desires) => void): void {
    const known = this.#wholeOf(step);
    this.#take(() => {
      if (!known.task.isStale) return true;
      if (this.#isOver()) return false;
      known.desires = this.#tracking.run(known.task, () => this.#book.collect(known.place, known.desires, work));
      return true;
    });
  }
  always(step: string, work: (desires: Desires) => void): void {
    const known = this.#wholeOf(step);
    this.#take(() => {
      known.desires = this.#book.collect(known.place, known.desires, work);
      return true;
    });
  }
  *place(outbox: Outbox): Iterable<void> {
    for (const _document of this.#book.place(outbox)) if (this.spend(1)) yield;
  }
  isDesired(peer: Parameters<Desires["get"]>[0], key: string): boolean {
    return this.#book.get(peer, key) !== undefined;
  }
  restart(): void {
    for (const step of this.#steps.values()) step.restart();
    for (const { task } of this.#wholes.values()) task.isStale = true;
  }
  look(parts: number, fewest: number): ReadonlySet<string> {
    let all = this.#wholes.size;
    for (const { items } of this.#steps.values()) all += items.size;
    const names = new Set<string>();
    for (let left = Math.max(fewest, Math.ceil(all / parts)); left > 0; left -= 1) {
      this.#looks ??= this.#lookAtAll();
      const { value, done } = this.#looks.next();
      if (done === true) {
        this.#looks = null;
        break;
      }
      names.add(value);
    }
    return names;
  }
  /** Keys that come or go meanwhile are met or not; whoever comes has just been looked at. */
  *#lookAtAll(): Iterator<string> {
    for (const [name, step] of this.#steps)
      for (const item of step.items.values()) {
        step.look(item);
        yield name;
      }
    for (const [name, { task }] of this.#wholes) {
      task.isStale = true;
      yield name;
    }
  }

  #wholeOf(step: string): WholeStep {
    let known = this.#wholes.get(step);
    if (known === undefined) {
      known = { task: new Task(), place: { rank: this.#nextRank(), order: 0 }, desires: nothing };
      this.#wholes.set(step, known);
    }
    return known;
  }
  /** Steps are met in their order by the first pass. */
  #nextRank(): number {
    this.#rank += 1;
    return this.#rank;
  }
}

export class Everything implements Pass {
  readonly isWhole = true;
  #desires = new AllDesires();
  #placed = new AllDesires();
  #ranks = new Map<string, number>();

  each<Key, Value>(
    step: string,
    source: TrackedMap<Key, Value>,
    work: (value: Value, key: Key, desires: Desires) => void,
    { of, order }: Only<Key, Value> = {},
  ): void {
    this.#enter(step);
    const keys = [...source.keys()];
    if (order !== undefined) keys.sort((one, other) => order(one) - order(other));
    for (const key of keys) {
      const value = source.get(key);
      if (value !== undefined && (of === undefined || of(value))) work(value, key, this.#desires);
    }
  }
  whole(step: string, work: (desires: Desires) => void): void {
    this.#enter(step);
    work(this.#desires);
  }
  always(step: string, work: (desires: Desires) => void): void {
    this.whole(step, work);
  }
  place(outbox: Outbox): Iterable<void> {
    this.#desires.place(outbox);
    this.#placed = this.#desires;
    this.#desires = new AllDesires();
    return [];
  }
  isDesired(peer: Parameters<Desires["get"]>[0], key: string): boolean {
    return this.#placed.get(peer, key) !== undefined;
  }
  slices(work: () => void): Iterable<void> {
    work();
    return [];
  }
  begin(): void {}
  spend(): boolean {
    return false;
  }
  restart(): void {}
  look(): ReadonlySet<string> {
    return new Set();
  }

  #enter(step: string): void {
    const rank = this.#ranks.get(step) ?? this.#ranks.size + 1;
    this.#ranks.set(step, rank);
    this.#desires.rank = rank;
  }
}
