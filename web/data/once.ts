/**
 * Under which key a change is asked for. A click whose answer was lost is made again by the person: then it is the same change, under the
 * same key, and is not done twice. Once it was answered the next click is another one, however alike. So is one before which somebody has
 * seen what became of the first: where another change of the same thing was answered since, or some minutes have passed. Under its key it
 * would be answered as done, and nothing would be done.
 */
/** A change may be a whole specification. */
export const mostOpen = 8;
export const longestOpenMs = 5 * 60_000;
interface Open {
  readonly key: string;
  readonly of: string;
  readonly sinceMs: number;
}
export class Once {
  /** What was asked for and not answered, the oldest first. */
  readonly #open = new Map<string, Open>();
  readonly #newKey: () => string;
  readonly #nowMs: () => number;

  constructor(newKey: () => string, nowMs: () => number = () => performance.now()) {
    this.#newKey = newKey;
    this.#nowMs = nowMs;
  }

  /** The same one as it was asked for and not answered, or a new one. */
  #begun(of: string, change: string): Open {
    const known = this.#open.get(change);
    const nowMs = this.#nowMs();
    return known !== undefined && nowMs - known.sinceMs < longestOpenMs
      ? known
      : { key: this.#newKey(), of, sinceMs: nowMs };
  }

  /**
   * @param of what is changed
   * @param change all that makes it this one and no other
   * @param send rejects with what has the `status` of the answer; 0: there was none
   */
  async ask<T>(of: string, change: string, send: (key: string) => Promise<T>): Promise<T> {
    const open = this.#begun(of, change);
    const { key } = open;
    this.#open.delete(change);
    this.#open.set(change, open);
    for (const [oldest] of this.#open) if (this.#open.size > mostOpen) this.#open.delete(oldest);
    try {
      const answer = await send(key);
      for (const [each, { of: its }] of this.#open) if (its === of) this.#open.delete(each);
      return answer;
    } catch (error) {
      const { status = 0 } = error as { readonly status?: number };
      // Who stands in between answers with these as well, while the change is made.
      if (status !== 0 && status < 500) this.#open.delete(change);
      else this.#open.set(change, open);
      throw error;
    }
  }
}
