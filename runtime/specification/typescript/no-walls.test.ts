import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { evaluateTypeScriptBundle } from "./front-end.ts";
import { launch } from "./launch.ts";
import { searchPath, walled } from "./wall.ts";

/** Where the programs that build the walls are not there, as in a service VM, a stranger's program is not run at all. */
const repository = join(import.meta.dirname, "../../..");
const bundle = {
  main: "shop.ts",
  files: { "shop.ts": 'import { cell } from "cells/model"; export default cell("shop", {});' },
};
let directory = "";
before(() => {
  directory = mkdtempSync(join(tmpdir(), "cells-no-walls-"));
});
after(() => rmSync(directory, { recursive: true, force: true }));

/** A directory with some of the programs. */
const pathWith = (...names: readonly string[]): string => {
  const path = mkdtempSync(join(directory, "path-"));
  for (const name of names) {
    const found = searchPath.split(":").find((each) => existsSync(join(each, name)));
    symlinkSync(join(found ?? assert.fail(`${name} is not here`), name), join(path, name));
  }
  return path;
};

test("without perl nothing runs, and the refusal says what is missing", async () => {
  const mark = join(directory, "ran");
  const program = join(directory, "program.mjs");
  writeFileSync(program, `import { writeFileSync } from "node:fs"; writeFileSync(${JSON.stringify(mark)}, "");`);
  const ended = await launch("", { program, searchPath: pathWith() });
  assert.equal(ended.how, "no-walls");
  assert.equal(existsSync(mark), false);
  const refused = await evaluateTypeScriptBundle(bundle, { searchPath: pathWith() });
  assert.ok(!refused.ok);
  const [{ code, message, hint = "" } = assert.fail("why it is refused")] = refused.error;
  assert.equal(code, "typescript/no-walls");
  assert.match(message, /TypeScript is not evaluated here: the walls around it need perl.*does not have/);
  assert.match(hint, /SmartFrog, JSON or YAML/);
});

test("each program of the walls is needed, by root more than by others", { skip: process.platform !== "linux" }, () => {
  const ofRoot = process.getuid?.() === 0 ? ["setpriv", "unshare", "prlimit", "sh"] : [];
  const all = ["perl", ...ofRoot];
  assert.ok(walled(["true"], [process.execPath], pathWith(...all)).ok);
  for (const missing of all) {
    const walls = walled(["true"], [process.execPath], pathWith(...all.filter((name) => name !== missing)));
    assert.ok(!walls.ok && walls.error.includes(missing), missing);
  }
});

test("in the service image's one file of JavaScript, with nothing beside it, it is refused as well", () => {
  const entry = join(directory, "entry.ts");
  const evaluate = JSON.stringify(join(repository, "runtime/specification/evaluate.ts"));
  writeFileSync(
    entry,
    `import { evaluate } from ${evaluate};
    evaluate(${JSON.stringify(bundle)}).then((outcome) => process.stdout.write(JSON.stringify(outcome)));`,
  );
  const out = join(directory, "bundle.cjs");
  const bundler = join(repository, "node_modules/@esbuild/linux-x64/bin/esbuild");
  // As `image/service.ts` has it.
  const flags = ["--bundle", "--platform=node", "--target=node24", "--format=cjs", "--log-level=error"];
  execFileSync(bundler, [entry, `--outfile=${out}`, ...flags], { cwd: repository });
  const outcome = JSON.parse(execFileSync(process.execPath, [out], { encoding: "utf8" }));
  assert.deepEqual([outcome.ok, outcome.error[0].code], [false, "typescript/no-walls"]);
});
