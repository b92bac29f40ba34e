import { closestName } from "../diagnostics/closest-name.ts";
import type { Diagnostic } from "../diagnostics/diagnostic.ts";
import type { Diagnostics } from "../diagnostics/diagnostics.ts";
import { isObject, type Json, type JsonObject } from "../json/json.ts";
import { limits } from "../limits.ts";
import { fail, ok, type Result } from "../result.ts";
import { type InSlices, inOneGo } from "../slices.ts";

/** Any empty object: a document may have very many. */
const nothing: JsonObject = Object.freeze({});

/**
 * Whether an attribute of the document itself is for editors alone: `$schema` names the JSON Schema that they check it
 * with. It is read over, so that a text with it and one without are the same cell.
 */
export const isForEditors = (name: string, json: Json | undefined): boolean =>
  name === "$schema" && typeof json === "string";

/** Moves the entry of that name to the front. */
function putFirst(entries: [string, Json][], name: string): void {
  const at = entries.findIndex(([each]) => each === name);
  entries.unshift(...entries.splice(at, 1));
}
const isList = (json: Json): json is readonly Json[] => Array.isArray(json);

/**
 * A document in canonical form, frozen: `x.type` first in every object, without what is for editors. Null beyond a limit,
 * told in `diagnostics`.
 */
export const canonical = (document: JsonObject, diagnostics: Diagnostics): JsonObject | null =>
  inOneGo(canonicalInSlices(document, diagnostics));
export function* canonicalInSlices(document: JsonObject, diagnostics: Diagnostics): InSlices<JsonObject | null> {
  let left: number = limits.attributes;
  // The cell itself has a type as well.
  let typed: number = limits.elements + 1;
  let passed: string | null = null;
  const count = (depth: number): void => {
    if (depth > limits.nesting) passed = `is nested deeper than ${limits.nesting} levels`;
    else if (--left < 0) passed = `has more than ${limits.attributes} attributes`;
  };
  // What holds nothing needs no generator of its own.
  function* copyAll(values: readonly Json[], depth: number): InSlices<Json[]> {
    const copies: Json[] = [];
    for (const json of values) {
      count(depth);
      copies.push(passed !== null || typeof json !== "object" || json === null ? json : yield* copy(json, depth));
    }
    return copies;
  }
  function* copy(json: readonly Json[] | JsonObject, depth: number): InSlices<Json> {
    if (isList(json)) return Object.freeze(yield* copyAll(json, depth + 1));
    const all = Object.entries(json);
    const entries = depth === 0 ? all.filter(([name, value]) => !isForEditors(name, value)) : all;
    if (entries.length === 0) return nothing;
    const type = Object.hasOwn(json, "x.type");
    if (type && --typed < 0) passed = `has more than ${limits.elements} elements`;
    if (type) putFirst(entries, "x.type");
    const values = yield* copyAll(
      entries.map(([, value]) => value),
      depth + 1,
    );
    if (type) yield 1;
    return Object.freeze(Object.fromEntries(entries.map(([name], index) => [name, values[index] ?? null])));
  }
  count(0);
  const sound = yield* copy(document, 0);
  if (passed === null && isObject(sound)) return sound;
  diagnostics.add({ code: "limit/document", message: `The document ${passed ?? "is not an object"}` });
  return null;
}

/** Parts of a '/'-separated path; a leading or closing `/` means nothing, the empty path is the whole document. */
const split = (path: string): string[] => path.split("/").filter((part) => part !== "");

function missing(path: string, part: string, holder: Json | undefined): Diagnostic {
  const closest = isObject(holder) ? closestName(part, Object.keys(holder)) : undefined;
  return {
    code: "document/no-path",
    message: `There is no \`${path}\` in the document: \`${part}\` is missing`,
    path,
    ...(closest === undefined ? {} : { hint: `Did you mean \`${closest}\`?` }),
  };
}

/** What stands at a path. */
export function getAt(document: JsonObject, path: string): Result<Json, Diagnostic> {
  let current: Json = document;
  for (const part of split(path)) {
    const next: Json | undefined = isObject(current) && Object.hasOwn(current, part) ? current[part] : undefined;
    if (next === undefined) return fail(missing(path, part, current));
    current = next;
  }
  return ok(current);
}

/** The document with `json` at a path, whose parent must be there; a new name goes last. */
export function replaceAt(document: JsonObject, path: string, json: Json): Result<JsonObject, Diagnostic> {
  return edit(
    document,
    path,
    split(path),
    (entries, name) => {
      const index = entries.findIndex(([key]) => key === name);
      return index < 0 ? [...entries, [name, json]] : entries.with(index, [name, json]);
    },
    json,
  );
}

/** The document without what stands at a path. */
export function removeAt(document: JsonObject, path: string): Result<JsonObject, Diagnostic> {
  const found = getAt(document, path);
  if (!found.ok) return found;
  return edit(document, path, split(path), (entries, name) => entries.filter(([key]) => key !== name), {});
}

type Entries = [string, Json][];

/** Applies a change to the object that holds the last part; `whole` is the outcome if there are no parts. */
function edit(
  object: JsonObject,
  path: string,
  parts: readonly string[],
  change: (entries: Entries, name: string) => Entries,
  whole: Json,
): Result<JsonObject, Diagnostic> {
  const [first, ...rest] = parts;
  if (first === undefined)
    return isObject(whole)
      ? ok(whole)
      : fail({ code: "document/not-an-object", message: "A document is a JSON object", path });
  const entries = Object.entries(object);
  if (rest.length === 0) return ok(Object.freeze(Object.fromEntries(change(entries, first))));
  const child = Object.hasOwn(object, first) ? object[first] : undefined;
  if (!isObject(child)) return fail(missing(path, first, object));
  const changed = edit(child, path, rest, change, whole);
  if (!changed.ok) return changed;
  return ok(
    Object.freeze(Object.fromEntries(entries.map(([name, value]) => [name, name === first ? changed.value : value]))),
  );
}
