import type { CellName, PeerName } from "../../../model/cell/identifiers.ts";
import { cellAround } from "../../documents/cells.ts";

/** Paths of the accounts of the root cell's child cells, and what is asked about them with each decision. */
export class OwnerTable extends Map<CellName, string> {
  readonly #cells = new Map<string, Set<CellName>>();
  /** Of each client that was asked about; of one within a cell it is the account of the one around it. */
  readonly #ofClients = new Map<PeerName, string | null>();
  constructor(entries: Iterable<readonly [CellName, string]> = []) {
    super();
    for (const [cell, account] of entries) this.set(cell, account);
  }
  override set(cell: CellName, account: string): this {
    this.delete(cell);
    this.#cells.set(account, (this.#cells.get(account) ?? new Set()).add(cell));
    return super.set(cell, account);
  }
  override delete(cell: CellName): boolean {
    this.#ofClients.clear();
    const account = this.get(cell);
    if (account === undefined) return false;
    const cells = this.#cells.get(account);
    cells?.delete(cell);
    if (cells?.size === 0) this.#cells.delete(account);
    return super.delete(cell);
  }
  accountOf(client: PeerName): string | null {
    const known = this.#ofClients.get(client);
    if (known !== undefined) return known;
    const account = this.get(cellAround(client)) ?? null;
    if (this.#ofClients.size >= mostClients) this.#ofClients.clear();
    this.#ofClients.set(client, account);
    return account;
  }
  cellsOf(account: string): Iterable<CellName> {
    return this.#cells.get(account) ?? [];
  }
}
const mostClients = 65_536;
