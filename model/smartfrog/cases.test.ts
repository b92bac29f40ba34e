import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { Diagnostics } from "../diagnostics.ts";
import type { Component, Value } from "./component.ts";
import { resolveSmartFrog } from "./document.ts";

/*
 * Outcomes recorded from HP's parser. What it makes of a component is compared as plain JSON: the widths of numbers and
 * its tags mean nothing to a cell. Copies of the cases are used where the shared folder is absent.
 */
const shared = new URL("../../../shared/cases/smartfrog/", import.meta.url);
const copies = new URL("../cases/", import.meta.url);
const folder = existsSync(shared) ? shared : copies;

/** Pass now and must go on passing. The others need functions, schemas, tags or HP's own include files. */
const passing = [
  ...["bool", "comments", "double-suffix", "duplicate-sfConfig", "extends-cycle", "extends-forward", "extends-multi"],
  ...["extends-multi-nocomma-last", "extends-nested-merge", "extends-order", "extends-self", "extends-simple"],
  ...["extra-semicolons", "hex", "if-nonbool", "include-missing", "int-overflow", "lazy-unresolved-ok", "link-basic"],
  ...["link-chain", "link-cycle", "link-nested-parent", "link-self", "link-word-second-is-here", "missing-value"],
  ...["multiline-empty", "no-sfConfig", "op-append", "op-cmp", "op-cmp-string-lt", "op-concat-vector"],
  ...["op-inherit-reeval", "op-logic", "op-minus-nary", "op-mod", "op-no-paren", "op-single", "op-sum-int-long"],
  ...["op-type-error", "optional-nodefault", "place-basic", "place-multipass", "place-override-cd", "place-unresolved"],
  ...["ref-multi-root", "ref-url-string", "reserved-lower", "sfConfig-not-cd", "string-escapes"],
  ...["string-unicode-escape", "switch", "tbd-outside-sfConfig", "unbalanced", "unresolved-in-template"],
  ...["vector-basic", "vector-expr", "vector-trailing-comma", "word-digit-first", "word-hyphen-minus-spaced"],
];

/** The recorded encoding without what is not compared. */
function plain(recorded: unknown): unknown {
  if (Array.isArray(recorded)) return recorded.map(plain);
  if (typeof recorded !== "object" || recorded === null) return recorded;
  const entries = new Map<string, unknown>(Object.entries(recorded));
  const pairs = entries.get("$cd");
  if (Array.isArray(pairs))
    return pairs.map((pair: unknown) => (Array.isArray(pair) ? [pair[0], plain(pair[1])] : pair));
  if (entries.has("$null")) return null;
  if (entries.has("$ref")) return entries.get("$ref");
  if (entries.has("$class")) return entries.get("text");
  const number = entries.get("$long") ?? entries.get("$float") ?? entries.get("$double");
  return Number(number);
}
function plainComponent(component: Component): unknown {
  return [...component.attributes].map(([name, { content, link }]) => {
    if (content.kind === "component") return [name, plainComponent(content)];
    assert.equal(link.state, "done", `${name} is linked`);
    return [name, link.state === "done" ? plainValue(link.value) : null];
  });
}
function plainValue(value: Value): unknown {
  if (value.kind === "component") return plainComponent(value);
  if (value.kind === "vector") return value.items.map(plainValue);
  if (value.kind === "null") return null;
  if (value.kind === "bytes") return `#HEX#${value.value}#`;
  return value.kind === "lazy" ? value.text : value.value;
}

const expected = new Map<string, { ok: boolean; phase?: string; sfConfig?: unknown }>(
  Object.entries(JSON.parse(readFileSync(new URL("expected.json", folder), "utf8"))),
);
const phases = new Map([
  ["syntax", "raw"],
  ["type", "type"],
  ["place", "place"],
  ["link", "link"],
]);

for (const name of passing)
  test(`case ${name}`, () => {
    const outcome = expected.get(name);
    assert.ok(outcome, "the case has a recorded outcome");
    const main = `${name}.sf`;
    const diagnostics = new Diagnostics();
    const files = { [main]: readFileSync(new URL(main, folder), "utf8") };
    const root = resolveSmartFrog({ main, files }, [], diagnostics);
    const configuration = root?.attributes.get("sfConfig")?.content;
    if (outcome.ok) {
      assert.deepEqual(diagnostics.list, []);
      assert.ok(configuration?.kind === "component");
      assert.deepEqual(plainComponent(configuration), plain(outcome.sfConfig));
    } else if (outcome.phase === "sfConfig") {
      // A cell needs no sfConfig, so this is no fault of its own here.
      assert.notEqual(configuration?.kind, "component");
    } else {
      const [first] = diagnostics.list;
      assert.ok(first?.position, "a fault with its position");
      assert.equal(phases.get(first.code.split("/")[0] ?? ""), outcome.phase);
      assert.doesNotMatch(first.code, /not-supported/);
    }
  });

test("an unsuffixed decimal keeps its digits, and exponents are read, unlike in HP's parser", () => {
  const diagnostics = new Diagnostics();
  const text = "sfConfig extends { a 1534.45; b 1.5; c 1e5; }";
  const root = resolveSmartFrog({ main: "a.sf", files: { "a.sf": text } }, [], diagnostics);
  const configuration = root?.attributes.get("sfConfig")?.content;
  assert.ok(configuration?.kind === "component");
  assert.deepEqual(plainComponent(configuration), [
    ["a", 1534.45],
    ["b", 1.5],
    ["c", 100_000],
  ]);
});
