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
  const source = lineOf(files, position.file, position.line);
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

function lineOf(files: Files, file: string, line: number): string | undefined {
  const text = Object.hasOwn(files, file) ? files[file] : undefined;
  if (text === undefined) return undefined;
  const known = stepsOf(files, file);
  // Lines before that were met on the way to another one are not looked for again.
  const step = Math.min(Math.floor((line - 1) / linesOfStep), known.length - 1);
  let start = known[step] ?? 0;
  for (let at = step * linesOfStep + 1; at < line; at++) {
    const end = text.indexOf("\n", start);
    if (end < 0) return undefined;
    start = end + 1;
    if (at % linesOfStep === 0 && at / linesOfStep === known.length) known.push(start);
  }
  const end = text.indexOf("\n", start);
  return text.slice(start, end < 0 ? undefined : end).replace(/\r$/, "");
}

type Files = Readonly<Record<string, string>>;
const linesOfStep = 1000;
/** Where each thousandth line begins in the texts that were looked at. */
const steps = new WeakMap<Files, Map<string, number[]>>();
function stepsOf(files: Files, file: string): number[] {
  const all = steps.get(files) ?? new Map<string, number[]>();
  steps.set(files, all);
  const known = all.get(file) ?? [0];
  all.set(file, known);
  return known;
}
