import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { readSpecification } from "../specification/specification.ts";
import { smallInstallation } from "../testing/small-installation.testing.ts";
import { diagnosticPages, explanationOf, renderPage } from "./diagnostic-codes.ts";
import type { Example } from "./diagnostic-page.ts";

const root = join(import.meta.dirname, "../..");
const sources = (folder: string): readonly string[] =>
  readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".ts") && !/\.(test|testing|fuzz)\.ts$|diagnostic-pages?[/.]/.test(name))
    .map((name) => readFileSync(join(root, folder, name), "utf8"));

/** Prefixes of codes; log events (`vm/…`) have others. */
const families = [...new Set([...diagnosticPages.keys()].flatMap((code) => code.match(/^[a-z]+(?=\/)/) ?? []))];

/** Codes in a text: literals of a known family, and whatever a function that reports is called with. */
function codesIn(text: string): ReadonlySet<string> {
  // An event may have the prefix of a family: what is logged is no code.
  const code = text
    .replace(/\/\*[\s\S]*?\*\/|(^|\s)\/\/.*$/gm, "$1")
    .replace(/\blog\((?:[\w.]+, )?"[a-z]+\/[a-z-]+"/g, "");
  const literals = new RegExp(`["'](?:${families.join("|")})/[a-z][a-z-]*["']`, "g");
  const reports =
    /(?:\b(?:fault|fail|report|refuse|error|stop|wrong|ValueFault)\(|\bcode:)\s*["']([a-z]+(?:[/-][a-z]+)*)["']/g;
  const refusals = [...code.matchAll(/\brefused\((?:\d+|[\w.]+\.status),[^;]*/g)].flatMap(
    ([call]) => call.match(/"[a-z]+(?:-[a-z]+)*"/g) ?? [],
  );
  const answers =
    /\b(?:\w*[rR]efused|\w*[rR]efus(?:al|eUpgrade))\((?:[\w.]+, )?\s*[^,"()]+,\s*"([a-z]+(?:-[a-z]+)*)",/g;
  return new Set([
    ...(code.match(literals) ?? []).map((literal) => literal.slice(1, -1)),
    ...[...code.matchAll(reports)].map((match) => match[1] ?? ""),
    ...refusals.map((literal) => literal.slice(1, -1)),
    ...[...code.matchAll(answers)].map((match) => match[1] ?? ""),
  ]);
}

test("each code of the sources has a page, and each page a code", () => {
  const folders = [
    "model",
    "core/controller",
    "core/tenancy",
    "runtime/specification",
    "runtime/controller",
    "gateway",
  ];
  const images = readFileSync(join(root, "host/storage-agent/images/image-store.ts"), "utf8");
  const used = new Set([...folders.flatMap(sources), images].flatMap((text) => [...codesIn(text)]));
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
    'x ? "syntax/new" : 1; this.#fault("novel/thing", m); refused(4, a ? "one-two" : "three"); log(state.outbox, "syntax/told", {}); log("syntax/told", {}); // "link/no"';
  assert.deepEqual([...codesIn(text)].sort(), ["novel/thing", "one-two", "syntax/new", "three"]);
  const answers =
    'refuseUpgrade(socket, 403, "four", m); sendRefusal(a.response, 413, "five-six", m); throw new Refused(409, "seven", m); throw refused(\n  401,\n  "eight",\n  `no`)';
  assert.deepEqual([...codesIn(answers)].sort(), ["eight", "five-six", "four", "seven"]);
});

/** Examples in the languages that are read outside of the model are run in `runtime/specification/`. */
const isHere = (example: Example): boolean => example.kind !== "bundle" || /\.(sf|json)$/.test(example.bundle.main);

const codesOf = (example: Exclude<Example, { kind: "request" }>): readonly string[] => {
  const read = readSpecification(example.kind === "large" ? example.bundle() : example.bundle, smallInstallation);
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
  // What is no fault of a specification can only be a request.
  const ofTexts = (codes: readonly string[]): number => codes.filter((code) => /^(?!image).*\//.test(code)).length;
  assert.ok(ofTexts(requests) * 5 < ofTexts([...diagnosticPages.keys()]));
  for (const code of requests)
    assert.match(
      code,
      /^(typescript\/(types|stopped|busy|no-walls)|cell\/(wrong-name|account|host|place|dedication|pool|no-open-host|own-vm|volume-shrinks|volume-is-origin|held)|change\/destroys-data|(patch|idempotency)\/[a-z-]+|image\/[a-z-]+|limit\/document|document\/.*|tree\/no-component|[a-z-]+)$/,
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
