import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { casesFrom } from "../testing/case-folders.testing.ts";
import { smartFrogTree } from "./tree.ts";

/*
 * Outcomes recorded from HP's parser, compared in full: types of numbers, tags, references left, the phase that refused.
 * Copies of the cases are used where the shared folder is absent; with CELLS_CASES those of another folder's `smartfrog/`.
 */
const shared = new URL("../../../shared/cases/smartfrog/", import.meta.url);
const copies = new URL("../cases/", import.meta.url);
const ours = existsSync(shared) ? shared : copies;
const folder = casesFrom(ours, "smartfrog");

interface Outcome {
  readonly ok: boolean;
  readonly phase?: string;
  readonly sfConfig?: unknown;
}
const recorded = new Map<string, Outcome>(
  Object.entries(JSON.parse(readFileSync(new URL("expected.json", folder), "utf8")) as Record<string, Outcome>),
);

/*
 * Faults of that parser, which are not copied: an unsuffixed decimal loses its last digit, one with an exponent is no number, and names
 * from `--` go on counting from one file to the next.
 */
const withoutLastDigit = (text: string): string => {
  const cut = text.replace(/\d$/, "");
  return cut.endsWith(".") ? `${cut}0` : cut;
};
const exponent = /(?<![\w.])\d+(?:\.\d*)?[eE][+-]?\d+(?![\w.])/;
/** What is ours, with the faults that the record shows at the same place. */
function asRecorded(value: unknown, record: unknown): unknown {
  if (Array.isArray(value) && Array.isArray(record))
    return value.map((each, index) =>
      index === 0 && isUnnamed(each) && isUnnamed(record[0]) ? record[0] : asRecorded(each, record[index]),
    );
  if (typeof value !== "object" || value === null || typeof record !== "object" || record === null) return value;
  const said = record as Readonly<Record<string, unknown>>;
  return Object.fromEntries(
    Object.entries(value).map(([key, each]) => [
      key,
      key === "$float" && said.$float === withoutLastDigit(String(each)) ? said.$float : asRecorded(each, said[key]),
    ]),
  );
}
/** The name of an attribute `--`. */
const isUnnamed = (name: unknown): boolean => typeof name === "string" && /^(?:--|unique)\d+$/.test(name);
/** In the text of what is left for later they have no number with us. */
const withoutNumbers = (outcome: Outcome): Outcome =>
  JSON.parse(JSON.stringify(outcome), (key, value) =>
    key === "$ref" ? String(value).replace(/(?<=^|[\n{])unique\d+(?= )/g, "--") : value,
  ) as Outcome;

/** The only include of a case that was on that machine and is not HP's: what it held is seen in the outcome. */
const probe = { from: "/probe/inc1.sf", name: "probe/inc1.sf", text: "a 41;" };

function bundleOf(name: string): { main: string; files: Record<string, string> } {
  const main = `${name}.sf`;
  const text = readFileSync(new URL(main, folder), "utf8").replaceAll(probe.from, probe.name);
  return { main, files: { [main]: text, [probe.name]: probe.text } };
}

test("every recorded case has an outcome here, and there are 77", { skip: folder !== ours }, () => {
  assert.equal(recorded.size, 77);
});
test("the faults of that parser are told apart from ours", () => {
  const record = { $cd: [["unique7", { $float: "1.0" }]] };
  assert.deepEqual(asRecorded({ $cd: [["--0", { $float: "1.5" }]] }, record), record);
  assert.notDeepEqual(asRecorded({ $cd: [["--0", { $float: "2.5" }]] }, record), record);
  assert.notDeepEqual(asRecorded({ $cd: [["a", { $float: "1.5" }]] }, record), record);
  assert.deepEqual(withoutNumbers({ ok: true, sfConfig: { $ref: "LAZY APPLY {unique12 x;\nunique13 unique y;\n}" } }), {
    ok: true,
    sfConfig: { $ref: "LAZY APPLY {-- x;\n-- unique y;\n}" },
  });
  assert.ok(exponent.test("a 1e5;") && exponent.test("a 1.5E-3;") && !exponent.test("a 1e5d; b x1e5; c 0x1e5f;"));
});

for (const [name, outcome] of recorded)
  test(`case ${name}`, () => {
    const bundle = bundleOf(name);
    const tree = smartFrogTree(bundle, []);
    if (tree.ok) {
      if (outcome.phase === "raw" && exponent.test(bundle.files[bundle.main] ?? "")) return;
      const expected = withoutNumbers(outcome);
      assert.deepEqual(asRecorded(tree, expected), expected);
      return;
    }
    assert.deepEqual({ ok: tree.ok, phase: tree.phase }, outcome, JSON.stringify(tree.errors));
    assert.ok(tree.errors.length > 0);
    for (const { position, message, hint } of tree.errors) {
      assert.ok(position && message !== "" && hint !== "", "a fault with its position");
      assert.ok(position.line > 0 && position.column > 0 && position.length > 0);
    }
  });
