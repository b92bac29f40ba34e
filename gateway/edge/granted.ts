import { hashCredential } from "../../runtime/http/bearer.ts";
import { capabilityLifetimeMs } from "../../runtime/http/session-capability.ts";
import type { Scope } from "../requests/credentials.ts";

/** Outstanding ones of a cell, as its controller has it; and of all cells. */
const mostOfCell = 256;
const mostInAll = 16_384;

/**
 * Capabilities for sessions that controllers gave to clients through this gateway and nobody has used yet. What is no such
 * thing opens nothing at a controller either, and asks for no place here: the handshake needs no credential, so anybody
 * could make some up. Only hashes are kept; after a restart clients ask for another one.
 */
export class GrantedSessions {
  readonly #now: () => number;
  /** By hash, oldest first. */
  readonly #granted = new Map<string, { readonly cell: string; readonly scope: Scope; readonly until: number }>();
  readonly #ofCell = new Map<string, number>();

  /** `now`: milliseconds, monotonic. */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /** @param scope of who asked for it */
  add(cell: string, session: string, scope: Scope): void {
    for (const [old, { until }] of this.#granted) {
      if (until >= this.#now() && this.#granted.size < mostInAll) break;
      this.#remove(old);
    }
    if ((this.#ofCell.get(cell) ?? 0) >= mostOfCell) return;
    const hash = hashCredential(session);
    this.#remove(hash);
    this.#granted.set(hash, { cell, scope, until: this.#now() + capabilityLifetimeMs });
    this.#ofCell.set(cell, (this.#ofCell.get(cell) ?? 0) + 1);
  }

  /** Uses it up. Who it was given to; null: nobody, or too long ago, or for another cell. */
  use(cell: string, session: string): Scope | null {
    const hash = hashCredential(session);
    const found = this.#granted.get(hash);
    if (found === undefined || found.cell !== cell) return null;
    this.#remove(hash);
    return found.until < this.#now() ? null : found.scope;
  }

  #remove(hash: string): void {
    const found = this.#granted.get(hash);
    if (found === undefined) return;
    this.#granted.delete(hash);
    const left = (this.#ofCell.get(found.cell) ?? 0) - 1;
    if (left > 0) this.#ofCell.set(found.cell, left);
    else this.#ofCell.delete(found.cell);
  }
}
