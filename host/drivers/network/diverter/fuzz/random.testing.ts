/** Numbers that look like chance and come from a seed (mulberry32). */
export class Random {
  #state: number;
  constructor(seed: number) {
    this.#state = seed >>> 0;
  }
  /** From 0 to 2³² - 1. */
  word(): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0;
    let t = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return (t ^ (t >>> 14)) >>> 0;
  }
  below(limit: number): number {
    return this.word() % limit;
  }
  between(least: number, most: number): number {
    return least + this.below(most - least + 1);
  }
  /** True `of` times of a hundred. */
  percent(of: number): boolean {
    return this.word() % 100 < of;
  }
  pick<T>(list: readonly T[]): T {
    return list[this.word() % list.length] as T;
  }
}
