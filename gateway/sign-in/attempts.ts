import { keepNewest } from "../../model/limits.ts";

const wrongs = { most: 10, withinMs: 60_000, addresses: 4096 } as const;

/** Sign-ins that failed, by address: the last few of each, of the addresses that failed last. */
export class Attempts {
  readonly #now: () => number;
  readonly #failed = new Map<string, readonly number[]>();
  constructor(now: () => number) {
    this.#now = now;
  }
  /** Seconds until the next one may be tried; 0: now. */
  waitS(address: string): number {
    const failed = this.#recent(address);
    const first = failed[failed.length - wrongs.most];
    return first === undefined ? 0 : Math.ceil((first + wrongs.withinMs - this.#now()) / 1000);
  }
  wrong(address: string): void {
    const failed = [...this.#recent(address), this.#now()].slice(-wrongs.most);
    this.#failed.delete(address);
    this.#failed.set(address, failed);
    keepNewest(this.#failed, wrongs.addresses);
  }
  #recent(address: string): readonly number[] {
    return (this.#failed.get(address) ?? []).filter((ms) => this.#now() - ms < wrongs.withinMs);
  }
}
