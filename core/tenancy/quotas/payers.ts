import type { DesiredOwner } from "../../documents/tenancy.ts";

/**
 * Which account pays for which cells, kept as each of them changes: what is counted of one account looks at its own cells, and not at those of all.
 * Who pays for one is decided elsewhere (`payerOf` of `state.ts`); this remembers it.
 */
export class Payers {
  readonly #payers = new Map<DesiredOwner, string>();
  readonly #cells = new Map<string, Set<DesiredOwner>>();
  /** By the path of the account as the root model has it, whether or not there is one. */
  readonly #said = new Map<string, Set<DesiredOwner>>();

  /** @param payer UID of an account */
  put(cell: DesiredOwner, payer: string): void {
    this.drop(cell);
    this.#payers.set(cell, payer);
    into(this.#cells, payer, cell);
    if (cell.account !== null) into(this.#said, cell.account, cell);
  }
  drop(cell: DesiredOwner): void {
    const payer = this.#payers.get(cell);
    if (payer === undefined) return;
    this.#payers.delete(cell);
    outOf(this.#cells, payer, cell);
    if (cell.account !== null) outOf(this.#said, cell.account, cell);
  }
  cellsOf(payer: string): ReadonlySet<DesiredOwner> {
    return this.#cells.get(payer) ?? none;
  }
  /** Of which the root model says this path. */
  saidOf(path: string): ReadonlySet<DesiredOwner> {
    return this.#said.get(path) ?? none;
  }
  /** UIDs of the accounts that pay for any. */
  get all(): readonly string[] {
    return [...this.#cells.keys()];
  }
}
const none: ReadonlySet<DesiredOwner> = new Set();

function into(index: Map<string, Set<DesiredOwner>>, key: string, cell: DesiredOwner): void {
  const cells = index.get(key) ?? new Set();
  index.set(key, cells.add(cell));
}
function outOf(index: Map<string, Set<DesiredOwner>>, key: string, cell: DesiredOwner): void {
  const cells = index.get(key);
  if (cells?.delete(cell) === true && cells.size === 0) index.delete(key);
}
