import type { Bundle } from "../cell/cell.ts";

/** Texts that cost their reader as much as their author could arrange, and the codes of what they must be told. */
export interface HostileText {
  readonly text: () => Bundle;
  /** Start of the code of the first diagnostic; null: it only looks hostile, and is accepted. */
  readonly code: string | null;
  /** What is done with it: it is read if nothing else is said. `change` reads it, and plans and shows what becomes of it. */
  readonly work?: "format" | "tree" | "change";
}

export const mebi = 1024 * 1024;
export const smartFrog = (text: string, more: Readonly<Record<string, string>> = {}): Bundle => ({
  main: "hostile.sf",
  files: { "hostile.sf": text, ...more },
});
export const json = (text: string): Bundle => ({ main: "hostile.json", files: { "hostile.json": text } });
export const range = (count: number): readonly number[] => Array.from({ length: count }, (_, index) => index);
export const each = (count: number, line: (index: number) => string): string => range(count).map(line).join("\n");
export const cell = (inside: string): string => `shop extends Cell {\n${inside}\n}`;
export const files = (count: number, text: (index: number) => string): Record<string, string> =>
  Object.fromEntries(range(count).map((index) => [`f${index}.sf`, text(index)]));
/** Groups inside one another. */
export const groups = (depth: number, inside: string): string =>
  `${range(depth)
    .map((level) => `g${level} extends { `)
    .join("")}${inside}${"}".repeat(depth)}`;
/** A cell in JSON, from the text of its attributes, and the text of what stands beside it. */
export const jsonCell = (inside: readonly string[], beside: readonly string[] = []): Bundle =>
  json(`{${['"shop":{"x.type":"Cell"', ...inside].join(",")}}${beside.map((each) => `,${each}`).join("")}}`);
