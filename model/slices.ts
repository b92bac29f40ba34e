/**
 * Long work that can be interrupted: every now and then it yields how many elements it has looked at since it last did, and
 * whoever drives it decides whether others have their turn first. It is a function of its arguments, which nobody may change
 * meanwhile.
 */
export type InSlices<Result> = Generator<number, Result, void>;

export function inOneGo<Result>(work: InSlices<Result>): Result {
  for (;;) {
    const next = work.next();
    if (next.done === true) return next.value;
  }
}
