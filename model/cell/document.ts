import { closestName } from "../diagnostics/closest-name.ts";
import type { Diagnostic } from "../diagnostics/diagnostic.ts";
import type { Diagnostics } from "../diagnostics/diagnostics.ts";
import type { Json, JsonObject } from "../json/json.ts";
import { isObject } from "../reference/reference.ts";
import { fail, ok, type Result } from "../result.ts";
import { limits } from "./limits.ts";

/** Any empty object: a document may have very many. */
const nothing: JsonObject = Object.freeze({});

/**
 * Whether an attribute of the document itself is for editors alone: `$schema` names the JSON Schema that they check it
 * with. It is read over, so that a text with it and one without are the same cell.
 */
export const isForEditors = (name: string, json: Json | undefined): boolean =>
  name === "$schema" && typeof json === "string";

/**
 * A document in canonical form, frozen: `x.type` first in every object, without what is for editors. Null beyond a limit,
 * told in `diagnostics`.
 */
export function canonical(document: JsonObject, diagnostics: Diagnostics): JsonObject | null {
  let left: number = limits.attributes;
  // The cell itself has a type as well.
  let typed: number = limits.elements + 1;
  let passed: string | null = null;
  const copy = (json: Json, depth: number): Json => {
    if (depth > limits.nesting) passed = `is nested deeper than ${limits.nesting} levels`;
    else if (--left < 0) passed = `has more than ${limits.attributes} attributes`;
    if (passed !== null || typeof json !== "object" || json === null) return json;
    if (Array.isArray(json)) return Object.freeze(json.map((item: Json) => copy(item, depth + 1)));
    const all = Object.entries(json);
    const entries = depth === 0 ? all.filter(([name, value]) => !isForEditors(name, value)) : all;
    if (entries.length === 0) return nothing;
    const type = Object.hasOwn(json, "x.type");
    if (type && --typed < 0) passed = `has more than ${limits.elements} elements`;
    if (type) entries.sort(([a], [b]) => Number(b === "x.type") - Number(a === "x.type"));
    return Object.freeze(Object.fromEntries(entries.map(([name, value]) => [name, copy(value, depth + 1)])));
  };
  const sound = copy(document, 0);
  if (passed === null && isObject(sound)) return sound;
  diagnostics.add({ code: "limit/document", message: `The document ${passed ?? "is not an object"}` });
  return null;
}

/** Parts of a '/'-separated path; a leading or closing `/` means nothing, the empty path is the whole document. */
const split = (path: string): string[] => path.split("/").filter((part) => part !== "");

function missing(path: string, part: string, holder: Json | undefined): Diagnostic {
  const closest = isObject(holder) ? closestName(part, Object.keys(holder)) : undefined;
  return {
    ...{ code: "document/no-path", message: `There is no \`${path}\` in the document: \`${part}\` is missing`, path },
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
