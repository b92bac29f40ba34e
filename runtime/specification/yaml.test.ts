import assert from "node:assert/strict";
import { test } from "node:test";
import { limits } from "../../model/limits.ts";
import { readSpecification } from "../../model/specification/specification.ts";
import { evaluate } from "./evaluate.ts";
import { readYaml } from "./yaml.ts";

/** `line:column code` of each fault. */
const faults = (text: string): readonly string[] => {
  const read = readYaml("a.yaml", text);
  if (read.ok) return [];
  assert.ok(read.error.length > 0 && read.error.every(({ message, hint }) => message !== "" && hint !== ""));
  return read.error.map(({ code, position }) => `${position?.line ?? 0}:${position?.column ?? 0} ${code}`);
};
const document = (text: string): unknown => {
  const read = readYaml("a.yaml", text);
  assert.deepEqual(read.ok ? [] : read.error, []);
  return read.ok && JSON.parse(JSON.stringify(read.value.document));
};
const check = async (text: string) => {
  const evaluated = await evaluate({ main: "a.yaml", files: { "a.yaml": text } });
  return evaluated.ok ? readSpecification(evaluated.value) : evaluated;
};

test("all slips of a text are told at once, in our words, where they are", () => {
  const text = [
    "shop:",
    "\tx.type: Cell",
    "  vm:",
    "    x.type: VM",
    "    x.memory:128",
    "    x.cpus: 1",
    "    x.start: boot",
    "    x.start: boot",
    "    note: @home",
    '    path: "C:\\data"',
    "    it: 'it's'",
    "    tagged: !env HOME",
    "    big: 9007199254740993",
    "    none: .nan",
    "    again: *nothing",
    "    <<: 7",
    "    {{ a }}: 1",
  ].join("\n");
  assert.deepEqual(faults(text), [
    "2:1 yaml/tab",
    "5:5 yaml/colon",
    "8:5 yaml/duplicate",
    "9:11 yaml/quotes",
    "10:14 yaml/escape",
    "11:13 yaml/quotes",
    "12:13 yaml/tag",
    "13:10 yaml/number",
    "14:11 yaml/number",
    "15:12 yaml/alias",
    "16:9 yaml/alias",
    "17:5 yaml/key",
  ]);
});

test("one slip is one fault", () => {
  for (const [text, expected] of [
    ["a:\n  b: 1\n c: 2\n", "3:1 yaml/indentation"],
    ["a: 1\n  b: 2\n", "1:4 yaml/indentation"],
    ["a: b: c\n", "1:4 yaml/indentation"],
    ["a: - b\n", "1:4 yaml/indentation"],
    ["a:\n  c: 2\n  b:1\n", "3:3 yaml/colon"],
    ["a: {b:1}\n", "1:5 yaml/colon"],
    ["a:\n  x.memory:128\n", "2:3 yaml/colon"],
    ["a: 1\nx.memory 128\nb: 2\n", "2:1 yaml/colon"],
    ['a: 1\nb: "x\nc: 1\n', "2:4 yaml/unclosed"],
    ["a: 1\nb: 'x\nc: 1\n", "2:4 yaml/unclosed"],
    ["a: [1, 2\nb: 1\n", "2:1 yaml/unclosed"],
    ["a: }\n", "1:4 yaml/unclosed"],
    ["a: 1\n---\nb: 2\n", "2:1 yaml/documents"],
    ["a: 1\n...\nb: 2\n", "3:1 yaml/documents"],
    ["", "1:1 yaml/mapping"],
    ["# nothing\n", "1:1 yaml/mapping"],
    ["- a\n", "1:1 yaml/mapping"],
    ["a: &x\n  b: *x\n", "2:6 yaml/alias"],
    ["a: &x\n  <<: *x\n", "2:7 yaml/alias"],
    [": 1\n", "1:1 yaml/key"],
    ["[a]: 1\n", "1:1 yaml/key"],
    ["a: 1e999\n", "1:4 yaml/number"],
    ["a: b\u0000\n", "1:5 yaml/character"],
    ["%YAML 1.1\n---\na: yes\n", "1:1 yaml/directive"],
    ["a: [1,, 2]\n", "1:7 yaml/syntax"],
  ] as const)
    assert.deepEqual(faults(text), [expected], text);
});

test("names are what is written, values what the core schema of YAML 1.2 says", () => {
  const text =
    "on: yes\nyes: on\n1: 2001-01-01\n1.0: 12:30:45\nnull: ~\ntrue: TRUE\n0x10: 0x10\nref: <ref:/a/b>\n__proto__: 1\n" +
    'octal: 0o17\nnone:\nmore: |\n  two\n  lines\nquoted: "yes"\n? asked\n: "<<"\n"<<": 1\nfloat: -1.5e3\nplain: 1_000\n';
  assert.deepEqual(
    document(text),
    JSON.parse(
      '{"on":"yes","yes":"on","1":"2001-01-01","1.0":"12:30:45","null":null,"true":true,"0x10":16,"ref":"<ref:/a/b>",' +
        '"__proto__":1,"octal":15,"none":null,"more":"two\\nlines\\n","quoted":"yes","asked":"<<","<<":1,"float":-1500,"plain":"1_000"}',
    ),
  );
});

test("JSON is YAML, and so are comments, byte order marks and other line ends", () => {
  assert.deepEqual(document('\ufeff# yaml-language-server: $schema=x.json\r\n{"a": [1, {"b": null}]}\r\n'), {
    a: [1, { b: null }],
  });
});

test("aliases repeat and merge keys merge; a mapping's own names win, then the first merged", () => {
  const text =
    "one: &one {a: 1, b: 1}\ntwo: &two {b: 2, c: 2}\nboth:\n  <<: [*one, *two]\n  a: 0\nagain: *one\nlist: [*one, &t x, *t]\n";
  assert.deepEqual(document(text), {
    one: { a: 1, b: 1 },
    two: { b: 2, c: 2 },
    both: { a: 0, b: 1, c: 2 },
    again: { a: 1, b: 1 },
    list: [{ a: 1, b: 1 }, "x", "x"],
  });
});

test("a fault of the cell is shown where it was written, through aliases as well", async () => {
  const read = await check(
    "shop:\n  x.type: Cell\n  vm: &vm\n    x.type: VM\n    x.memory: yes\n    x.restartOnFailure: yes\n  other: *vm\n",
  );
  assert.ok(!read.ok);
  assert.deepEqual(
    read.error.map(({ code, position }) => [code, position?.line, position?.column, position?.length]),
    [
      ["schema/value", 5, 15, 3],
      ["schema/value", 6, 25, 3],
    ],
  );
  assert.match(read.error[1]?.hint ?? "", /[Ww]rite true/);
});

test("numbers that are not exact, and texts beyond the limits, are refused", () => {
  assert.deepEqual(faults(`a: ${2 ** 53 - 1}\nb: -${2 ** 53 - 1}\nc: 1e300\n`), []);
  assert.deepEqual(faults(`a: ${2 ** 53}\nb: 0x${"f".repeat(20)}\n`), ["1:4 yaml/number", "2:4 yaml/number"]);
  const nested = (depth: number): string => `a: ${"[".repeat(depth)}${"]".repeat(depth)}\n`;
  assert.deepEqual(faults(nested(limits.nesting - 1)), []);
  assert.match(faults(nested(limits.nesting)).join(), /limit\/nesting/);
  assert.match(faults(`a: "${"x".repeat(limits.yamlLength)}"`).join(), /limit\/text/);
  assert.match(faults("- \n".repeat(limits.yamlTokens)).join(), /limit\/tokens/);
});
