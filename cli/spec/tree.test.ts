import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const main = fileURLToPath(new URL("../main.ts", import.meta.url));

/** What the command prints of `files`' `a.sf`, and its exit code. */
const tree = (files: Readonly<Record<string, string>>, file = "a.sf"): { code: number | null; out: string } => {
  const directory = mkdtempSync(join(tmpdir(), "cells-tree-"));
  try {
    for (const [name, text] of Object.entries(files)) writeFileSync(join(directory, name), text);
    const ended = spawnSync(process.execPath, [main, "spec", "tree", join(directory, file)], {
      encoding: "utf8",
      env: { ...process.env, CELLS_CONFIG: join(directory, "none.json") },
    });
    return { code: ended.status, out: ended.stdout };
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
};

test("a file's tree is printed without any gateway, with what it includes", () => {
  const { code, out } = tree({
    "a.sf":
      '#include "b.sf"\n#include "/org/smartfrog/functions.sf"\nsfConfig extends b { [t] s extends sum { -- 1; -- 2L; } }',
    "b.sf": "b extends { x 1.5; }",
  });
  assert.equal(code, 0);
  assert.deepEqual(JSON.parse(out), {
    ok: true,
    sfConfig: {
      $cd: [
        ["x", { $float: "1.5" }],
        ["s", { $long: 3 }, ["t"]],
      ],
    },
  });
});

test("what is refused is printed with its phase and its faults; a missing or outer include is one", () => {
  for (const include of ["none.sf", "/etc/passwd", "../../../../etc/passwd"]) {
    const { code, out } = tree({ "a.sf": `#include "${include}"\nsfConfig extends {}` });
    assert.equal(code, 1);
    const outcome = JSON.parse(out);
    assert.deepEqual([outcome.ok, outcome.phase, outcome.errors.length], [false, "raw", 1]);
    assert.equal(outcome.errors[0].position.line, 1);
  }
});

test("a file that is not there or not SmartFrog is wrong usage", () => {
  assert.equal(tree({ "a.sf": "" }, "b.sf").code, 2);
  assert.equal(tree({ "a.json": "{}" }, "a.json").code, 2);
});
