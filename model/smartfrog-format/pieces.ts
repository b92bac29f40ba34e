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
const comment = /\/\/[^\n]*|\/\*[\s\S]*?\*\//y;
const code = new RegExp(
  [
    /"(?:\\.|[^"\\\n])*"/,
    /#include/,
    /##(?:\\[\s\S]|[^#\\])*#/,
    /#[A-Z0-9]+#[^#]*#/,
    /x\|(?![|\]])/,
    /[A-Za-z_$\u00a2-\u00ff](?:[A-Za-z0-9._\-+@#~$%^&]|[\u00a2-\u00ff])*/,
    /-?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[LlFfDd]?/,
    /\[\||\|\]|--|==|!=|>=|<=|\+\+|<>|&&|\|\||->/,
    /[{}()[\],;:+\-*/%<>!]/,
  ]
    .map(({ source }) => source)
    .join("|"),
  "y",
);

/** The pieces of a text that the lexer accepts; null where something is no token. */
export function piecesOf(text: string): readonly Piece[] | null {
  const pieces: Piece[] = [];
  let at = 0;
  let line = 1;
  let lineStart = 0;
  const moveTo = (end: number): void => {
    for (
      let newline = text.indexOf("\n", at);
      newline >= 0 && newline < end;
      newline = text.indexOf("\n", newline + 1)
    ) {
      line++;
      lineStart = newline + 1;
    }
    at = end;
  };
  const match = (pattern: RegExp): string | undefined => {
    pattern.lastIndex = at;
    return pattern.exec(text)?.[0];
  };
  for (;;) {
    const before = line;
    const gap = match(space)?.length ?? 0;
    moveTo(at + gap);
    if (at === text.length) return pieces;
    const remark = match(comment);
    const found = remark ?? match(code);
    if (found === undefined) return null;
    const begun = { line, column: at - lineStart + 1, breaks: line - before, gap };
    moveTo(at + found.length);
    const kind = remark === undefined ? "code" : remark.startsWith("//") ? "line-comment" : "block-comment";
    pieces.push({ kind, text: found, ...begun, endLine: line });
  }
}
