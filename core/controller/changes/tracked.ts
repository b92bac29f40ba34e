/**
 * Values that know who has read them. While a task runs, what it reads is noted with it; when one of those values changes, the
 * task is stale and has to run again. Nobody says by hand what a task depends on, so nothing can be left out of it.
 *
 * A value is the same if it is the same by `===`: what is stored is frozen data, and replaced as a whole.
 */
export interface Task {
  /** Readers' lists in which this task stands, to be left when it runs again. */
  readonly reads: Set<Task>[];
  isStale: boolean;
  /** Called once when it becomes stale. */
  readonly onStale: () => void;
}
export const newTask = (onStale: () => void): Task => ({ reads: [], isStale: true, onStale });

/** Who is reading now. One for everything that a controller knows. */
export class Tracking {
  active: Task | null = null;

  /** Runs a task: what it read before does not count any more. */
  run<Result>(task: Task, work: () => Result): Result {
    forget(task);
    task.isStale = false;
    const before = this.active;
    this.active = task;
    try {
      return work();
    } finally {
      this.active = before;
    }
  }
}

/** It will not run again. */
export function forget(task: Task): void {
  for (const readers of task.reads) readers.delete(task);
  task.reads.length = 0;
}

function note(task: Task, readers: Set<Task>): void {
  if (readers.has(task)) return;
  readers.add(task);
  task.reads.push(readers);
}

function invalidate(readers: Set<Task> | undefined): void {
  if (readers === undefined) return;
  for (const task of readers) {
    if (task.isStale) continue;
    task.isStale = true;
    task.onStale();
  }
}

/** Of a collection: readers by key, and of all of it. */
class Readers<Key> {
  readonly #tracking: Tracking;
  readonly #byKey = new Map<Key, Set<Task>>();
  readonly #ofAll = new Set<Task>();

  constructor(tracking: Tracking) {
    this.#tracking = tracking;
  }
  note(key: Key): void {
    const { active } = this.#tracking;
    if (active === null) return;
    let readers = this.#byKey.get(key);
    if (readers === undefined) {
      readers = new Set();
      this.#byKey.set(key, readers);
    }
    note(active, readers);
  }
  noteAll(): void {
    const { active } = this.#tracking;
    if (active !== null) note(active, this.#ofAll);
  }
  changed(key: Key): void {
    const readers = this.#byKey.get(key);
    if (readers !== undefined && readers.size === 0) this.#byKey.delete(key);
    else invalidate(readers);
    if (this.#ofAll.size > 0) invalidate(this.#ofAll);
  }
}

export type Watcher<Key, Value> = (key: Key, before: Value | undefined, after: Value | undefined) => void;

/** `undefined` is no value. */
export class TrackedMap<Key, Value> extends Map<Key, Value> {
  readonly #readers: Readers<Key>;
  readonly #order = new Map<Key, number>();
  readonly #watchers: Watcher<Key, Value>[] = [];
  #inserted = 0;

  constructor(tracking: Tracking, entries: Iterable<readonly [Key, Value]> = []) {
    super();
    this.#readers = new Readers(tracking);
    for (const [key, value] of entries) this.set(key, value);
  }

  /** Is told of every change at once, also of what is there already. */
  watch(watcher: Watcher<Key, Value>): void {
    this.#watchers.push(watcher);
    for (const [key, value] of super.entries()) watcher(key, undefined, value);
  }
  /** Where a key stands among the others. */
  orderOf(key: Key): number {
    return this.#order.get(key) ?? 0;
  }

  /** Without a note. */
  peek(key: Key): Value | undefined {
    return super.get(key);
  }
  /** Whoever is reading rests on all of it. */
  noteAll(): void {
    this.#readers.noteAll();
  }
  override get(key: Key): Value | undefined {
    this.#readers.note(key);
    return super.get(key);
  }
  override has(key: Key): boolean {
    this.#readers.note(key);
    return super.has(key);
  }
  override set(key: Key, value: Value): this {
    // The constructor of Map knows nothing of this class's fields.
    const before = super.get(key);
    if (before === value) return this;
    if (before === undefined) {
      this.#inserted += 1;
      this.#order.set(key, this.#inserted);
    }
    super.set(key, value);
    this.#readers.changed(key);
    for (const watcher of this.#watchers) watcher(key, before, value);
    return this;
  }
  override delete(key: Key): boolean {
    const before = super.get(key);
    if (!super.delete(key)) return false;
    this.#order.delete(key);
    this.#readers.changed(key);
    for (const watcher of this.#watchers) watcher(key, before, undefined);
    return true;
  }
  override clear(): void {
    for (const key of [...super.keys()]) this.delete(key);
  }
  override get size(): number {
    this.#readers.noteAll();
    return super.size;
  }
  override keys(): MapIterator<Key> {
    this.#readers.noteAll();
    return super.keys();
  }
  override values(): MapIterator<Value> {
    this.#readers.noteAll();
    return super.values();
  }
  override entries(): MapIterator<[Key, Value]> {
    this.#readers.noteAll();
    return super.entries();
  }
  override [Symbol.iterator](): MapIterator<[Key, Value]> {
    return this.entries();
  }
  override forEach(visit: (value: Value, key: Key, map: Map<Key, Value>) => void): void {
    this.#readers.noteAll();
    super.forEach(visit);
  }
}

export class TrackedSet<Item> extends Set<Item> {
  readonly #readers: Readers<Item>;

  constructor(tracking: Tracking, items: Iterable<Item> = []) {
    super();
    this.#readers = new Readers(tracking);
    for (const item of items) this.add(item);
  }
  override has(item: Item): boolean {
    this.#readers.note(item);
    return super.has(item);
  }
  override add(item: Item): this {
    if (super.has(item)) return this;
    super.add(item);
    this.#readers.changed(item);
    return this;
  }
  override delete(item: Item): boolean {
    if (!super.delete(item)) return false;
    this.#readers.changed(item);
    return true;
  }
  override clear(): void {
    for (const item of [...super.values()]) this.delete(item);
  }
  override get size(): number {
    this.#readers.noteAll();
    return super.size;
  }
  override keys(): SetIterator<Item> {
    return this.values();
  }
  override values(): SetIterator<Item> {
    this.#readers.noteAll();
    return super.values();
  }
  override entries(): SetIterator<[Item, Item]> {
    this.#readers.noteAll();
    return super.entries();
  }
  override [Symbol.iterator](): SetIterator<Item> {
    return this.values();
  }
  override forEach(visit: (item: Item, same: Item, set: Set<Item>) => void): void {
    this.#readers.noteAll();
    super.forEach(visit);
  }
}

/** Lets fields of an object be tracked in place. */
export function trackFields<State extends object>(
  tracking: Tracking,
  state: State,
  names: readonly (keyof State)[],
): State {
  const readers = new Readers<keyof State>(tracking);
  for (const name of names) {
    let value = state[name];
    Object.defineProperty(state, name, {
      enumerable: true,
      get: () => {
        readers.note(name);
        return value;
      },
      set: (next: State[typeof name]) => {
        if (next === value) return;
        value = next;
        readers.changed(name);
      },
    });
  }
  return state;
}
