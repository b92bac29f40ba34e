import { limits } from "../../../model/limits.ts";

/** YAML texts that cost their reader as much as their author could arrange, and the code that they must be told. */
interface HostileYaml {
  readonly text: () => string;
  readonly code: string;
}
const lines = (count: number, line: (index: number) => string): string =>
  Array.from({ length: count }, (_, index) => line(index)).join("");
/** As often as nearly all tokens allow, of which each takes `tokens`. */
const often = (text: string, tokens: number): string => text.repeat(Math.floor((limits.yamlTokens * 0.98) / tokens));
const mebi = 1024 * 1024;

export const hostileYaml: Readonly<Record<string, HostileYaml>> = {
  "aliases that grow tenfold": {
    text: () =>
      `a0: &a0 [lol]\n${lines(30, (at) => `a${at + 1}: &a${at + 1} [${Array(10).fill(`*a${at}`).join(",")}]\n`)}`,
    code: "limit/attributes",
  },
  "merge keys that grow fivefold and bring nothing new": {
    text: () =>
      `a0: &a0 {b: 1}\n${lines(40, (at) => `a${at + 1}: &a${at + 1} {<<: [${Array(5).fill(`*a${at}`).join(",")}]}\n`)}`,
    code: "limit/attributes",
  },
  "nothing but aliases": { text: () => `a: &a [1, 2]\nb: [${often("*a,", 3)}]`, code: "limit/attributes" },
  "flow lists nested half a million deep": { text: () => `a: ${"[".repeat(mebi / 2)}`, code: "limit/nesting" },
  "lists nested half a million deep": { text: () => "- ".repeat(mebi / 2 - 1), code: "limit/nesting" },
  "mappings nested 1,400 deep": { text: () => lines(1400, (at) => `${" ".repeat(at)}a:\n`), code: "limit/nesting" },
  "a million line ends": { text: () => `a: 1\n${"\n".repeat(mebi - 10)}`, code: "limit/tokens" },
  "nothing but colons": { text: () => often(":\n", 3), code: "yaml/key" },
  "nothing but closing brackets": { text: () => often("]", 1), code: "yaml/unclosed" },
  "nothing but documents": { text: () => often("---\n", 2), code: "yaml/documents" },
  "nothing but wrong escapes": { text: () => `a: "${"\\q".repeat(mebi / 2 - 5)}"`, code: "yaml/escape" },
  "a number of a million digits": { text: () => `a: ${"9".repeat(mebi - 10)}`, code: "yaml/number" },
  "one name again and again": { text: () => often("k: 1\n", 7), code: "yaml/duplicate" },
};
