import type { NodeInput } from "../node/types.ts";

/**
 * Inputs that wait for their step. They are taken in batches, each with one commit. In a large cell thousands of documents
 * come at once; were all of them one batch, nobody would have an answer before the last one is stepped. So a batch is bounded,
 * and those who wait for an answer are in the next one, whatever came before them.
 *
 * Nothing rests on the order between a request and what peers say: either may have been on its way longer. Among
 * themselves, requests keep their order, and so does everything else.
 */
export class InputQueue<Item extends { readonly input: NodeInput }> {
  #awaited: Item[] = [];
  #others: Item[] = [];
  /** Of the others, so many are taken. */
  #taken = 0;

  get size(): number {
    return this.#awaited.length + this.#others.length - this.#taken;
  }
  push(item: Item): void {
    (isAwaited(item.input) ? this.#awaited : this.#others).push(item);
  }

  /**
   * The next batch: all that somebody waits for, and of the others at least one. What comes while it is gone through is not part of it.
   * @param isFull is asked before each of the others but the first
   */
  *batch(isFull: () => boolean): Generator<Item> {
    const awaited = this.#awaited;
    this.#awaited = [];
    const { length } = this.#others;
    yield* awaited;
    for (let at = this.#taken, first = true; at < length && (first || !isFull()); at += 1, first = false) {
      this.#taken = at + 1;
      yield this.#others[at] as Item;
    }
    // Not moved for each batch: a burst may be long.
    if (this.#taken * 2 < this.#others.length) return;
    this.#others = this.#others.slice(this.#taken);
    this.#taken = 0;
  }
}

/** An operator waits for what is released, too. */
const isAwaited = ({ kind }: NodeInput): boolean => kind === "request" || kind === "release";
