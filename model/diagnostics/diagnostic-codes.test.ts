import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import type { Supply } from "../check/check-supply.ts";
import { readSpecification } from "../specification/specification.ts";
import { diagnosticPages, explanationOf, renderPage } from "./diagnostic-codes.ts";
import type { Example } from "./diagnostic-page.ts";

const root = join(import.meta.dirname, "../..");
/** An installation that the examples of what is too much are too much for. */
const pool = { pool: "10.64.0.0/16", largest: 4096, fixed: ["10.64.0.0/12"] };
const sizeMiB = 65_536;
const supply: Supply = {
  hosts: [{ host: "h1", memoryMiB: 4096, cpus: 8, cpuSpeedMHz: 2400 }],
  storage: {
    ...{ totalMiB: sizeMiB, freeMiB: sizeMiB, largestFreeMiB: sizeMiB },
    ...{ largestMiB: sizeMiB, largestCopyMiB: sizeMiB, promisableMiB: sizeMiB },
  },
  addresses: { internal: pool, external: pool, reserved: [], shortestPrefix: 16, longestPrefix: 29 },
};

const sources = (folder: string): readonly string[] =>
  readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".ts") && !/\.(test|testing|fuzz)\.ts$|diagnostic-pages?[/.]/.test(name))
    .map((name) => readFileSync(join(root, folder, name), "utf8"));

/** Prefixes of codes; log events (`vm/…`) have others. */
const families = [...new Set([...diagnosticPages.keys()].flatMap((code) => code.match(/^[a-z]+(?=\/)/) ?? []))];

/** Codes in a text: literals of a known family, and whatever a function that reports is called with. */
function codesIn(text: string): ReadonlySet<string> {
  // An event may have the prefix of a family: what is logged is no code.
  const code = text.replace(/\/\*[\s\S]*?\*\/|(^|\s)\/\/.*$/gm, "$1").replace(/\blog\([\w.]+, "[a-z]+\/[a-z-]+"/g, "");
  const literals = new RegExp(`["'](?:${families.join("|")})/[a-z][a-z-]*["']`, "g");
  const reports =
    /(?:\b(?:fault|fail|report|refuse|error|stop|wrong|ValueFault)\(|\bcode:)\s*["']([a-z]+(?:[/-][a-z]+)*)["']/g;
  const refusals = [...code.matchAll(/\brefused\((?:\d+|[\w.]+\.status),[^;]*/g)].flatMap(
    ([call]) => call.match(/"[a-z]+(?:-[a-z]+)*"/g) ?? [],
  );
  return new Set([
    ...(code.match(literals) ?? []).map((literal) => literal.slice(1, -1)),
    ...[...code.matchAll(reports)].map((match) => match[1] ?? ""),
    ...refusals.map((literal) => literal.slice(1, -1)),
  ]);
}

test("each code of the sources has a page, and each page a code", () => {
  const folders = ["model", "core/controller", "runtime/specification"];
  const used = new Set(folders.flatMap(sources).flatMap((text) => [...codesIn(text)]));
  assert.deepEqual(
    [...used].filter((code) => !diagnosticPages.has(code)).sort(),
    [],
    "codes without a page: add one in model/diagnostics/pages/",
  );
  assert.deepEqual(
    [...diagnosticPages.keys()].filter((code) => !used.has(code)).sort(),
    [],
    "pages that no code leads to: remove them",
  );
});

test("the search for codes finds them however they are written", () => {
  const text =
    'x ? "syntax/new" : 1; this.#fault("novel/thing", m); refused(4, a ? "one-two" : "three"); log(state.outbox, "syntax/told", {}); // "link/no"';
  assert.deepEqual([...codesIn(text)].sort(), ["novel/thing", "one-two", "syntax/new", "three"]);
});

/** Examples in the languages that are read outside of the model are run in `runtime/specification/`. */
const isHere = (example: Example): boolean => example.kind !== "bundle" || /\.(sf|json)$/.test(example.bundle.main);

const codesOf = (example: Exclude<Example, { kind: "request" }>): readonly string[] => {
  const read = readSpecification(example.kind === "large" ? example.bundle() : example.bundle, supply);
  return read.ok ? [] : [...new Set(read.error.map(({ code }) => code))];
};

for (const [code, { wrong, right }] of diagnosticPages) {
  if (wrong.kind === "request" || right.kind === "request" || !isHere(wrong)) continue;
  test(`the examples of ${code}`, () => {
    assert.deepEqual(codesOf(wrong), [code]);
    assert.deepEqual(codesOf(right), []);
  });
}

test("most examples are run here; the others are requests", () => {
  const requests = [...diagnosticPages].filter(([, { wrong }]) => wrong.kind === "request").map(([code]) => code);
  assert.ok(requests.length * 5 < diagnosticPages.size);
  for (const code of requests)
    assert.match(
      code,
      /^(typescript\/(types|stopped|busy|no-walls)|cell\/(wrong-name|own-vm|volume-shrinks|volume-is-origin)|change\/destroys-data|image\/format|limit\/document|document\/.*|tree\/no-component|[a-z-]+)$/,
    );
});

test("a page is found by its code, by its last part, or by what is close to it", () => {
  const found = explanationOf("Schema/Unknown-Attribute");
  assert.ok("page" in found);
  assert.equal(found.code, "schema/unknown-attribute");
  const short = explanationOf("unknown-attribute");
  assert.ok("page" in short && short.code === "schema/unknown-attribute");
  assert.deepEqual(explanationOf("schema/unkown-attribute"), { closest: "schema/unknown-attribute" });
  assert.deepEqual(explanationOf("zebra"), { closest: undefined });
  const text = renderPage(found.code, found.page, (line) => `# ${line}`);
  assert.match(text, /^# schema\/unknown-attribute: .*\n\n[\s\S]*# Wrong\n\n {4}shop extends Cell/);
});
