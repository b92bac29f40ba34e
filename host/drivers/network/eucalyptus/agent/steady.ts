interface Told {
  readonly address: number;
  readonly sinceMs: number;
  other: number | null;
  /** Since when it says none that it may have; null: it says one. */
  silentMs: number | null;
}
/**
 * Of an instance that says ever other addresses (a guest with several at one device; one of two that fight for one) one is told, and another one at
 * most once a minute: each word goes to the manager, to its cell and to the names there. One that says none for a while, or one that it may not
 * have, keeps what is told of it for as long, or it would be told anew with each word in between. Pure but for what it remembers.
 */
export class Steady {
  readonly #told = new Map<string, Told>();

  /** @param said addresses by the id of an instance, as they are heard now @returns those that are told */
  take(said: ReadonlyMap<string, number>, nowMs: number): ReadonlyMap<string, number> {
    for (const [id, known] of [...this.#told]) {
      if (said.has(id)) continue;
      known.silentMs ??= nowMs;
      if (nowMs - known.silentMs >= steadyMs) this.#told.delete(id);
    }
    for (const [id, address] of said) {
      const known = this.#told.get(id);
      if (known === undefined) this.#tell(id, address, nowMs - steadyMs);
      else if (known.address !== address && nowMs - known.sinceMs >= steadyMs) this.#tell(id, address, nowMs);
      else {
        known.silentMs = null;
        if (known.address !== address) known.other = address;
        else if (nowMs - known.sinceMs >= steadyMs) known.other = null;
      }
    }
    return new Map([...this.#told].map(([id, { address }]) => [id, address]));
  }
  #tell(id: string, address: number, sinceMs: number): void {
    this.#told.set(id, { address, sinceMs, other: null, silentMs: null });
  }
  /** Those that say another one than is told, each with both. */
  get unsteady(): ReadonlyMap<string, readonly [told: number, other: number]> {
    return new Map(
      [...this.#told].flatMap(([id, { address, other }]) => (other === null ? [] : [[id, [address, other]]])),
    );
  }
}
export const steadyMs = 60_000;
