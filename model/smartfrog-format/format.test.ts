import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";
import fc from "fast-check";
import { Diagnostics } from "../diagnostics/diagnostics.ts";
import { tokenize } from "../smartfrog/text/lexer.ts";
import { parseBundle } from "../smartfrog/text/parser.ts";
import { formatSmartFrog } from "./format.ts";
import { type Piece, piecesOf } from "./pieces.ts";

const seed = process.env.CELLS_SEED === undefined ? undefined : Number(process.env.CELLS_SEED);
const check = <T>(property: fc.IPropertyWithHooks<T>, numRuns: number): void =>
  fc.assert(property, { numRuns, ...(seed === undefined ? {} : { seed }) });

const folder = (url: URL): readonly (readonly [name: string, text: string])[] =>
  readdirSync(url, { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".sf"))
    .map((name) => [name, readFileSync(new URL(name, url), "utf8")]);
const shared = new URL("../../../shared/cases/smartfrog/", import.meta.url);
const cases = folder(existsSync(shared) ? shared : new URL("../cases/", import.meta.url));
const examples = folder(new URL("../../examples/", import.meta.url));

/** The syntax tree without its positions. Included files are others' business. */
function meaning(text: string): string {
  const ignored = ["syntax/include-missing", "syntax/include-absolute"];
  const diagnostics = new Diagnostics(ignored);
  const attributes = parseBundle({ main: "a.sf", files: { "a.sf": text } }, diagnostics);
  assert.deepEqual(diagnostics.list, []);
  return JSON.stringify(attributes, (key, value: unknown) =>
    /^(?:p|nameP)osition$|^extendsAt$/.test(key) ? undefined : value,
  );
}
const sound = (text: string): boolean => {
  try {
    meaning(text);
    return true;
  } catch {
    return false;
  }
};
const words = (comment: Piece): string => comment.text.replace(/\s+/g, " ").trim();
const commentsOf = (text: string): readonly string[] =>
  (piecesOf(text) ?? []).filter(({ kind }) => kind !== "code").map(words);

function formatted(text: string): string {
  const result = formatSmartFrog("a.sf", text);
  assert.ok(result.ok, JSON.stringify(result));
  return result.value;
}
function assertSound(text: string): void {
  const once = formatted(text);
  assert.equal(meaning(once), meaning(text));
  assert.deepEqual(commentsOf(once), commentsOf(text));
  assert.equal(formatted(once), once, `not stable:\n${text}\n---\n${once}`);
  assert.equal(once === "" || once.endsWith("\n"), true);
}

test("a file that extends a component as a whole, and includes that may be missing", () => {
  const text = '#include ?   "b.sf"\nextends   A {\nc 3;\n}\nA extends { x   1; }\n';
  assertSound(text);
  assert.equal(formatted(text), '#include ? "b.sf"\nextends A {\n  c 3;\n}\nA extends { x 1; }\n');
});

test("what HP's parser is tried with keeps its meaning", () => {
  const usable = cases.filter(([, text]) => sound(text));
  assert.ok(usable.length > 60, `${usable.length} of ${cases.length} cases can be read`);
  for (const [, text] of usable) assertSound(text);
});

test("the examples are written as the formatter writes them", () => {
  assert.ok(examples.length >= 3);
  for (const [name, text] of examples) assert.equal(formatted(text), text, name);
});

const gap = fc.oneof(
  { weight: 6, arbitrary: fc.constant(" ") },
  { weight: 3, arbitrary: fc.constantFrom("  ", "\t", "\n", "\n\n\n", "\r\n", " \n  ", "\n\t\t") },
  {
    weight: 1,
    arbitrary: fc.constantFrom(
      " // why\n",
      '   // } { "\n',
      "/* a */",
      " /* b\n * c\n */ ",
      "\n/* d\n   e */\n",
      "//\n",
    ),
  },
);
const name = fc.constantFrom("a", "x", "x.size", "a-1", '"a b"', "deep", "T", "IFx");
const reference = fc
  .array(fc.constantFrom("a", "x", "deep", "T"), { minLength: 1, maxLength: 3 })
  .map((parts) => parts.flatMap((part, index) => (index === 0 ? [part] : [":", part])));
const scalar = fc
  .constantFrom(
    "1",
    "-2",
    "1.5",
    "7L",
    "true",
    '"s \\" // t"',
    "##l1\n  l2 // no#",
    "#HEX#0A 1B#",
    "NULL",
    '"/* */"',
    ";",
  )
  .filter((token) => token !== ";")
  .map((token) => [token]);
const { block } = fc.letrec<{ value: string[]; attribute: string[]; block: string[] }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4, depthIdentifier: "value" },
    scalar,
    reference,
    fc
      .array(tie("value"), { minLength: 1, maxLength: 3 })
      .map((items) => ["[", ...items.flatMap((item, index) => (index === 0 ? item : [",", ...item])), "]"]),
    fc
      .tuple(tie("value"), fc.constantFrom("+", "-", "==", "<", "++", "&&"), tie("value"))
      .map(([left, operator, right]) => ["(", ...left, operator, ...right, ")"]),
    fc
      .tuple(tie("value"), tie("value"))
      .map(([left, right]) => ["IF", "(", "!", ...left, ")", "THEN", ...right, "ELSE", "NULL", "FI"]),
    tie("value").map((item) => ["OPTIONAL", "(", ...item, ")", "LAZY", "a"]),
    fc.tuple(reference, tie("block")).map(([parent, inside]) => ["extends", ...parent, ",", "{", ...inside, "}"]),
    tie("block").map((inside) => ["extends", "{", ...inside, "}"]),
  ),
  attribute: fc
    .tuple(name, fc.boolean(), tie("value"), fc.constantFrom(";", ";", ";;"))
    .map(([first, placed, value, end]) => [
      first,
      ...(placed ? [":", "deep"] : []),
      ...value.filter((_, index) => index === 0 || value[0] !== "NULL"),
      ...end,
    ]),
  block: fc.array(tie("attribute"), { maxLength: 4, depthIdentifier: "value" }).map((attributes) => attributes.flat()),
}));
/** A random text with random white space and comments between its tokens. */
const text = fc.tuple(block, fc.infiniteStream(gap), fc.infiniteStream(fc.nat(3))).map(([tokens, gaps, dice]) => {
  let out = "";
  for (const token of tokens) {
    const close = /^[;,)\]:([]$/.test(token) && dice.next().value !== 0;
    out += `${close ? "" : gaps.next().value}${token}`;
  }
  return out + gaps.next().value;
});

test("random texts keep their meaning and comments, and are formatted once and for all", () => {
  let long = 0;
  check(
    fc.property(text, (source) => {
      fc.pre(sound(source));
      if (commentsOf(source).length > 0 && source.length > 100) long++;
      assertSound(source);
    }),
    600,
  );
  assert.ok(long > 20, `${long} texts were of some size`);
});

test("the formatter's pieces are the lexer's tokens", () => {
  const compare = (source: string): void => {
    const diagnostics = new Diagnostics();
    const tokens = tokenize("a.sf", source, diagnostics).filter(({ kind }) => kind !== "end");
    if (!diagnostics.none) return;
    const pieces = piecesOf(source);
    assert.ok(pieces, source);
    assert.deepEqual(
      pieces.filter(({ kind }) => kind === "code").map(({ line, column }) => `${line}:${column}`),
      tokens.map(({ position: { line, column } }) => `${line}:${column}`),
    );
  };
  for (const [, source] of [...cases, ...examples]) compare(source);
  check(fc.property(text, compare), 300);
  const pieces = fc.constantFrom(
    "x|",
    "x",
    "|",
    "|]",
    "[|",
    "-",
    "1",
    "--",
    "a",
    "=",
    "!",
    "<",
    ">",
    " ",
    "\n",
    "//",
    "/*c*/",
  );
  check(
    fc.property(
      fc.array(pieces, { maxLength: 12 }).map((parts) => parts.join("")),
      compare,
    ),
    1000,
  );
});

test("its form", () => {
  const ugly = [
    "shop   extends Cell\n{\n\n\n  // first\n vm extends VM{x.memory (1+2 ) ;x.cpus 2 ;}",
    "   list [1 ,2,\n3];   // kept\n long\n extends A ,B\n{ c PARENT : d; } e 1 ;\n\n\n\n f 2 ;}\n\n",
  ].join("\n");
  assert.equal(
    formatted(ugly),
    [
      "shop extends Cell {",
      "  // first",
      "  vm extends VM { x.memory (1 + 2); x.cpus 2; }",
      "  list [1, 2,",
      "    3]; // kept",
      "  long",
      "    extends A, B { c PARENT:d; } e 1;",
      "",
      "  f 2;",
      "}",
      "",
    ].join("\n"),
  );
  assert.equal(formatted(""), "");
  assert.equal(formatted("// only\r\n"), "// only\n");
});

test("a text with syntax errors is not touched", () => {
  const result = formatSmartFrog("a.sf", "a extends { b 1;\nc 12ab;");
  assert.ok(!result.ok);
  assert.deepEqual(
    result.error.map(({ code }) => code),
    ["syntax/unbalanced", "syntax/number"],
  );
});
