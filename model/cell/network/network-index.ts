import type { Network } from "../../addresses/addresses.ts";

interface Ranged {
  readonly range: Network;
}

/**
 * Blocks of addresses, to be asked which of them lie inside another block. Two blocks share nothing, or one holds the other,
 * so those inside stand side by side when all are sorted, and a question costs two binary searches.
 */
export class NetworkIndex<Entry extends Ranged> {
  readonly #sorted: readonly Entry[];

  constructor(entries: Iterable<Entry>) {
    this.#sorted = [...entries].sort(
      (a, b) => a.range.first - b.range.first || a.range.prefixLength - b.range.prefixLength,
    );
  }

  /** The block itself, and all that are smaller in it. */
  inside(block: Network): readonly Entry[] {
    return this.#sorted.slice(...this.#bounds(block));
  }
  countInside(block: Network): number {
    const [from, to] = this.#bounds(block);
    return to - from;
  }
  /** Of blocks that share no address with one another, the one that holds this block; undefined: none does. */
  around(block: Network): Entry | undefined {
    const at = this.#firstThat(({ range }) => range.first > block.first) - 1;
    const found = this.#sorted[at];
    return found !== undefined && found.range.last >= block.last ? found : undefined;
  }

  #bounds({ first, last, prefixLength }: Network): [from: number, to: number] {
    const from = this.#firstThat(
      ({ range }) => range.first > first || (range.first === first && range.prefixLength >= prefixLength),
    );
    return [
      from,
      Math.max(
        from,
        this.#firstThat(({ range }) => range.first > last),
      ),
    ];
  }
  /** The place of the first entry of which something holds that holds of all behind it. */
  #firstThat(holds: (entry: Entry) => boolean): number {
    let [from, to] = [0, this.#sorted.length];
    while (from < to) {
      const middle = (from + to) >>> 1;
      const entry = this.#sorted[middle];
      if (entry !== undefined && holds(entry)) to = middle;
      else from = middle + 1;
    }
    return from;
  }
}
