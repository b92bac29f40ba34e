/** A VM that came, and when it went. */
export interface Arrival {
  /** Since the trace began. Less than 0: it was there before. */
  readonly second: number;
  /** Whose it is: a number from 0 on. */
  readonly account: number;
  /** What came together, and rather stands on different hosts: a number from 0 on. */
  readonly group: number;
  readonly cpus: number;
  readonly memoryMiB: number;
  /** Null: not within the trace. */
  readonly endsAt: number | null;
}

/** Numbers in the order in which texts are said first. */
export function numbering(): (text: string) => number {
  const numbers = new Map<string, number>();
  return (text) => {
    const known = numbers.get(text);
    if (known !== undefined) return known;
    numbers.set(text, numbers.size);
    return numbers.size - 1;
  };
}
