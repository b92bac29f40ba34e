/**
 * Under which key a change is asked for. A click whose answer was lost is made again by the person: then it is the same change, under the
 * same key, and is not done twice. Once it was answered the next click is another one, however alike.
 */
/** A change may be a whole specification. */
export const mostOpen = 8;
export class Once {
  /** What was asked for and not answered, the oldest first. */
  readonly #open = new Map<string, string>();
  readonly #newKey: () => string;

  constructor(newKey: () => string) {
    this.#newKey = newKey;
  }

  /**
   * @param change all that makes it this one and no other
   * @param send rejects with what has the `status` of the answer; 0: there was none
   */
  async ask<T>(change: string, send: (key: string) => Promise<T>): Promise<T> {
    const key = this.#open.get(change) ?? this.#newKey();
    this.#open.delete(change);
    this.#open.set(change, key);
    for (const [oldest] of this.#open) if (this.#open.size > mostOpen) this.#open.delete(oldest);
    try {
      const answer = await send(key);
      this.#open.delete(change);
      return answer;
    } catch (error) {
      const { status = 0 } = error as { readonly status?: number };
      // Who stands in between answers with these as well, while the change is made.
      if (status !== 0 && status < 500) this.#open.delete(change);
      throw error;
    }
  }
}
