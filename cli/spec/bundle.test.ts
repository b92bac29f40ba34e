import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { includesOf, readBundle } from "./bundle.ts";

const inDirectory = (files: Readonly<Record<string, string>>, work: (directory: string) => void): void => {
  const directory = mkdtempSync(join(tmpdir(), "cells-bundle-"));
  try {
    for (const [name, text] of Object.entries(files)) {
      mkdirSync(join(directory, name, ".."), { recursive: true });
      writeFileSync(join(directory, name), text);
    }
    work(directory);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
};

const names = (text: string): readonly string[] => includesOf(text).map(({ name }) => name);

test("includes in comments and strings are none", () => {
  const text = `
#include "a.sf"
// #include "b.sf"
/* #include "c.sf"
*/ x "a \\" #include \\"d.sf"; y ##
#include "e.sf"
#;
  #include  "sub/f.sf"
`;
  assert.deepEqual(names(text), ["a.sf", "sub/f.sf"]);
});

test("includes are found in texts of any length, and behind what is not closed", () => {
  const long = "x".repeat(1_000_000);
  assert.deepEqual(names(`a "${long}"; b ##${long}\n#; /*${long}*/\n#include "a.sf"`), ["a.sf"]);
  assert.deepEqual(names(`${"/*".repeat(1_000_000)}\n#include "a.sf"`), []);
  assert.deepEqual(names('a "not closed;\n#include "a.sf"'), ["a.sf"]);
});

test("a bundle that is too large together is not read on", () => {
  const many = Object.fromEntries(Array.from({ length: 9 }, (_, at) => [`f${at}.sf`, `// ${"x".repeat(2 ** 21)}`]));
  const main = Object.keys(many)
    .map((name) => `#include "${name}"`)
    .join("\n");
  inDirectory({ ...many, "main.sf": main }, (directory) => {
    for (const missing of ["refuse", "leave-out"] as const)
      assert.throws(() => readBundle(join(directory, "main.sf"), missing), /larger than 16 MiB together/);
  });
});

test("a bundle is the file and all that it includes, relative to the including file", () => {
  const files = {
    "main.sf": '#include "parts/one.sf"\n#include "two.sf"',
    "two.sf": "",
    "parts/one.sf": '#include "../two.sf"\n#include "three.sf"',
    "parts/three.sf": '#include "../main.sf"',
    "other.sf": "",
  };
  inDirectory(files, (directory) => {
    const bundle = readBundle(join(directory, "main.sf"));
    assert.equal(bundle.main, "main.sf");
    assert.deepEqual(Object.keys(bundle.files).sort(), ["main.sf", "parts/one.sf", "parts/three.sf", "two.sf"]);
  });
});

test("nothing from outside the file's directory is sent", () => {
  inDirectory(
    { "in/up.sf": '#include "../out.sf"', "in/abs.sf": '#include "/etc/passwd"', "out.sf": "" },
    (directory) => {
      assert.throws(() => readBundle(join(directory, "in/up.sf")), /outside/);
      assert.throws(() => readBundle(join(directory, "in/abs.sf")), /outside/);
      symlinkSync(join(directory, "out.sf"), join(directory, "in/link.sf"));
      writeFileSync(join(directory, "in/sly.sf"), '#include "link.sf"');
      assert.throws(() => readBundle(join(directory, "in/sly.sf")), /outside/);
    },
  );
});

test("a file that may be missing is sent where there is one, and is no fault where there is none", () => {
  assert.deepEqual(includesOf('#include ? "a.sf"\n#include? "b.sf"'), [
    { name: "a.sf", optional: true },
    { name: "b.sf", optional: true },
  ]);
  inDirectory({ "main.sf": '#include ? "gone.sf"\n#include ? "there.sf"', "there.sf": "a 1;" }, (directory) => {
    assert.deepEqual(Object.keys(readBundle(join(directory, "main.sf")).files), ["main.sf", "there.sf"]);
  });
});

test("a file that is not there is named, with who includes it", () => {
  inDirectory({ "main.sf": '#include "gone.sf"', "x.txt": "" }, (directory) => {
    assert.throws(
      () => readBundle(join(directory, "main.sf")),
      /gone\.sf, which main\.sf includes: there is no such file/,
    );
    assert.throws(() => readBundle(join(directory, "none.sf")), /none\.sf: there is no such file/);
    assert.throws(() => readBundle(join(directory, "x.txt")), /\.sf/);
  });
});

test("bytes that are no UTF-8 are refused, with the line that they are in", () => {
  inDirectory({ "main.sf": '#include "part.sf"' }, (directory) => {
    const part = join(directory, "part.sf");
    const after = (bytes: readonly number[]): Buffer =>
      Buffer.concat([Buffer.from("a 1;\nb 2;\n"), Buffer.from(bytes)]);
    // A lone continuation, an overlong `/`, half a surrogate pair, beyond U+10FFFF, and a character cut off.
    for (const bytes of [[0x80], [0xc0, 0xaf], [0xed, 0xa0, 0x80], [0xf4, 0x90, 0x80, 0x80], [0xe2, 0x82]]) {
      writeFileSync(part, after(bytes));
      assert.throws(() => readBundle(join(directory, "main.sf")), /part\.sf is not text in UTF-8 \(line 3\)/);
    }
    writeFileSync(part, after([0xe2, 0x82, 0xac]));
    assert.equal(readBundle(join(directory, "main.sf")).files["part.sf"], "a 1;\nb 2;\n€");
  });
});

test("a file larger than a specification may be is not read at all", () => {
  inDirectory({ "main.sf": "" }, (directory) => {
    const file = join(directory, "main.sf");
    truncateSync(file, 17 * 1024 * 1024);
    assert.throws(() => readBundle(file), /larger than 16 MiB/);
  });
});

test("a TypeScript specification brings what it imports, in its directory", () => {
  const files = {
    "in/main.ts": `import { cell } from "cells/model"; import { a } from "./a.ts"; export * from "./sub/b";
      import type { T } from "./types.ts"; import j from "./j.json" with { type: "json" };
      // import "./comment.ts"
      const text = 'import "./text.ts"'; await import("./late.ts"); import "../out.ts"; import "./gone.ts"; import "left-pad";`,
    "in/a.ts": 'import "../main.ts";',
    "in/sub/b.ts": 'import "../c.js";',
    "in/c.ts": "",
    "in/j.json": "{}",
    "in/types.ts": "",
    "in/comment.ts": "",
    "in/text.ts": "",
    "in/late.ts": "",
    "in/other.ts": "",
    "out.ts": "",
  };
  inDirectory(files, (directory) => {
    const bundle = readBundle(join(directory, "in/main.ts"));
    assert.equal(bundle.main, "main.ts");
    assert.deepEqual(Object.keys(bundle.files).sort(), ["a.ts", "c.ts", "j.json", "late.ts", "main.ts", "sub/b.ts"]);
    symlinkSync(join(directory, "out.ts"), join(directory, "in/link.ts"));
    writeFileSync(join(directory, "in/sly.ts"), 'import "./link.ts";');
    assert.throws(() => readBundle(join(directory, "in/sly.ts")), /outside/);
  });
});
