import { dirname, join } from "node:path";
import type { Bundle } from "../../model/cell/cell.ts";
import type { Diagnostic, Position } from "../../model/diagnostics/diagnostic.ts";
import { renderDiagnostic } from "../../model/diagnostics/render-diagnostic.ts";

/** Diagnostics with the texts that they are about, under names by which a terminal or an editor opens them from here. */
export interface Opened {
  readonly diagnostics: readonly Diagnostic[];
  readonly files: Readonly<Record<string, string>>;
}

/**
 * A bundle names its files from the directory of its main file, which is what the API speaks of; whoever typed
 * `cells spec check some/dir/shop.sf` wants `some/dir/tier.sf`. What is in no bundle (standard includes) keeps its name.
 */
export const opened = (file: string, bundle: Bundle, diagnostics: readonly Diagnostic[]): Opened => {
  const directory = dirname(file);
  const place = (position: Position): Position =>
    Object.hasOwn(bundle.files, position.file) ? { ...position, file: join(directory, position.file) } : position;
  return {
    files: Object.fromEntries(Object.entries(bundle.files).map(([name, text]) => [join(directory, name), text])),
    diagnostics: diagnostics.map((diagnostic) => ({
      ...diagnostic,
      ...(diagnostic.position ? { position: place(diagnostic.position) } : {}),
      ...(diagnostic.related
        ? { related: diagnostic.related.map((other) => ({ ...other, position: place(other.position) })) }
        : {}),
    })),
  };
};

/** The same as a person reads them, one text each. */
export const rendered = (
  file: string,
  bundle: Bundle,
  diagnostics: readonly Diagnostic[],
  colour: boolean,
): readonly string[] => {
  const { files, diagnostics: placed } = opened(file, bundle, diagnostics);
  return placed.map((diagnostic) => renderDiagnostic(diagnostic, files, colour));
};
