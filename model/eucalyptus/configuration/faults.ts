import type { Positions } from "../../diagnostics/positions.ts";
import { isObject, type Json, type JsonObject } from "../../json/json.ts";
import { type Pointer, writePointer } from "../../json/pointer.ts";

/** One thing that is wrong with a network configuration, as its operator reads it. */
export interface ConfigurationFault {
  /** Where it is wrong (RFC 6901); of what is missing, the object that it is missing in. */
  readonly pointer: string;
  /** From 1, in the text; items of a list have their list's. */
  readonly line: number;
  readonly column: number;
  /** A sentence. */
  readonly message: string;
}

/** More than these are not told: nobody reads them. */
const mostFaults = 100;

/** Collects what is wrong. What was told of a place is not told again of what is missing there for that reason. */
export class Faults {
  readonly list: ConfigurationFault[] = [];
  readonly #document: JsonObject;
  readonly #positions: Positions | null;
  readonly #told = new Set<string>();

  constructor(document: JsonObject, positions: Positions | null) {
    this.#document = document;
    this.#positions = positions;
  }

  add(path: Pointer, message: string): void {
    const pointer = writePointer(path);
    this.#told.add(pointer);
    if (this.list.length >= mostFaults) return;
    const { line, column } = this.#placeOf(path);
    this.list.push({ pointer, line, column, message });
  }
  /** Something is wrong there already. */
  told(path: Pointer): boolean {
    return this.#told.has(writePointer(path));
  }

  #placeOf(path: Pointer): { readonly line: number; readonly column: number } {
    let place = { line: 1, column: 1 };
    let at: Json | undefined = this.#document;
    for (const step of path) {
      if (isObject(at)) {
        place = this.#positions?.get(at)?.get(step)?.value ?? place;
        at = at[step];
      } else if (Array.isArray(at)) at = (at as readonly Json[])[Number(step)];
    }
    return place;
  }
}
