export type Colour = "red" | "green" | "yellow" | "blue" | "grey" | "bold";
const codes: Readonly<Record<Colour, number>> = { red: 31, green: 32, yellow: 33, blue: 34, grey: 90, bold: 1 };

/** Paints a text, or leaves it as it is. */
export type Paint = (colour: Colour, text: string) => string;

export const plain: Paint = (_colour, text) => text;
const painted: Paint = (colour, text) => `\u001b[${codes[colour]}m${text}\u001b[0m`;

/** Where a command writes. Colour and live lines are for terminals; https://no-color.org is honoured. */
export interface Terminal {
  readonly paint: Paint;
  readonly colour: boolean;
  /** Lines may be drawn over. */
  readonly live: boolean;
  readonly columns: number;
  print(text: string): void;
  /** To standard error. */
  warn(text: string): void;
  /** Replaces what the last `draw` showed; only where `live`. */
  draw(lines: readonly string[]): void;
  /** What is drawn stays. */
  settle(): void;
  /** False where nobody can be asked. */
  readonly canAsk: boolean;
  ask(question: string): Promise<boolean>;
}

const escapeCharacter = String.fromCharCode(27);
/** In a group, so that `split` keeps it. */
const colourCode = new RegExp(`(${escapeCharacter}\\[\\d+m)`, "g");

/** Cuts to the visible width, so that a drawn line never wraps and can be drawn over. */
export const cut = (text: string, width: number): string => {
  let visible = 0;
  let out = "";
  for (const part of text.split(colourCode)) {
    if (part.startsWith(`${escapeCharacter}[`)) out += part;
    else {
      const rest = Math.max(0, width - visible);
      out += part.length > rest ? `${part.slice(0, Math.max(0, rest - 1))}${rest > 0 ? "…" : ""}` : part;
      visible += part.length;
    }
  }
  return out;
};

/** What a terminal says of itself that has no size: a pseudo-terminal of which nobody set one says 0. */
const sizeOf = ({ columns, rows }: { readonly columns?: number; readonly rows?: number }) => ({
  columns: columns || 100,
  rows: rows || 40,
});

export const processTerminal = ({
  stdout,
  stderr,
  stdin,
}: Pick<NodeJS.Process, "stdout" | "stderr" | "stdin"> = process): Terminal => {
  const live = stdout.isTTY === true && process.env.TERM !== "dumb";
  const colour = live && (process.env.NO_COLOR ?? "") === "";
  let drawn = 0;
  return {
    paint: colour ? painted : plain,
    colour,
    live,
    columns: sizeOf(stdout).columns,
    print: (text) => void stdout.write(`${text}\n`),
    warn: (text) => void stderr.write(`${text}\n`),
    draw: (lines) => {
      const { columns: width, rows } = sizeOf(stdout);
      const shown = lines.slice(0, Math.max(1, rows - 2));
      stdout.write(
        `${drawn > 0 ? `\u001b[${drawn}A` : ""}\u001b[J${shown.map((line) => `${cut(line, width)}\n`).join("")}`,
      );
      drawn = shown.length;
    },
    settle: () => {
      drawn = 0;
    },
    canAsk: stdin.isTTY === true && stdout.isTTY === true,
    ask: async (question) => {
      const { createInterface } = await import("node:readline/promises");
      const lines = createInterface({ input: stdin, output: stdout });
      try {
        return /^y(es)?$/i.test((await lines.question(`${question} [y/N] `)).trim());
      } finally {
        lines.close();
      }
    },
  };
};

/** Columns as wide as their widest cell; the last one is not padded. Colour takes no width. */
export const table = (rows: readonly (readonly string[])[]): readonly string[] => {
  const width = (text: string): number => text.replaceAll(colourCode, "").length;
  const widths: number[] = [];
  for (const row of rows) {
    for (const [column, cell] of row.entries()) widths[column] = Math.max(widths[column] ?? 0, width(cell));
  }
  const pad = (cell: string, column: number): string => cell + " ".repeat((widths[column] ?? 0) - width(cell));
  return rows.map((row) =>
    row
      .map((cell, column) => (column === row.length - 1 ? cell : pad(cell, column)))
      .join("  ")
      .trimEnd(),
  );
};
