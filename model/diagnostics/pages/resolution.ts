import { cellPage, type DiagnosticPage, requestPage, smartFrogPage } from "../diagnostic-page.ts";

const cell = "shop extends Cell {\n  vm extends VM { x.memory 128; }\n}\n";

/** SmartFrog's later phases: supertypes, placements, links. */
export const resolutionPages: Readonly<Record<string, DiagnosticPage>> = {
  "type/unknown": cellPage(
    "an unknown component behind `extends`",
    "What is extended must be a standard type or a component that stands here, further out, or in an included file. Case matters.",
    "vm extends VMM { x.memory 128; }",
    "vm extends VM { x.memory 128; }",
  ),
  "type/not-a-component": smartFrogPage(
    "extending what is no component",
    "Only components can be extended: something written `name extends … { … }`. Types are settled before links, so a link to a component does not count.",
    "memory 128;\nshop extends Cell {\n  vm extends memory { }\n}\n",
    "Small extends VM { x.memory 128; }\nshop extends Cell {\n  vm extends Small { }\n}\n",
  ),
  "type/cycle": cellPage(
    "a component that extends itself",
    "A component cannot extend itself, one that extends it, or one that it stands in: it would have no end. Upper and lower case make different names, so `vm extends vm` means itself and not the type `VM`.",
    "vm extends vm { x.memory 128; }",
    "vm extends VM { x.memory 128; }",
  ),
  "place/unresolved": cellPage(
    "a placement into a component that is not there",
    "`a:b value;` puts `b` into the component `a`, which must be in scope once all types are settled.",
    "vm extends VM { x.memory 128; }\nvn:x.cpus 2;",
    "vm extends VM { x.memory 128; }\nvm:x.cpus 2;",
  ),
  "tree/no-component": requestPage(
    "no component to show",
    "`cells spec tree` shows the component `sfConfig` of a document, as other implementations of SmartFrog do. A cell needs none of that name.",
    "a extends { b 1; }",
    "sfConfig extends { b 1; }",
  ),
  "type/phases": smartFrogPage(
    "a list of other phases",
    "A document goes through the phases type, place, function, sfConfig and link, in this order. `phaseList` may name them; other ones are Java classes, and there is no Java here.",
    `phaseList [|"type", "place", "com.example.Check", "link"|];\n${cell}`,
    `phaseList [|"type", "place", "function", "sfConfig", "link"|];\n${cell}`,
  ),
  "link/long": cellPage(
    "a long that a cell cannot hold",
    "A cell is kept as JSON, whose numbers are exact up to 2^53. Longs are exact while a document is worked out, but one that stays in it must be smaller, or be a text.",
    "serial 9007199254740993L;",
    'serial "9007199254740993";',
  ),
  "link/unknown": smartFrogPage(
    "a reference to an unknown attribute",
    "A bare word is a reference: it means the attribute of that name here or further out. A text is written in double quotes. Behind `:` only what the component itself holds counts.",
    "memory 128;\nshop extends Cell {\n  vm extends VM { x.memory memmory; }\n}\n",
    "memory 128;\nshop extends Cell {\n  vm extends VM { x.memory memory; }\n}\n",
  ),
  "link/cycle": cellPage(
    "references that lead back to themselves",
    "Each attribute of the circle takes its value from the next one, so none has any. Give one of them a value.",
    "a b;\nb a;",
    "a b;\nb 128;",
  ),
  "link/not-a-component": cellPage(
    "a reference through a plain value",
    "`a:b` looks for `b` inside the component `a`. A number, text or vector has nothing inside.",
    "size 128;\nmemory size:small;",
    "size extends { small 128; }\nmemory size:small;",
  ),
  "link/operand": cellPage(
    "an operand that its operator does not take",
    "Arithmetic takes numbers, `++` texts, `<>` vectors, `&&`, `||`, `!` and conditions `true` or `false`. Nothing is converted unasked.",
    'memory (128 + "64");',
    "memory (128 + 64);",
  ),
  "link/switch": cellPage(
    "a SWITCH without a fitting case",
    "One case has to fit. `IF true THEN …` as the last one catches what is left.",
    'tier "web";\nmemory SWITCH IF (tier == "db") THEN 512 ENDSWITCH;',
    'tier "web";\nmemory SWITCH IF (tier == "db") THEN 512 IF true THEN 128 ENDSWITCH;',
  ),
  "link/tbd": smartFrogPage(
    "`TBD` that nobody has filled in",
    "With `TBD` a template says that its users give this attribute a value. Inside a cell each must have got one.",
    "Tier extends {\n  memory TBD;\n  vm extends VM { x.memory memory; }\n}\nshop extends Cell {\n  web extends Tier { }\n}\n",
    "Tier extends {\n  memory TBD;\n  vm extends VM { x.memory memory; }\n}\nshop extends Cell {\n  web extends Tier { memory 128; }\n}\n",
  ),
};
