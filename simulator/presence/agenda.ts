/**
 * What happens when, over a virtual clock: a binary heap in typed arrays, because a simulated day of a thousand hosts is
 * some hundred million entries. Entries of one instant come in the order in which they were made.
 */
export interface Agenda<What> {
  size: number;
  /** Adds something for a subject at a time in milliseconds. */
  add(at: number, subject: number, what: What): void;
  /** Time of the first entry; Infinity when there is none. */
  next(): number;
  /** Takes the first entry; its parts are in `subject` and `what` until the next call. */
  take(): void;
  subject: number;
  what: What;
}

export const createAgenda = <What>(nothing: What): Agenda<What> => {
  let capacity = 1024;
  let times = new Float64Array(capacity);
  let orders = new Float64Array(capacity);
  let subjects = new Int32Array(capacity);
  const whats: What[] = [];
  let made = 0;

  const grow = (): void => {
    capacity *= 2;
    const [oldTimes, oldOrders, oldSubjects] = [times, orders, subjects];
    times = new Float64Array(capacity);
    orders = new Float64Array(capacity);
    subjects = new Int32Array(capacity);
    times.set(oldTimes);
    orders.set(oldOrders);
    subjects.set(oldSubjects);
  };
  /** Writes an entry at a place from another place. */
  const move = (to: number, from: number): void => {
    times[to] = times[from] ?? 0;
    orders[to] = orders[from] ?? 0;
    subjects[to] = subjects[from] ?? 0;
    whats[to] = whats[from] ?? nothing;
  };
  const write = (to: number, at: number, order: number, subject: number, what: What): void => {
    times[to] = at;
    orders[to] = order;
    subjects[to] = subject;
    whats[to] = what;
  };

  const agenda: Agenda<What> = {
    size: 0,
    subject: 0,
    what: nothing,
    next: () => (agenda.size === 0 ? Number.POSITIVE_INFINITY : (times[0] ?? 0)),
    add: (at, subject, what) => {
      if (agenda.size === capacity) grow();
      made += 1;
      let place = agenda.size;
      agenda.size += 1;
      // A new entry comes behind those of the same time, so its order need not be looked at.
      while (place > 0) {
        const parent = (place - 1) >> 1;
        if ((times[parent] ?? 0) <= at) break;
        move(place, parent);
        place = parent;
      }
      write(place, at, made, subject, what);
    },
    take: () => {
      agenda.subject = subjects[0] ?? 0;
      agenda.what = whats[0] ?? nothing;
      agenda.size -= 1;
      const last = agenda.size;
      const at = times[last] ?? 0;
      const order = orders[last] ?? 0;
      const subject = subjects[last] ?? 0;
      const what = whats[last] ?? nothing;
      whats[last] = nothing;
      if (last === 0) return;
      let place = 0;
      for (;;) {
        let child = 2 * place + 1;
        if (child >= last) break;
        const right = child + 1;
        if (right < last) {
          const [a, b] = [times[child] ?? 0, times[right] ?? 0];
          if (b < a || (b === a && (orders[right] ?? 0) < (orders[child] ?? 0))) child = right;
        }
        const time = times[child] ?? 0;
        if (time > at || (time === at && (orders[child] ?? 0) > order)) break;
        move(place, child);
        place = child;
      }
      write(place, at, order, subject, what);
    },
  };
  return agenda;
};
