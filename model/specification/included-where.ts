import type { Bundle } from "../cell/cell.ts";
import type { Diagnostic, Position, RelatedPosition } from "../diagnostics/diagnostic.ts";
import { Diagnostics } from "../diagnostics/diagnostics.ts";
import { tokenize } from "../smartfrog/text/lexer.ts";

interface Inclusion {
  readonly by: string;
  readonly position: Position;
}

/** A path of `#include` from the file that it stands in; what leads nowhere is no file of the bundle. */
function resolved(from: string, path: string): string {
  const parts = from.split("/").slice(0, -1);
  for (const part of path.split("/")) {
    if (part === "..") parts.pop();
    else if (part !== "" && part !== ".") parts.push(part);
  }
  return parts.join("/");
}

/** Each file that `bundle.main` includes, directly or through others, with the first place that does. */
function inclusions(bundle: Bundle): ReadonlyMap<string, Inclusion> {
  const found = new Map<string, Inclusion>();
  const open = [bundle.main];
  for (let name = open.shift(); name !== undefined; name = open.shift()) {
    const text = Object.hasOwn(bundle.files, name) ? bundle.files[name] : undefined;
    if (text === undefined || !text.includes("#include")) continue;
    const tokens = tokenize(name, text, new Diagnostics());
    for (const [index, token] of tokens.entries()) {
      const path = tokens[index + 1];
      if (token.kind !== "include" || path?.kind !== "string") continue;
      const target = resolved(name, path.text);
      if (target === bundle.main || found.has(target)) continue;
      found.set(target, { by: name, position: path.position });
      open.push(target);
    }
  }
  return found;
}

/**
 * The same diagnostics; those in an included file say where it was included, from the inside to the main file. Texts
 * are only looked at if there is such a diagnostic.
 */
export function withInclusions(bundle: Bundle, diagnostics: readonly Diagnostic[]): readonly Diagnostic[] {
  const elsewhere = ({ position }: Diagnostic): boolean =>
    position !== undefined && position.file !== bundle.main && Object.hasOwn(bundle.files, position.file);
  if (!diagnostics.some(elsewhere)) return diagnostics;
  const found = inclusions(bundle);
  return diagnostics.map((diagnostic) => {
    if (!diagnostic.position || !elsewhere(diagnostic)) return diagnostic;
    const related: RelatedPosition[] = [...(diagnostic.related ?? [])];
    let at = found.get(diagnostic.position.file);
    for (let file = diagnostic.position.file; at; file = at.by, at = found.get(file))
      related.push({ message: `\`${file}\` is included here`, position: at.position });
    return related.length === 0 ? diagnostic : { ...diagnostic, related };
  });
}
