/**
 * Documents as the tests see them: Markdown taken apart into its blocks, its commands, its links and its inline code.
 * Only what these documents use is understood.
 */
export interface Document {
  /** From the top of the repository. */
  readonly path: string;
  readonly text: string;
}

export interface Block {
  readonly line: number;
  /** What stands behind the opening fence: a language, and what the tests should know about it. */
  readonly language: string;
  readonly note: string;
  readonly text: string;
  /** Of a comment `<!-- … -->` in the line before: what a reader does not need and the test does. */
  readonly directive: string;
}

export function blocksOf({ text }: Document): readonly Block[] {
  const lines = text.split("\n");
  const blocks: Block[] = [];
  for (let at = 0; at < lines.length; at++) {
    const opening = /^```(\S*)\s*(.*)$/.exec(lines[at] ?? "");
    if (opening === null) continue;
    const end = lines.findIndex((line, later) => later > at && line === "```");
    const last = end < 0 ? lines.length : end;
    const directive = /^<!-- (.*) -->$/.exec(lines[at - 1] ?? "")?.[1] ?? "";
    blocks.push({
      line: at + 1,
      language: opening[1] ?? "",
      note: (opening[2] ?? "").trim(),
      directive,
      text: `${lines.slice(at + 1, last).join("\n")}\n`,
    });
    at = last;
  }
  return blocks;
}

/** The text without its blocks, with as many lines. */
const proseOf = ({ text }: Document): string => {
  let inside = false;
  return text
    .split("\n")
    .map((line) => {
      if (line.startsWith("```")) {
        inside = !inside;
        return "";
      }
      return inside ? "" : line;
    })
    .join("\n");
};

interface Found {
  readonly line: number;
  readonly text: string;
}
const found = (text: string, pattern: RegExp): readonly Found[] =>
  [...text.matchAll(pattern)].map((match) => ({
    line: text.slice(0, match.index).split("\n").length,
    text: match[1] ?? "",
  }));

export const inlineCodeOf = (document: Document): readonly Found[] => found(proseOf(document), /`([^`\n]+)`/g);
export const linksOf = (document: Document): readonly Found[] =>
  found(
    proseOf(document).replace(/`[^`\n]*`/g, (code) => " ".repeat(code.length)),
    /\]\(([^)\s]+)\)/g,
  );

/** What a heading is linked to as, in the way of GitHub. */
export const anchorsOf = (document: Document): ReadonlySet<string> =>
  new Set(
    found(proseOf(document), /^#+ (.+)$/gm).map(({ text }) =>
      text
        .toLowerCase()
        .replace(/[^\p{L}\p{N} _-]/gu, "")
        .trim()
        .replaceAll(" ", "-"),
    ),
  );

export interface Entry {
  readonly line: number;
  /** Without the prompt. */
  readonly command: string;
  readonly output: readonly string[];
}

/** The commands of a block `console`, each with what it printed. */
export function entriesOf(block: Block): readonly Entry[] {
  const entries: { line: number; command: string; output: string[] }[] = [];
  for (const [index, line] of block.text.replace(/\n$/, "").split("\n").entries()) {
    if (line.startsWith("$ ")) entries.push({ line: block.line + 1 + index, command: line.slice(2), output: [] });
    else entries.at(-1)?.output.push(line);
  }
  for (const { output } of entries) while (output.at(-1) === "") output.pop();
  return entries;
}

/**
 * The words that `cells` gets from a command line; null if it calls something else. What goes to another command or
 * into a file is cut off, as are brackets around what may be left out.
 */
export function wordsOf(commandLine: string): readonly string[] | null {
  const call = /^(?:\w+=\S+ )*(?:sudo )?(?:\.\/)?cells(?: (.*))?$/s.exec(commandLine.trim());
  if (call === null) return null;
  const words: string[] = [];
  for (const match of (call[1] ?? "").matchAll(/(?:"[^"]*"|'[^']*'|[^\s"'])+/g)) {
    const word = match[0];
    if (/^(?:[|;>#]|&&|2>)/.test(word)) break;
    const plain = word
      .replace(/^\[(.*)\]$/, "$1")
      .replace(/"([^"]*)"|'([^']*)'/g, (_, double, single) => double ?? single);
    words.push(plain);
  }
  return words;
}

/** Whether what is shown is what is printed; a line of `…` stands for any number of lines. */
export function isShown(shown: readonly string[], printed: readonly string[]): boolean {
  const [first, ...rest] = shown;
  if (first === undefined) return printed.length === 0;
  if (first.trim() !== "…") return first === printed[0] && isShown(rest, printed.slice(1));
  return Array.from({ length: printed.length + 1 }, (_, from) => from).some((from) =>
    isShown(rest, printed.slice(from)),
  );
}
