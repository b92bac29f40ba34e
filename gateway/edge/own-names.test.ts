import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import type { ProcessConfiguration } from "../../runtime/installation.ts";
import { ownNames } from "./own-names.ts";

test("a certificate is parsed once, and again when it is another one", async (t) => {
  const directory = await mkdtemp(join(tmpdir(), "own-names-"));
  t.after(() => rm(directory, { recursive: true }));
  const certFile = join(directory, "certificate");
  await writeFile(certFile, "one.example");
  let parsed = 0;
  const other = { isFor: (name: string) => name === "other.example" };
  const isOwn = ownNames({ certificate: { certFile } } as unknown as ProcessConfiguration, other, (text) => {
    parsed += 1;
    return { checkHost: (name) => (name === String(text) ? name : undefined) };
  });
  for (let n = 0; n < 20; n += 1) assert.deepEqual([isOwn("one.example"), isOwn("two.example")], [true, false]);
  assert.equal(parsed, 1);
  assert.equal(isOwn("other.example"), true, "the other one's name is one, too");
  await writeFile(certFile, "two.example");
  assert.deepEqual([isOwn("one.example"), isOwn("two.example"), parsed], [false, true, 2]);
  await rm(certFile);
  assert.equal(isOwn("two.example"), false);
});
