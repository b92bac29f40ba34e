import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import type { Bundle, Cell, RuleEnd } from "../../model/cell/cell.ts";
import type { StorageOffer } from "../../model/check/check-storage.ts";
import { foreseenOf } from "../../model/plan/foreseen.ts";
import { planChange } from "../../model/plan/plan.ts";
import { readSpecification } from "../../model/specification/specification.ts";
import { evaluate } from "../../runtime/specification/evaluate.ts";
import { callFault } from "./command-line.testing.ts";

/*
 * What documents show comes up where there is an image `tiny`, what they recorded is said in these words today, and commands that
 * the program's own texts name are there.
 */
const root = join(import.meta.dirname, "../..");
const read = (path: string): string => readFileSync(join(root, path), "utf8");
const paths = execFileSync("git", ["ls-files", "--cached", "--others", "--exclude-standard"], {
  cwd: root,
  encoding: "utf8",
})
  .split("\n")
  .filter((path) => path !== "");

const much = 1_000_000;
const offer: StorageOffer = {
  totalMiB: much,
  freeMiB: much,
  largestFreeMiB: much,
  largestMiB: much,
  largestCopyMiB: much,
  promisableMiB: much,
  images: [{ name: "tiny", sizeMiB: 64 }],
};
const missed = (cell: Cell): readonly string[] =>
  foreseenOf(cell, planChange(null, cell), offer).map(({ path, says }) => `${path}: ${says}`);

/** A file with what lies beside it. */
const bundleOf = (path: string): Bundle => {
  const folder = dirname(path);
  const names = paths.filter((each) => dirname(each) === folder && /\.(sf|json)$/.test(each));
  return {
    main: path.slice(folder.length + 1),
    files: Object.fromEntries(names.map((each) => [each.slice(folder.length + 1), read(each)])),
  };
};

test("the example of security groups lets in what its groups say, and nothing else", () => {
  const cell = readSpecification(bundleOf("examples/security-groups.sf"));
  assert.ok(cell.ok);
  const group = (end: RuleEnd): string => {
    if (end.kind === "element") return end.path.replace(/^store\/groups\/(\w+)\/members$/, "$1");
    return end.kind === "cidr" ? end.cidr : end.kind;
  };
  const opened = [...cell.value.elements.values()].flatMap((element) => {
    if (element.type !== "NetworkRule") return [];
    const { address1, address2, protocol, port2, direction } = element;
    return [`${group(address1)} ${direction} ${group(address2)} ${protocol} ${port2?.from}`];
  });
  assert.deepEqual(opened, [
    "internet 1to2 web tcp 443",
    "ops 1to2 web tcp 22",
    "web 1to2 database tcp 5432",
    "ops 1to2 database tcp 22",
    "203.0.113.0/24 1to2 ops tcp 22",
  ]);
});

test("what the tutorial and the examples show boots from something", () => {
  const shown = paths.filter((path) =>
    /^((docs\/tutorial|examples)\/.*\/shop|examples\/(public-web|security-groups|egress|own-gateway))\.sf$/.test(path),
  );
  assert.ok(shown.length >= 10, String(shown.length));
  for (const path of shown) {
    const cell = readSpecification(bundleOf(path));
    assert.ok(cell.ok, path);
    assert.deepEqual(missed(cell.value), [], path);
  }
});

/** Blocks of a document that are indented, without it. */
const indented = (text: string): readonly string[] =>
  [...text.matchAll(/(?:^ {4}.*\n|^\n(?= {4}))+/gm)].map(([block]) => block.replace(/^ {4}/gm, ""));

test("the example of docs/typescript.md is a cell that comes up", async () => {
  const [example] = indented(read("docs/typescript.md")).filter((block) => block.includes("export default cell("));
  assert.ok(example !== undefined);
  const cellOf = async (text: string): Promise<Cell> => {
    const evaluated = await evaluate({ main: "shop.ts", files: { "shop.ts": text } });
    const cell = evaluated.ok ? readSpecification(evaluated.value) : evaluated;
    assert.ok(cell.ok, JSON.stringify(cell));
    return cell.value;
  };
  assert.deepEqual(missed(await cellOf(example)), []);
  const empty = example.replace("volumeCopy({ image: golden })", "volume({ size: 64 })");
  assert.match(missed(await cellOf(empty)).join(), /nothing to boot from/);
});

/** What a check says, as a pattern: what is filled in may be anything. */
const sentencesOf = (source: string): readonly RegExp[] =>
  [...source.matchAll(/`((?:[^`\\]|\\.)*)`/g)]
    .map(([, text = ""]) => text.split(/\$\{(?:[^{}]|\{[^{}]*\})*\}/))
    .filter((parts) => parts.join("").replace(/[^a-z]/g, "").length > 5)
    .map((parts) => new RegExp(`^${parts.map((part) => part.replace(/[.*+?^$()|[\]\\{}]/g, "\\$&")).join(".*")}$`));

test("recorded answers of `cells why` are in the words of today", () => {
  const sentences = sentencesOf(read("host/drivers/network/diverter/examine.ts"));
  let count = 0;
  for (const path of paths.filter((each) => /^docs\/.*\.md$/.test(each)))
    for (const [, detail = ""] of read(path).matchAll(/^ {2}[✓✗] {2}host \S+ \((?:sender|receiver)\) +\S+ +(.*)$/gm)) {
      count += 1;
      assert.ok(
        sentences.some((sentence) => sentence.test(detail)),
        `${path}: nothing says "${detail}"`,
      );
    }
  assert.ok(count >= 10, String(count));
});

test("commands that hints, refusals and checks name are there, with their options", () => {
  const sources = paths.filter(
    (path) => /^(model|core|runtime|host|gateway|cli)\/.*\.ts$/.test(path) && !/\.test(ing)?\.ts$/.test(path),
  );
  const faults: string[] = [];
  let count = 0;
  for (const path of sources)
    for (const line of read(path).split("\n")) {
      if (/^\s*(\*|\/\/|\/\*)/.test(line)) continue;
      // Within a text, where the backtick of a template is escaped; a template may begin with the word, too.
      for (const { 0: all, 1: call = "", index } of line.matchAll(/\\?`(?:\.\/)?cells ([a-z][^`\\]*?)\\?`/g)) {
        const isQuoted = [...line.matchAll(/"(?:[^"\\]|\\.)*"/g)].some(
          (quoted) => quoted.index < index && index < quoted.index + quoted[0].length,
        );
        if (!all.startsWith("\\") && !isQuoted) continue;
        const filled = call.replace(/(\S?)\$\{(?:[^{}]|\{[^{}]*\})*\}/g, (_, before: string) => before || "name");
        const words = filled
          .replace(/["']|<.*/g, "")
          .trim()
          .split(/\s+/);
        count += 1;
        const fault = callFault(
          words.filter((word) => word !== "…"),
          false,
        );
        if (fault !== null) faults.push(`${path}: ${call}: ${fault}`);
      }
    }
  assert.deepEqual(faults, []);
  assert.ok(count > 60, String(count));
  assert.notEqual(callFault(["orphans", "relaese", "name"], false), null);
});
