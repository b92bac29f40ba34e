import type { Diagnostic } from "./diagnostic.ts";

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
 * carets, the hint. `files` are the bundle's texts; without the file the source line is left out.
 */
export function renderDiagnostic(
  diagnostic: Diagnostic,
  files: Readonly<Record<string, string>>,
  color: boolean,
): string {
  const paint = painter(color);
  const { position, path, hint } = diagnostic;
  const place = position ? `${position.file}:${position.line}:${position.column}` : path;
  const prefix = place === undefined ? "" : paint(1, `${printable(place)}: `);
  const lines = [
    `${prefix}${paint(31, "error")}: ${paint(1, printable(diagnostic.message))} ${paint(2, `[${diagnostic.code}]`)}`,
  ];
  const text = position && Object.hasOwn(files, position.file) ? files[position.file] : undefined;
  const source = position && text !== undefined ? lineOf(text, position.line) : undefined;
  let margin = " ";
  if (position && source !== undefined) {
    const number = String(position.line);
    margin = " ".repeat(number.length);
    const from = position.column > widest ? position.column - 41 : 0;
    const shown = printable(source.slice(from, from + widest));
    const column = Math.min(position.column - 1 - from, shown.length);
    const carets = "^".repeat(Math.max(1, Math.min(position.length, shown.length - column)));
    lines.push(`${paint(34, `${margin} |`)}`);
    lines.push(`${paint(34, `${number} |`)} ${shown}`);
    lines.push(`${paint(34, `${margin} |`)} ${" ".repeat(column)}${paint(31, carets)}`);
  }
  if (hint !== undefined) lines.push(`${paint(34, `${margin} =`)} ${paint(36, "hint")}: ${printable(hint)}`);
  return lines.join("\n");
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
