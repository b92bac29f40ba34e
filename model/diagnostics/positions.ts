import type { Json, JsonObject } from "../json/json.ts";
import type { Position } from "./diagnostic.ts";

/** Where the attributes of one object were written. */
export interface AttributePositions {
  readonly name: Position;
  readonly value: Position;
}
/**
 * Positions of a canonical document, beside it rather than in it: keyed by the identity of each object, then by the name
 * of the attribute. A document that was stored has none.
 */
export interface Positions {
  get(object: JsonObject): ObjectPositions | undefined;
  /** Where an object was made from a template of plain values, which it shares with others: that, and what it has itself. */
  madeFrom?(object: JsonObject): MadeFrom | undefined;
  /** What an object took the place of that a template gave to the one that it stands in. */
  replaced?(object: JsonObject): Replaced | undefined;
}
/** A component of a template, in whose place another one of its name stands. */
export interface Replaced {
  /** The template, and the component in it, as `extends` would name them. */
  readonly template: string;
  readonly component: string;
  has(attribute: string): boolean;
}
export interface MadeFrom {
  readonly template: JsonObject;
  /** By their names; these may stand in the template, too. */
  readonly own: ReadonlyMap<string, unknown>;
}
export interface ObjectPositions {
  get(name: string): AttributePositions | undefined;
  values(): Iterable<AttributePositions>;
}

export interface PositionedEntry extends AttributePositions {
  readonly value: Position;
  readonly json: Json;
}

/** Builds documents object by object and remembers where everything was written. */
export class PositionedBuilder {
  readonly positions = new Map<JsonObject, ReadonlyMap<string, AttributePositions>>();

  /** Canonical order: `x.type` first, the rest as given. Names such as `__proto__` become plain own properties. */
  object(entries: ReadonlyMap<string, PositionedEntry>): JsonObject {
    const type = entries.get("x.type");
    const json: Record<string, Json> = type ? { "x.type": type.json } : {};
    for (const [name, entry] of entries)
      if (name !== "__proto__") json[name] = entry.json;
      else Object.defineProperty(json, name, { value: entry.json, enumerable: true, configurable: true });
    const object = Object.freeze(json);
    this.positions.set(object, entries);
    return object;
  }
}
