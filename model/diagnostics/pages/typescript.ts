import type { DiagnosticPage, Example } from "../diagnostic-page.ts";

const text = (body: string): Example => ({
  kind: "bundle",
  bundle: { main: "shop.ts", files: { "shop.ts": body } },
});
const page = (title: string, why: string, wrong: string, right: string): DiagnosticPage => ({
  title,
  why,
  wrong: text(wrong),
  right: text(right),
});
const described = (title: string, why: string, wrong: string, right: string): DiagnosticPage => ({
  title,
  why,
  wrong: { kind: "request", shown: wrong },
  right: { kind: "request", shown: right },
});
const imports = (...names: string[]): string => `import { ${names.join(", ")} } from "cells/model";\n`;
const right = `${imports("cell", "vm")}
export default cell("shop", { web: vm({ memory: 128 }) });
`;
const rightConnection = `${imports("cell", "connection", "vm", "volume")}
const web = vm({ memory: 128 });
const disk = volume({ size: 64 });
export default cell("shop", { web, disk, boot: connection({ vm: web, volume: disk }) });
`;

/** Specifications in TypeScript. Their examples are run in `runtime/specification/typescript/pages.test.ts`. */
export const typescriptPages: Readonly<Record<string, DiagnosticPage>> = {
  "typescript/syntax": page(
    "The text is no TypeScript",
    "The place is where the text stopped making sense; the mistake may stand before it. An editor with TypeScript shows it while it is written.",
    `${imports("cell")}\nexport default cell("shop", { );\n`,
    `${imports("cell")}\nexport default cell("shop", {});\n`,
  ),
  "typescript/unsupported": page(
    "Syntax that makes code of its own",
    "A specification is run as it is written, with its types left out. What TypeScript would have to turn into other code (enum, namespace, parameter properties, types in angle brackets) is therefore not there. `erasableSyntaxOnly` in tsconfig.json lets the compiler say so.",
    `${imports("cell", "vm")}\nenum Size { Small = 128 }\nexport default cell("shop", { web: vm({ memory: Size.Small }) });\n`,
    `${imports("cell", "vm")}\nconst size = { small: 128 };\nexport default cell("shop", { web: vm({ memory: size.small }) });\n`,
  ),
  "typescript/import": page(
    "An import of what is not there",
    'A specification imports `cells/model` and files that lie in its directory or below: TypeScript, and JSON with `with { type: "json" }`. Those are sent with it. Packages, Node\'s own modules and addresses are not there, so that a specification means the same for everybody who reads it.',
    `${imports("cell")}import { readFileSync } from "node:fs";\n\nexport default cell("shop", { text: readFileSync("a.txt", "utf8") });\n`,
    `${imports("cell")}\nexport default cell("shop", { text: "hello" });\n`,
  ),
  "typescript/no-cell": page(
    "The main file exports no cell",
    "What a specification gives is the default export of its main file, and that is what `cell` returned.",
    `${imports("cell", "vm")}\nexport const shop = cell("shop", { web: vm({ memory: 128 }) });\n`,
    right,
  ),
  "typescript/not-here": page(
    "Something that a specification must not depend on",
    "A specification must give the same cell each time and wherever it is read: at the command line, at the gateway and at the cell's controller. So the time, random numbers, the network, files, processes and timers are not there. Write the value itself, or into a JSON file beside the specification.",
    `${imports("cell")}\nexport default cell("shop", { made: Date.now() });\n`,
    `${imports("cell")}\nexport default cell("shop", { made: "2026-11-21" });\n`,
  ),
  "typescript/misuse": page(
    "A function of the builder is called in another way",
    "`cell` takes a name and an object of what stands in the cell, the others an object of attributes. With the types that `cells spec types` writes, an editor shows this while it is written.",
    `${imports("cell")}\nexport default cell({ name: "shop" });\n`,
    `${imports("cell")}\nexport default cell("shop", {});\n`,
  ),
  "typescript/placed-twice": page(
    "One element stands at two places",
    "An element is where it stands in the cell: its path names it. One object can therefore stand at one place only. Make one for each place; a function that makes them is what a template is.",
    `${imports("cell", "vm")}\nconst web = vm({ memory: 128 });\nexport default cell("shop", { web, other: web });\n`,
    `${imports("cell", "vm")}\nconst web = () => vm({ memory: 128 });\nexport default cell("shop", { web: web(), other: web() });\n`,
  ),
  "typescript/not-placed": page(
    "A reference to an element that stands nowhere",
    "An element that was made exists only when it stands in the cell, under a name or in a group.",
    `${imports("cell", "connection", "vm", "volume")}
const web = vm({ memory: 128 });
const disk = volume({ size: 64 });
export default cell("shop", { web, boot: connection({ vm: web, volume: disk }) });
`,
    rightConnection,
  ),
  "typescript/value": page(
    "A value that is no part of a cell",
    "A cell is plain data: text, finite numbers, booleans, null, lists and plain objects. Functions, undefined, NaN, BigInt, symbols, dates, maps, objects of classes, and objects that contain themselves are none. A name without a value is left out.",
    `${imports("cell", "vm")}\nexport default cell("shop", { web: vm({ memory: 128, cpus: Number("two") }) });\n`,
    `${imports("cell", "vm")}\nexport default cell("shop", { web: vm({ memory: 128, cpus: 2 }) });\n`,
  ),
  "typescript/thrown": page(
    "The specification threw an error",
    "The error is the author's own or one of the language, such as reading a property of undefined. The first place is where it was thrown; the further ones are the calls that led there.",
    `${imports("cell")}\nconst names: string[] = [];\nexport default cell("shop", { first: names[0].toUpperCase() });\n`,
    `${imports("cell")}\nconst names = ["web"];\nexport default cell("shop", { first: names[0].toUpperCase() });\n`,
  ),
  "typescript/awaits": page(
    "The specification awaits something that never comes",
    "Nothing happens outside of a specification: no timer, no network. A promise that its own text does not keep is never kept.",
    `${imports("cell")}\nawait new Promise(() => {});\nexport default cell("shop", {});\n`,
    `${imports("cell")}\nawait Promise.resolve();\nexport default cell("shop", {});\n`,
  ),
  "typescript/steps": page(
    "The specification runs too long",
    "Its steps are counted, the same on every machine, and far more are free than ten thousand elements take. The place is where it was when they were used up.",
    `${imports("cell")}\nfor (;;) {}\nexport default cell("shop", {});\n`,
    `${imports("cell")}\nfor (let index = 0; index < 1000; index++) {}\nexport default cell("shop", {});\n`,
  ),
  "typescript/recursion": page(
    "Functions call one another too deep",
    "Most likely one calls itself without an end.",
    `${imports("cell")}\nconst deep = (level: number): number => 1 + deep(level + 1);\nexport default cell("shop", { level: deep(0) });\n`,
    `${imports("cell")}\nconst deep = (level: number): number => (level > 100 ? 0 : 1 + deep(level + 1));\nexport default cell("shop", { level: deep(0) });\n`,
  ),
  "typescript/memory": page(
    "The specification takes too much memory",
    "Evaluating it may take 96 MiB, which is far more than ten thousand elements need. Most likely a list or a text grows without an end.",
    `${imports("cell")}\nconst list = [[0]];\nfor (;;) list.push(new Array(100_000).fill(0));\nexport default cell("shop", {});\n`,
    `${imports("cell")}\nconst list = [[0]];\nlist.push(new Array(100_000).fill(0));\nexport default cell("shop", {});\n`,
  ),
  "typescript/too-large": page(
    "The cell is too large",
    "As JSON a cell that was made by a program may have 12 MiB. Split it into several.",
    `${imports("cell")}\nexport default cell("shop", { text: "x".repeat(13 << 20) });\n`,
    `${imports("cell")}\nexport default cell("shop", { text: "x".repeat(25) });\n`,
  ),
  "typescript/types": described(
    "The compiler finds a wrong type",
    "Where a TypeScript compiler is installed beside the specification (`node_modules/.bin/tsc` in its directory or above), `cells spec check` asks it as well, and shows what it says. `cells plan` and `cells apply` go by the cell that comes of the specification, which the schema checks.",
    "vm({ memory: 128, memry: 3 })",
    "vm({ memory: 128 })",
  ),
  "typescript/stopped": described(
    "The evaluation was stopped from outside",
    "Work inside one function of the language (searching a list of four thousand million places, say) counts no steps, so what takes 30 seconds is ended from outside; and so is a process that uses up its memory. No cell needs that: look for very large lists and texts.",
    "new Array(4_000_000_000).indexOf(1)",
    "new Array(40).indexOf(1)",
  ),
  "typescript/no-walls": described(
    "TypeScript is not evaluated there",
    "A specification in TypeScript is a program. It is run in a process that can do nothing but answer, and where that cannot be had it is not run at all: on machines without perl (and for root without setpriv, unshare, prlimit and sh), on other systems than Linux on x86-64, and in service VMs, which have neither these programs nor the memory. `cells plan` and `cells apply` run it where they are and then send its outcome, as JSON.",
    "a bundle with a main file in TypeScript, sent to a gateway that runs in a service VM",
    "what it evaluates to, as JSON",
  ),
  "typescript/busy": described(
    "Too many specifications are being evaluated",
    "A gateway or a controller evaluates two TypeScript specifications at once and lets sixteen wait. Try again in a moment.",
    "forty requests with TypeScript specifications at once",
    "one after another",
  ),
};
