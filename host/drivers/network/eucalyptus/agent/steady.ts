/**
 * Of an instance that says ever other addresses (a guest with several at one device; one of two that fight for one) one is told, and another one at
 * most once a minute: each word goes to the manager, to its cell and to the names there. Pure but for what it remembers.
 */
export class Steady {
  readonly #told = new Map<string, { address: number; sinceMs: number; other: number | null }>();

  /** @param said addresses by the id of an instance, as they are heard now @returns those that are told */
  take(said: ReadonlyMap<string, number>, nowMs: number): ReadonlyMap<string, number> {
    for (const id of [...this.#told.keys()]) if (!said.has(id)) this.#told.delete(id);
    for (const [id, address] of said) {
      const known = this.#told.get(id);
      if (known === undefined) this.#told.set(id, { address, sinceMs: nowMs - steadyMs, other: null });
      else if (known.address !== address && nowMs - known.sinceMs >= steadyMs)
        this.#told.set(id, { address, sinceMs: nowMs, other: null });
      else if (known.address !== address) known.other = address;
      else if (nowMs - known.sinceMs >= steadyMs) known.other = null;
    }
    return new Map([...this.#told].map(([id, { address }]) => [id, address]));
  }
  /** Those that say another one than is told, each with both. */
  get unsteady(): ReadonlyMap<string, readonly [told: number, other: number]> {
    return new Map(
      [...this.#told].flatMap(([id, { address, other }]) => (other === null ? [] : [[id, [address, other]]])),
    );
  }
}
export const steadyMs = 60_000;
