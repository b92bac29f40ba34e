import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";

/** `cells spec` and `cells explain` as a user runs them: without configuration or gateway. */
const main = fileURLToPath(new URL("../main.ts", import.meta.url));
const directory = mkdtempSync(join(tmpdir(), "cells-spec-"));
after(() => rmSync(directory, { recursive: true, force: true }));

const file = (name: string, text: string): string => {
  writeFileSync(join(directory, name), text);
  return join(directory, name);
};
const cells = (args: readonly string[], input = "") => {
  const { status, stdout, stderr } = spawnSync(process.execPath, [main, ...args], {
    input,
    encoding: "utf8",
    cwd: directory,
    env: { ...process.env, CELLS_CONFIG: join(directory, "none.json"), CELLS_HOME: join(directory, "none") },
  });
  return { status, stdout, stderr };
};

test("check shows all errors at once, and ends with 1", () => {
  const good = cells(["spec", "check", file("good.sf", "shop extends Cell { vm extends VM { x.memory 128; } }\n")]);
  assert.deepEqual([good.status, good.stderr], [0, ""]);
  assert.match(good.stdout, /the cell shop, 1 element: no errors/);
  const text =
    '#include "gone.sf"\nshop extends Cell {\n  a extends VM { x.memory 12ab; }\n  b extends { x 1 + 2; }\n}\n';
  const bad = cells(["spec", "check", file("bad.sf", text)]);
  assert.deepEqual([bad.status, bad.stdout], [1, ""]);
  assert.match(bad.stderr, /bad\.sf:1:10: error: There is no file `gone\.sf`/);
  assert.match(bad.stderr, /bad\.sf:3:27: error: `12ab` is neither/);
  assert.match(bad.stderr, /bad\.sf:4:19: error: Expected `;`/);
  assert.match(bad.stderr, /3 errors; `cells explain syntax\/include-missing` says more/);
  const json = cells(["spec", "check", "bad.sf", "--output", "json"]);
  assert.equal(json.status, 1);
  const answer: { ok: boolean; diagnostics: { code: string }[] } = JSON.parse(json.stdout);
  assert.equal(answer.ok, false);
  assert.deepEqual(
    answer.diagnostics.map(({ code }) => code),
    ["syntax/include-missing", "syntax/number", "syntax/expected"],
  );
  assert.equal(cells(["spec", "check", "nowhere.sf"]).status, 2);
});

test("a YAML text is checked like any other, with the editor's schema beside it", () => {
  const good =
    "# yaml-language-server: $schema=cells.schema.json\nshop:\n  x.type: Cell\n  vm: {x.type: VM, x.memory: 128}\n";
  assert.match(cells(["spec", "check", file("good.yaml", good)]).stdout, /the cell shop, 1 element: no errors/);
  const bad = cells(["spec", "check", file("bad.yml", good.replace("128", "12, x.memory: 13"))]);
  assert.equal(bad.status, 1);
  assert.match(bad.stderr, /bad\.yml:4:34: error: `x\.memory` is given twice/);
  assert.match(cells(["explain", "yaml/duplicate"]).stdout, /^yaml\/duplicate: a name that is given twice\n/);
  const unformatted = cells(["spec", "fmt", file("good.yaml", good)]);
  assert.equal(unformatted.status, 2);
  assert.match(unformatted.stderr, /only `\.sf` files .* for YAML use/);
});

test("the schema and the reference are printed, or written to a file", () => {
  const printed = cells(["spec", "schema"]);
  assert.deepEqual([printed.status, printed.stderr], [0, ""]);
  assert.match(JSON.parse(printed.stdout).$schema, /2020-12/);
  assert.deepEqual(cells(["spec", "schema", "schema.json"]), { status: 0, stdout: "", stderr: "" });
  assert.equal(readFileSync(join(directory, "schema.json"), "utf8"), printed.stdout);
  assert.match(cells(["spec", "reference"]).stdout, /^# Reference\n/);
  assert.equal(cells(["spec", "reference", "none/reference.md"]).status, 2);
});

test("a fault is shown at the path that opens the file from here, included ones as well", () => {
  mkdirSync(join(directory, "some", "parts"), { recursive: true });
  file("some/shop.sf", '#include "parts/tier.sf"\nshop extends Cell { vm extends Tier; }\n');
  file("some/parts/tier.sf", "Tier extends VM {\n  x.memory 1;\n}\n");
  const relative = cells(["spec", "check", "some/shop.sf"]).stderr;
  assert.match(relative, /^some\/parts\/tier\.sf:2:12: error: .*\n {2}\|\n2 \| {3}x\.memory 1;/);
  assert.match(relative, /^some\/shop\.sf:2:21: note: used here/m);
  assert.match(relative, /^some\/shop\.sf:1:10: note: `parts\/tier\.sf` is included here/m);
  const absolute = cells(["spec", "check", join(directory, "some", "shop.sf")]).stderr;
  assert.ok(absolute.startsWith(`${join(directory, "some", "parts", "tier.sf")}:2:12: error`));
  type Answer = { readonly diagnostics: readonly { readonly position: { readonly file: string } }[] };
  const json: Answer = JSON.parse(cells(["spec", "check", "some/shop.sf", "-o", "json"]).stdout);
  assert.equal(json.diagnostics[0]?.position.file, "some/parts/tier.sf");
});

test("fmt prints, checks, or writes in place", () => {
  const ugly = "// kept\nshop   extends Cell{}";
  const neat = "// kept\nshop extends Cell { }\n";
  const path = file("ugly.sf", ugly);
  assert.deepEqual(cells(["spec", "fmt", path]), { status: 0, stdout: neat, stderr: "" });
  assert.deepEqual(cells(["spec", "fmt", "-"], ugly), { status: 0, stdout: neat, stderr: "" });
  assert.deepEqual(cells(["spec", "fmt", "--check", path]), { status: 1, stdout: `${path}\n`, stderr: "" });
  assert.equal(readFileSync(path, "utf8"), ugly, "so far nothing was written");
  const { mode } = statSync(path);
  assert.deepEqual(cells(["spec", "fmt", "--write", path]), { status: 0, stdout: `${path}\n`, stderr: "" });
  assert.equal(readFileSync(path, "utf8"), neat);
  assert.equal(statSync(path).mode, mode);
  assert.deepEqual(cells(["spec", "fmt", "--check", path]), { status: 0, stdout: "", stderr: "" });
  const broken = file("broken.sf", "a extends {");
  const refused = cells(["spec", "fmt", "--write", broken]);
  assert.equal(refused.status, 1);
  assert.match(refused.stderr, /never closed/);
  assert.equal(readFileSync(broken, "utf8"), "a extends {");
  assert.equal(cells(["spec", "fmt", "a.json"]).status, 2);
});

test("explain shows a page, lists all, and suggests", () => {
  const page = cells(["explain", "schema/required"]);
  assert.equal(page.status, 0);
  assert.match(page.stdout, /^schema\/required: an attribute that is missing\n/);
  assert.match(cells(["explain"]).stdout, /^link\/tbd +`TBD` that nobody has filled in$/m);
  const unknown = cells(["explain", "schema/requierd"]);
  assert.equal(unknown.status, 2);
  assert.match(unknown.stderr, /did you mean `schema\/required`\?/);
  const json: { code: string; wrong: string } = JSON.parse(cells(["explain", "link/tbd", "-o", "json"]).stdout);
  assert.equal(json.code, "link/tbd");
  assert.match(json.wrong, /memory TBD;/);
});
