/**
 * SmartFrog text as the formatter sees it: every token and every comment as it was written. The parser's lexer gives
 * meanings and forgets comments; this one keeps texts and knows no meanings. A test compares the two.
 */
export interface Piece {
  readonly kind: "code" | "line-comment" | "block-comment";
  /** As in the source; a line comment without its newline. */
  readonly text: string;
  /** Where it begins. Lines and columns count from 1. */
  readonly line: number;
  readonly column: number;
  /** The line of its last character. */
  readonly endLine: number;
  /** Newlines between the piece before it (or the beginning) and this one. */
  readonly breaks: number;
  /** Characters between it and the piece before it, newlines included. */
  readonly gap: number;
}

const space = /[ \t\r\n\f\ufeff]+/y;
// No pattern repeats a choice: what stands in a long text would be remembered for each of its characters.
const code = new RegExp(
  [
    /#include(?:[ \t]*\?)?/,
    /#[A-Z0-9]+#[^#]*#/,
    /x\|(?![|\]])/,
    /[A-Za-z_$\u00a2-\u00ff][A-Za-z0-9._\-+@#~$%^&\u00a2-\u00ff]*/,
    /-?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[LlFfDd]?/,
    /\[\||\|\]|--|==|!=|>=|<=|\+\+|<>|&&|\|\||->/,
    /[{}()[\],;:+\-*/%<>!]/,
  ]
    .map(({ source }) => source)
    .join("|"),
  "y",
);

/** The end of a string that begins at `start`, behind its closing quote; -1 if it has none. */
export function quotedEnd(text: string, start: number): number {
  const lines = text[start] === "#";
  for (let at = start + (lines ? 2 : 1); at < text.length; at++) {
    const character = text[at];
    if (character === "\\") at++;
    else if (character === (lines ? "#" : '"')) return at + 1;
    if (!lines && text[at] === "\n") return -1;
  }
  return -1;
}

/** The end of the comment that begins at `start`; -1 if none does, or it is not closed. */
export function commentEnd(text: string, start: number): number {
  if (text.startsWith("//", start)) {
    const end = text.indexOf("\n", start);
    return end < 0 ? text.length : end;
  }
  const end = text.startsWith("/*", start) ? text.indexOf("*/", start + 2) : -1;
  return end < 0 ? -1 : end + 2;
}

/** The pieces of a text that the lexer accepts; null where something is no token. No more than `most` are looked for. */
export function piecesOf(text: string, most = Number.POSITIVE_INFINITY): readonly Piece[] | null {
  const pieces: Piece[] = [];
  let at = 0;
  let line = 1;
  let lineStart = 0;
  // Kept, so that a text of one long line is not searched again for each piece.
  let newline = text.indexOf("\n");
  const moveTo = (end: number): void => {
    for (; newline >= 0 && newline < end; newline = text.indexOf("\n", newline + 1)) {
      line++;
      lineStart = newline + 1;
    }
    at = end;
  };
  const endOf = (pattern: RegExp): number => {
    pattern.lastIndex = at;
    return pattern.test(text) ? pattern.lastIndex : -1;
  };
  while (pieces.length < most) {
    const [before, start] = [line, at];
    moveTo(Math.max(at, endOf(space)));
    if (at === text.length) return pieces;
    const remark = commentEnd(text, at);
    const quoted = text[at] === '"' || text.startsWith("##", at);
    const end = remark >= 0 ? remark : quoted ? quotedEnd(text, at) : endOf(code);
    if (end < 0) return null;
    const begun = { line, column: at - lineStart + 1, breaks: line - before, gap: at - start };
    const found = text.slice(at, end);
    moveTo(end);
    const kind = remark < 0 ? "code" : found.startsWith("//") ? "line-comment" : "block-comment";
    pieces.push({ kind, text: found, ...begun, endLine: line });
  }
  return pieces;
}
