import { cellPage, type DiagnosticPage, filesPage, jsonPage, smartFrogPage } from "../diagnostic-page.ts";

const cell = "shop extends Cell {\n  vm extends VM { x.memory 128; }\n}\n";

/** The text itself: what cannot be read at all. */
export const syntaxPages: Readonly<Record<string, DiagnosticPage>> = {
  "syntax/expected": cellPage(
    "something else belongs here",
    "The text cannot be read on from this place: the message says what was found and what could stand there. An attribute is a name and a value, closed by `;`. An expression of several parts stands in parentheses.",
    "vm extends VM { x.memory 128 + 64; }",
    "vm extends VM { x.memory (128 + 64); }",
  ),
  "syntax/character": cellPage(
    "a character that begins nothing",
    "Outside of strings and comments only names, numbers, strings and the signs of the language may stand. There is no `=`: an attribute is a name and a value. A text with other characters is a string, in double quotes.",
    "vm extends VM { x.memory 128; note §7; }",
    'vm extends VM { x.memory 128; note "§7"; }',
  ),
  "syntax/number": cellPage(
    "not a number of its kind",
    "A whole number without a suffix has 32 bits, one with `L` has 64, and a name does not begin with a digit. Units are not written: each attribute has its own, which the reference states.",
    "vm extends VM { x.memory 2048MiB; }",
    "vm extends VM { x.memory 2048; }",
  ),
  "syntax/needs-java": cellPage(
    "a form that only Java gives a meaning",
    "`#codebase` and `extends:Class` say which Java classes HP's runtime is to load and to build components of. There is no Java here, and a component needs no class.",
    "vm extends:Machine VM { x.memory 128; }",
    "vm extends VM { x.memory 128; }",
  ),
  "syntax/unclosed-string": cellPage(
    "a string without its end",
    "A string in double quotes ends on its line. A text of several lines is written `##…#`.",
    'vm extends VM { x.memory 128; x.desiredState "on; }',
    'vm extends VM { x.memory 128; x.desiredState "on"; }',
  ),
  "syntax/unclosed-comment": smartFrogPage(
    "a comment without its end",
    "A comment that begins with `/*` goes on to the next `*/`. The rest of the file is lost in it otherwise.",
    `/* the shop\n${cell}`,
    `/* the shop */\n${cell}`,
  ),
  "syntax/escape": cellPage(
    "an unknown escape in a string",
    'A backslash in a string begins an escape: `\\n`, `\\t`, `\\r`, `\\b`, `\\f`, `\\"`, `\\\\`, `\\u` with four hexadecimal digits. A backslash itself is written twice.',
    'vm extends VM { x.memory 128; note "C:\\data"; }',
    'vm extends VM { x.memory 128; note "C:\\\\data"; }',
  ),
  "syntax/bytes": cellPage(
    "incomplete bytes",
    "`#HEX#…#` holds two hexadecimal digits for each byte, `#BIN#…#` eight binary ones.",
    "vm extends VM { x.memory 128; key #HEX#0A1#; }",
    "vm extends VM { x.memory 128; key #HEX#0A1B#; }",
  ),
  "syntax/unbalanced": smartFrogPage(
    "braces that do not match",
    "Each `{` needs its `}`. The position is that of the brace that has no partner; the one that is missing is often further up or down.",
    "shop extends Cell {\n  vm extends VM { x.memory 128; }\n",
    cell,
  ),
  "syntax/literal": cellPage(
    "an expression in a vector of literals",
    "`[|…|]` holds literals only: strings, numbers, `true`, `false` and further such vectors. `[…]` takes any expression.",
    "size 3;\nsizes [|1, 2, size|];",
    "size 3;\nsizes [1, 2, size];",
  ),
  "syntax/duplicate": jsonPage(
    "a name that is given twice in one JSON object",
    "Programs differ in which of the two they take, so neither is taken. (In SmartFrog the later one counts.)",
    '{ "shop": { "x.type": "Cell", "a": 1, "a": 2 } }',
    '{ "shop": { "x.type": "Cell", "a": 2 } }',
  ),
  "syntax/include-missing": filesPage(
    "an included file that is not there",
    "`#include` reads a file of the submitted bundle, by its path relative to the including file. `cells` sends along what the files include; a program that calls the API must do so itself.",
    { "shop.sf": '#include "teir.sf"\nshop extends Cell { }\n', "tier.sf": "memory 128;\n" },
    { "shop.sf": '#include "tier.sf"\nshop extends Cell { }\n', "tier.sf": "memory 128;\n" },
  ),
  "syntax/include-cycle": filesPage(
    "a file that includes itself",
    "The files would have no end. Put what both need into a third file.",
    {
      "shop.sf": '#include "tier.sf"\nshop extends Cell { }\n',
      "tier.sf": '#include "shop.sf"\nmemory 128;\n',
    },
    { "shop.sf": '#include "tier.sf"\nshop extends Cell { }\n', "tier.sf": "memory 128;\n" },
  ),
  "syntax/include-absolute": filesPage(
    "an absolute path in `#include`",
    "A specification means the same wherever it is read: it includes by relative paths only, with `/` between folders.",
    { "shop.sf": '#include "/etc/tier.sf"\nshop extends Cell { }\n' },
    { "shop.sf": '#include "tier.sf"\nshop extends Cell { }\n', "tier.sf": "memory 128;\n" },
  ),
  "syntax/include-outside": filesPage(
    "an `#include` that leads out of the bundle",
    "Only what lies in the folder of the main file, or below it, is part of a specification.",
    { "shop.sf": '#include "../tier.sf"\nshop extends Cell { }\n' },
    { "shop.sf": '#include "tier.sf"\nshop extends Cell { }\n', "tier.sf": "memory 128;\n" },
  ),
  "syntax/main-missing": {
    title: "the bundle lacks its main file",
    why: "A bundle names one of its files as `main`: the one that is read first and includes the others.",
    wrong: { kind: "bundle", bundle: { main: "shop.sf", files: { "web.sf": cell } } },
    right: { kind: "bundle", bundle: { main: "web.sf", files: { "web.sf": cell } } },
  },
  "syntax/language": filesPage(
    "a file in no known language",
    "The extension of the main file says its language: `.sf` is SmartFrog, `.json` JSON, `.yaml` or `.yml` YAML, `.ts` TypeScript.",
    { "shop.txt": cell },
    { "shop.sf": cell },
  ),
};
