/**
 * Values that know who has read them. While a task runs, what it reads is noted with it; when one of those values changes, the
 * task is stale and has to run again. Nobody says by hand what a task depends on, so nothing can be left out of it.
 *
 * A value is the same if it is the same by `===`: what is stored is frozen data, and replaced as a whole.
 */
export class Task {
  isStale = true;
  /** Readers in whose lists this task stands, in the order in which it read. */
  reads: Readers[] = [];
  /** So many of them it has read in the present run. */
  seen = 0;
  /** The present run, or the last one. */
  run = 0;

  /** Called once when it becomes stale. */
  onStale(): void {}
}

/** Who is reading now. One for everything that a controller knows. */
export class Tracking {
  active: Task | null = null;
  #runs = 0;

  /**
   * Runs a task: what it read before does not count any more. Most tasks read the same again, in the same order, and then
   * nothing is taken out of a list and put in again.
   */
  run<Result>(task: Task, work: () => Result): Result {
    this.#runs += 1;
    task.run = this.#runs;
    task.seen = 0;
    task.isStale = false;
    const before = this.active;
    const { reads } = task;
    const count = reads.length;
    this.active = task;
    try {
      return work();
    } finally {
      this.active = before;
      leaveRest(task);
      // Without room for more: there are as many of these lists as elements times steps.
      if (task.reads !== reads || reads.length !== count) task.reads = task.reads.slice();
    }
  }
}

/** It will not run again. */
export function forget(task: Task): void {
  task.seen = 0;
  leaveRest(task);
}

/** What it has not read again is nothing to it. */
function leaveRest(task: Task): void {
  const { reads, seen } = task;
  for (let at = seen; at < reads.length; at += 1) reads[at]?.delete(task);
  if (seen < reads.length) task.reads = reads.slice(0, seen);
}

const mostInArray = 8;

/** Who has read a value. Most values have one reader or a few. */
class Readers {
  #tasks: readonly Task[] | Set<Task> = noTasks;
  /** The run that has read it last. */
  #run = 0;

  get isEmpty(): boolean {
    return this.#tasks === noTasks;
  }
  note(task: Task): void {
    if (this.#run === task.run) return;
    this.#run = task.run;
    if (task.reads[task.seen] === this) {
      task.seen += 1;
      return;
    }
    // Another one than last time.
    leaveRest(task);
    if (!this.#add(task)) return;
    task.reads.push(this);
    task.seen += 1;
  }
  #add(task: Task): boolean {
    const tasks = this.#tasks;
    if (tasks instanceof Set) {
      if (tasks.has(task)) return false;
      tasks.add(task);
    } else {
      if (tasks.includes(task)) return false;
      this.#tasks = tasks.length < mostInArray ? [...tasks, task] : new Set([...tasks, task]);
    }
    return true;
  }
  delete(task: Task): void {
    const tasks = this.#tasks;
    if (tasks instanceof Set) {
      tasks.delete(task);
      if (tasks.size === 0) this.#tasks = noTasks;
    } else this.#tasks = tasks.length === 1 && tasks[0] === task ? noTasks : tasks.filter((other) => other !== task);
  }
  invalidate(): void {
    for (const task of this.#tasks) {
      if (task.isStale) continue;
      task.isStale = true;
      task.onStale();
    }
  }
}
const noTasks: readonly Task[] = [];

/** Of a collection: readers by key, and of all of it. */
class ReadersByKey<Key> {
  readonly #tracking: Tracking;
  readonly #byKey = new Map<Key, Readers>();
  readonly #ofAll = new Readers();

  constructor(tracking: Tracking) {
    this.#tracking = tracking;
  }
  note(key: Key): void {
    const { active } = this.#tracking;
    if (active === null) return;
    let readers = this.#byKey.get(key);
    if (readers === undefined) {
      readers = new Readers();
      this.#byKey.set(key, readers);
    }
    readers.note(active);
  }
  noteAll(): void {
    const { active } = this.#tracking;
    if (active !== null) this.#ofAll.note(active);
  }
  changed(key: Key): void {
    const readers = this.#byKey.get(key);
    if (readers?.isEmpty === true) this.#byKey.delete(key);
    else readers?.invalidate();
    this.#ofAll.invalidate();
  }
}

export type Watcher<Key, Value> = (key: Key, before: Value | undefined, after: Value | undefined) => void;

/** `undefined` is no value. */
export class TrackedMap<Key, Value> extends Map<Key, Value> {
  readonly #readers: ReadersByKey<Key>;
  /** Absent until somebody asks for it. */
  #order: Map<Key, number> | undefined;
  readonly #watchers: Watcher<Key, Value>[] = [];
  #inserted = 0;

  constructor(tracking: Tracking, entries: Iterable<readonly [Key, Value]> = []) {
    super();
    this.#readers = new ReadersByKey(tracking);
    for (const [key, value] of entries) this.set(key, value);
  }

  /** Is told of every change at once, also of what is there already. */
  watch(watcher: Watcher<Key, Value>): void {
    this.#watchers.push(watcher);
    for (const [key, value] of super.entries()) watcher(key, undefined, value);
  }
  /** Where a key stands among the others. */
  orderOf(key: Key): number {
    if (this.#order === undefined) {
      this.#order = new Map();
      for (const each of super.keys()) this.#order.set(each, this.#nextOrder());
    }
    return this.#order.get(key) ?? 0;
  }
  #nextOrder(): number {
    this.#inserted += 1;
    return this.#inserted;
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
    if (before === undefined && this.#order !== undefined) this.#order.set(key, this.#nextOrder());
    super.set(key, value);
    this.#readers.changed(key);
    for (const watcher of this.#watchers) watcher(key, before, value);
    return this;
  }
  override delete(key: Key): boolean {
    const before = super.get(key);
    if (!super.delete(key)) return false;
    this.#order?.delete(key);
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
  readonly #readers: ReadersByKey<Item>;

  constructor(tracking: Tracking, items: Iterable<Item> = []) {
    super();
    this.#readers = new ReadersByKey(tracking);
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
  const readers = new ReadersByKey<keyof State>(tracking);
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
