import assert from "node:assert/strict";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { buildPage } from "./build.ts";

const [firstLoad, furtherPage] = [200_000, 250_000];
let [directory, sizes] = ["", new Map<string, number>() as ReadonlyMap<string, number>];
before(async () => {
  directory = await mkdtemp(join(tmpdir(), "cells-page-"));
  ({ sizes } = await buildPage(directory));
});
after(() => rm(directory, { recursive: true, force: true }));

/** Files that a file asks for before it runs. */
async function needs(name: string, known = new Set<string>()): Promise<ReadonlySet<string>> {
  if (known.has(name)) return known;
  known.add(name);
  const text = await readFile(join(directory, name), "utf8");
  for (const [, other = ""] of text.matchAll(/(?:from|import)\s*"\.\/([\w.-]+)"/g)) await needs(other, known);
  return known;
}
const octets = (names: Iterable<string>): number => [...names].reduce((sum, name) => sum + (sizes.get(name) ?? 0), 0);

test("the first load is small, and so is what each further page brings", async () => {
  const main = [...sizes.keys()].find((name) => /^main-.*\.js$/.test(name)) ?? assert.fail();
  const first = await needs(main);
  const style = [...sizes.keys()].filter((name) => /\.(?:css|svg)$|^follow-worker/.test(name));
  assert.ok(octets([...first, ...style]) <= firstLoad, `${octets([...first, ...style])} octets`);
  const text = await readFile(join(directory, main), "utf8");
  const pages = [...text.matchAll(/import\("\.\/([\w.-]+)"\)/g)].map(([, name = ""]) => name);
  assert.equal(new Set(pages).size, 12, "each page but the first is a file of its own");
  for (const page of pages) {
    const brings = octets([...(await needs(page))].filter((name) => !first.has(name)));
    assert.ok(brings > 0 && brings <= furtherPage, `${page}: ${brings} octets`);
  }
  // What a page has come later, as the language of specifications, is as small.
  const later = new Set<string>();
  for (const page of pages)
    for (const [, name = ""] of (await readFile(join(directory, page), "utf8")).matchAll(/import\("\.\/([\w.-]+)"\)/g))
      later.add(name);
  assert.ok(later.size > 0);
  for (const name of later) {
    const brings = octets([...(await needs(name))].filter((each) => !first.has(each)));
    assert.ok(brings > 0 && brings <= furtherPage, `${name}: ${brings} octets`);
  }
});
