import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { smartFrogTree } from "./tree.ts";

/*
 * Outcomes recorded from HP's parser, compared in full: types of numbers, tags, references left, the phase that refused.
 * Copies of the cases are used where the shared folder is absent.
 */
const shared = new URL("../../../shared/cases/smartfrog/", import.meta.url);
const copies = new URL("../cases/", import.meta.url);
const folder = existsSync(shared) ? shared : copies;

const recorded = new Map<string, { ok: boolean; phase?: string; sfConfig?: unknown }>(
  Object.entries(JSON.parse(readFileSync(new URL("expected.json", folder), "utf8"))),
);

/** Faults of that parser which its cases show and which are not copied: an unsuffixed decimal loses a digit. */
const corrected = new Map<string, unknown>([
  [
    "float-no-suffix",
    {
      ok: true,
      sfConfig: {
        $cd: [
          ["a", { $float: "1534.45" }],
          ["b", { $float: "1.5" }],
          ["c", { $float: "10.25" }],
        ],
      },
    },
  ],
  [
    "exponent-no-suffix",
    {
      ok: true,
      sfConfig: {
        $cd: [
          ["a", { $float: "100000.0" }],
          ["b", { $float: "12000.0" }],
        ],
      },
    },
  ],
]);

/** The only include of a case that was on that machine and is not HP's: what it held is seen in the outcome. */
const probe = { from: "/probe/inc1.sf", name: "probe/inc1.sf", text: "a 41;" };

function bundleOf(name: string): { main: string; files: Record<string, string> } {
  const main = `${name}.sf`;
  const text = readFileSync(new URL(main, folder), "utf8").replaceAll(probe.from, probe.name);
  return { main, files: { [main]: text, [probe.name]: probe.text } };
}

test("every recorded case has an outcome here, and there are 77", () => {
  assert.equal(recorded.size, 77);
});

for (const [name, outcome] of recorded)
  test(`case ${name}`, () => {
    const tree = smartFrogTree(bundleOf(name), []);
    if (tree.ok) {
      assert.deepEqual(tree, corrected.get(name) ?? outcome);
      return;
    }
    assert.deepEqual({ ok: tree.ok, phase: tree.phase }, outcome, JSON.stringify(tree.errors));
    assert.ok(tree.errors.length > 0);
    for (const { position, message, hint } of tree.errors) {
      assert.ok(position && message !== "" && hint !== "", "a fault with its position");
      assert.ok(position.line > 0 && position.column > 0 && position.length > 0);
    }
  });
