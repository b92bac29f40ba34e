/**
 * Work that can be put down and gone on with. It yields how much it has done since it last did, in units of about one host that is looked at, and
 * is where `questions.ts`, which does it between placements, says that it is enough for now.
 */
export type Sliced<T> = Generator<number, T, void>;

/** All of it at once, for whoever has nothing else to do. */
export function wholeOf<T>(work: Sliced<T>): T {
  for (;;) {
    const { done, value } = work.next();
    if (done === true) return value;
  }
}
