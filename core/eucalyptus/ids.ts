import type { CellName, Uid } from "../../model/cell/identifiers.ts";
import type { Json } from "../../model/json/json.ts";
import { digestOfText } from "../distribution/views/slices.ts";
import { isObject, type Outbox, write } from "../outbox.ts";

const prefix = "id/";

/**
 * Ids of instances and groups in views, of which taps, chains and sets have the names; with each, the cell whose its element is. Durable as
 * `id/<uid>`: `{ id, cell, rules?, gone? }`. An id is another one's only after no host can have anything of that name.
 */
export class Ids {
  readonly #outbox: Outbox;
  readonly #uids = new Map<string, Uid>();

  constructor(outbox: Outbox) {
    this.#outbox = outbox;
    for (const [key, record] of outbox.records)
      if (key.startsWith(prefix) && isObject(record))
        this.#uids.set(String(record.id), key.slice(prefix.length) as Uid);
  }
  #record(uid: Uid): { readonly [field: string]: Json } | null {
    const record = this.#outbox.records.get(`${prefix}${uid}`) ?? null;
    return isObject(record) ? record : null;
  }
  /** `i-` or `sg-` and 8 digits that nobody else has. */
  of(kind: "i" | "sg", uid: Uid, cell?: CellName): string {
    const known = this.#record(uid);
    const whose = cell === undefined ? {} : { cell };
    if (known !== null) {
      const { gone, ...kept } = known;
      if ((cell !== undefined && known.cell !== cell) || gone !== undefined) this.#write(uid, { ...kept, ...whose });
      return String(known.id);
    }
    for (let number = digestOfText(uid)[0]; ; number = (number + 1) % 2 ** 32) {
      const id = `${kind}-${number.toString(16).padStart(8, "0")}`;
      if (this.#uids.has(id)) continue;
      this.#uids.set(id, uid);
      this.#write(uid, { id, ...whose });
      return id;
    }
  }
  #write(uid: Uid, record: { readonly [field: string]: Json }): void {
    write(this.#outbox, `${prefix}${uid}`, record);
  }
  /** Empty: it has none. */
  known(uid: Uid): string {
    return String(this.#record(uid)?.id ?? "");
  }
  /** Whose an id is; undefined: nobody's. */
  uidOf(id: string): Uid | undefined {
    return this.#uids.get(id);
  }
  /** Whose an element with an id is; null: nobody has said so. Of what is stored, another cell's may come first after a start. */
  cellOf(uid: Uid): string | null {
    const cell = this.#record(uid)?.cell;
    return typeof cell === "string" ? cell : null;
  }
  /** Of a group in the last view: how many rules it has there. Null: it is in none with its rules. */
  rulesOf(uid: Uid): number | null {
    const rules = this.#record(uid)?.rules;
    return typeof rules === "number" ? rules : null;
  }
  noteRules(uid: Uid, rules: number | null): void {
    const known = this.#record(uid);
    if (known === null || this.rulesOf(uid) === rules) return;
    const { rules: _, ...kept } = known;
    this.#write(uid, rules === null ? kept : { ...kept, rules });
  }
  /**
   * Ids of elements that nobody has any more are given up once all hosts have a view without them in place.
   * @param version of the view that is told now
   * @param everywhere version of a view that every host has in place, or a later one; null: there is a host of which that is not known
   */
  sweep(isHeld: (uid: Uid, id: string) => boolean, version: number, everywhere: number | null): void {
    for (const [id, uid] of [...this.#uids]) {
      const known = this.#record(uid);
      if (known === null || isHeld(uid, id)) continue;
      const { gone } = known;
      if (typeof gone !== "number") this.#write(uid, { ...known, gone: version });
      else if (everywhere !== null && gone <= everywhere) {
        this.#uids.delete(id);
        write(this.#outbox, `${prefix}${uid}`, null);
      }
    }
  }
}
