import { Diagnostics } from "../diagnostics/diagnostics.ts";
import type { Component } from "./component.ts";
import { resolveTypes } from "./phases/resolver.ts";
import { standardFiles } from "./standard-files.ts";
import { parseBundle } from "./text/parser.ts";

/** The templates of standard include files, by name. `types` are in scope in them, as in the documents that include them. */
export function standardTemplates(
  paths: Iterable<string>,
  types: ReadonlyMap<string, Component>,
): ReadonlyMap<string, Component> {
  const templates = new Map<string, Component>();
  for (const path of paths) {
    const text = standardFiles.get(path)?.();
    if (text === undefined) continue;
    const diagnostics = new Diagnostics();
    const attributes = parseBundle({ main: path, files: { [path]: text } }, diagnostics).attributes;
    const origin = { file: path, line: 1, column: 1, length: 1 };
    const { root } = resolveTypes({ attributes, prototypes: [], faulty: false }, types, origin, diagnostics);
    if (!diagnostics.none) throw new Error(`${path}: ${diagnostics.list[0]?.message}`);
    for (const [name, { content }] of root.attributes) if (content.kind === "component") templates.set(name, content);
  }
  return templates;
}
