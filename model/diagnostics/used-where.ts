import { isObject, type JsonObject } from "../json/json.ts";
import type { Diagnostic, Position, RelatedPosition } from "./diagnostic.ts";
import type { Positions } from "./positions.ts";

/*
 * A component made from a template has attributes that were written elsewhere, and a fault in one of these stands in the
 * template. Its author wants both places: where it was written and where the template was used. A resolved document
 * knows for each name on an element's path where that name was written. What was written inside a component stands
 * behind its name and before the next name that is not inside; what does not stand there came through `extends`.
 */

const order = (a: Position, b: Position): number => a.line - b.line || a.column - b.column;
const before = (a: Position, b: Position): boolean => order(a, b) < 0;

/** Where the names of one component were written; sorted once, since many faults may ask. */
export class NamePlaces {
  readonly #names: () => Iterable<Position>;
  #sorted: Map<string, Position[]> | null = null;

  constructor(names: () => Iterable<Position>) {
    this.#names = names;
  }

  /** The first one behind that place in its file. */
  after(from: Position): Position | undefined {
    this.#sorted ??= this.#sort();
    const places = this.#sorted.get(from.file) ?? [];
    let [low, high] = [0, places.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      const place = places[middle];
      if (place && before(from, place)) high = middle;
      else low = middle + 1;
    }
    return places[low];
  }

  #sort(): Map<string, Position[]> {
    const sorted = new Map<string, Position[]>();
    for (const place of this.#names()) {
      const places = sorted.get(place.file);
      if (places) places.push(place);
      else sorted.set(place.file, [place]);
    }
    for (const places of sorted.values()) places.sort(order);
    return sorted;
  }
}

/** A component on the way from the document to a fault. */
export interface Holder {
  /** From the document, with `/` between names. */
  readonly path: string;
  /** Where its name was written. */
  readonly name: Position;
  /** Names that cannot be inside of it: those beside it and those of the whole document. */
  readonly others: readonly NamePlaces[];
}

/** The first name behind `from` in its file: a text inside of what `from` names has ended before. */
function endOf({ name: from, others }: Holder): Position | undefined {
  let next: Position | undefined;
  for (const names of others) {
    const name = names.after(from);
    if (name && (next === undefined || before(name, next))) next = name;
  }
  return next;
}

/**
 * Where templates were used so that a fault at `fault` came to be one of the last of the holders (which begin with the
 * outermost): innermost first, and empty if it was written out.
 */
export function usesAlong(holders: readonly Holder[], fault: Position): readonly RelatedPosition[] {
  const used: RelatedPosition[] = [];
  for (let index = holders.length - 1; index >= 0; index--) {
    const outer = holders[index];
    if (!outer) continue;
    const inner = holders[index + 1]?.name ?? fault;
    const end = endOf(outer);
    const within =
      inner.file === outer.name.file && !before(inner, outer.name) && (end === undefined || before(inner, end));
    if (!within) used.push({ message: `used here, for \`${outer.path}\``, position: outer.name });
  }
  return used;
}

/** The places of an object's names, made when they are first asked for. */
type PlacesOf = (object: JsonObject) => NamePlaces | undefined;

function placesIn(positions: Positions): PlacesOf {
  const known = new Map<JsonObject, NamePlaces>();
  return (object) => {
    const names = positions.get(object);
    if (!names) return undefined;
    const places = known.get(object) ?? new NamePlaces(() => Array.from(names.values(), ({ name }) => name));
    known.set(object, places);
    return places;
  };
}

function holdersOf(document: JsonObject, positions: Positions, placesOf: PlacesOf, path: string): readonly Holder[] {
  const parts = path.split("/");
  const holders: Holder[] = [];
  const outermost = placesOf(document);
  let holder = document;
  for (const [index, part] of parts.entries()) {
    const name = positions.get(holder)?.get(part)?.name;
    const inside = Object.hasOwn(holder, part) ? holder[part] : undefined;
    if (!name || !isObject(inside)) break;
    const others = [placesOf(holder), outermost].flatMap((places) => places ?? []);
    holders.push({ path: parts.slice(0, index + 1).join("/"), name, others });
    holder = inside;
  }
  return holders;
}

/**
 * The same diagnostics; those of an element that is made from a template say where the template was used. What stands in
 * none of `files`, such as the type that a standard prototype gives, is told at the name of the component that has it.
 */
export function withUses(
  tree: { readonly document: JsonObject; readonly positions: Positions } | null,
  files: Readonly<Record<string, string>>,
  diagnostics: readonly Diagnostic[],
): readonly Diagnostic[] {
  if (!tree) return diagnostics;
  const placesOf = placesIn(tree.positions);
  return diagnostics.map((diagnostic) => {
    const { path, position: written } = diagnostic;
    if (path === undefined || written === undefined) return diagnostic;
    const holders = holdersOf(tree.document, tree.positions, placesOf, path);
    const position = Object.hasOwn(files, written.file) ? written : holders.at(-1)?.name;
    if (position === undefined) return diagnostic;
    const used = usesAlong(holders, position);
    return {
      ...diagnostic,
      position,
      ...(used.length === 0 ? {} : { related: [...used, ...(diagnostic.related ?? [])] }),
    };
  });
}
