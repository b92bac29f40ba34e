import type { DiagnosticPage } from "../diagnostic-page.ts";

const main = "shop.yaml";
const page = (title: string, why: string, wrong: string, right: string): DiagnosticPage => ({
  title,
  why,
  wrong: { kind: "bundle", bundle: { main, files: { [main]: wrong } } },
  right: { kind: "bundle", bundle: { main, files: { [main]: right } } },
});
/** What stands inside of a cell, indented by two. */
const cell = (inside: string): string => `shop:\n  x.type: Cell\n${inside.replace(/^(?=.)/gm, "  ")}\n`;
const cellPage = (title: string, why: string, wrong: string, right: string): DiagnosticPage =>
  page(title, why, cell(wrong), cell(right));

/** What is wrong with a YAML text as YAML. Its cell is checked like any other. */
export const yamlPages: Readonly<Record<string, DiagnosticPage>> = {
  "yaml/tab": cellPage(
    "a tab as indentation",
    "YAML knows by their columns what belongs to what, and a tab has no sure width: lines are indented with spaces. Most editors do so by themselves in files that end in `.yaml`.",
    "vm:\n\tx.type: VM\n  x.memory: 128",
    "vm:\n  x.type: VM\n  x.memory: 128",
  ),
  "yaml/indentation": cellPage(
    "a line in the wrong column",
    "The attributes of one component begin in the same column, and those of a component inside of it deeper. A line between two columns belongs to neither. A value and a further attribute cannot stand on one line.",
    "vm:\n  x.type: VM\n x.memory: 128",
    "vm:\n  x.type: VM\n  x.memory: 128",
  ),
  "yaml/colon": cellPage(
    "no colon, or no space behind it",
    "An attribute reads `name: value`. Without the space, YAML takes the name, the colon and the value together as one text.",
    "vm:\n  x.type: VM\n  x.memory:128",
    "vm:\n  x.type: VM\n  x.memory: 128",
  ),
  "yaml/quotes": cellPage(
    "a text that needs quotes",
    "A text without quotes cannot begin with one of YAML's signs, such as `@`, `%` or a back quote, and behind one with quotes nothing else may stand. In double quotes a backslash begins an escape; in single quotes only `'` is special, and is written twice.",
    "note: @home",
    'note: "@home"',
  ),
  "yaml/unclosed": cellPage(
    "a quote or bracket without its partner",
    "A text that begins with a quote goes on to the next one, over line ends as well; a list in `[ ]` and a mapping in `{ }` go on to their closing sign, on lines that are indented deeper than the attribute.",
    "names: [web, app",
    "names: [web, app]",
  ),
  "yaml/escape": cellPage(
    "an unknown escape in double quotes",
    'A backslash in double quotes begins an escape: `\\n`, `\\t`, `\\"`, `\\\\`, `\\x` with two, `\\u` with four hexadecimal digits, and a few more. A text in single quotes has none.',
    'note: "C:\\data"',
    "note: 'C:\\data'",
  ),
  "yaml/duplicate": cellPage(
    "a name that is given twice",
    "Of two values for one name, one would be lost, and nobody would see which. What a merge (`<<`) brings may be given again: the mapping's own value wins.",
    "vm:\n  x.type: VM\n  x.memory: 128\n  x.memory: 256",
    "vm:\n  x.type: VM\n  x.memory: 256",
  ),
  "yaml/documents": page(
    "several documents in one text",
    "A line `---` begins another document, and a specification is one: it describes exactly one cell. A single `---` at the top is fine.",
    `${cell("note: one")}---\n${cell("note: two")}`,
    `---\n${cell("note: one")}`,
  ),
  "yaml/mapping": page(
    "no mapping of names to values",
    "A specification is a mapping at its outermost level: the cell, and what templates and parameters stand beside it, each with its name.",
    "- x.type: Cell\n",
    "shop:\n  x.type: Cell\n",
  ),
  "yaml/alias": cellPage(
    "an alias that repeats nothing",
    "`*name` repeats the value that an earlier `&name` stands before, and `<<: *name` merges a mapping into another. The anchor comes first, and a value cannot repeat itself. `<ref:/path>` refers to a value wherever it stands, and makes links between elements.",
    "vm:\n  <<: *small\nsmall: &small\n  x.type: VM\n  x.memory: 128",
    "small: &small\n  x.type: VM\n  x.memory: 128\nvm:\n  <<: *small",
  ),
  "yaml/tag": cellPage(
    "a tag",
    "A tag such as `!secret` asks the program that reads the text to make something of the value. Nothing of the kind is done here, and to read the value as if the tag were not there would be wrong. `!!str` and the others of YAML's core schema are read.",
    "note: !env HOME",
    "note: HOME",
  ),
  "yaml/key": cellPage(
    "a name that is no text",
    "YAML lets lists and mappings be names; here names are texts, since they are parts of paths. A text that begins with `{`, as those of template programs do, stands in quotes. `on`, `yes` and `1` are names as they are written.",
    "note: {{ note }}",
    'note: "{{ note }}"',
  ),
  "yaml/number": cellPage(
    "a number that cannot be held",
    "Whole numbers are exact up to 2^53; beyond, one would silently become another. Infinity and what is no number (`.inf`, `.nan`) are no values of a cell.",
    "id: 9007199254740993",
    'id: "9007199254740993"',
  ),
  "yaml/character": cellPage(
    "a control character",
    "Control characters other than tab and line end may not stand in a YAML text as themselves: nobody sees them. Most come from a copy out of a terminal.",
    "note: be\u0007ll",
    'note: "be\\all"',
  ),
  "yaml/directive": page(
    "a directive that is not heeded",
    "YAML 1.2 is read. In a text of YAML 1.1 `yes` and `on` mean true and `012` is ten, so one that says to be of that version is refused rather than misread.",
    `%YAML 1.1\n---\n${cell("note: yes")}`,
    `%YAML 1.2\n---\n${cell("note: yes")}`,
  ),
  "yaml/syntax": cellPage(
    "something that YAML does not know",
    "The text cannot be read on from this place. Often a comma, a space or a quote is missing just before; a text with unusual signs stands in double quotes.",
    "sizes: [1,, 2]",
    "sizes: [1, 2]",
  ),
};
