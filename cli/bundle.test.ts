import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
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
  assert.deepEqual(includesOf(text), ["a.sf", "sub/f.sf"]);
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
