import type { Diagnostic, Position, RelatedPosition } from "./diagnostic.ts";
import type { JsonObject } from "./json.ts";
import type { AttributePositions, Positions } from "./positions.ts";
import { isObject } from "./reference.ts";

/*
 * A component made from a template has attributes that were written elsewhere, and a fault in one of these stands in the
 * template. Its author wants both places: where it was written and where the template was used. A resolved document
 * knows for each name on an element's path where that name was written. What was written inside a component stands
 * behind its name and before the next name that is not inside; what does not stand there came through `extends`.
 */

const before = (a: Position, b: Position): boolean => a.line < b.line || (a.line === b.line && a.column < b.column);

/** The first of these names behind `from` in its file: a text inside of what `from` names has ended before. */
function nextName(from: Position, names: ReadonlyMap<string, AttributePositions> | undefined): Position | undefined {
  let next: Position | undefined;
  for (const { name } of names?.values() ?? [])
    if (name.file === from.file && before(from, name) && (next === undefined || before(name, next))) next = name;
  return next;
}

/**
 * Where templates were used so that a fault at `fault` came to be one of the element at `path`, innermost first; empty if
 * the element was written out.
 */
function usedWhere(
  document: JsonObject,
  positions: Positions,
  path: string,
  fault: Position,
): readonly RelatedPosition[] {
  const parts = path.split("/");
  const chain: { readonly path: string; readonly name: Position; readonly end: readonly Position[] }[] = [];
  const outermost = positions.get(document);
  let holder = document;
  for (const [index, part] of parts.entries()) {
    const names = positions.get(holder);
    const name = names?.get(part)?.name;
    const inside = Object.hasOwn(holder, part) ? holder[part] : undefined;
    if (!name || !isObject(inside)) break;
    const ends = [nextName(name, names), nextName(name, outermost)].flatMap((end) => end ?? []);
    chain.push({ path: parts.slice(0, index + 1).join("/"), name, end: ends });
    holder = inside;
  }
  const used: RelatedPosition[] = [];
  for (let index = chain.length - 1; index >= 0; index--) {
    const outer = chain[index];
    if (!outer) continue;
    const inner = chain[index + 1]?.name ?? fault;
    const same = (a: Position): boolean => a.file === outer.name.file;
    const within =
      same(inner) && !before(inner, outer.name) && outer.end.every((end) => !same(end) || before(inner, end));
    if (!within) used.push({ message: `used here, for \`${outer.path}\``, position: outer.name });
  }
  return used;
}

/** The same diagnostics; those of an element that is made from a template say where the template was used. */
export function withUses(
  tree: { readonly document: JsonObject; readonly positions: Positions } | null,
  diagnostics: readonly Diagnostic[],
): readonly Diagnostic[] {
  if (!tree) return diagnostics;
  return diagnostics.map((diagnostic) => {
    const { path, position } = diagnostic;
    if (path === undefined || position === undefined) return diagnostic;
    const used = usedWhere(tree.document, tree.positions, path, position);
    return used.length === 0 ? diagnostic : { ...diagnostic, related: [...used, ...(diagnostic.related ?? [])] };
  });
}
