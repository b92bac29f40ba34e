import assert from "node:assert/strict";
import { test } from "node:test";
import { completed, suggestionsAt } from "./completion.ts";

/** `‸` marks the cursor. */
const at = (main: string, marked: string) => {
  const offset = marked.indexOf("‸");
  const text = marked.replace("‸", "");
  return { text, all: suggestionsAt(main, text, offset).all };
};
const labels = (main: string, marked: string): readonly string[] => at(main, marked).all.map(({ label }) => label);
/** What stands there then; what is chosen is between `‹` and `›`. */
const done = (main: string, marked: string, label: string): string => {
  const { text, all } = at(main, marked);
  const found = all.find((each) => each.label === label);
  assert.ok(found, `${label} among ${all.map((each) => each.label).join(" ")}`);
  const after = completed(text, found);
  const [from, to] = after.chosen;
  return `${after.text.slice(0, from)}‹${after.text.slice(from, to)}›${after.text.slice(to)}`;
};

test("SmartFrog: a type, an attribute with what is to be filled in, a choice, and the name of an element", () => {
  assert.equal(labels("tea.sf", "tea extends Cell { pot extends V‸ }")[0], "VM");
  assert.equal(
    done("tea.sf", "tea extends Cell { pot extends VM { x.mem‸ } }", "x.memory"),
    "tea extends Cell { pot extends VM { x.memory ‹16›; } }",
  );
  assert.equal(
    done("tea.sf", "tea extends Cell { pot extends VM { x.des‸ } }", "x.desiredState"),
    'tea extends Cell { pot extends VM { x.desiredState "‹on›"; } }',
  );
  assert.equal(
    done(
      "tea.sf",
      'tea extends Cell { pot extends VM { x.memory 16; } a extends VolumeConnection { x.vm "‸" } }',
      "<ref:/tea/pot>",
    ),
    'tea extends Cell { pot extends VM { x.memory 16; } a extends VolumeConnection { x.vm "<ref:/tea/pot>‹›" } }',
  );
});
test("JSON: names and types have their quotes, whoever wrote the first", () => {
  const inside = (what: string): string => `{ "tea": { "x.type": "Cell", "pot": { "x.type": "VM", ${what} } } }`;
  assert.equal(done("tea.json", inside('"x.mem‸"'), "x.memory"), inside('"x.memory": ‹16›'));
  assert.equal(
    done("tea.json", '{ "tea": { "x.type": "Cell", "pot": { "x.type": "V‸" } } }', "VM"),
    '{ "tea": { "x.type": "Cell", "pot": { "x.type": "VM‹›" } } }',
  );
  assert.ok(!labels("tea.json", inside('"x.memory": 16, "‸"')).includes("x.memory"));
});
test("YAML: the same, as it is written there", () => {
  const begun = "tea:\n  x.type: Cell\n  pot:\n    x.type: VM\n";
  assert.equal(done("tea.yaml", `${begun}    x.mem‸`, "x.memory"), `${begun}    x.memory: ‹›`);
  assert.equal(
    done("tea.yml", `${begun}    x.mem‸\n  cup:\n    x.type: VM\n`, "x.memory"),
    `${begun}    x.memory: ‹›\n  cup:\n    x.type: VM\n`,
  );
  assert.equal(
    done("tea.yaml", "tea:\n  x.type: Cell\n  pot:\n    x.type: V‸\n", '"VM"').split("\n")[3],
    '    x.type: "VM"‹›',
  );
  assert.equal(
    done("tea.yaml", "tea:\n  x.type: Cell\n  pot:\n    x.type: ‸\n", '"VM"').split("\n")[3],
    '    x.type: "VM"‹›',
  );
  assert.equal(
    done("tea.yaml", `${begun}  a:\n    x.type: VolumeConnection\n    x.vm: "‸"`, "<ref:/tea/pot>").split("\n")[6],
    '    x.vm: "<ref:/tea/pot>‹›"',
  );
  assert.equal(
    done("tea.yaml", `${begun}    x.desiredState: o‸`, '"off"').split("\n")[4],
    '    x.desiredState: "off"‹›',
  );
  assert.equal(
    done("tea.yaml", `${begun}    # a remark\n\n    "x.mem‸"`, "x.memory").split("\n")[6],
    "    x.memory: ‹›",
  );
  // Inside of what is not read nothing is offered, and what stands further out is not lost.
  assert.deepEqual(labels("tea.yaml", `${begun}    x.tags:\n      - a‸`), []);
  assert.ok(labels("tea.yaml", `${begun}    x.memory: 16\n  ‸`).includes("x.policy.deploy"));
  assert.ok(!labels("tea.yaml", `${begun}    x.memory: 16\n    ‸`).includes("x.memory"));
});
test("what begins so comes first, then what has it inside; what does not fit is left out, and in other languages nothing is offered", () => {
  const found = labels("tea.sf", "tea extends Cell { pot extends VM { x.m‸ } }");
  assert.equal(found[0], "x.memory");
  assert.ok(
    found.every((label) => /x.*\..*m/i.test(label)),
    found.join(" "),
  );
  assert.deepEqual(labels("tea.sf", "tea extends Cell { pot extends VM { zzz‸ } }"), []);
  assert.deepEqual(labels("tea.ts", "export default cell({ x.m‸ })"), []);
  assert.deepEqual(labels("tea.sf", "// x.m‸"), []);
  const [first] = at("tea.sf", "tea extends Cell { pot extends VM { x.mem‸ } }").all;
  assert.match(first?.docs ?? "", /MiB.*Required/);
  assert.doesNotMatch(first?.docs ?? "", /[`*]/);
});
test("a text that somebody else wrote holds nobody up, whatever is in its lines", () => {
  const blanks = " ".repeat(100_000);
  const before = process.cpuUsage();
  for (const marked of [`a: x${blanks}y\nb: ‸`, `a: ${blanks}\u2028\nb: ‸`, `a: ${blanks}#‸`])
    void at("tea.yaml", marked);
  const word = "a".repeat(2_000_000);
  assert.deepEqual(labels("tea.sf", `tea extends Cell { pot extends ${word}‸ }`), []);
  const { user } = process.cpuUsage(before);
  assert.ok(user / 1000 < 1_500, `${user / 1000} ms of processor`);
  // A remark is none within a word, and is no value.
  assert.ok(
    labels("tea.yaml", "tea: # a\n  x.type: Cell   # b\n  pot:  # c\n    x.type: VM\n    ‸").includes("x.memory"),
  );
});
