import type { ModelSource } from "../../../../model/contract/versions.ts";
import type { Diagnostic } from "../../../../model/diagnostics/diagnostic.ts";
import type { ElementChange } from "../../../../model/editor/patches/patches.ts";
import { isObject, type Json } from "../../../../model/json/json.ts";
import { type JsonPatchOperation, patched, readPatch } from "../../../../model/json/patch.ts";
import { fail, ok, type Result } from "../../../../model/result.ts";

/** Why a change cannot go into the text that the model was made of; null: the text is that of the model as it is. */
export function whyBeside(source: ModelSource | null, version: number): string | null {
  if (source === null) return "no text of it is kept";
  const others = source.since.length + source.unknown;
  if (others === 0 && source.version === version) return null;
  return "its text is of before: other changes came beside it since";
}

const escaped = (name: string): string => name.replaceAll("~", "~0").replaceAll("/", "~1");
const pointer = (path: readonly string[]): string => path.map((name) => `/${escaped(name)}`).join("");
/** The same changes as a patch of the model (RFC 6902), one after the other; a sentence where an element more would overwrite what is there. */
export function operationsOf(
  model: Json,
  changes: readonly ElementChange[],
): Result<readonly JsonPatchOperation[], string> {
  const operations: JsonPatchOperation[] = [];
  let now = model;
  for (const change of changes) {
    if (change.kind === "add" && at(now, change.path.split("/")) !== undefined)
      return fail(`${change.path} is there already: change it instead, or take another name`);
    const more = operationsOfOne(now, change);
    operations.push(...more);
    // What cannot be applied is refused where it is put, with its reason.
    const patch = readPatch(more as unknown as Json);
    const after = patch.ok ? patched(now, patch.value) : patch;
    if (after.ok) now = after.value;
  }
  return ok(operations);
}
function operationsOfOne(model: Json, change: ElementChange): readonly JsonPatchOperation[] {
  const path = change.path.split("/");
  if (change.kind === "remove") return [{ op: "remove", path: pointer(path) }];
  if (change.kind === "set") {
    const own = at(model, path);
    return Object.entries(change.attributes).flatMap(([name, value]): readonly JsonPatchOperation[] => {
      const isThere = isObject(own) && Object.hasOwn(own, name);
      if (value !== null) return [{ op: "add", path: pointer([...path, name]), value }];
      return isThere ? [{ op: "remove", path: pointer([...path, name]) }] : [];
    });
  }
  // What is around it and not there comes with it.
  let value: Json = { "x.type": change.type, ...change.attributes };
  let depth = path.length;
  for (; depth > 1 && at(model, path.slice(0, depth - 1)) === undefined; depth -= 1)
    value = { [path[depth - 1] ?? ""]: value };
  return [{ op: "add", path: pointer(path.slice(0, depth)), value }];
}
function at(model: Json, path: readonly string[]): Json | undefined {
  let found: Json | undefined = model;
  for (const name of path) found = isObject(found) && Object.hasOwn(found, name) ? found[name] : undefined;
  return found;
}

/** Paths whose data may be lost, as they were ticked for one plan. */
export interface Allowance {
  readonly plan: object | null;
  readonly paths: readonly string[];
}
/** Of these what counts for a plan: what was ticked for another one says nothing of it, and no more than what it loses. */
export const allowedFor = (plan: object | null, lost: readonly string[], allowance: Allowance): readonly string[] =>
  allowance.plan === plan ? lost.filter((path) => allowance.paths.includes(path)) : [];

/** Where a change goes, a sentence. */
export function whereSays({ main, beside }: { readonly main: string | null; readonly beside: string | null }): string {
  if (beside !== null) return `It changes the model beside the text: ${beside}.`;
  const stays = main?.endsWith(".sf") ? "whose comments and everything else stay" : "whose lines are laid out anew";
  return `It is written into ${main}, ${stays}.`;
}

/** What was refused, by the field that it is about; under "" what is about none of them. */
export function besideFields(
  diagnostics: readonly Diagnostic[],
  attributes: readonly string[],
): ReadonlyMap<string, readonly string[]> {
  const isNamed = (text: string, name: string): boolean =>
    new RegExp(`(?<![\\w.])${name.replaceAll(".", "\\.")}(?![\\w]|\\.\\w)`).test(text);
  return Map.groupBy(
    diagnostics.map(({ message, hint }) => (hint === undefined ? message : `${message}. ${hint}`)),
    (text) => attributes.find((name) => isNamed(text, name)) ?? "",
  );
}
