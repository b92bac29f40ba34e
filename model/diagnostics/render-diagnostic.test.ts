import assert from "node:assert/strict";
import { test } from "node:test";
import { renderDiagnostic } from "./render-diagnostic.ts";

const fault = { code: "link/unresolved", message: "Nothing is there", hint: "Write it." } as const;
const position = { file: "gone.sf", line: 123, column: 4, length: 2 };

test("a hint stands below what is shown, and at the margin where the file is not there", () => {
  assert.equal(
    renderDiagnostic({ ...fault, position }, {}, false),
    "gone.sf:123:4: error: Nothing is there [link/unresolved]\n  = hint: Write it.",
  );
  const text = `${"\n".repeat(122)}a b;\n`;
  assert.match(renderDiagnostic({ ...fault, position }, { "gone.sf": text }, false), /\n123 \| a b;\n.*\n {4}= hint/);
  assert.match(renderDiagnostic({ ...fault, path: "shop/vm" }, {}, false), /^shop\/vm: error: .*\n {2}= hint/);
});
