import type { Diagnostics } from "../diagnostics/diagnostics.ts";
import type { AttributePositions, ObjectPositions, Positions } from "../diagnostics/positions.ts";
import { isObject, type Json, type JsonObject } from "../json/json.ts";
import { canonical } from "./document.ts";

/**
 * What a front end outside of the model made of a bundle's main text: YAML through its library, TypeScript by running it
 * (`runtime/specification/`). Plain data, so that it can go in a request and between processes; nothing in it is believed
 * but checked like any document, and its places only say where a fault is shown.
 */
export interface Evaluated {
  readonly document: JsonObject;
  /** Names of the files that places lie in. */
  readonly files: readonly string[];
  /** Where attributes were written, by the JSON Pointer (RFC 6901) of the attribute; those without one have no position. */
  readonly places: Readonly<Record<string, Place>>;
}
/**
 * File by its index, then line, column and length of the name, then of the value; all but the index count as in
 * `Position`. Numbers because a document has a hundred thousand of them.
 */
export type Place = readonly [
  file: number,
  nameLine: number,
  nameColumn: number,
  nameLength: number,
  valueLine: number,
  valueColumn: number,
  valueLength: number,
];

/** Part of a JSON Pointer, escaped. */
export const pointerPart = (name: string): string => `/${name.replaceAll("~", "~0").replaceAll("/", "~1")}`;

/** The document in canonical form with its positions; null beyond a limit, told in `diagnostics`. */
export function readEvaluated(
  evaluated: Evaluated,
  diagnostics: Diagnostics,
): { readonly document: JsonObject; readonly positions: Positions } | null {
  const document = canonical(evaluated.document, diagnostics);
  return document && { document, positions: new EvaluatedPositions(document, evaluated) };
}

/** Finds the pointer of an object when one is first asked for: most documents have no fault. */
class EvaluatedPositions implements Positions {
  readonly #document: JsonObject;
  readonly #evaluated: Evaluated;
  #pointers: Map<JsonObject, string> | null = null;

  constructor(document: JsonObject, evaluated: Evaluated) {
    this.#document = document;
    this.#evaluated = evaluated;
  }

  get(object: JsonObject): ObjectPositions | undefined {
    this.#pointers ??= pointersIn(this.#document);
    const pointer = this.#pointers.get(object);
    if (pointer === undefined) return undefined;
    const at = (name: string): AttributePositions | undefined => this.#at(`${pointer}${pointerPart(name)}`);
    return { get: at, values: () => Object.keys(object).flatMap((name) => at(name) ?? []) };
  }

  #at(pointer: string): AttributePositions | undefined {
    const { files, places } = this.#evaluated;
    const place = Object.hasOwn(places, pointer) ? places[pointer] : undefined;
    const file = place && files[place[0]];
    if (!place || file === undefined) return undefined;
    const [, nameLine, nameColumn, nameLength, line, column, length] = place;
    return {
      name: { file, line: nameLine, column: nameColumn, length: nameLength },
      value: { file, line, column, length },
    };
  }
}

function pointersIn(document: JsonObject): Map<JsonObject, string> {
  const found = new Map<JsonObject, string>();
  const visit = (json: Json, pointer: string): void => {
    if (typeof json !== "object" || json === null) return;
    if (isObject(json)) found.set(json, pointer);
    for (const [name, value] of Object.entries(json)) visit(value, `${pointer}${pointerPart(name)}`);
  };
  visit(document, "");
  return found;
}
