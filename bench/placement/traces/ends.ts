/** What ends when, earliest first: a binary heap, since seconds of a trace need not be multiples of anything. */
export class Ends {
  private readonly heap: [second: number, vm: number][] = [];

  add(second: number, vm: number): void {
    let at = this.heap.push([second, vm]) - 1;
    while (at > 0) {
      const above = (at - 1) >> 1;
      if (this.second(above) <= this.second(at)) return;
      this.swap(at, above);
      at = above;
    }
  }

  /** Takes those out that have ended by then. */
  *until(second: number): Generator<number> {
    while (this.heap.length > 0 && this.second(0) <= second) {
      const [[, vm] = [0, 0]] = this.heap;
      const last = this.heap.pop();
      if (this.heap.length > 0 && last !== undefined) {
        this.heap[0] = last;
        this.sink();
      }
      yield vm;
    }
  }

  private sink(): void {
    for (let at = 0; ; ) {
      const [left, right] = [2 * at + 1, 2 * at + 2];
      let least = at;
      if (left < this.heap.length && this.second(left) < this.second(least)) least = left;
      if (right < this.heap.length && this.second(right) < this.second(least)) least = right;
      if (least === at) return;
      this.swap(at, least);
      at = least;
    }
  }

  private second(at: number): number {
    return this.heap[at]?.[0] ?? Number.POSITIVE_INFINITY;
  }

  private swap(one: number, other: number): void {
    const [first, second] = [this.heap[one], this.heap[other]];
    if (first === undefined || second === undefined) return;
    this.heap[one] = second;
    this.heap[other] = first;
  }
}
