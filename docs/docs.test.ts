import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, test } from "node:test";
import { elementSchemas } from "../model/cell/schema.ts";
import { callFault, cellOf, printedBy, scriptCommands } from "./testing/command-line.testing.ts";
import { type Block, blocksOf, type Document, entriesOf, isShown, wordsOf } from "./testing/documents.testing.ts";
import {
  attributeFaults,
  blockFaults,
  codeFaults,
  commandFaults,
  formatFaults,
  indexFaults,
  type Library,
  languageFaults,
  linkFaults,
  pathFaults,
  specificationFaults,
} from "./testing/rules.testing.ts";

/** JSON that a specification in TypeScript reads, or its compiler. */
const isPart = /^examples\/shop-typescript\/.*\.json$/;

/*
 * What the documents say is so: specifications check, commands exist, links lead somewhere, and what a command is shown
 * to print it prints. Each rule is tried on a text that breaks it. How a block of a document says what it is:
 *
 *   ```sf · ```json             a whole specification
 *   ```sf fragment              a piece; only its syntax is checked
 *   ```sf wrong                 refused
 *   ```sf from=tutorial/…/x.sf  stands in that file
 *   ```console                  commands with what they print; a line `…` leaves lines out
 *
 * A comment `<!-- … -->` in the line before a block `console` says `cell: FILE`, of which specification the cell is that
 * `plan` and `apply` find; `edit: FILE: old => new && old => new`, what is changed first; or `recorded`, that a running cloud printed
 * this: then only what is printed before it is asked is compared; of the tutorial, the rest by
 * `testbed/tenants/tutorial.test.ts`.
 */

const root = join(import.meta.dirname, "..");

const paths = execFileSync("git", ["ls-files", "--cached", "--others", "--exclude-standard"], {
  cwd: root,
  encoding: "utf8",
}).split("\n");
const folders = new Set(paths.map((path) => dirname(path)).flatMap((path) => [path, dirname(path)]));
const known = new Set([...paths, ...folders]);
const read = (wanted: (path: string) => boolean): readonly Document[] =>
  paths.filter(wanted).flatMap((path) => {
    try {
      return [{ path, text: readFileSync(join(root, path), "utf8") }];
    } catch {
      return []; // Deleted, not yet committed.
    }
  });

/** What the root cell's specifications need of the language; without it they are not looked at. */
const range = elementSchemas.Subnet["x.addressRange"]?.kind;
const hasManagement = range?.kind === "choice" && range.values.includes("management");
const isReadable = (path: string): boolean => hasManagement || !path.startsWith("examples/root/");

const library: Library = {
  documents: read((path) => /^(docs\/.*|editors\/.*|README)\.md$/.test(path)),
  sources: read((path) => /^(docs\/tutorial|examples)\/.*\.(sf|json)$/.test(path) && !isPart.test(path)).filter(
    ({ path }) => isReadable(path),
  ),
  exists: (path) => known.has(path),
};
/** For rules that README.md, which is older than they are, does not keep. */
const pages: Library = { ...library, documents: library.documents.filter(({ path }) => path.startsWith("docs/")) };

const report = (faults: readonly string[]): void => assert.equal(faults.join("\n"), "");

const markdown = (text: string): Library => ({
  documents: [{ path: "docs/page.md", text }],
  sources: library.sources,
  exists: (path) => path === "docs/page.md",
});
const source = (path: string, text: string): Document => ({ path, text });
const sources = (...all: readonly Document[]): Library => ({ documents: [], sources: all, exists: () => false });
const good = "shop extends Cell { }\n";

test("every specification of docs/ and examples/ checks", () => {
  assert.ok(library.sources.filter(({ path }) => path.endsWith("/shop.sf")).length >= 10);
  report(specificationFaults(library));
  assert.equal(specificationFaults(sources(source("docs/a.sf", "shop extends Call { }\n"))).length, 1);
  assert.equal(specificationFaults(sources(source("docs/a.json", "{}"))).length, 1);
  const parts = [source("docs/a.sf", `#include "b.sf"\n${good}`), source("docs/b.sf", "a 1;\n")];
  assert.equal(specificationFaults(sources(...parts)).length, 0);
});

test("they are formatted", () => {
  report(formatFaults(library));
  assert.equal(formatFaults(sources(source("docs/a.sf", "shop   extends Cell { }\n"))).length, 1);
});

test("what stands there in two languages is one cell", () => {
  assert.ok(library.sources.some(({ path }) => path.endsWith("/shop.json")));
  report(languageFaults(library));
  const json = '{"shop": {"x.type": "Cell", "vm": {"x.type": "VM", "x.memory": 128}}}';
  assert.equal(languageFaults(sources(source("docs/a.sf", good), source("docs/a.json", json))).length, 1);
});

test("blocks of specifications check, or say that they are pieces", () => {
  report(blockFaults(pages));
  for (const broken of [
    "```sf\nvm extends VM { }\n```",
    "```sf\nshop  extends Cell { }\n```",
    "```json\n{}\n```",
    "```sf fragment\nvm extends {\n```",
    "```sf wrong\nshop extends Cell { }\n```",
    "```sf from=tutorial/01-one-machine/shop.sf\nx.memory 1000000;\n```",
    "```sf somehow\nshop extends Cell { }\n```",
    "```\nshop extends Cell { }\n```",
  ])
    assert.equal(blockFaults(markdown(`text\n\n${broken}\n`)).length, 1, broken);
});

test("every command that is named exists, with its options", () => {
  assert.ok(library.documents.length >= 3);
  report(commandFaults(library));
  for (const broken of [
    "`cells aply shop.sf`",
    "`cells apply shop.sf --allow-destruction a`",
    "`cells spec lint`",
    "`./cells get a b`",
    "```console\n$ cells apply\n```",
    "```console\n$ cells up --hosts 2 --racks 3\n```",
  ])
    assert.equal(commandFaults(markdown(`${broken}\n`)).length, 1, broken);
  for (const right of [
    ["image", "add", "a", "b", "--format", "raw"],
    ["why", "a", "->", "b"],
    ["up", "-d", "x"],
  ])
    assert.equal(callFault(right, true), null);
  const script = readFileSync(join(root, "cells"), "utf8");
  for (const name of scriptCommands) assert.match(script, new RegExp(`\\b${name}\\b`));
});

test("links lead somewhere", () => {
  report(linkFaults(library));
  assert.equal(linkFaults(markdown("[a](none.md)")).length, 1);
  assert.equal(linkFaults(markdown("# A b\n[a](#a-b) [c](#c)")).length, 1);
});

test("files, error codes and attributes that are named exist", () => {
  report([...pathFaults(pages), ...codeFaults(library), ...attributeFaults(library)]);
  assert.equal(pathFaults(markdown("`docs/none.md`")).length, 1);
  assert.equal(codeFaults(markdown("`schema/none` and `shop/web`")).length, 1);
  assert.equal(codeFaults(markdown("```console\n$ cells explain nothing-such\n```")).length, 1);
  assert.equal(attributeFaults(markdown("`x.size`, `x.limits.*`, `x.sise`, `x.limit.*`")).length, 2);
});

test("the index names every document", () => {
  report(indexFaults(library));
  assert.equal(indexFaults(markdown("text")).length, 1);
});

/** What is shown and not printed, of one block; in a copy of the folders, which is as the block wants it. */
async function shownFaults(path: string, block: Block): Promise<readonly string[]> {
  const { directive } = block;
  const recorded = /\brecorded\b/.test(directive);
  const cell = /\bcell: (\S+?)(?:;|$)/.exec(directive)?.[1] ?? null;
  const edit = /\bedit: (\S+): (.+)$/.exec(directive);
  const [, file = "", changes = ""] = edit ?? [];
  const before = edit === null ? "" : readFileSync(file, "utf8");
  let edited = before;
  for (const change of edit === null ? [] : changes.split(" && ")) {
    const [old = "", now = ""] = change.split(/ => ?/);
    if (!edited.includes(old)) return [`${path}:${block.line}: ${file} does not contain ${old}`];
    edited = edited.replace(old, now);
  }
  const existing = cell === null ? null : cellOf(cell);
  try {
    if (edit !== null) writeFileSync(file, edited);
    const faults: string[] = [];
    for (const { line, command, output } of entriesOf(block)) {
      const words = wordsOf(command);
      const where = `${path}:${line}: ${command}`;
      const alone = words !== null && /^(spec|explain|plan|apply)$/.test(words[0] ?? "");
      if (!alone && !recorded) faults.push(`${where}: say \`recorded\`, since nothing here can print this`);
      if (!alone) continue;
      const printed = await printedBy(words, existing);
      if (!printed.whole && !recorded) faults.push(`${where}: say \`recorded\`, since a cloud goes on with it`);
      // Where a cloud goes on, what is shown begins with what is printed before.
      const shown = printed.whole ? [output] : [output, ...output.map((_, at) => output.slice(0, at))];
      if (!shown.some((lines) => isShown(lines, printed.lines)))
        faults.push(`${where} prints\n${printed.lines.join("\n")}`);
    }
    return faults;
  } finally {
    if (edit !== null) writeFileSync(file, before);
  }
}

test("what a command is shown to print, it prints", async () => {
  const copy = mkdtempSync(join(tmpdir(), "cells-docs-"));
  after(() => {
    process.chdir(root);
    rmSync(copy, { recursive: true, force: true });
  });
  for (const folder of ["docs", "examples"]) cpSync(join(root, folder), join(copy, folder), { recursive: true });
  process.chdir(copy);
  // What the rules above say of each specification, the command says as well; languages that only it knows are among them.
  const parts = library.sources.flatMap(({ path, text }) =>
    [...text.matchAll(/^#include "([^"]+)"/gm)].map(([, name]) => join(dirname(path), name ?? "")),
  );
  const whole = /^(docs\/tutorial|examples)\/(.*\.(sf|json|ya?ml)|.*\/shop\.ts)$/;
  for (const path of paths.filter(
    (each) => whole.test(each) && isReadable(each) && !isPart.test(each) && !parts.includes(each),
  ))
    assert.match((await printedBy(["spec", "check", path], null)).lines.join("\n"), /: no errors$/, path);
  const faultsOf = async ({ path, text }: Document): Promise<readonly string[]> => {
    const blocks = blocksOf({ path, text }).filter(({ language }) => language === "console");
    const faults: string[] = [];
    for (const block of blocks) faults.push(...(await shownFaults(path, block)));
    return faults;
  };
  for (const document of pages.documents) report(await faultsOf(document));
  const first = "docs/tutorial/01-one-machine/shop.sf";
  const check = `$ cells spec check ${first}`;
  const cases: readonly (readonly [faults: number, text: string])[] = [
    [0, `${check}\n${first}: the cell shop, 4 elements: no errors`],
    [1, `${check}\n${first}: the cell shop, 5 elements: no errors`],
    [0, `$ cells plan ${first}\n…\nPlan: 4 to create, 0 unchanged.`],
    [1, `$ cells plan ${first}\n…\nPlan: 5 to create, 0 unchanged.`],
    [1, "$ cells get\nshop"],
    [1, `$ cells apply ${first} --yes\n…`],
  ];
  for (const [faults, text] of cases)
    assert.equal((await faultsOf({ path: "page.md", text: `\`\`\`console\n${text}\n\`\`\`\n` })).length, faults, text);
  const commented = (comment: string, text: string): Document => ({
    path: "page.md",
    text: `<!-- ${comment} -->\n\`\`\`console\n${text}\n\`\`\`\n`,
  });
  const nothing = `$ cells plan ${first}\nNothing to do: the cell is as specified (4 unchanged).`;
  assert.deepEqual(await faultsOf(commented(`cell: ${first}`, nothing)), []);
  assert.equal((await faultsOf(commented(`edit: ${first}: no such text => other`, nothing))).length, 1);
  assert.equal(
    (await faultsOf(commented(`cell: ${first}; edit: ${first}: x.memory 128 => x.memory 256`, nothing))).length,
    1,
  );
  assert.deepEqual(await faultsOf(commented("recorded", "$ cells get\nshop")), []);
});
