import type { Bundle } from "../cell/cell.ts";
import type { Span } from "./sources/source.ts";

/** What stands at a span of a file, replaced by a text. */
export interface Edit extends Span {
  readonly file: string;
  readonly text: string;
}

/** The texts with all edits made, which do not overlap; of two at the same place the first comes first. */
export function applyEdits(bundle: Bundle, edits: readonly Edit[]): Bundle {
  const files: Record<string, string> = { ...bundle.files };
  const byFile = Map.groupBy(edits, ({ file }) => file);
  for (const [file, some] of byFile) {
    const text = files[file] ?? "";
    const pieces: string[] = [];
    let at = 0;
    for (const { start, end, text: replacement } of some.toSorted((a, b) => a.start - b.start)) {
      pieces.push(text.slice(at, start), replacement);
      at = end;
    }
    files[file] = pieces.join("") + text.slice(at);
  }
  return { ...bundle, files };
}
