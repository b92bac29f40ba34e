import type { Diagnostic, Position } from "./diagnostic.ts";

/** Longer lines are shown around the place only. */
const widest = 160;

/** Terminal colours; plain if not wanted. */
export function painter(color: boolean): (code: number, text: string) => string {
  return (code, text) => (color ? `\u001b[${code}m${text}\u001b[0m` : text);
}
/** Text of others without what a terminal would obey. */
export const printable = (text: string): string =>
  text.replace(/\p{Cc}/gu, (found) => (found === "\t" ? " " : "\ufffd"));

/** The same of several lines, which stay lines. */
export const printableLines = (text: string): string => text.split("\n").map(printable).join("\n");

/**
 * A diagnostic as a person reads it, without a newline at the end: `file:line:column`, the message, the source line with
 * carets, the hint, then the other places that have to do with it in the same form. `files` are the bundle's texts;
 * without the file the source line is left out.
 */
export function renderDiagnostic(
  diagnostic: Diagnostic,
  files: Readonly<Record<string, string>>,
  color: boolean,
): string {
  const paint = painter(color);
  const { position, path, hint, related = [] } = diagnostic;
  const place = position ? placeText(position) : path;
  const prefix = place === undefined ? "" : paint(1, `${printable(place)}: `);
  const lines = [
    `${prefix}${paint(31, "error")}: ${paint(1, printable(diagnostic.message))} ${paint(2, `[${diagnostic.code}]`)}`,
  ];
  const shown = position ? sourceLines(position, files, paint, 31) : [];
  lines.push(...shown);
  const margin = " ".repeat(position && shown.length > 0 ? String(position.line).length : 1);
  if (hint !== undefined) lines.push(`${paint(34, `${margin} =`)} ${paint(36, "hint")}: ${printable(hint)}`);
  for (const { message, position: other } of related) {
    lines.push(`${paint(1, `${printable(placeText(other))}: `)}${paint(36, "note")}: ${printable(message)}`);
    lines.push(...sourceLines(other, files, paint, 34));
  }
  return lines.join("\n");
}

const placeText = ({ file, line, column }: Position): string => `${file}:${line}:${column}`;

/** The line of a place with carets under it; none if the text is not at hand. */
function sourceLines(
  position: Position,
  files: Readonly<Record<string, string>>,
  paint: (code: number, text: string) => string,
  caretColor: number,
): readonly string[] {
  const text = Object.hasOwn(files, position.file) ? files[position.file] : undefined;
  const source = text === undefined ? undefined : lineOf(text, position.line);
  if (source === undefined) return [];
  const number = String(position.line);
  const margin = " ".repeat(number.length);
  const from = position.column > widest ? position.column - 41 : 0;
  const shown = printable(source.slice(from, from + widest));
  const column = Math.min(position.column - 1 - from, shown.length);
  const carets = "^".repeat(Math.max(1, Math.min(position.length, shown.length - column)));
  return [
    `${paint(34, `${margin} |`)}`,
    `${paint(34, `${number} |`)} ${shown}`,
    `${paint(34, `${margin} |`)} ${" ".repeat(column)}${paint(caretColor, carets)}`,
  ];
}

function lineOf(text: string, line: number): string | undefined {
  let start = 0;
  for (let at = 1; at < line; at++) {
    const end = text.indexOf("\n", start);
    if (end < 0) return undefined;
    start = end + 1;
  }
  const end = text.indexOf("\n", start);
  return text.slice(start, end < 0 ? undefined : end).replace(/\r$/, "");
}
