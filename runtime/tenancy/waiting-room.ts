/**
 * Work that costs much is done by a few at a time, and some wait. Nobody takes all places: of one source only so many are in the room.
 */
export class WaitingRoom {
  readonly #limits: { readonly working: number; readonly inRoom: number; readonly perSource: number };
  readonly #waiting: (() => void)[] = [];
  readonly #sources = new Map<string, number>();
  #inRoom = 0;
  #working = 0;

  constructor(limits = { working: 2, inRoom: 66, perSource: 16 }) {
    this.#limits = limits;
  }

  /** Null: there is no place. */
  async run<T>(source: string, work: () => Promise<T>): Promise<T | null> {
    const { working, inRoom, perSource } = this.#limits;
    const own = this.#sources.get(source) ?? 0;
    if (this.#inRoom >= inRoom || own >= perSource) return null;
    this.#inRoom += 1;
    this.#sources.set(source, own + 1);
    try {
      if (this.#working >= working) await new Promise<void>((resolve) => this.#waiting.push(resolve));
      else this.#working += 1;
      return await work();
    } finally {
      // Whoever is next has the place of who leaves.
      const next = this.#waiting.shift();
      if (next === undefined) this.#working -= 1;
      else next();
      this.#inRoom -= 1;
      const left = (this.#sources.get(source) ?? 1) - 1;
      if (left === 0) this.#sources.delete(source);
      else this.#sources.set(source, left);
    }
  }
}
